#include "wire/chunked.h"

#include <algorithm>
#include <string>

namespace anvil::wire {

namespace {

constexpr uint64_t kMaxChunk = uint64_t{1} << 60;
constexpr uint32_t kMaxSizeDigits = 16;  // leading zeros included
constexpr uint32_t kMaxExtension = 16 * 1024;
constexpr uint32_t kMaxTrailers = 64 * 1024;

tl::unexpected<Error> broken(std::string detail) {
  return fail(Kind::kProtocol, Side::kUpstream, "chunked body: " + std::move(detail));
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

Result<ChunkedDecoder::Step> ChunkedDecoder::next(std::string_view input) {
  size_t i = 0;
  while (i < input.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const size_t taken = std::min<uint64_t>(remaining_, input.size() - i);
      remaining_ -= taken;
      if (remaining_ == 0) state_ = State::kDataCr;
      return Step{i + taken, input.substr(i, taken), false};
    }
    const char c = input[i++];
    switch (state_) {
      case State::kSize:
      case State::kSizeMore: {
        const int digit = hex_value(c);
        if (digit >= 0) {
          if (remaining_ >= kMaxChunk / 16 || ++line_bytes_ > kMaxSizeDigits) {
            return broken("chunk size is too large");
          }
          remaining_ = remaining_ * 16 + static_cast<uint64_t>(digit);
          state_ = State::kSizeMore;
          break;
        }
        if (state_ == State::kSize) return broken("chunk size is missing");
        [[fallthrough]];
      }
      case State::kSizeSpace:
        if (c == ';') {
          state_ = State::kExtension;
        } else if (c == '\r' && state_ != State::kSizeSpace) {
          state_ = State::kSizeLf;
        } else if (c == ' ' || c == '\t') {
          state_ = State::kSizeSpace;
          if (++line_bytes_ > kMaxExtension) return broken("chunk extension is too long");
        } else {
          return broken("unexpected byte in the chunk size");
        }
        break;
      case State::kExtension:
        if (c == '\r') {
          state_ = State::kSizeLf;
        } else if (is_control(c)) {
          return broken("control byte in a chunk extension");
        } else if (++line_bytes_ > kMaxExtension) {
          return broken("chunk extension is too long");
        }
        break;
      case State::kSizeLf:
        if (c != '\n') return broken("CR without LF behind a chunk size");
        line_bytes_ = 0;
        state_ = remaining_ == 0 ? State::kTrailerStart : State::kData;
        break;
      case State::kDataCr:
        if (c != '\r') return broken("chunk data is not followed by CRLF");
        state_ = State::kDataLf;
        break;
      case State::kDataLf:
        if (c != '\n') return broken("chunk data is not followed by CRLF");
        state_ = State::kSize;
        break;
      case State::kTrailerStart:
        if (c == '\r') {
          state_ = State::kFinalLf;
          break;
        }
        if (c == ' ' || c == '\t' || c == ':') return broken("malformed trailer");
        state_ = State::kTrailerName;
        [[fallthrough]];
      case State::kTrailerName:
        if (c == ':') {
          state_ = State::kTrailerValue;
        } else if (is_control(c) || c == ' ' || c == '\t') {
          return broken("malformed trailer");
        }
        if (++line_bytes_ > kMaxTrailers) return broken("trailers are too long");
        break;
      case State::kTrailerValue:
        if (c == '\r') {
          state_ = State::kTrailerLf;
        } else if (is_control(c)) {
          return broken("control byte in a trailer");
        } else if (++line_bytes_ > kMaxTrailers) {
          return broken("trailers are too long");
        }
        break;
      case State::kTrailerLf:
        if (c != '\n') return broken("CR without LF behind a trailer");
        state_ = State::kTrailerStart;
        break;
      case State::kFinalLf:
        if (c != '\n') return broken("the last chunk is not followed by CRLF");
        state_ = State::kDone;
        break;
      case State::kData:
      case State::kDone:
        break;
    }
  }
  return Step{i, {}, done()};
}

}  // namespace anvil::wire
