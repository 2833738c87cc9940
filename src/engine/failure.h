#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/interface_table.h"
#include "engine/runner.h"

namespace anvil::engine {

// How a serve ended, as far as the operating system and our own limits know.
struct Ending {
  enum class How {
    kExited,         // `code`
    kSignalled,      // `signal`
    kStuck,          // stopped by us: no progress for `seconds`
    kCeiling,        // stopped by us: not ready within `seconds`
    kNotExecutable,  // never ran: `detail` says why
    kPortTaken,      // never ran: `detail` names the owner where it is visible
    kForeignPort,    // somebody else answers at our address: `detail`
    kCancelled,      // stopped by a person or a signal
  };
  How how = How::kExited;
  int code = 0;
  int signal = 0;
  double seconds = 0;
  std::string detail = {};
};
// "exited with code 1", "killed by signal 9 (SIGKILL)", ...
std::string describe(const Ending& ending);

// Finds the cause of a failed start or a death in the engine's log, by the signatures of its
// interface table
// ([[failure]]). The FIRST line that shows a cause counts; lines that only wrap one ("Engine core
// initialization failed. See root cause above") never do. Where no line shows one, how the process
// ended decides; else the failure is "unclassified" and keeps the last 20 lines in `line`. One
// object follows one serve. Not thread-safe.
class FailureClassifier {
 public:
  explicit FailureClassifier(const InterfaceTable& table);

  // Every log line in order, with the phase that was current when it came.
  void feed(std::string_view line, std::string_view phase);
  // A cause was seen (the serve may still be alive).
  bool found() const { return found_.has_value(); }
  Failure classify(const Ending& ending, std::string_view phase) const;

 private:
  std::shared_ptr<const InterfaceTable::Rules> rules_;
  std::optional<Failure> found_;
  std::optional<Failure> fallback_;  // a rule that is only better than nothing
  std::optional<Failure> mild_;      // a cause in a line that reports no error
  std::deque<std::string> tail_;
};

// The same for a whole log at once, every line in one phase.
Failure classify(const InterfaceTable& table, const std::vector<std::string>& lines,
                 const Ending& ending, std::string_view phase);

}  // namespace anvil::engine
