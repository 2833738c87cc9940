#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "measure/client.h"
#include "net/response_reader.h"
#include "wire/sse.h"
#include "wire/stream_decoder.h"

namespace anvil::measure {

// Turns the bytes of one answer into the stamps, chunks, text and outcome of its row. No I/O and no
// clock: every call says when its bytes came. Lifecycle: begin(), then bytes until finished();
// once finished the row is final and further calls do nothing. One attempt at a time; the owner's
// thread.
class Recorder {
 public:
  explicit Recorder(const Limits& limits);

  // `row` must outlive the attempt; its plan fields are read, the rest is filled in.
  void begin(evidence::RequestRow& row);
  // Bytes that came in one read: all its events get its stamp.
  void on_bytes(std::string_view bytes, Nanos at);
  // The peer closed its side.
  void on_closed(Nanos at);
  // The connection failed, a limit ran out or the run was cancelled.
  void on_failed(const Error& error);

  bool finished() const { return finished_; }
  bool any_bytes() const { return reader_.any_bytes(); }
  // The error of a read that failed with this errno, for on_failed().
  Error read_error(int errno_value) const { return reader_.read_error(errno_value); }
  // Events of the stream so far, and those of them that carried output.
  uint64_t events() const { return events_; }
  uint64_t output_events() const { return row_ != nullptr ? row_->chunks.size() : 0; }
  // Fetches what the next event of the stream will touch into the caches.
  void prefetch() const;
  // The field of that name, after the head of the answer.
  const std::string& retry_after() const { return retry_after_; }
  // When the terminal marker or an error event came: only the end of the body is missing.
  std::optional<Nanos> settled_at() const { return settled_at_; }
  // After finished(): the connection may carry another request.
  bool reusable() const { return reusable_; }

 private:
  enum class Mode { kStream, kUnary, kErrorStatus };

  Result<void> on_head();
  Result<void> on_payload(std::string_view bytes, Nanos at);
  Result<void> on_event(const wire::SseEvent& event, Nanos at);
  void add_chunk(const wire::Delta& delta, Nanos at);
  void complete(Nanos at);
  void complete_unary(Nanos at);
  void complete_error_status();
  void finish(evidence::Outcome outcome, Kind kind, std::string detail);
  void finish_ok();
  void finish_row();

  const Limits& limits_;
  evidence::RequestRow* row_ = nullptr;
  net::ResponseReader reader_;
  wire::SseSplitter splitter_;
  wire::StreamDecoder decoder_;
  Mode mode_ = Mode::kStream;
  std::string body_;
  std::string retry_after_;
  uint64_t generated_bytes_ = 0;
  uint64_t events_ = 0;
  int64_t late_in_batch_ = 0;
  size_t expected_chunks_ = 0;      // the most that an answer had so far
  size_t expected_text_ = 0;        // likewise, bytes
  std::optional<int64_t> counted_;  // completion tokens at the last output event, if known there
  std::optional<Nanos> settled_at_;
  bool finished_ = true;
  bool reusable_ = false;
};

// How an attempt ends that failed with this error, before anything of the answer is considered.
evidence::Outcome outcome_of(Kind kind);

}  // namespace anvil::measure
