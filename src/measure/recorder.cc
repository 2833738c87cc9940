#include "measure/recorder.h"

#include <algorithm>

#include "base/strings.h"

namespace anvil::measure {

using evidence::Outcome;

namespace {
// An error body is kept for its message; more than this is read and dropped.
constexpr size_t kErrorBodyBytes = 64 * 1024;
constexpr size_t kMostExpectedChunks = 4096;
constexpr size_t kMostExpectedText = 32 * 1024;

bool is_event_stream(std::string_view type) {
  constexpr std::string_view kType = "text/event-stream";
  return base::iequals(type.substr(0, kType.size()), kType);
}

std::string describe(const wire::ReportedError& error) {
  std::string out = error.message.empty() ? "no message" : error.message;
  if (!error.type.empty()) out += " (type " + error.type + ")";
  if (!error.code.empty()) out += " (code " + error.code + ")";
  return base::to_valid_utf8(out);
}
}  // namespace

Outcome outcome_of(Kind kind) {
  switch (kind) {
    case Kind::kTimeout:
      return Outcome::kTimeout;
    case Kind::kCancelled:
      return Outcome::kCancelled;
    case Kind::kProtocol:
      return Outcome::kProtocolError;
    case Kind::kTooLarge:
      return Outcome::kTooLarge;
    case Kind::kHttpStatus:
      return Outcome::kHttpError;
    case Kind::kUpstreamError:
      return Outcome::kErrorInStream;
    case Kind::kReset:
    case Kind::kIo:
      return Outcome::kTruncated;
    default:
      return Outcome::kConnectFailed;
  }
}

Recorder::Recorder(const Limits& limits)
    : limits_(limits),
      splitter_(limits.event_bytes > 0 ? limits.event_bytes : SIZE_MAX),
      decoder_(wire::Api::kChat) {}

void Recorder::begin(evidence::RequestRow& row) {
  row_ = &row;
  reader_.begin("POST");
  splitter_.reset();
  decoder_.reset(row.api);
  decoder_.expect_text(expected_text_);
  mode_ = Mode::kStream;
  body_.clear();
  retry_after_.clear();
  generated_bytes_ = 0;
  events_ = 0;
  late_in_batch_ = 0;
  counted_ = 0;
  settled_at_.reset();
  finished_ = false;
  reusable_ = false;
}

void Recorder::prefetch() const {
  if (row_ == nullptr) return;
  constexpr size_t kLine = 64;
  const auto* first = reinterpret_cast<const char*>(&row_->stamps);
  for (size_t at = 0; at < sizeof row_->stamps; at += kLine) __builtin_prefetch(first + at, 1);
  __builtin_prefetch(&row_->chunks, 1);
  decoder_.prefetch();
}

void Recorder::on_bytes(std::string_view bytes, Nanos at) {
  using Event = net::ResponseReader::Event;
  if (finished_ || bytes.empty()) return;
  evidence::Stamps& stamps = row_->stamps;
  if (!stamps.first_byte) {
    stamps.first_byte = at;
    // The kernel's stamp of a quick answer can lie before our clock was read behind the last send:
    // the request had left by then.
    if (stamps.sent && at < *stamps.sent) stamps.sent = at;
  }
  while (!finished_) {
    const Result<Event> event = reader_.next(bytes);
    if (!event) return on_failed(event.error());
    Result<void> taken;
    switch (*event) {
      case Event::kMore:
        return;
      case Event::kHead:
        taken = on_head();
        break;
      case Event::kPayload:
        taken = on_payload(reader_.payload(), at);
        break;
      case Event::kEnd:
        reusable_ = reader_.reusable() && bytes.empty();
        complete(at);
        return;
    }
    if (!taken) return on_failed(taken.error());
  }
}

Result<void> Recorder::on_head() {
  const wire::ResponseHead& head = reader_.head();
  row_->status = head.status;
  retry_after_ = base::to_valid_utf8(head.field("retry-after"));
  const std::string_view encoding = head.field("content-encoding");
  if (!encoding.empty() && !base::iequals(encoding, "identity"))
    return fail(Kind::kProtocol, Side::kUpstream,
                "the answer is encoded as " + net::quote_bytes(encoding) +
                    " although only identity was accepted");
  const std::string_view type = head.field("content-type");
  if (head.status < 200 || head.status > 299)
    mode_ = Mode::kErrorStatus;
  else if (!row_->stream || (!type.empty() && !is_event_stream(type)))
    mode_ = Mode::kUnary;
  return {};
}

Result<void> Recorder::on_payload(std::string_view bytes, Nanos at) {
  switch (mode_) {
    case Mode::kStream:
      return splitter_.feed(bytes,
                            [&](const wire::SseEvent& event) { return on_event(event, at); });
    case Mode::kErrorStatus:
      body_.append(bytes.substr(0, kErrorBodyBytes - body_.size()));
      return {};
    case Mode::kUnary:
      if (limits_.body_bytes > 0 && body_.size() + bytes.size() > limits_.body_bytes)
        return fail(Kind::kTooLarge, Side::kUpstream,
                    "limit body_bytes (" + base::format_bytes(limits_.body_bytes) +
                        "): the answer is larger");
      body_.append(bytes);
      return {};
  }
  return {};
}

Result<void> Recorder::on_event(const wire::SseEvent& event, Nanos at) {
  evidence::Stamps& stamps = row_->stamps;
  ++events_;
  if (!stamps.first_event) stamps.first_event = at;
  const Result<wire::Delta> read = decoder_.on_event(event.event, event.data);
  if (!read) return fail(read.error());
  const wire::Delta& delta = *read;
  if (delta.output()) {
    add_chunk(delta, at);
    generated_bytes_ += delta.reasoning_bytes + delta.content_bytes + delta.tool_bytes;
    if (limits_.body_bytes > 0 && generated_bytes_ > limits_.body_bytes)
      return fail(Kind::kTooLarge, Side::kUpstream,
                  "limit body_bytes (" + base::format_bytes(limits_.body_bytes) +
                      "): more text was generated");
  }
  if (delta.usage) stamps.usage = at;
  if (delta.done && !stamps.done) stamps.done = at;
  if ((delta.done || delta.error) && !settled_at_) settled_at_ = at;
  return {};
}

void Recorder::add_chunk(const wire::Delta& delta, Nanos at) {
  evidence::Stamps& stamps = row_->stamps;
  if (!stamps.first_output) {
    stamps.first_output = at;
    row_->chunks.reserve(expected_chunks_);
  } else if (stamps.last_output == at) {
    ++late_in_batch_;
  }
  if (delta.visible() && !stamps.first_visible) stamps.first_visible = at;
  stamps.last_output = at;

  evidence::Chunk chunk;
  chunk.since_sent = stamps.sent ? at - *stamps.sent : 0;
  const int kinds =
      (delta.reasoning_bytes > 0) + (delta.content_bytes > 0) + (delta.tool_bytes > 0);
  chunk.kind = kinds > 1 ? 'm' : delta.reasoning_bytes > 0 ? 'r' : delta.tool_bytes > 0 ? 't' : 'c';
  chunk.bytes = delta.reasoning_bytes + delta.content_bytes + delta.tool_bytes;
  // Counts are cumulative: this chunk's share is known only if the one before had a count too.
  if (delta.completion_tokens && counted_ && *delta.completion_tokens >= *counted_)
    chunk.tokens = *delta.completion_tokens - *counted_;
  counted_ = delta.completion_tokens;
  row_->chunks.push_back(chunk);
}

void Recorder::on_closed(Nanos at) {
  if (finished_) return;
  if (reader_.any_bytes()) row_->stamps.eof = at;
  if (const Result<void> closed = reader_.closed(); !closed) return on_failed(closed.error());
  complete(at);
}

void Recorder::on_failed(const Error& error) {
  if (finished_) return;
  reusable_ = false;
  std::string detail = base::to_valid_utf8(base::to_string(error));
  const bool cut = error.kind == Kind::kReset || error.kind == Kind::kIo;
  if (mode_ == Mode::kErrorStatus && reader_.has_head() && cut) return complete_error_status();
  if (settled_at_ && (cut || error.kind == Kind::kTimeout)) return finish_ok();
  if (error.kind == Kind::kProtocol && mode_ == Mode::kUnary && reader_.has_head())
    detail += "; the body began with " + net::quote_bytes(body_);
  finish(outcome_of(error.kind), error.kind, std::move(detail));
}

void Recorder::complete(Nanos at) {
  row_->stamps.eof = at;
  switch (mode_) {
    case Mode::kErrorStatus:
      return complete_error_status();
    case Mode::kUnary:
      return complete_unary(at);
    case Mode::kStream:
      break;
  }
  if (settled_at_) return finish_ok();
  reusable_ = false;
  std::string detail = splitter_.unfinished() ? "the stream ended in the middle of an event"
                                              : "the stream ended without its terminal marker";
  if (!row_->stamps.first_event) detail += ", before any event";
  finish(Outcome::kTruncated, Kind::kReset,
         detail + "; " + std::to_string(row_->chunks.size()) + " output events had arrived");
}

void Recorder::complete_unary(Nanos at) {
  Result<wire::Answer> parsed = wire::parse_answer(row_->api, body_);
  if (!parsed) return on_failed(parsed.error());
  row_->answer = std::move(*parsed);
  const wire::Answer& answer = row_->answer;
  evidence::Stamps& stamps = row_->stamps;
  if (answer.error) return finish_ok();
  if (row_->stream)
    return finish(Outcome::kProtocolError, Kind::kProtocol,
                  "a stream was asked for, the answer has the type " +
                      net::quote_bytes(reader_.head().field("content-type")) + " and begins with " +
                      net::quote_bytes(body_));
  const bool visible = !answer.content.empty() || !answer.tool_calls.empty();
  if (visible || !answer.reasoning.empty()) stamps.first_output = stamps.last_output = at;
  if (visible) stamps.first_visible = at;
  if (!answer.usage.empty()) stamps.usage = at;
  finish_ok();
}

void Recorder::complete_error_status() {
  wire::ReportedError reported = wire::parse_error_body(body_);
  std::string detail = "HTTP status " + std::to_string(row_->status) + ": " + describe(reported);
  if (!retry_after_.empty()) detail += "; Retry-After: " + retry_after_;
  row_->answer.error = std::move(reported);
  finish(Outcome::kHttpError, Kind::kHttpStatus, std::move(detail));
}

void Recorder::finish_ok() {
  const auto& error = mode_ == Mode::kStream ? decoder_.answer().error : row_->answer.error;
  if (error)
    return finish(Outcome::kErrorInStream, Kind::kUpstreamError,
                  "the answer reports an error: " + describe(*error));
  row_->outcome = Outcome::kOk;
  row_->error_kind.clear();
  finish_row();
}

void Recorder::finish(Outcome outcome, Kind kind, std::string detail) {
  row_->outcome = outcome;
  row_->error_kind = base::describe(kind).name;
  row_->error_detail =
      row_->error_detail.empty() ? std::move(detail) : row_->error_detail + "; then: " + detail;
  finish_row();
}

void Recorder::finish_row() {
  if (mode_ == Mode::kStream) row_->answer = decoder_.take_answer();
  const wire::Answer& answer = row_->answer;
  if (reader_.any_bytes()) row_->late_in_batch = late_in_batch_;
  // The next answer is probably no longer than the longest so far: room for it is made at once, so
  // that its events do not allocate.
  expected_chunks_ = std::min(std::max(expected_chunks_, row_->chunks.size()), kMostExpectedChunks);
  expected_text_ = std::min(std::max(expected_text_, answer.content.size()), kMostExpectedText);
  row_->token_source = answer.usage.completion                         ? "usage"
                       : answer.timings && answer.timings->predicted_n ? "timings"
                                                                       : "none";
  finished_ = true;
}

}  // namespace anvil::measure
