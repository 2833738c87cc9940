#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace anvil::wire {

// One dispatched event. Views are valid until the splitter is called again.
struct SseEvent {
  std::string_view event;  // "" when the stream did not name it
  std::string_view data;   // lines joined by LF
  std::string_view id;     // the last event id, which persists
  std::optional<uint64_t> retry_ms;
};

// Splits a byte stream into server-sent events by the WHATWG rules: LF, CRLF and CR line ends in
// any mixture and at any split, one BOM, comments, `data:` with and without a space. An event that
// lies whole in one input, with one data line, is not copied. An event without a data field is not
// dispatched; an unfinished event at the end of the stream is dropped (see unfinished()).
//
// Lifecycle: one stream, then reset(). Thread: the owner's. Does not allocate once its buffers have
// grown.
class SseSplitter {
 public:
  explicit SseSplitter(size_t max_event_bytes = 4u << 20) : max_event_bytes_(max_event_bytes) {}

  // Takes bytes from the front of `input` until an event is complete (true, `event` filled) or the
  // input is used up (false). kTooLarge when the lines of one event exceed the limit.
  Result<bool> next(std::string_view& input, SseEvent& event);

  // Calls sink(const SseEvent&) -> Result<void> for every event that the bytes complete.
  template <class Sink>
  Result<void> feed(std::string_view bytes, Sink&& sink) {
    SseEvent event;
    for (;;) {
      Result<bool> got = next(bytes, event);
      if (!got) return fail(std::move(got).error());
      if (!*got) return {};
      Result<void> taken = sink(static_cast<const SseEvent&>(event));
      if (!taken) return taken;
    }
  }

  // Bytes of an event have arrived whose end has not.
  bool unfinished() const { return event_bytes_ > 0 || !line_.empty(); }
  // At least one comment line has been seen since the last call.
  bool take_comment() { return std::exchange(comment_, false); }
  void reset();

 private:
  void take_line(std::string_view line, bool stays);
  void keep();

  size_t max_event_bytes_;
  std::string line_;        // the beginning of a line whose end has not arrived
  std::string data_;        // data that had to be joined or kept
  std::string event_name_;  // name that had to be kept
  std::string id_;
  std::string_view data_view_;   // the data so far: in the input, or data_
  std::string_view event_view_;  // likewise for the name
  std::optional<uint64_t> retry_ms_;
  size_t event_bytes_ = 0;  // bytes of the complete lines of this event
  uint8_t bom_ = 0;         // bytes of a byte order mark matched; kBomDone when behind it
  bool has_data_ = false;
  bool data_kept_ = false;  // data_view_ lies in data_
  bool after_cr_ = false;   // the next LF belongs to the line end before it
  bool dispatched_ = false;
  bool comment_ = false;
};

}  // namespace anvil::wire
