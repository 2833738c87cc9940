#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::evidence {

// How the highest rate that keeps the objectives is looked for.
struct KneeOptions {
  double start = 1;         // requests/s of the first probe
  double floor = 0.05;      // no probe below
  double ceiling = 1e4;     // no probe above
  double resolution = 1.1;  // the search ends when the failing rate is at most this much higher
  int max_probes = 16;
  int64_t requests = 100;       // of a probe
  int64_t most_requests = 400;  // of all probes at one rate, when they stay undecided
  double confidence = 0.95;
};

// What one objective did in a probe: `met` of `n` requests kept the limit, `share` of them must.
// Failed requests keep nothing. Requests of one run are not independent: the intervals below are
// therefore a lower bound of the uncertainty, and the result says so.
struct ObjectiveCount {
  std::string name;  // "ttfo_ms_p90"
  double share = 0.9;
  int64_t met = 0;
  int64_t n = 0;
};

// How sure a rate's verdict is.
enum class KneeVerdict {
  kKeeps,         // every objective's share is proven
  kBreaks,        // one objective's share is refuted
  kSeemsToKeep,   // undecided after most_requests: every observed share suffices
  kSeemsToBreak,  // undecided after most_requests: one does not
  kUndecided,     // more requests at this rate are wanted
};
std::string_view name(KneeVerdict verdict);

// All that was measured at one rate.
struct KneePoint {
  double rate = 0;
  int probes = 0;
  std::vector<ObjectiveCount> objectives;
  KneeVerdict verdict = KneeVerdict::kUndecided;
};

// The next thing to measure.
struct KneeProbe {
  double rate = 0;
  int64_t requests = 0;
};

// How a lane that declares `find_knee` is searched: it starts at its rate, and a probe has its
// number of requests.
KneeOptions knee_options(const Json& lane_spec);
// What a probe did, from the "goodput" of its results. Empty without objectives.
std::vector<ObjectiveCount> objective_counts(const Json& goodput);

// The search for the highest rate that keeps declared objectives: doubling (or halving) from the
// start until the objectives are kept at one rate and broken at a higher one, then halving that
// bracket on the logarithmic scale. A rate is kept or broken when Clopper-Pearson intervals at
// `confidence` say so; otherwise it is measured again, up to most_requests, and then taken as it
// seems. A response that is not monotone cannot mislead it past a broken rate: the knee lies below
// the lowest rate that broke.
//
// Lifecycle: next(), measure, add(), until next() gives nothing; then result(). Pure: no clock, no
// random numbers. Thread: the owner's.
class KneeSearch {
 public:
  // kInvalidInput names the option that makes no sense.
  static Result<KneeSearch> make(const KneeOptions& options);

  std::optional<KneeProbe> next() const;
  // The outcome of a probe at `rate`. Counts at the same rate are added up, by objective name.
  // kInvalidInput: no objective, more met than sent, other objectives than before.
  Result<void> add(double rate, const std::vector<ObjectiveCount>& objectives);

  // By rate.
  const std::vector<KneePoint>& points() const { return points_; }

  // {"outcome": "bracketed" | "not-reached" (kept up to the ceiling) | "below-floor" |
  // "probes-used-up" | "no-answer", "rate": highest rate that keeps (or seems to), null if none,
  // "breaks_at": lowest that does not, "proven": bool, "confidence", "statement",
  // "points":[{"rate",
  // "verdict","probes","objectives":[{"name","share","met","n","observed","low","high"}]}]}
  Json result() const;

 private:
  explicit KneeSearch(const KneeOptions& options) : options_(options) {}
  KneeVerdict judge(const KneePoint& point) const;
  // Highest keeping rate below the lowest breaking one, and that one.
  const KneePoint* low() const;
  const KneePoint* high() const;
  const KneePoint* undecided() const;
  std::string outcome() const;

  KneeOptions options_;
  std::vector<KneePoint> points_;
  int probes_ = 0;
};

}  // namespace anvil::evidence
