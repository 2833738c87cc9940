#include "net/response_reader.h"

#include <algorithm>

#include "base/strings.h"
#include "net/tls.h"

namespace anvil::net {

void ResponseReader::begin(std::string_view method) {
  method_ = method;
  head_text_.clear();
  parser_.reset();
  chunked_.reset();
  framing_ = {};
  payload_ = {};
  state_ = State::kHead;
  remaining_ = 0;
  any_bytes_ = false;
  framed_ = false;
}

Result<ResponseReader::Event> ResponseReader::read_head(std::string_view& input) {
  const size_t before = head_text_.size();
  head_text_.append(input);
  Result<size_t> size = parser_.parse(head_text_);
  if (!size) {
    Error error = std::move(size).error();
    error.detail += "; the answer began with " + first_bytes();
    if (error.hint.empty()) error.hint = other_scheme_hint(head_text_);
    return fail(std::move(error));
  }
  if (*size == 0) {
    input = {};
    return Event::kMore;
  }
  input.remove_prefix(*size - before);
  head_text_.resize(*size);
  framing_ = wire::body_framing(head(), method_);
  framed_ = framing_.kind != wire::BodyFraming::Kind::kUntilClose;
  remaining_ = framing_.length;
  state_ = State::kBody;
  return Event::kHead;
}

ResponseReader::Event ResponseReader::end() {
  state_ = State::kEnded;
  return Event::kEnd;
}

Result<ResponseReader::Event> ResponseReader::next(std::string_view& input) {
  if (state_ == State::kEnded) return Event::kEnd;
  if (!input.empty()) any_bytes_ = true;
  if (state_ == State::kHead) {
    if (input.empty()) return Event::kMore;
    return read_head(input);
  }
  switch (framing_.kind) {
    case wire::BodyFraming::Kind::kNone:
      return end();
    case wire::BodyFraming::Kind::kLength: {
      if (remaining_ == 0) return end();
      if (input.empty()) return Event::kMore;
      payload_ = input.substr(0, std::min<uint64_t>(remaining_, input.size()));
      input.remove_prefix(payload_.size());
      remaining_ -= payload_.size();
      return Event::kPayload;
    }
    case wire::BodyFraming::Kind::kUntilClose:
      if (input.empty()) return Event::kMore;
      payload_ = input;
      input = {};
      return Event::kPayload;
    case wire::BodyFraming::Kind::kChunked:
      break;
  }
  while (!chunked_.done()) {
    if (input.empty()) return Event::kMore;
    Result<wire::ChunkedDecoder::Step> step = chunked_.next(input);
    if (!step) {
      Error error = std::move(step).error();
      error.detail += "; at " + quote_bytes(input);
      return fail(std::move(error));
    }
    input.remove_prefix(step->consumed);
    if (!step->payload.empty()) {
      payload_ = step->payload;
      return Event::kPayload;
    }
  }
  return end();
}

Result<void> ResponseReader::closed() {
  if (state_ == State::kEnded) return {};
  const auto cut = [](std::string missing, const char* hint = "") {
    return fail(Kind::kReset, Side::kUpstream, "the peer closed the connection " + missing, hint);
  };
  if (state_ == State::kHead) {
    if (!any_bytes_) return cut("before any byte of the answer", kNoAnswerHint);
    return cut("inside the head of the answer, which began with " + first_bytes());
  }
  switch (framing_.kind) {
    case wire::BodyFraming::Kind::kLength:
      if (remaining_ == 0) break;
      return cut(std::to_string(remaining_) + " bytes before the declared end of the body (" +
                 std::to_string(framing_.length) + " bytes)");
    case wire::BodyFraming::Kind::kChunked:
      if (chunked_.done()) break;
      return cut("before the last chunk of the body");
    case wire::BodyFraming::Kind::kNone:
    case wire::BodyFraming::Kind::kUntilClose:
      break;
  }
  state_ = State::kEnded;
  return {};
}

Error ResponseReader::read_error(int errno_value) const {
  Error error = base::from_errno(errno_value, "read the answer");
  if (!any_bytes_) error.hint = kNoAnswerHint;
  return error;
}

std::string ResponseReader::first_bytes() const {
  return quote_bytes(head_text_);
}

std::string quote_bytes(std::string_view bytes, size_t limit) {
  const bool cut = bytes.size() > limit;
  const std::string text = base::to_valid_utf8(bytes.substr(0, limit));
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += '?';
    else
      out += c;
  }
  return out + (cut ? "...\"" : "\"");
}

}  // namespace anvil::net
