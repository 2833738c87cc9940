#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "wire/answer.h"

namespace anvil::wire {

// Turns the events of one streamed answer into an Answer, and says of each event what it added.
// Reads every spelling: reasoning, reasoning_content and thinking; usage and llama.cpp timings in
// any event; errors inside a successful stream. Unknown fields are ignored. With several choices
// only choice 0 is read.
//
// Lifecycle: one answer, then reset(Api). Thread: the owner's; the decoders of one thread share
// their parser. Allocates only for appended text.
class StreamDecoder {
 public:
  explicit StreamDecoder(Api api);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  // `event_type` is the SSE event name or "". JSON that is malformed or has the wrong shape is
  // kProtocol and quotes its first 80 bytes; an error that the engine reports is no failure of this
  // call: it stands in the delta and in answer().error.
  Result<Delta> on_event(std::string_view event_type, std::string_view data);

  const Answer& answer() const;
  Answer take_answer();
  // The terminal marker was seen: [DONE], response.completed, .incomplete or .failed.
  bool done() const;
  void reset(Api api);
  // Fetches what the next event will touch into the caches.
  void prefetch() const;
  // Makes room for this much text when the first of it comes. Stays until it is set again.
  void expect_text(size_t bytes);
  // Reads the body of a request that was not streamed, on a fresh decoder (see parse_answer).
  Result<Answer> read_whole(std::string_view body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The answer of a request that was not streamed. An error object in a 200 body becomes
// Answer::error. kProtocol when the body is no JSON object.
Result<Answer> parse_answer(Api api, std::string_view body);

// What an error body says: OpenAI error object or string, FastAPI {"detail": ...}, {"message":
// ...}, or plain text (first 500 bytes). Never fails; an empty body gives an empty message.
ReportedError parse_error_body(std::string_view body);

}  // namespace anvil::wire
