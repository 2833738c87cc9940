#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/facts.h"

// What the three formats say alike: the words of the verdict, the order of gates, how a refused
// percentile reads.
namespace anvil::report {

enum class Tone { kGood, kWatch, kBad, kPlain };

struct Verdict {
  std::string word;  // "Promote-eligible", "Rejected", "Incomplete", ...
  Tone tone = Tone::kPlain;
  std::string sentence;                    // why, in one sentence
  std::vector<std::string> reasons;        // as decision.json gives them
  std::vector<std::string> other_reasons;  // neither about a gate nor the failed step
};
Verdict verdict_of(const Facts& facts);

struct Gate {
  std::string id, verdict, where, on_fail, because, unit;
  std::string op;                // as a sign: "≤", "="
  std::string detail;            // why it was not measured
  std::string value, threshold;  // value "not measured" if nothing was
  Tone tone() const;
};
// Failed gates first (those that reject before those that only warn), then what was not measured,
// then passed ones.
std::vector<Gate> gates_of(const Facts& facts);
struct GateCounts {
  int failed = 0, not_measured = 0, passed = 0;
};
GateCounts count_gates(const std::vector<Gate>& gates);

// One figure of a DIST object (docs/evidence.md), or the reason why there is none.
struct Figure {
  enum class Kind {
    kValue,
    kBelowFloor,  // a median, marked
    kRefused,     // too few samples
    kOurError,    // measured, but our own client's error is too large a part of it
    kAbsent
  };
  Kind kind = Kind::kAbsent;
  double value = 0;
  int64_t n = 0;
  int64_t floor = 0;
  double client_error_ms = 0;  // with kOurError
};
// `which`: "p50", "p90", "p95", "p99" under their sample floors; "min", "max", "mean" without one.
Figure figure_of(const Json& dist, std::string_view which);
// "31.2", "31.2 (n=5 < 11)" for a marked median, "refused (n=12 < 130)",
// "refused (our error 1.40 ms)", "none".
std::string words_of(const Figure& figure, std::string (*format)(double) = nullptr);

struct Fact {
  std::string label, value;
};
// What was tested: recipe, model, engine, runner, host, and by what.
std::vector<Fact> subject_of(const Facts& facts);
// The host and the process, in detail.
std::vector<Fact> environment_of(const Facts& facts);

// A headline number with what qualifies it.
struct Tile {
  std::string label, value, unit, note;
};
std::vector<Tile> tiles_of(const Facts& facts);

struct Definition {
  std::string_view term, meaning;
};
const std::vector<Definition>& definitions();

// "cold", "prefix-cached" for the states of lanes and rungs.
std::string state_words(std::string_view state);
// Requests of lane `id` that enter its distributions and its failures: measured ones, without
// warm-up and without rows that may not carry their declared cache state.
std::vector<const Request*> lane_requests(const Facts& facts, std::string_view id);
// Failed requests that a passed check had provoked: a prompt that is too long, an answer that is
// cancelled.
std::set<int64_t> provoked_failures(const Facts& facts);
// "launch: engine_exited: ..." or "".
std::string failed_step_words(const Facts& facts);
// The step at which an incomplete run's record ends, in a sentence; "" for a run that was decided.
std::string incomplete_words(const Facts& facts);
// "anvil verify DIR" with the name of the run's folder.
std::string verify_command(const Facts& facts);

}  // namespace anvil::report
