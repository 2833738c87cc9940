#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/request_row.h"

namespace anvil::evidence {

// How far a run got, from its journal.
struct RunState {
  enum class Status { kSealed, kIncomplete };
  Status status = Status::kIncomplete;
  std::string last_step;  // the last step that began
  bool last_step_ended = false;
  std::string failed_step;          // the first step that failed, "" if none
  std::string failure;              // its error, one line
  std::vector<std::string> steps;   // in order, finished ones
  std::vector<std::string> damage;  // what is torn, missing or unreadable, one sentence each
};

// What the state means, for people: one or more sentences on how far the run got and what is known.
std::string explain(const RunState& state);

// Read access to a run directory, sealed or not; never writes. Compressed and split row files are
// read as one.
class RunReader {
 public:
  static Result<RunReader> open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  // As on disk; where it is lost or damaged, what the journal repeats of it. "run" and the objects
  // "recipe", "policy", "suite", "plan", "anchor" and "tool" are always there.
  const Json& manifest() const { return manifest_; }
  const RunState& state() const { return state_; }

  // `name` is always the artifact's own name ("requests.jsonl"), also where it lies compressed or
  // in parts.
  bool has(std::string_view name) const;
  std::vector<std::string> files() const;  // names on disk, sorted; folders left out
  Result<Json> document(std::string_view name) const;
  Result<std::string> text(std::string_view name) const;  // decompressed, parts joined
  // Complete lines in order; an unreadable line ends the list of an incomplete run and is an error
  // in a sealed one.
  Result<std::vector<Json>> journal() const;
  // Calls `line` for each complete line with its position from 0, without the line feed. What
  // stands after the last line feed (a write that a crash cut short) is left out.
  Result<void> for_each_line(
      std::string_view name,
      const std::function<Result<void>(std::string_view, int64_t)>& line) const;
  // Calls `row` for each request row in order; stops at the first error that it or the parser
  // returns.
  Result<void> for_each_row(const std::function<Result<void>(const RequestRow&)>& row) const;
  Result<void> for_each_sample(const std::function<Result<void>(const Json&)>& sample) const;

 private:
  std::string directory_;
  Json manifest_;
  RunState state_;
};

}  // namespace anvil::evidence
