#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace anvil::base {

// What went wrong, as a closed list. Everything that depends on the kind of an error (its name in
// output and metrics, the process exit code, the HTTP status) comes from one table,
// `describe(Kind)`.
enum class Kind {
  kUsage,          // the command line is wrong
  kInvalidInput,   // a file or value that a person wrote is wrong
  kNotFound,       // a named thing is not there
  kPermission,     // the operating system refuses access
  kDiskFull,       // no space, or a read-only file system
  kIo,             // any other failure of a file or descriptor
  kPortInUse,      // the address is taken
  kConnect,        // nobody answers at the address
  kReset,          // the peer closed or reset before the answer was complete
  kTimeout,        // a named limit ran out
  kProtocol,       // the peer sent bytes that break the protocol
  kTooLarge,       // more bytes than the declared limit
  kHttpStatus,     // the peer answered with an error status
  kUpstreamError,  // the peer reported an error inside a successful answer
  kEngineExited,   // the engine process ended when it should run
  kEngineStuck,    // the engine runs but makes no progress
  kMismatch,       // what is observed is not what was declared
  kTampered,       // evidence does not match its own hashes
  kUnsupported,    // understood, and not possible with this engine, host or build
  kCancelled,      // a person or a signal stopped it
  kInternal,       // a bug of ours
};

// Who failed.
enum class Side { kClient, kUpstream, kEngine, kHost, kInternal };

// Whether the same call may be repeated: kIfReused only when the failed connection had been used
// before and no byte of the answer had arrived.
enum class Retry { kNo, kIfReused, kYes };

// The exit codes of the program.
enum ExitCode : int {
  kExitOk = 0,
  kExitGate = 1,
  kExitUsage = 2,
  kExitEnvironment = 3,
  kExitInternal = 4
};

struct KindInfo {
  std::string_view name;  // stable, snake_case: used in JSON, metrics and tests
  int exit_code;
  int http_status;
};
const KindInfo& describe(Kind kind);
std::string_view name(Side side);
std::string_view name(Retry retry);

// A place in a file that a person can edit. Lines and columns count from 1; 0 means unknown.
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
  std::string key;  // dotted path of the key, empty if not about one
};
std::string to_string(const Position& at);  // "file:line:col: key" with unknown parts left out

struct Error {
  Kind kind = Kind::kInternal;
  Side side = Side::kInternal;
  Retry retry = Retry::kNo;
  std::string detail;  // what happened and where, one sentence, no trailing full stop
  std::string hint;    // likely cause and what to do next; may be empty
  std::optional<Position> at;

  Error() = default;
  Error(Kind k, Side s, std::string d, std::string h = {})
      : kind(k), side(s), detail(std::move(d)), hint(std::move(h)) {}

  Error& with_retry(Retry r) {
    retry = r;
    return *this;
  }
  Error& with_position(Position p) {
    at = std::move(p);
    return *this;
  }
  // Prefixes the detail: "reading the recipe: no such file".
  Error& with_context(std::string_view context);
};

// One line for people: position, detail, hint.
std::string to_string(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> fail(Kind kind, Side side, std::string detail, std::string hint = {}) {
  return tl::unexpected<Error>(Error(kind, side, std::move(detail), std::move(hint)));
}

// The value of a Result that holds one; nothing for Result<void>.
template <class T>
T take_value(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// The error of a failed system call: kind and hint from errno. `what` names the call and its
// object, e.g. "open /etc/anvil/host.toml".
Error from_errno(int errno_value, std::string what);

}  // namespace anvil::base

namespace anvil {
using base::Error;
using base::fail;
using base::Kind;
using base::Position;
using base::Result;
using base::Retry;
using base::Side;
}  // namespace anvil

// TRY(expr): the value of a Result, or return its error from this function. Statement expression,
// so it can stand on the right of an assignment; with Result<void> it has no value.
#define TRY(expr)                                                           \
  __extension__({                                                           \
    auto&& try_result_ = (expr);                                            \
    if (!try_result_) return ::anvil::fail(std::move(try_result_).error()); \
    ::anvil::base::take_value(std::move(try_result_));                      \
  })
