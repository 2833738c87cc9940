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
  std::string last_step;            // the last step that began
  bool last_step_ended = false;
  std::string failed_step;          // the first step that failed, "" if none
  std::string failure;              // its error, one line
  std::vector<std::string> steps;   // in order, finished ones
};

// Read access to a run directory, sealed or not; never writes. Compressed and split row files are read as one.
class RunReader {
 public:
  static Result<RunReader> open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const Json& manifest() const { return manifest_; }
  const RunState& state() const { return state_; }

  bool has(std::string_view name) const;
  Result<Json> document(std::string_view name) const;
  Result<std::string> text(std::string_view name) const;  // decompressed, parts joined
  Result<std::vector<Json>> journal() const;
  // Calls `row` for each request row in order; stops at the first error that it or the parser returns.
  Result<void> for_each_row(const std::function<Result<void>(const RequestRow&)>& row) const;
  Result<void> for_each_sample(const std::function<Result<void>(const Json&)>& sample) const;

 private:
  std::string directory_;
  Json manifest_;
  RunState state_;
};

}  // namespace anvil::evidence
