// The figures of capacity runs, their comparison, and context ladders.
#include <cmath>

#include "evidence/import/figures.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

std::optional<double> ttfo(const Row& row) {
  return row.ttfo_ms;
}
std::optional<double> ttfv(const Row& row) {
  return row.ttfv_ms;
}
std::optional<double> e2e(const Row& row) {
  return row.e2e_ms;
}
std::optional<double> generation(const Row& row) {
  return row.generation_ms();
}
std::optional<double> visible_generation(const Row& row) {
  if (!row.ttfv_ms || !row.e2e_ms) return std::nullopt;
  return *row.e2e_ms - *row.ttfv_ms;
}
template <class T>
std::optional<double> as_double(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}
std::optional<double> prompt(const Row& row) {
  return as_double(row.prompt);
}
std::optional<double> completion(const Row& row) {
  return as_double(row.completion);
}
std::optional<double> content_chunks(const Row& row) {
  return as_double(row.content_chunks);
}
std::optional<double> reasoning_chunks(const Row& row) {
  return as_double(row.reasoning_chunks);
}

// The old client's name for a quantity of one row.
struct RowMetric {
  std::string_view name;
  std::optional<double> (*value)(const Row&);
};
constexpr RowMetric kPercentiles[] = {
    {"time_to_first_output", ttfo},
    {"ttft", ttfv},
    {"e2e", e2e},
    {"generation", generation},
    {"decode_tok_s", decode_tok_s},
    {"effective_prefill_tok_s", prefill_tok_s},
    {"prompt_tokens", prompt},
    {"mean_inter_token_latency_ms", token_gap_ms},
};
constexpr RowMetric kSums[] = {
    {"output_tokens", completion},
    {"prompt_tokens", prompt},
    {"content_chunks", content_chunks},
    {"reasoning_chunks", reasoning_chunks},
};
constexpr RowMetric kDerivedMembers[] = {
    {"generation_ms", generation},
    {"visible_generation_ms", visible_generation},
    {"decode_tok_s", decode_tok_s},
    {"effective_prefill_tok_s", prefill_tok_s},
    {"mean_inter_token_latency_ms", token_gap_ms},
};

// A statistic over rows by its published name: "<metric>_p50_ms", "<metric>_p95", "<sum>",
// "ttft_samples". Nothing when a row lacks what it needs, or the name is not known.
std::optional<double> rows_metric(const std::vector<const Row*>& rows, std::string_view name) {
  const auto all = [&](std::optional<double> (*value)(const Row&)) -> std::vector<double> {
    auto values = values_of(rows, value);
    return values.size() == rows.size() ? values : std::vector<double>{};
  };
  for (const auto& metric : kSums)
    if (name == metric.name) {
      const auto values = all(metric.value);
      if (values.empty()) return std::nullopt;
      double sum = 0;
      for (double value : values) sum += value;
      return sum;
    }
  if (name == "ttft_samples") return static_cast<double>(values_of(rows, ttfv).size());
  if (name == "prompt_token_samples") return static_cast<double>(values_of(rows, prompt).size());
  for (const auto& metric : kPercentiles) {
    if (!name.starts_with(metric.name)) continue;
    const auto rest = name.substr(metric.name.size());
    const bool p50 = rest == "_p50" || rest == "_p50_ms";
    const bool p95 = rest == "_p95" || rest == "_p95_ms";
    if (!p50 && !p95) continue;
    auto values = all(metric.value);
    if (values.empty()) return std::nullopt;
    return nearest_rank_of(std::move(values), p50 ? 0.5 : 0.95);
  }
  return std::nullopt;
}

bool known_statistic(std::string_view name) {
  for (const auto& metric : kSums)
    if (name == metric.name) return true;
  for (const auto& metric : kPercentiles)
    if (name.starts_with(metric.name) && name.substr(metric.name.size()).starts_with("_p"))
      return true;
  return name == "ttft_samples" || name == "prompt_token_samples" || name == "throughput_tok_s";
}

