#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "evidence/run_reader.h"

namespace anvil::report {

// One step of the run as the journal tells it, up to and including "decide": what comes later (the
// report itself, the seal) happens after the report was first rendered and may not appear in it.
struct Step {
  enum class Ending { kEnded, kFailed, kOpen };
  std::string name;
  Nanos begin = 0, end = 0;  // end = begin while open
  Ending ending = Ending::kOpen;
  std::string error;  // one line, if it failed
};

// What the pictures and lists need of a request row.
struct Request {
  int64_t seq = 0;
  evidence::Purpose purpose = evidence::Purpose::kLane;
  evidence::Outcome outcome = evidence::Outcome::kOk;
  std::string lane, item, effort, cache_state;
  int attempt = 0;
  int status = 0;
  Nanos start = 0, end = 0;  // sent (or intended, if never sent) and the last stamp that exists
  std::optional<Nanos> first_output;
  std::optional<double> ttfo_ms, ttfv_ms, e2e_ms;  // as evidence::measure() defines them
  std::optional<int64_t> prompt_tokens, cached_tokens, completion_tokens;
  std::string error_kind, error_detail;
  // Whether the row may not carry its declared cache state: by what the engine said, and where it
  // had to say something.
  bool refused = false, unproven = false;

  bool ok() const { return outcome == evidence::Outcome::kOk; }
};

struct GpuSample {
  std::string label;
  std::optional<double> used_gib, free_gib, power_w, temperature_c, clock_mhz;
};

struct Sample {
  Nanos at = 0;
  std::optional<double> available_gib, load, rss_gib, cpu_s;
  std::vector<GpuSample> gpus;
};

// A link of the chain: content and what it fixes.
struct Link {
  std::string name, covers, digest;  // digest empty: absent from this run
  std::string note;  // agreement or disagreement with a digest that another link holds
  bool broken = false;
};

// Everything that a rendering may know of a run. All times on the run's monotonic clock; `zero` is
// its origin.
struct Facts {
  std::string run_id;
  Json manifest;  // without what changes when the run is sealed
  // Null where the run has none.
  Json recipe, suite, plan, host, launch, identity, checks, load, results, decision;
  bool derived_here =
      false;  // the run holds no results.json; `results` was derived from its raw records
  std::vector<Step> steps;
  bool decided = false;  // the run reached the end of its last measured step
  std::vector<Request> requests;
  std::vector<Sample> samples;
  std::vector<Link> chain;
  std::vector<std::string> log_tail;  // last lines of engine.log, without their stamps
  int64_t log_lines = 0;
  std::string recipe_text;
  std::vector<std::string> problems;  // artifacts that could not be read, one sentence each
  Nanos zero = 0, last = 0;           // first and last moment that any record names

  const Step* step(std::string_view name) const;
  const Step* last_step() const { return steps.empty() ? nullptr : &steps.back(); }
  const Step* failed_step() const;
  double seconds(Nanos at) const { return static_cast<double>(at - zero) / 1e9; }
};

// Reads a run. Only a run without a readable manifest is an error; every other defect becomes a
// problem.
Result<Facts> gather(const evidence::RunReader& run);

// The steps in journal lines, and the sample in a line of samples.jsonl.
std::vector<Step> steps_of(const std::vector<Json>& journal);
Sample sample_of(const Json& line);
Request request_of(const evidence::RequestRow& row);

}  // namespace anvil::report
