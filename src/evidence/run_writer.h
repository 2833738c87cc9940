#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"
#include "evidence/request_row.h"

namespace anvil::evidence {

// What is fixed before the first request. Written to the run directory and synced by
// RunWriter::create.
struct Frozen {
  std::string recipe_name;
  std::string recipe_source;  // the file as the person wrote it
  Json recipe;                // canonical form (digest = SHA-256 of base::canonical)
  std::string recipe_digest;
  Json recipe_summary;  // {"pinned": bool, "unpinned": [...], "role": "candidate"|"control", ...}
  std::string policy_name, policy_source, policy_digest;
  Json policy;  // canonical form
  std::string suite_name, suite_source, suite_digest;
  Json suite;
  Json plan;                   // resolved lanes, rungs, checks, seeds
  Json tool = Json::object();  // {"version","build"} of this program
};

// Writes one run directory (docs/evidence.md). Purpose: everything that happens during a run
// reaches the disk here, in order, so that a crash at any point leaves evidence that explains
// itself. Lifecycle: create() freezes; steps, rows, samples and documents follow; seal() ends it,
// after which nothing may be written. A RunWriter that is destroyed unsealed leaves an incomplete
// run. Thread-safe.
class RunWriter {
 public:
  // Makes runs_dir/<utc>-<recipe>-<short id>/ and freezes. Fails before creating anything if the
  // folder cannot hold evidence.
  static Result<std::unique_ptr<RunWriter>> create(const std::string& runs_dir,
                                                   const Frozen& frozen);
  ~RunWriter();

  const std::string& run_id() const;
  const std::string& directory() const;

  // Once the disk is full, rows and samples are refused with kDiskFull at once; a small reserve is
  // given up so that the journal, the documents and the failure itself can still be written.

  // The journal. begin/end/fail bracket a step; note adds a fact inside one. Each line carries the
  // SHA-256 of the line before it. Synced before returning.
  Result<void> begin_step(std::string_view step);
  Result<void> end_step(std::string_view step, Json data = Json::object());
  Result<void> fail_step(std::string_view step, const Error& error);
  Result<void> note(std::string_view what, Json data);

  // Appends to requests.jsonl; assigns and returns seq.
  Result<int64_t> append(RequestRow row);
  // Appends one object to samples.jsonl.
  Result<void> append_sample(const Json& sample);
  // Writes a whole artifact ("launch.json", "identity.json", ...), replacing an earlier version of
  // the same name.
  Result<void> write_document(std::string_view name, const Json& document);
  Result<void> write_text(std::string_view name, std::string_view bytes);
  // Where the runner writes the engine's log; sealed like every artifact.
  std::string engine_log_path() const;

  // Compresses and splits large row files, hashes every artifact, closes the journal and writes the
  // final manifest. `outcome`: {"decision": ..., "failed_step": ...}.
  Result<void> seal(const Json& outcome);

 private:
  RunWriter();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anvil::evidence