// What a row's record says beyond its raw stamps.
void add_row_members(const Row& row, const Json& record, Figures& figures) {
  for (const auto& metric : kDerivedMembers)
    figures.stored(row.item.empty() ? std::string(metric.name)
                                    : "request " + row.item + " " + std::string(metric.name),
                   place(*row.document, row.pointer + "/" + std::string(metric.name)),
                   member(record, metric.name), metric.value(row),
                   "from the row's own stamps and counts");
}

}  // namespace

std::optional<double> run_metric(const CapacityRun& run, std::string_view name) {
  const auto rows = run.ok_rows();
  if (name == "throughput_tok_s") {
    const auto tokens = rows_metric(rows, "output_tokens");
    if (!tokens || !run.wall_ms || *run.wall_ms <= 0) return std::nullopt;
    return *tokens / *run.wall_ms * 1000;
  }
  return rows_metric(rows, name);
}

void add_capacity_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& run : campaign.capacity) {
    figures.group(run.document->file);
    const Json& metrics = member(run.document->json, "metrics");
    if (metrics.is_object())
      for (const auto& [name, value] : metrics.items()) {
        const std::string where = place(*run.document, "/metrics/" + name);
        if (name == "prefix_cache_hit_avg")
          figures.not_derivable(name, where, value,
                                "the rows hold no cached-token counts; only this mean was kept");
        else if (known_statistic(name))
          figures.stored(name, where, value, run_metric(run, name),
                         "over the rows of request_timings");
      }
    const Json& rows = member(run.document->json, "request_timings");
    size_t index = 0;
    for (const Row* row : run.ok_rows())
      if (index < elements(rows).size()) add_row_members(*row, elements(rows)[index++], figures);
  }
}

