#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/chunked.h"
#include "wire/http_head.h"

namespace anvil::net {

// What may be wrong when a connection ends before any byte of an answer.
inline constexpr const char* kNoAnswerHint =
    "did the engine crash? If the port speaks TLS, write https:// in the address";

// Takes the bytes of a connection apart into a response head and pieces of its body, whatever the
// framing. No I/O. Lifecycle: one per connection; begin() before every request. Thread: the
// owner's.
class ResponseReader {
 public:
  enum class Event {
    kMore,     // the input is used up
    kHead,     // head() is valid
    kPayload,  // payload() holds the next piece of the body, a view into the input
    kEnd,      // the answer is complete
  };

  // `method` of the request whose answer comes next.
  void begin(std::string_view method);
  // Takes bytes from the front of `input` up to the next event. After kEnd nothing is taken: what
  // is left in `input` does not belong to the answer.
  Result<Event> next(std::string_view& input);
  // The peer closed. Fine where the close is the end of the body, else kReset that says what was
  // missing.
  Result<void> closed();

  // The error of a read that failed with this errno.
  Error read_error(int errno_value) const;

  const wire::ResponseHead& head() const { return parser_.head(); }  // from kHead to begin()
  std::string_view payload() const { return payload_; }
  bool any_bytes() const { return any_bytes_; }
  bool has_head() const { return state_ != State::kHead; }
  bool ended() const { return state_ == State::kEnded; }
  // After kEnd: the connection may carry another request.
  bool reusable() const { return ended() && head().keep_alive && framed_; }
  // The first bytes that arrived, for error messages: at most 80, control bytes escaped.
  std::string first_bytes() const;

 private:
  enum class State { kHead, kBody, kEnded };
  Result<Event> read_head(std::string_view& input);
  Event end();

  std::string method_;
  std::string head_text_;
  wire::ResponseHeadParser parser_;
  wire::ChunkedDecoder chunked_;
  wire::BodyFraming framing_;
  std::string_view payload_;
  State state_ = State::kHead;
  uint64_t remaining_ = 0;
  bool any_bytes_ = false;
  bool framed_ = false;  // the end is known without a close
};

// Foreign bytes made fit for an error message: at most `limit` of them, control bytes escaped, in
// double quotes.
std::string quote_bytes(std::string_view bytes, size_t limit = 80);

}  // namespace anvil::net
