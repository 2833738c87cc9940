#include "evidence/knee.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "evidence/json_access.h"
#include "stats/binomial.h"

namespace anvil::evidence {

namespace {

bool keeps(KneeVerdict verdict) {
  return verdict == KneeVerdict::kKeeps || verdict == KneeVerdict::kSeemsToKeep;
}

bool breaks(KneeVerdict verdict) {
  return verdict == KneeVerdict::kBreaks || verdict == KneeVerdict::kSeemsToBreak;
}

double observed(const ObjectiveCount& objective) {
  return objective.n > 0 ? static_cast<double>(objective.met) / static_cast<double>(objective.n)
                         : 0;
}

std::string per_second(double rate) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g requests/s", rate);
  return text;
}

tl::unexpected<Error> wrong(std::string what, std::string hint = {}) {
  return fail(Kind::kInvalidInput, Side::kClient, std::move(what), std::move(hint));
}

}  // namespace

std::string_view name(KneeVerdict verdict) {
  switch (verdict) {
    case KneeVerdict::kKeeps:
      return "keeps";
    case KneeVerdict::kBreaks:
      return "breaks";
    case KneeVerdict::kSeemsToKeep:
      return "seems-to-keep";
    case KneeVerdict::kSeemsToBreak:
      return "seems-to-break";
    case KneeVerdict::kUndecided:
      return "undecided";
  }
  return "";
}

KneeOptions knee_options(const Json& lane_spec) {
  KneeOptions options;
  options.start =
      std::clamp(number(lane_spec, "rate").value_or(options.start), options.floor, options.ceiling);
  options.requests = std::max<int64_t>(1, integer(lane_spec, "requests").value_or(100));
  options.most_requests = std::max<int64_t>(options.most_requests, options.requests);
  return options;
}

std::vector<ObjectiveCount> objective_counts(const Json& goodput) {
  std::vector<ObjectiveCount> out;
  for (const Json& objective : elements(member(goodput, "objectives"))) {
    const double percentile = number(objective, "percentile").value_or(0);
    char name[96];
    std::snprintf(name, sizeof name, "%s_p%g", text(objective, "metric").c_str(), percentile);
    out.push_back({name, percentile / 100, integer(objective, "met").value_or(0),
                   integer(objective, "of").value_or(0)});
  }
  return out;
}

Result<KneeSearch> KneeSearch::make(const KneeOptions& options) {
  if (!(options.floor > 0) || !(options.ceiling > options.floor))
    return wrong("the rates to search are not above 0 and rising",
                 "give a floor above 0 and a ceiling above it");
  if (!(options.start >= options.floor && options.start <= options.ceiling))
    return wrong("the search would start outside its rates",
                 "start between " + base::format_number(options.floor) + " and " +
                     base::format_number(options.ceiling));
  if (!(options.resolution > 1)) return wrong("the resolution must be a factor above 1");
  if (options.max_probes < 1 || options.requests < 1 || options.most_requests < options.requests)
    return wrong("a search needs at least one probe of at least one request");
  if (!(options.confidence > 0 && options.confidence < 1))
    return wrong("the confidence must lie between 0 and 1");
  return KneeSearch(options);
}

KneeVerdict KneeSearch::judge(const KneePoint& point) const {
  bool proven = true, suffices = true, exhausted = true;
  for (const ObjectiveCount& objective : point.objectives) {
    const auto interval = stats::clopper_pearson(
        static_cast<size_t>(objective.met), static_cast<size_t>(objective.n), options_.confidence);
    if (interval && interval->high < objective.share) return KneeVerdict::kBreaks;
    proven = proven && interval && interval->low >= objective.share;
    suffices = suffices && objective.n > 0 && observed(objective) >= objective.share;
    exhausted = exhausted && objective.n >= options_.most_requests;
  }
  if (proven) return KneeVerdict::kKeeps;
  if (!exhausted) return KneeVerdict::kUndecided;
  return suffices ? KneeVerdict::kSeemsToKeep : KneeVerdict::kSeemsToBreak;
}

Result<void> KneeSearch::add(double rate, const std::vector<ObjectiveCount>& objectives) {
  if (objectives.empty()) return wrong("a knee needs objectives", "e.g. ttfo_ms_p90 = 500");
  for (const ObjectiveCount& objective : objectives)
    if (objective.met < 0 || objective.n < 1 || objective.met > objective.n)
      return wrong(objective.name + ": " + std::to_string(objective.met) + " of " +
                   std::to_string(objective.n) + " requests cannot be");
  auto point = std::lower_bound(points_.begin(), points_.end(), rate,
                                [](const KneePoint& a, double b) { return a.rate < b; });
  if (point == points_.end() || point->rate != rate) {
    point = points_.insert(point, KneePoint{rate, 0, objectives, KneeVerdict::kUndecided});
  } else {
    if (point->objectives.size() != objectives.size())
      return wrong("a rate was measured with other objectives than before");
    for (size_t i = 0; i < objectives.size(); ++i) {
      if (point->objectives[i].name != objectives[i].name)
        return wrong("a rate was measured with other objectives than before");
      point->objectives[i].met += objectives[i].met;
      point->objectives[i].n += objectives[i].n;
    }
  }
  ++point->probes;
  ++probes_;
  point->verdict = judge(*point);
  return {};
}