namespace {

void add_comparison_metric(const Campaign& campaign, const Comparison& comparison,
                           const std::string& name, const Json& metric, Figures& figures) {
  const std::string pointer = "/metrics/" + name + "/";
  std::optional<double> medians[2];
  const Arm* arms[2] = {&comparison.treatment, &comparison.control};
  for (int side = 0; side < 2; ++side) {
    const Arm& arm = *arms[side];
    const auto& stored = elements(member(metric, arm.name + "_values"));
    std::vector<double> values;
    for (size_t i = 0; i < stored.size(); ++i) {
      const CapacityRun* run = i < arm.artifacts.size() ? campaign.run(arm.artifacts[i]) : nullptr;
      const auto value = run ? run_metric(*run, name) : std::nullopt;
      if (value) values.push_back(*value);
      figures.stored(
          name + ", " + arm.name + " run " + std::to_string(i + 1),
          place(*comparison.document, pointer + arm.name + "_values/" + std::to_string(i)),
          stored[i], value,
          run ? "from the rows of " + run->document->file
              : "the run's file is not in the directory");
    }
    if (!stored.empty() && values.size() == stored.size()) medians[side] = median_of(values);
    figures.stored(name + ", " + arm.name + " median",
                   place(*comparison.document, pointer + arm.name + "_median"),
                   member(metric, arm.name + "_median"), medians[side],
                   medians[side] ? "median of the runs' values" : "not all runs are derivable");
  }
  for (const char* kind : {"_delta_percent", "_latency_delta_percent"}) {
    const std::string key = comparison.treatment.name + kind;
    std::optional<double> change;
    if (medians[0] && medians[1] && *medians[1] != 0)
      change = percent_change(*medians[1], *medians[0]);
    figures.stored(name + ", change in percent", place(*comparison.document, pointer + key),
                   member(metric, key), change,
                   change ? "ratio of the two medians" : "a median is not derivable");
  }
}

// Declared protocol values against what each of the runs used.
void add_protocol(const Campaign& campaign, const Comparison& comparison, Figures& figures) {
  struct Declared {
    const char* name;
    std::optional<int64_t> CapacityRun::*used;
    const char* if_differs;
  };
  constexpr Declared kDeclared[] = {
      {"max_model_len", &CapacityRun::max_context_tokens,
       "the load client of this arm was told another limit"},
      {"max_tokens", &CapacityRun::max_tokens, ""},
      {"concurrency", &CapacityRun::concurrency, ""},
      {"requests_per_run", &CapacityRun::requests, ""},
  };
  const Json& protocol = member(comparison.document->json, "protocol");
  for (const Arm* arm : {&comparison.treatment, &comparison.control}) {
    std::vector<const CapacityRun*> runs;
    for (const auto& file : arm->artifacts)
      if (const CapacityRun* run = campaign.run(file)) runs.push_back(run);
    const bool all = !runs.empty() && runs.size() == arm->artifacts.size();
    for (const auto& declared : kDeclared) {
      // One run that used something else is what matters.
      std::optional<double> used;
      for (const CapacityRun* run : runs) {
        const auto value = as_double(run->*declared.used);
        if (value && (!used || value != number(protocol, declared.name))) used = value;
      }
      figures.stored(std::string(declared.name) + ", " + arm->name + " runs",
                     place(*comparison.document, "/protocol/" + std::string(declared.name)),
                     member(protocol, declared.name), all ? used : std::nullopt,
                     all ? "what the runs' files say they used" : "a run's file is missing",
                     declared.if_differs);
    }
    std::optional<double> prompt_tokens;
    for (const CapacityRun* run : runs)
      if (const auto median = run_metric(*run, "prompt_tokens_p50")) prompt_tokens = median;
    figures.stored("context_tokens, " + arm->name + " runs",
                   place(*comparison.document, "/protocol/context_tokens"),
                   member(protocol, "context_tokens"), all ? prompt_tokens : std::nullopt,
                   all ? "prompt tokens by the engine's count" : "a run's file is missing",
                   "the prompt was sized by an assumed number of characters per token");
    size_t whole = 0;
    for (const CapacityRun* run : runs)
      whole += run->failed == 0 && run->completed == run->requests;
    figures.stored(
        "successful_runs_per_lane, " + arm->name,
        place(*comparison.document, "/protocol/successful_runs_per_lane"),
        member(protocol, "successful_runs_per_lane"),
        all ? std::optional(static_cast<double>(whole)) : std::nullopt,
        all ? "listed runs in which every request succeeded" : "a run's file is missing");
  }
  std::string effort;
  for (const Arm* arm : {&comparison.treatment, &comparison.control})
    for (const auto& file : arm->artifacts)
      if (const CapacityRun* run = campaign.run(file))
        for (const Row& row : run->rows)
          if (effort.empty() || row.effort != text(protocol, "reasoning_effort"))
            effort = row.effort;
  figures.exact("reasoning_effort", place(*comparison.document, "/protocol/reasoning_effort"),
                member(protocol, "reasoning_effort"), effort.empty() ? Json(nullptr) : Json(effort),
                "what the runs asked for");
  figures.not_derivable("margin_tokens", place(*comparison.document, "/protocol/margin_tokens"),
                        member(protocol, "margin_tokens"), "no raw file records it");
}

void add_arm_facts(const Comparison& comparison, Figures& figures) {
  for (const Arm* arm : {&comparison.treatment, &comparison.control}) {
    const Json& facts = member(comparison.document->json, arm->name);
    const auto no_log = [&](const char* key, const char* what) {
      figures.not_derivable(std::string(key) + ", " + arm->name,
                            place(*comparison.document, "/" + arm->name + "/" + key),
                            member(facts, key), what);
    };
    no_log("kv_cache_tokens", "no start-up log is among the files; other files only repeat it");
    no_log("startup_seconds", "no start-up log is among the files");
    no_log("cuda_graph_cap", "no start-up log is among the files");
  }
}

// The functional gate of each arm, from the preflights of its model.
void add_gates(const Campaign& campaign, const Comparison& comparison, Figures& figures) {
  for (const Arm* arm : {&comparison.treatment, &comparison.control}) {
    size_t failed = 0, seen = 0;
    for (const auto& preflight : campaign.preflights)
      if (preflight.model == arm->model)
        for (const auto& row : preflight.rows) ++seen, failed += row.ok ? 0 : 1;
    figures.exact("functional gate, " + arm->name,
                  place(*comparison.document, "/functional_gate/" + arm->name),
                  member(member(comparison.document->json, "functional_gate"), arm->name),
                  seen ? Json(failed ? "fail" : "pass") : Json(nullptr),
                  seen ? std::to_string(seen) + " observations of the arm's preflights"
                       : "no preflight of this arm is in the directory");
  }
  std::optional<double> drafts;
  for (const auto& one : campaign.acceptance)
    if (one.model == comparison.treatment.model) drafts = as_double(one.draft_length);
  figures.stored(
      "num_speculative_tokens, " + comparison.treatment.name,
      place(*comparison.document, "/" + comparison.treatment.name + "/num_speculative_tokens"),
      member(member(comparison.document->json, comparison.treatment.name),
             "num_speculative_tokens"),
      drafts, drafts ? "draft length in the counter file" : "no counters of this arm");
}

void add_retained(const Campaign& campaign, const Comparison& comparison, Figures& figures) {
  if (comparison.retained.empty()) return;
  const CapacityRun* run = campaign.run(comparison.retained);
  const Json& retained = at_path(comparison.document->json, "control.retained_failure_artifact");
  const std::string pointer = "/control/retained_failure_artifact/";
  const std::string from = run ? "rows and failures of " + run->document->file
                               : "the run's file is not in the directory";
  std::optional<double> ok, failed;
  if (run) {
    ok = static_cast<double>(run->ok_rows().size());
    failed = static_cast<double>(run->rows.size()) - *ok;
  }
  figures.stored("excluded run, completed", place(*comparison.document, pointer + "completed"),
                 member(retained, "completed"), ok, from);
  figures.stored("excluded run, failed", place(*comparison.document, pointer + "failed"),
                 member(retained, "failed"), failed, from);
}

void add_memory(const Campaign& campaign, const Comparison& comparison, Figures& figures) {
  const Json& memory = member(comparison.document->json, "memory");
  const Snapshot* snapshots[2] = {campaign.snapshot_of(comparison.treatment.model),
                                  campaign.snapshot_of(comparison.control.model)};
  const Arm* arms[2] = {&comparison.treatment, &comparison.control};
  for (int side = 0; side < 2; ++side) {
    const std::string key = arms[side]->name + "_used_mib";
    const auto& used = elements(member(memory, key));
    for (size_t i = 0; i < used.size(); ++i) {
      std::optional<double> value;
      if (snapshots[side] && i < snapshots[side]->gpus.size())
        value = as_double(snapshots[side]->gpus[i].used_mib);
      figures.stored(key + ", card " + std::to_string(i),
                     place(*comparison.document, "/memory/" + key + "/" + std::to_string(i)),
                     used[i], value,
                     value ? "from " + snapshots[side]->document->file : "no snapshot of this arm");
    }
    std::optional<bool> pass;
    if (snapshots[side] && snapshots[side]->reserve_mib) {
      pass = true;
      for (const auto& gpu : snapshots[side]->gpus)
        pass = *pass && gpu.free_mib &&
               static_cast<double>(*gpu.free_mib) >= *snapshots[side]->reserve_mib;
    }
    figures.exact(arms[side]->name + "_reserve_pass",
                  place(*comparison.document, "/memory/" + arms[side]->name + "_reserve_pass"),
                  member(memory, arms[side]->name + "_reserve_pass"),
                  pass ? Json(*pass) : Json(nullptr),
                  pass ? "reported free memory against the reserve" : "no snapshot of this arm");
  }
  const std::string key = comparison.treatment.name + "_increment_mib";
  const auto& increments = elements(member(memory, key));
  for (size_t i = 0; i < increments.size(); ++i) {
    std::optional<double> value;
    if (snapshots[0] && snapshots[1] && i < snapshots[0]->gpus.size() &&
        i < snapshots[1]->gpus.size() && snapshots[0]->gpus[i].used_mib &&
        snapshots[1]->gpus[i].used_mib)
      value = as_double(
          std::optional(*snapshots[0]->gpus[i].used_mib - *snapshots[1]->gpus[i].used_mib));
    figures.stored(key + ", card " + std::to_string(i),
                   place(*comparison.document, "/memory/" + key + "/" + std::to_string(i)),
                   increments[i], value,
                   value ? "difference of the two snapshots" : "a snapshot is missing");
  }
}

}  // namespace

