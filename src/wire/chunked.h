#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace anvil::wire {

// Incremental decoder of the chunked transfer coding (RFC 9112 section 7.1). Payload is handed out
// as views into the input, never copied; extensions and trailers are checked and dropped. Refused:
// sizes that are not plain hex or exceed 2^60, bare LF or CR, chunk data that is not followed by
// CRLF, more than 16 KiB of one extension or 64 KiB of trailers.
//
// Lifecycle: one body, then reset(). Thread: the owner's. Does not allocate.
class ChunkedDecoder {
 public:
  struct Step {
    size_t consumed = 0;       // bytes taken from the front of the input
    std::string_view payload;  // inside the input; empty when there was none
    bool done = false;         // the body and its trailers are complete
  };

  // Takes bytes up to and including the next piece of payload, or everything. Call again with what
  // is left until the input is empty or `done`; bytes behind the end are not consumed.
  Result<Step> next(std::string_view input);
  bool done() const { return state_ == State::kDone; }
  void reset() { *this = {}; }

 private:
  enum class State {
    kSize,          // first digit of a chunk size
    kSizeMore,      // further digits
    kSizeSpace,     // white space between size and ';' or CR
    kExtension,     // behind ';'
    kSizeLf,        // LF behind the size line
    kData,          // inside chunk data
    kDataCr,        // CR behind chunk data
    kDataLf,        // LF behind chunk data
    kTrailerStart,  // first byte of a trailer line or of the final CRLF
    kTrailerName,   // before the colon of a trailer line
    kTrailerValue,  // behind it
    kTrailerLf,     // LF behind a trailer line
    kFinalLf,       // LF of the final CRLF
    kDone,
  };

  State state_ = State::kSize;
  uint64_t remaining_ = 0;   // of the chunk's size or data
  uint32_t line_bytes_ = 0;  // of the extension, or of all trailers
};

}  // namespace anvil::wire
