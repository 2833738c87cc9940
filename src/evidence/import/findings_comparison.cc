// Findings about the comparison itself: what was not held equal, what was left out, what three runs
// can carry.
#include <cmath>

#include "evidence/import/findings.h"
#include "evidence/json_access.h"
#include "stats/bootstrap.h"
#include "stats/rank_tests.h"

namespace anvil::evidence::imported {

namespace {

void context_limits(const Comparison& comparison, const ArmRuns& treatment, const ArmRuns& control,
                    std::vector<Finding>& findings) {
  const auto a = treatment.listed.front()->max_context_tokens;
  const auto b = control.listed.front()->max_context_tokens;
  if (!a || !b || *a == *b) return;
  Finding out;
  out.id = "context-limits";
  out.title = "The two arms ran under different context limits: " + grouped(*a) + " and " +
              grouped(*b) + " tokens";
  out.table = {{"arm", "run", "context limit", "longest prompt"}};
  int64_t longest = 0;
  for (const ArmRuns* arm : {&treatment, &control})
    for (const auto* run : arm->all) {
      int64_t most = 0;
      for (const Row* row : run->ok_rows()) most = std::max(most, row->prompt.value_or(0));
      longest = std::max(longest, most);
      out.table.push_back({arm->name, run->document->file,
                           run->max_context_tokens ? grouped(*run->max_context_tokens) : "-",
                           grouped(most)});
      out.evidence.push_back(place(*run->document, "/max_context_tokens"));
    }
  const auto declared = integer(member(comparison.document->json, "protocol"), "max_model_len");
  out.text.push_back(
      "The limit is what the load client worked with. " +
      (declared ? "The comparison declares " + grouped(*declared) + " for both. " : std::string()) +
      "The prompts (at most " + grouped(longest) +
      " tokens) fit both limits, so it need not have changed them; but the arms were not run by "
      "the "
      "same command, which the comparison takes for granted.");
  out.values = {{"limits", {*a, *b}}, {"declared", declared ? Json(*declared) : Json(nullptr)}};
  out.evidence.push_back(place(*comparison.document, "/protocol/max_model_len"));
  findings.push_back(std::move(out));
}

double choose(size_t n, size_t k) {
  double out = 1;
  for (size_t i = 1; i <= k; ++i)
    out = out * static_cast<double>(n - k + i) / static_cast<double>(i);
  return out;
}

// Whether the published metrics have a member that could be an interval.
bool states_interval(const Comparison& comparison) {
  const Json& metrics = member(comparison.document->json, "metrics");
  if (!metrics.is_object()) return false;
  for (const auto& [name, metric] : metrics.items())
    if (metric.is_object())
      for (const auto& [key, value] : metric.items())
        if (key.find("interval") != std::string::npos || key.ends_with("_ci") ||
            key.find("_ci_") != std::string::npos)
          return true;
  return false;
}

void no_intervals(const Comparison& comparison, const ArmRuns& treatment, const ArmRuns& control,
                  std::vector<Finding>& findings) {
  const size_t n = std::min(treatment.listed.size(), control.listed.size());
  // What an exact signed-rank test gives when every pair points the same way.
  const auto least_p = [](size_t pairs) {
    std::vector<double> same_sign(pairs);
    for (size_t i = 0; i < pairs; ++i) same_sign[i] = static_cast<double>(i + 1);
    const auto test = stats::wilcoxon_signed_rank(same_sign);
    return test ? test->p_two_sided : 1.0;
  };
  const double signed_rank = least_p(n);
  if (signed_rank <= 0.05) return;
  Finding out;
  out.id = "no-intervals";
  out.title = std::to_string(n) + " runs per arm carry no interval" +
              (states_interval(comparison) ? "; the one that is stated cannot hold"
                                           : ", and none was stated");
  out.table = {{"metric", treatment.name + " runs", control.name + " runs", "ratio of medians",
                "smallest and largest ratio of two runs", "bootstrap, not to be trusted",
                "exact p of the order"}};
  const Json& metrics = member(comparison.document->json, "metrics");
  if (!metrics.is_object()) return;
  for (const auto& [name, metric] : metrics.items()) {
    std::vector<double> values[2];
    std::string shown_values[2];
    const ArmRuns* arms[2] = {&treatment, &control};
    for (int i = 0; i < 2; ++i)
      for (const auto* run : arms[i]->listed)
        if (const auto value = run_metric(*run, name)) {
          values[i].push_back(*value);
          shown_values[i] += (shown_values[i].empty() ? "" : ", ") + fixed(*value, 1);
        }
    if (values[0].empty() || values[1].empty()) continue;
    const auto [a_min, a_max] = std::minmax_element(values[0].begin(), values[0].end());
    const auto [b_min, b_max] = std::minmax_element(values[1].begin(), values[1].end());
    const double ratio = median_of(values[0]) / median_of(values[1]);
    std::string interval = "-", order = "-";
    if (const auto drawn = stats::ratio_of_medians(values[1], values[0], {}))
      if (const auto ends = drawn->interval(0.95))
        interval = fixed(ends->low, 3) + " to " + fixed(ends->high, 3);
    if (const auto test = stats::mann_whitney(values[1], values[0]))
      order = fixed(test->p_two_sided, 2);
    out.table.push_back({name, shown_values[0], shown_values[1], fixed(ratio, 3),
                         fixed(*a_min / *b_max, 3) + " to " + fixed(*a_max / *b_min, 3), interval,
                         order});
    out.values["ratio_of_medians"][name] = ratio;
    out.values["ratio_range"][name] = {*a_min / *b_max, *a_max / *b_min};
    out.evidence.push_back(place(*comparison.document, "/metrics/" + name));
  }
  const double exact = 2 / choose(2 * n, n);
  size_t needed = n;
  while (needed < 20 && least_p(needed) > 0.05) ++needed;
  out.text.push_back(
      "The unit that repeats is the run, not the request: requests of a run share its cache, "
      "clocks "
      "and answers. With " +
      std::to_string(n) + " pairs an exact signed-rank test cannot give less than p = " +
      fixed(signed_rank, 3) + ", and exchanging the labels of the runs not less than " +
      fixed(exact, 3) + ", however large the effect. A bootstrap over " + std::to_string(n) +
      " runs draws from " + fixed(choose(2 * n - 1, n), 0) +
      " different samples per arm, and its interval cannot leave the range of what was seen: the "
      "table has it only to show that. " +
      std::to_string(needed) + " pairs are the least that a 5 % statement needs.");
  out.text.push_back(
      "What can be said is the range of the ratios of single runs. Where it lies on one side of 1 "
      "the runs at least do not overlap.");
  std::string last_a, first_b;
  for (const auto* run : treatment.listed) last_a = std::max(last_a, run->started_at);
  for (const auto* run : control.listed)
    if (first_b.empty() || run->started_at < first_b) first_b = run->started_at;
  if (!last_a.empty() && last_a < first_b) {
    out.text.push_back("All runs of `" + treatment.name + "` came before the first of `" +
                       control.name + "` (" + last_a + " and " + first_b +
                       "): whatever drifted in between is part of the difference.");
    for (const ArmRuns* arm : {&treatment, &control})
      for (const auto* run : arm->listed)
        out.evidence.push_back(place(*run->document, "/started_at"));
  }
  out.values["runs"] = n;
  out.values["signed_rank_least_p"] = signed_rank;
  out.values["exchange_least_p"] = exact;
  out.values["pairs_needed"] = needed;
  findings.push_back(std::move(out));
}

// The middle of the values: of an even number, the mean of the two in the middle.
double midpoint_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void excluded_run(const Campaign& campaign, const Comparison& comparison, const ArmRuns& treatment,
                  const ArmRuns& control, std::vector<Finding>& findings) {
  const CapacityRun* run = campaign.run(comparison.retained);
  if (!run || !run->requests || !run->wall_ms) return;
  const auto rows = run->ok_rows();
  const size_t failed = run->rows.size() - rows.size();
  if (failed == 0) return;
  Finding out;
  out.id = "excluded-run";
  out.title = "One run of `" + control.name + "` was left out of the medians because " +
              std::to_string(failed) + " of its " + std::to_string(*run->requests) +
              " requests failed";
  out.table = {{"metric", "the run", "median without it (published)", "median with it",
                "change without", "change with"}};
  const Json& metrics = member(comparison.document->json, "metrics");
  if (metrics.is_object())
    for (const auto& [name, metric] : metrics.items()) {
      std::vector<double> a, b;
      for (const auto* one : treatment.listed)
        if (const auto value = run_metric(*one, name)) a.push_back(*value);
      for (const auto* one : control.listed)
        if (const auto value = run_metric(*one, name)) b.push_back(*value);
      const auto here = run_metric(*run, name);
      if (!here || a.empty() || b.empty()) continue;
      const double ours = median_of(a), without = median_of(b);
      b.push_back(*here);
      const double with = midpoint_median(b);
      out.table.push_back({name, fixed(*here, 2), fixed(without, 2), fixed(with, 2),
                           percent(percent_change(without, ours)),
                           percent(percent_change(with, ours))});
      out.values["change_percent"][name] = {percent_change(without, ours),
                                            percent_change(with, ours)};
    }
  double answered_ms = 0;
  int64_t tokens = 0;
  for (const Row* row : rows) {
    answered_ms += row->e2e_ms.value_or(0);
    tokens += row->completion.value_or(0);
  }
  const double rest_ms = *run->wall_ms - answered_ms;
  out.text.push_back(
      "The run is kept in the evidence, and its exclusion is stated; what it does to the medians "
      "is "
      "not. With an even number of runs the median is the mean of the middle two.");
  out.text.push_back(
      "The failed request's own times and counts were not kept. The run's wall time (" +
      fixed(*run->wall_ms, 0) + " ms) less its other requests leaves " + fixed(rest_ms, 0) +
      " ms for it, and its tokens are in no sum: throughput " +
      fixed(run_metric(*run, "throughput_tok_s").value_or(0), 3) + " tok/s.");
  out.values["wall_ms"] = *run->wall_ms;
  out.values["failed_request_ms"] = rest_ms;
  if (run->max_tokens && rest_ms > 0 && failed == 1) {
    const auto budget = static_cast<double>(*run->max_tokens);
    const double rate = budget / rest_ms * 1000;
    const double whole = (static_cast<double>(tokens) + budget) / *run->wall_ms * 1000;
    const auto usual = run_metric(*run, "decode_tok_s_p50");
    const bool as_usual = usual && std::fabs(rate / *usual - 1) < 0.05;
    out.text.push_back(
        "Had it written its whole budget of " + grouped(*run->max_tokens) +
        " tokens in that time, it would have run at " + fixed(rate, 1) + " tok/s" +
        (as_usual ? ", within 5 % of the run's other requests: it most likely spent the budget "
                    "without an answer"
                  : "") +
        ". Counting those tokens, the run's throughput is " + fixed(whole, 1) + " tok/s.");
    out.values["budget_rate_tok_s"] = rate;
    out.values["throughput_with_budget_tok_s"] = whole;
  }
  size_t all = 0, lost = 0;
  for (const auto* one : control.all) {
    all += one->rows.size();
    lost += one->rows.size() - one->ok_rows().size();
  }
  out.text.push_back("Over all its runs `" + control.name + "` failed " + std::to_string(lost) +
                     " of " + std::to_string(all) + " requests; over the published ones, none.");
  for (const auto& row : run->rows)
    if (!row.ok) out.evidence.push_back(place(*run->document, row.pointer));
  out.evidence.push_back(place(*run->document, "/wall_clock_ms"));
  out.evidence.push_back(place(*comparison.document, "/control/retained_failure_artifact"));
  findings.push_back(std::move(out));
}

}  // namespace

void add_comparison_findings(const Campaign& campaign, std::vector<Finding>& findings) {
  for (const auto& comparison : campaign.comparisons) {
    const auto arms = arms_of(campaign, comparison);
    if (arms.size() != 2) continue;
    context_limits(comparison, arms[0], arms[1], findings);
    no_intervals(comparison, arms[0], arms[1], findings);
    excluded_run(campaign, comparison, arms[0], arms[1], findings);
  }
}

}  // namespace anvil::evidence::imported
