#include "measure/plan_draft.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/trace.h"
#include "stats/random.h"

namespace anvil::measure {

namespace {

constexpr size_t kMostRequests = 1'000'000;

Nanos nanos(double seconds) {
  return static_cast<Nanos>(std::llround(seconds * 1e9));
}

template <class T>
void shuffle(std::vector<T>& values, uint64_t seed) {
  stats::Random random(seed);
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<size_t>(random.below(i))]);
}

// Which part each of n requests belongs to: exact shares (largest remainder), shuffled.
std::vector<size_t> deal(const std::vector<MixPart>& parts, size_t n, uint64_t seed) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0,
                                     [](double a, const MixPart& part) { return a + part.weight; });
  std::vector<size_t> out;
  std::vector<std::pair<double, size_t>> rest;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double share = parts[i].weight / sum * static_cast<double>(n);
    out.insert(out.end(), static_cast<size_t>(share), i);
    rest.push_back({std::floor(share) - share, i});
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; out.size() < n; ++i) out.push_back(rest[i % rest.size()].second);
  out.resize(n);
  shuffle(out, seed);
  return out;
}

class Drafter {
 public:
  Drafter(const LanePlan& lane, uint64_t seed) : lane_(lane), seed_(seed) {}

  Result<LaneDraft> draft() {
    if (lane_.load == Load::kTrace) {
      TRY(trace());
    } else if (lane_.load == Load::kSessions) {
      sessions();
    } else {
      TRY(singles());
    }
    if (lane_.load != Load::kTrace) lengths(out_.measured, "");
    warmup();
    if (lane_.cache == "prefix") groups();
    if (lane_.cache == "replay" && lane_.load != Load::kTrace && lane_.load != Load::kSessions)
      repeat();
    return std::move(out_);
  }

 private:
  uint64_t seed(std::string_view use) const { return derived_seed(seed_, lane_.id, use); }
  std::string stream(const std::string& item) const { return lane_.id + "/" + item; }

  PlannedAttempt attempt(const std::string& item) const {
    PlannedAttempt out;
    out.item = item;
    out.stream = stream(item);
    return out;
  }

  ArrivalSpec arrival_spec() const {
    ArrivalSpec spec;
    spec.seed = seed("arrivals");
    spec.burstiness = lane_.burstiness;
    spec.steps = lane_.load == Load::kSteps ? lane_.steps : steady_rate(lane_.rate);
    spec.process = lane_.load == Load::kConstant ? ArrivalProcess::kConstant
                   : lane_.load == Load::kGamma  ? ArrivalProcess::kGamma
                   : lane_.load == Load::kSteps  ? lane_.step_process
                                                 : ArrivalProcess::kPoisson;
    if (lane_.requests > 0) spec.count = lane_.requests;
    if (lane_.duration_s) spec.duration_s = lane_.duration_s;
    if (lane_.load == Load::kSteps) {
      double whole = 0;
      for (const RateStep& step : lane_.steps) whole += step.seconds;
      spec.duration_s = whole;
    }
    return spec;
  }

  // About how many arrivals a spec means: before a list of them is made.
  static double expected(const ArrivalSpec& spec) {
    if (spec.count) return static_cast<double>(*spec.count);
    if (spec.steps.size() == 1) return spec.steps[0].rate * spec.duration_s.value_or(0);
    double sum = 0;
    for (const RateStep& step : spec.steps) sum += (step.rate + step.to_rate) / 2 * step.seconds;
    return sum;
  }

  Result<void> singles() {
    std::vector<std::optional<Nanos>> moments;
    if (lane_.load == Load::kClosed) {
      moments.resize(static_cast<size_t>(lane_.requests));
    } else {
      const ArrivalSpec spec = arrival_spec();
      if (expected(spec) > static_cast<double>(kMostRequests))
        return fail(Kind::kInvalidInput, Side::kClient,
                    "lane \"" + lane_.id + "\": more than 1000000 requests",
                    "lower the rate or the time");
      for (const Nanos moment : arrivals(spec)) moments.push_back(moment);
      if (moments.empty())
        return fail(Kind::kInvalidInput, Side::kClient,
                    "lane \"" + lane_.id + "\": no request arrives within its time",
                    "raise the rate or the time");
    }
    for (size_t i = 0; i < moments.size(); ++i) {
      out_.measured.push_back(attempt("request-" + std::to_string(i)));
      out_.measured.back().at = moments[i];
    }
    return {};
  }

