#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::wire {

struct HeaderField {
  std::string_view name;
  std::string_view value;  // without the white space around it
};

inline constexpr size_t kMaxHeadBytes = 64 * 1024;
inline constexpr size_t kMaxHeadFields = 256;

// A final response head whose framing has been judged. Views point into the buffer that was parsed.
struct ResponseHead {
  int version_minor = 1;  // HTTP/1.x
  int status = 0;
  std::string_view reason;
  std::vector<HeaderField> fields;
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;  // the peer lets the connection be used again, if the body's end is known

  // First field of that name, case-insensitive; "" if absent.
  std::string_view field(std::string_view name) const;
};

// Strict incremental parser of a response head. Interim answers (1xx) are skipped. Refused, because
// two readers could disagree about them: bare LF or CR, NUL and other control bytes, folded lines,
// white space before the colon, Content-Length that is repeated, a list or not plain digits,
// Transfer-Encoding other than one exact `chunked`, both of them together, chunked in HTTP/1.0,
// 101.
//
// Lifecycle: one object per connection; reset() before every answer. After the first answer it does
// not allocate. Thread: the owner's.
class ResponseHeadParser {
 public:
  // `buffer` holds everything received since reset(), from the same first byte in every call (it
  // may have moved). Returns how many bytes the head took, interim heads included, or 0 while it is
  // incomplete. Errors: kProtocol, kTooLarge (limit named).
  Result<size_t> parse(std::string_view buffer);
  // Valid after parse() returned a size, as long as that buffer lives.
  const ResponseHead& head() const { return head_; }
  void reset();

 private:
  Result<bool> scan(std::string_view buffer);
  Result<void> read_head(std::string_view text);
  Result<void> read_status_line(std::string_view line);
  Result<void> read_field(std::string_view line);
  Result<void> judge_framing();

  ResponseHead head_;
  size_t begin_ = 0;    // where the current (interim or final) head begins
  size_t scanned_ = 0;  // bytes known to hold no end of the head and no forbidden byte
  size_t line_ = 0;     // where the line that is being scanned begins
};

// How the end of a body is found (RFC 9112 section 6.3).
struct BodyFraming {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // kLength only
};
BodyFraming body_framing(const ResponseHead& head, std::string_view method);

// "METHOD target HTTP/1.1", Host, then `fields` in order, then the empty line. The caller names
// Content-Length and Connection itself. A byte that could end a line or a word early, in any part,
// is an error (kUsage), so that no value can smuggle a field.
Result<std::string> request_head(std::string_view method, std::string_view target,
                                 std::string_view host, std::span<const HeaderField> fields = {});

}  // namespace anvil::wire
