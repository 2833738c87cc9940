#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

// What the index knows of one run; everything in it can be read again from the run directory.
struct IndexedRun {
  std::string run;          // run id
  std::string directory;    // absolute
  std::string recipe;       // name
  std::string digest;       // of the recipe
  std::string policy;       // name
  std::string started;      // UTC, "2026-11-30T17:20:47Z"
  std::string status;       // "sealed", "incomplete"
  std::string decision;     // "" until there is one
  std::string failed_step;  // "" if none

  bool operator==(const IndexedRun&) const = default;
};
IndexedRun describe(const RunReader& run);

// The SQLite index of all runs (WAL). A convenience: the run directories are the truth. Lifecycle:
// open, use, destroy. Safe to use from several processes at once; one object belongs to one thread.
class RunIndex {
 public:
  static std::string default_path();  // index.db under base::state_home()

  // Opens or creates. A missing or unreadable index is set aside ("<path>.damaged") and rebuilt
  // from `runs_dirs`.
  static Result<RunIndex> open(const std::string& path, const std::vector<std::string>& runs_dirs);
  RunIndex(RunIndex&&) noexcept;
  RunIndex& operator=(RunIndex&&) noexcept;
  ~RunIndex();

  // Adds the run, or replaces what was known of it.
  Result<void> put(const IndexedRun& run);
  // Newest first.
  Result<std::vector<IndexedRun>> list() const;
  // The run whose id is or begins with `prefix`. kNotFound names the nearest ids; several matches
  // are kInvalidInput and named.
  Result<IndexedRun> find(std::string_view prefix) const;
  // Forgets everything and reads all runs in these folders again; returns how many it found.
  // Folders that are not runs are passed over.
  Result<int> reindex(const std::vector<std::string>& runs_dirs);

 private:
  struct State;
  explicit RunIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace anvil::evidence
