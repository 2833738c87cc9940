#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/http_head.h"

namespace anvil::wire {

// A request head whose framing has been judged. Views point into the buffer that was parsed.
struct RequestHead {
  std::string_view method;
  std::string_view target;
  int version_minor = 1;  // HTTP/1.x
  std::vector<HeaderField> fields;
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;  // Expect: 100-continue

  // First field of that name, case-insensitive; "" if absent.
  std::string_view field(std::string_view name) const;
};

// Strict incremental parser of a request head. Refused, because two readers could disagree about
// them: what ResponseHeadParser refuses, and further no Host or several in HTTP/1.1, a method that
// is no token, a target with a blank in it. Empty lines before the request line are skipped.
//
// Lifecycle: one object per connection; reset() before every request. Thread: the owner's.
class RequestHeadParser {
 public:
  // `buffer` holds everything received since reset(), from the same first byte in every call (it
  // may have moved). Returns how many bytes the head took, or 0 while it is incomplete. Errors:
  // kProtocol, kTooLarge (limit named); side: client.
  Result<size_t> parse(std::string_view buffer);
  // Valid after parse() returned a size, as long as that buffer lives.
  const RequestHead& head() const { return head_; }
  void reset();

 private:
  Result<void> read_head(std::string_view text);
  Result<void> read_request_line(std::string_view line);
  Result<void> read_field(std::string_view line);
  Result<void> judge();

  RequestHead head_;
  size_t scanned_ = 0;  // bytes known to hold no end of the head and no forbidden byte
  size_t line_ = 0;     // where the line that is being scanned begins
  size_t begin_ = 0;    // where the request line begins
};

}  // namespace anvil::wire
