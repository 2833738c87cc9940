#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"

namespace anvil::evidence {

// What the first line of a journal points back to.
inline constexpr std::string_view kNoPredecessor =
    "0000000000000000000000000000000000000000000000000000000000000000";

// Appends hash-chained lines to journal.jsonl:
// {"data","event","mono_ns","prev","seq","step","wall_ns"}, "prev" being the SHA-256 of the line
// before, line feed included. Every line is on the disk before append() returns. Not thread-safe.
class Journal {
 public:
  static Result<Journal> open(const std::string& path);

  Result<void> append(std::string_view event, std::string_view step, Json data);
  // Goes on in the same file under another path.
  Result<void> reopen(const std::string& path);
  // SHA-256 of the last line.
  const std::string& head() const { return head_; }

 private:
  explicit Journal(base::AppendFile file) : file_(std::move(file)), head_(kNoPredecessor) {}

  base::AppendFile file_;
  std::string head_;
  int64_t seq_ = 0;
};

}  // namespace anvil::evidence