const KneePoint* KneeSearch::high() const {
  for (const KneePoint& point : points_)
    if (breaks(point.verdict)) return &point;
  return nullptr;
}

const KneePoint* KneeSearch::low() const {
  const KneePoint* best = nullptr;
  for (const KneePoint& point : points_) {
    if (breaks(point.verdict)) break;
    if (keeps(point.verdict)) best = &point;
  }
  return best;
}

const KneePoint* KneeSearch::undecided() const {
  const KneePoint* broken = high();
  for (const KneePoint& point : points_)
    if (point.verdict == KneeVerdict::kUndecided && (!broken || point.rate < broken->rate))
      return &point;
  return nullptr;
}

std::optional<KneeProbe> KneeSearch::next() const {
  if (probes_ >= options_.max_probes) return std::nullopt;
  if (const KneePoint* again = undecided()) {
    int64_t fewest = again->objectives[0].n;
    for (const ObjectiveCount& objective : again->objectives)
      fewest = std::min(fewest, objective.n);
    return KneeProbe{again->rate, std::min(std::max(fewest, options_.requests),
                                           options_.most_requests - fewest)};
  }
  const KneePoint* below = low();
  const KneePoint* above = high();
  if (!below && !above) return KneeProbe{options_.start, options_.requests};
  if (!above) {
    if (below->rate >= options_.ceiling) return std::nullopt;
    return KneeProbe{std::min(below->rate * 2, options_.ceiling), options_.requests};
  }
  if (!below) {
    if (above->rate <= options_.floor) return std::nullopt;
    return KneeProbe{std::max(above->rate / 2, options_.floor), options_.requests};
  }
  if (above->rate <= below->rate * options_.resolution) return std::nullopt;
  return KneeProbe{std::sqrt(below->rate * above->rate), options_.requests};
}

std::string KneeSearch::outcome() const {
  if (points_.empty()) return "no-answer";
  const KneePoint* below = low();
  const KneePoint* above = high();
  if (below && above && above->rate <= below->rate * options_.resolution) return "bracketed";
  if (below && !above && below->rate >= options_.ceiling && !undecided()) return "not-reached";
  if (!below && above && above->rate <= options_.floor) return "below-floor";
  return "probes-used-up";
}

Json KneeSearch::result() const {
  const KneePoint* below = low();
  const KneePoint* above = high();
  const std::string how = outcome();
  const bool proven = below && below->verdict == KneeVerdict::kKeeps &&
                      (!above || above->verdict == KneeVerdict::kBreaks);
  std::string statement;
  const std::string level = base::format_number(options_.confidence * 100) + " %";
  if (how == "no-answer") {
    statement = "nothing was measured";
  } else if (!below) {
    statement = "no rate down to " + per_second(points_.front().rate) + " keeps the objectives";
  } else {
    statement = per_second(below->rate) +
                (below->verdict == KneeVerdict::kKeeps
                     ? " keeps the objectives (" + level + " confidence, requests independent)"
                     : " seems to keep the objectives, not proven");
    if (above)
      statement += "; " + per_second(above->rate) +
                   (above->verdict == KneeVerdict::kBreaks ? " breaks them (" + level + ")"
                                                           : " seems to break them");
    else if (how == "not-reached")
      statement += "; that is the highest rate that was allowed, so the knee lies above";
    if (how == "probes-used-up")
      statement += "; the search ran out of probes before it had narrowed this down";
  }
  Json points = Json::array();
  for (const KneePoint& point : points_) {
    Json objectives = Json::array();
    for (const ObjectiveCount& objective : point.objectives) {
      const auto interval =
          stats::clopper_pearson(static_cast<size_t>(objective.met),
                                 static_cast<size_t>(objective.n), options_.confidence);
      objectives.push_back({{"name", objective.name},
                            {"share", objective.share},
                            {"met", objective.met},
                            {"n", objective.n},
                            {"observed", observed(objective)},
                            {"low", interval ? Json(interval->low) : Json(nullptr)},
                            {"high", interval ? Json(interval->high) : Json(nullptr)}});
    }
    points.push_back({{"rate", point.rate},
                      {"verdict", name(point.verdict)},
                      {"probes", point.probes},
                      {"objectives", std::move(objectives)}});
  }
  return {{"outcome", how},
          {"rate", below ? Json(below->rate) : Json(nullptr)},
          {"breaks_at", above ? Json(above->rate) : Json(nullptr)},
          {"proven", proven},
          {"confidence", options_.confidence},
          {"statement", statement},
          {"points", std::move(points)}};
}

}  // namespace anvil::evidence