  void sessions() {
    const auto turns = static_cast<int64_t>(lane_.turns);
    std::vector<Nanos> starts;
    if (lane_.rate > 0) {
      ArrivalSpec spec = arrival_spec();
      spec.count = lane_.sessions;
      spec.duration_s.reset();
      starts = arrivals(spec);
    }
    stats::Random think(seed("think"));
    for (int64_t s = 0; s < lane_.sessions; ++s) {
      for (int64_t t = 0; t < turns; ++t) {
        PlannedAttempt turn =
            attempt("session-" + std::to_string(s) + "/turn-" + std::to_string(t));
        turn.turn = static_cast<int>(t);
        if (t > 0) {
          turn.after = s * turns + t - 1;
          turn.think = nanos(lane_.think_exponential ? think.exponential(lane_.think_time_s)
                                                     : lane_.think_time_s);
        } else if (!starts.empty()) {
          turn.at = starts[static_cast<size_t>(s)];
        } else if (s >= lane_.concurrency) {
          // One user after the other in each place.
          turn.after = (s - lane_.concurrency + 1) * turns - 1;
        }
        out_.measured.push_back(std::move(turn));
      }
    }
  }

  // Draws lengths; `use` keeps measured and warm-up apart.
  void lengths(std::vector<PlannedAttempt>& attempts, const std::string& use) const {
    stats::Random prompt(seed(use + "prompt lengths")), output(seed(use + "output lengths"));
    std::vector<size_t> parts;
    if (!lane_.mix.empty()) parts = deal(lane_.mix, attempts.size(), seed(use + "parts"));
    for (size_t i = 0; i < attempts.size(); ++i) {
      const MixPart* part = parts.empty() ? nullptr : &lane_.mix[parts[i]];
      if (part) attempts[i].part = part->name;
      if (lane_.prompts == "synthetic")
        attempts[i].prompt_tokens = (part ? part->prompt_tokens : lane_.prompt_tokens).draw(prompt);
      attempts[i].output_tokens = (part ? part->output_tokens : lane_.output_tokens).draw(output);
    }
  }

  void warmup() {
    for (int i = 0; i < lane_.warmup; ++i)
      out_.warmup.push_back(attempt("warmup-" + std::to_string(i)));
    if (lane_.load != Load::kTrace) {
      lengths(out_.warmup, "warmup ");
      return;
    }
    // Lengths that the trace has, in another order.
    stats::Random random(seed("warmup lengths"));
    for (PlannedAttempt& each : out_.warmup) {
      const auto& like = out_.measured[static_cast<size_t>(random.below(out_.measured.size()))];
      each.prompt_tokens = like.prompt_tokens;
      each.output_tokens = like.output_tokens;
    }
  }

  // Equal shares of the requests for each group, shuffled; one priming request for each.
  void groups() {
    std::vector<size_t> group(out_.measured.size());
    for (size_t i = 0; i < group.size(); ++i)
      group[i] = i % static_cast<size_t>(lane_.prefix_groups);
    if (lane_.prefix_groups > 1) shuffle(group, seed("groups"));
    for (size_t i = 0; i < group.size(); ++i)
      out_.measured[i].beginning = static_cast<int>(group[i]);
    for (int g = 0; g < lane_.prefix_groups; ++g) {
      const auto first = std::find(group.begin(), group.end(), static_cast<size_t>(g));
      if (first == group.end()) continue;
      const PlannedAttempt& like = out_.measured[static_cast<size_t>(first - group.begin())];
      PlannedAttempt prime =
          attempt(lane_.prefix_groups == 1 ? "prime" : "prime-" + std::to_string(g));
      prime.beginning = g;
      prime.prompt_tokens = like.prompt_tokens;
      prime.output_tokens = like.output_tokens;
      prime.part = like.part;
      out_.prime.push_back(std::move(prime));
    }
  }

  // Sends every measured prompt once before.
  void repeat() {
    for (size_t i = 0; i < out_.measured.size(); ++i) {
      out_.prime.push_back(out_.measured[i]);
      out_.prime.back().item = "prime-" + std::to_string(i);
      out_.prime.back().at.reset();
    }
  }

  Result<void> trace() {
    const Trace trace = TRY(load_trace(lane_.trace));
    for (const TraceEntry& entry : trace.entries) {
      const double at = static_cast<double>(entry.at) * lane_.trace_scale;
      if (lane_.requests > 0 && static_cast<int>(out_.measured.size()) >= lane_.requests) break;
      if (lane_.duration_s && at >= *lane_.duration_s * 1e9) break;
      PlannedAttempt each = attempt("request-" + std::to_string(out_.measured.size()));
      each.at = static_cast<Nanos>(std::llround(at));
      each.prompt_tokens = entry.prompt_tokens;
      each.output_tokens = entry.output_tokens;
      each.session = entry.session;
      each.blocks = entry.blocks;
      out_.measured.push_back(std::move(each));
    }
    out_.trace = {{"sha256", trace.sha256},
                  {"entries", trace.entries.size()},
                  {"unordered", trace.unordered},
                  {"scale", lane_.trace_scale}};
    return {};
  }

  const LanePlan& lane_;
  uint64_t seed_;
  LaneDraft out_;
};

}  // namespace

Result<LaneDraft> draft_lane(const LanePlan& lane, uint64_t seed) {
  return Drafter(lane, seed).draft();
}

}  // namespace anvil::measure