void add_comparison_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& comparison : campaign.comparisons) {
    figures.group(comparison.document->file);
    const Json& metrics = member(comparison.document->json, "metrics");
    if (metrics.is_object())
      for (const auto& [name, metric] : metrics.items())
        add_comparison_metric(campaign, comparison, name, metric, figures);
    add_protocol(campaign, comparison, figures);
    add_arm_facts(comparison, figures);
    add_gates(campaign, comparison, figures);
    add_retained(campaign, comparison, figures);
    add_memory(campaign, comparison, figures);
    const Json& share =
        at_path(comparison.document->json, "dspark.cumulative_accepted_token_fraction");
    std::optional<double> fraction;
    for (const auto& one : campaign.acceptance)
      if (one.model == comparison.treatment.model && one.accepted && one.draft_tokens &&
          *one.draft_tokens > 0)
        fraction = static_cast<double>(*one.accepted) / static_cast<double>(*one.draft_tokens);
    figures.stored("cumulative_accepted_token_fraction, dspark",
                   place(*comparison.document, "/dspark/cumulative_accepted_token_fraction"), share,
                   fraction,
                   fraction ? "accepted / drafted of the counter file" : "no counters of this arm");
  }
}

void add_ladder_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& ladder : campaign.ladders) {
    figures.group(ladder.document->file);
    std::vector<const Row*> rows;
    for (const auto& rung : ladder.rungs) rows.push_back(&rung.row);
    const Json& chat = at_path(ladder.document->json, "timing.chat");
    if (chat.is_object())
      for (const auto& [name, value] : chat.items()) {
        if (!known_statistic(name)) continue;
        const auto derived = rows.empty() ? std::nullopt : rows_metric(rows, name);
        figures.stored(
            name, place(*ladder.document, "/timing/chat/" + name), value, derived,
            derived ? "over the ladder's rows" : "the rows lack what it was computed from");
      }
    size_t index = 0;
    for (const auto& node : elements(at_path(ladder.document->json, "context.targets")))
      if (index < ladder.rungs.size()) {
        Row named = ladder.rungs[index++].row;
        named.item = named.lane;
        add_row_members(named, node, figures);
      }
    const Json& usable = at_path(ladder.document->json, "score_inputs.usable_context_tokens");
    std::optional<double> largest;
    for (const Row* row : rows)
      if (row->ok && row->prompt)
        largest = std::max(largest.value_or(0), as_double(row->prompt).value());
    figures.stored("usable_context_tokens",
                   place(*ladder.document, "/score_inputs/usable_context_tokens"), usable, largest,
                   "the largest prompt that passed, by the engine's count",
                   "the file states the label of the rung");
    for (const auto& [key, section] :
         {std::pair{"tool_call_passed", "tool"}, std::pair{"session_recall_passed", "session"}})
      if (text(member(ladder.document->json, section), "status") == "not_run")
        figures.not_derivable(key, place(*ladder.document, std::string("/score_inputs/") + key),
                              at_path(ladder.document->json, std::string("score_inputs.") + key),
                              "the suite was not run in this file; absence is stated as a result");
  }
}

}  // namespace anvil::evidence::imported
