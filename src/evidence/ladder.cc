#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/strings.h"
#include "evidence/derive_parts.h"
#include "evidence/distribution.h"
#include "evidence/json_access.h"
#include "evidence/row_metrics.h"

namespace anvil::evidence {

namespace {
constexpr double kRetrieved = 0.75;  // the code came back, separators and case aside

// The target of a ladder row: what it was built for, else the number that its lane ends with.
int64_t target_of(const RequestRow& row) {
  if (const auto target = integer(row.expect, "target")) return *target;
  const size_t digits = row.lane.find_last_not_of("0123456789") + 1;
  return base::parse_int(std::string_view(row.lane).substr(digits)).value_or(0);
}

std::string with_sign(int64_t value) {
  return (value > 0 ? "+" : "") + std::to_string(value);
}
}  // namespace

struct Ladder::Rung {
  struct Attempt {
    int64_t seq = 0;
    Outcome outcome = Outcome::kOk;
    RowMetrics metrics;
  };
  int64_t target = 0;
  std::string state;
  bool planned = false;
  std::vector<Attempt> attempts;
  std::vector<std::string> lanes;  // names under which probes may refer to it
  Json needles = Json::array();
  std::optional<int64_t> tolerance;  // as its rows declare it
};

Ladder::Ladder(const Json& plan, const Json& suite) {
  const Json& ladder =
      member(plan, "ladder").is_object() ? member(plan, "ladder") : member(suite, "ladder");
  tolerance_tokens_ = integer(ladder, "tolerance_tokens").value_or(tolerance_tokens_);
  tolerance_percent_ = number(ladder, "tolerance_percent").value_or(tolerance_percent_);
  const std::string own_proof = text(ladder, "cache_proof");
  proof_demanded_ = (own_proof.empty() ? text(suite, "cache_proof") : own_proof) != "none";
  for (const Json& target : elements(member(ladder, "targets"))) {
    if (!target.is_number_integer()) continue;
    rung(target.get<int64_t>(), "cold").planned = true;
    if (flag(ladder, "cached")) rung(target.get<int64_t>(), "prefix").planned = true;
  }
}

Ladder::~Ladder() = default;

Ladder::Rung& Ladder::rung(int64_t target, const std::string& state) {
  for (const auto& rung : rungs_)
    if (rung->target == target && rung->state == state) return *rung;
  rungs_.push_back(std::make_unique<Rung>());
  rungs_.back()->target = target;
  rungs_.back()->state = state;
  return *rungs_.back();
}

void Ladder::add(const RequestRow& row) {
  Rung& to = rung(target_of(row), row.cache_state.empty() ? "cold" : row.cache_state);
  to.attempts.push_back({row.seq, row.outcome, measure(row)});
  if (std::find(to.lanes.begin(), to.lanes.end(), row.lane) == to.lanes.end())
    to.lanes.push_back(row.lane);
  if (const auto tolerance = integer(row.expect, "tolerance")) to.tolerance = tolerance;

  const auto grade = [&](const Json& depth, const std::string& code) {
    to.needles.push_back(
        Json{{"depth", depth},
             {"grade", row.outcome == Outcome::kOk ? grade_needle(code, row.answer.content) : 0.0},
             {"row", row.seq}});
  };
  for (const Json& needle : elements(member(row.expect, "needles")))
    grade(or_null(number(needle, "depth")), text(needle, "code"));
  if (const std::string code = text(row.expect, "code"); !code.empty()) {
    const auto declared = number(row.expect, "depth");
    grade(or_null(declared ? declared : base::parse_double(row.item)), code);
  }
}

void Ladder::add_probe(const RequestRow& row) {
  auto& [all, failed] = probes_[row.lane];
  ++all;
  if (row.outcome != Outcome::kOk) ++failed;
}

Json Ladder::judge(const Rung& rung) const {
  std::optional<int64_t> prompt, cached, deviation;
  std::string refused;
  int64_t failures = 0;
  std::string failure;
  std::vector<double> ttfo, e2e, effective, computed;
  for (const Rung::Attempt& attempt : rung.attempts) {
    const RowMetrics& metrics = attempt.metrics;
    if (attempt.outcome != Outcome::kOk) {
      ++failures;
      if (failure.empty()) failure = name(attempt.outcome);
      continue;
    }
    if (!metrics.prompt_tokens) {
      refused = "the engine reports no prompt tokens";
    } else {
      const int64_t off = *metrics.prompt_tokens - rung.target;
      if (!deviation || std::abs(off) > std::abs(*deviation)) {
        deviation = off;
        prompt = metrics.prompt_tokens;
      }
    }
    if (metrics.cached_tokens &&
        (!cached || (rung.state == "prefix" ? *metrics.cached_tokens < *cached
                                            : *metrics.cached_tokens > *cached)))
      cached = metrics.cached_tokens;
    const auto why = refuse_cache_state(rung.state, metrics, proof_demanded_);
    if (refused.empty() && why == "cached")
      refused = "declared cold, and " + std::to_string(*metrics.cached_tokens) +
                " prompt tokens came from the cache";
    if (refused.empty() && why == "not-cached")
      refused = "declared prefix-cached, and no prompt token came from the cache";
    if (refused.empty() && why == "unproven")
      refused = "the engine reports no cached tokens, so the cache state is unproven";
    if (metrics.ttfo) ttfo.push_back(static_cast<double>(*metrics.ttfo) / 1e6);
    if (metrics.e2e) e2e.push_back(static_cast<double>(*metrics.e2e) / 1e6);
    if (metrics.effective_prefill_tok_s) effective.push_back(*metrics.effective_prefill_tok_s);
    if (metrics.computed_prefill_tok_s) computed.push_back(*metrics.computed_prefill_tok_s);
  }
  const double allowed =
      std::max(static_cast<double>(std::max(tolerance_tokens_, rung.tolerance.value_or(0))),
               tolerance_percent_ / 100 * static_cast<double>(rung.target));
  if (deviation && std::abs(static_cast<double>(*deviation)) > allowed)
    refused = "the prompt has " + with_sign(*deviation) + " tokens, " +
              base::format_number(allowed) + " are allowed";
  if (failures > 0)
    refused = std::to_string(failures) + " of " + std::to_string(rung.attempts.size()) +
              " requests failed: " + failure;
  if (rung.attempts.empty()) refused = "not run";

  std::optional<double> retrieval;
  for (const Json& needle : rung.needles)
    retrieval = retrieval.value_or(0) + number(needle, "grade").value_or(0);
  if (retrieval) *retrieval /= static_cast<double>(rung.needles.size());

  Json healthy = nullptr;
  for (const std::string& lane : rung.lanes)
    if (const auto probe = probes_.find(lane); probe != probes_.end())
      healthy = probe->second.second == 0 && (healthy.is_null() || healthy == true);

  // A refused rung keeps its answers and counts, not its times.
  const bool accepted = refused.empty();
  const auto timed = [&](const std::vector<double>& values) {
    return accepted ? or_null(median(values)) : Json(nullptr);
  };
  return Json{{"target", rung.target},
              {"state", rung.state},
              {"requests", rung.attempts.size()},
              {"prompt_tokens", or_null(prompt)},
              {"deviation_tokens", or_null(deviation)},
              {"cached_tokens", or_null(cached)},
              {"accepted", accepted},
              {"refused", accepted ? Json(nullptr) : Json(refused)},
              {"ttfo_ms", timed(ttfo)},
              {"e2e_ms", timed(e2e)},
              {"effective_prefill_tok_s", timed(effective)},
              {"computed_prefill_tok_s", timed(computed)},
              {"needles", rung.needles},
              {"retrieval", or_null(retrieval)},
              {"healthy", healthy}};
}

Json Ladder::finish() {
  std::stable_sort(rungs_.begin(), rungs_.end(), [](const auto& a, const auto& b) {
    return a->target != b->target ? a->target < b->target : a->state < b->state;
  });
  Json rungs = Json::array();
  // A target counts when all of its rows do, cold and prefix-cached.
  std::map<int64_t, std::pair<bool, bool>> whole;  // target -> complete, retrieved
  for (const auto& rung : rungs_) {
    Json judged = judge(*rung);
    auto& [complete, retrieved] = whole.try_emplace(rung->target, true, true).first->second;
    complete = complete && judged["accepted"] == true && judged["healthy"] != false;
    retrieved = retrieved && complete && !rung->needles.empty();
    for (const Json& needle : rung->needles)
      retrieved = retrieved && number(needle, "grade").value_or(0) >= kRetrieved;
    rungs.push_back(std::move(judged));
  }
  Json largest_complete = nullptr, largest_retrieved = nullptr;
  for (const auto& [target, verdicts] : whole) {
    if (verdicts.first) largest_complete = target;
    if (verdicts.second) largest_retrieved = target;
  }
  return Json{{"rungs", rungs},
              {"largest_complete", largest_complete},
              {"largest_retrieved", largest_retrieved}};
}

}  // namespace anvil::evidence
