// Readers of the files that time requests: capacity runs and context ladders.
#include "evidence/import/campaign.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

// Members that capacity rows and ladder rows have in common.
void read_timed_row(const Node& node, Row& row) {
  row.pointer = node.pointer();
  row.ttfv_ms = node["ttft_ms"].duration();
  row.e2e_ms = node["e2e_ms"].duration();
  row.ttfo_ms = node.maybe("time_to_first_output_ms").duration();
  row.completion = node["output_tokens"].count();
  row.content_chunks = node.maybe("content_chunks").count();
  row.reasoning_chunks = node.maybe("reasoning_chunks").count();
  const auto not_after = [&](const char* key, std::optional<double> early,
                             std::optional<double> late) {
    if (early && late && *early > *late) node.maybe(key).odd("lies after a later moment");
  };
  not_after("time_to_first_output_ms", row.ttfo_ms, row.ttfv_ms);
  not_after("ttft_ms", row.ttfv_ms, row.e2e_ms);
}

void read_failures(const Node& root, const Row& common, CapacityRun& run) {
  for (const auto& node : root["failures"].items()) {
    Row row = common;
    row.pointer = node.pointer();
    row.ok = false;
    row.error = node["error_message"].text();
    if (const auto index = node["request_index"].count()) row.item = std::to_string(*index);
    note_missing(row, true);
    run.rows.push_back(std::move(row));
  }
}

}  // namespace

void read_usage(const Node& usage, Row& row) {
  const bool responses = usage.maybe("input_tokens").present();
  row.prompt = usage[responses ? "input_tokens" : "prompt_tokens"].count();
  row.completion = usage[responses ? "output_tokens" : "completion_tokens"].count();
  row.cached = usage.maybe(responses ? "input_tokens_details" : "prompt_tokens_details")
                   .maybe("cached_tokens")
                   .count();
  if (row.cached && row.prompt && *row.cached > *row.prompt)
    usage.odd("counts more cached tokens than the prompt has");
}

void read_capacity(Document& document, Campaign& campaign) {
  const Node root(document);
  CapacityRun run;
  run.document = &document;
  run.model = root["model"].text();
  run.engine = root["engine"].text();
  run.started_at = root["started_at"].text();
  run.requests = root["requests"].count();
  run.completed = root["completed"].count();
  run.failed = root["failed"].count();
  run.concurrency = root["concurrency"].count();
  run.context_tokens = root.maybe("context_tokens").count();
  run.max_context_tokens = root.maybe("max_context_tokens").count();
  run.max_tokens = root["max_tokens"].count();
  run.wall_ms = root["wall_clock_ms"].duration();
  run.cache_hit_avg = root["metrics"].maybe("prefix_cache_hit_avg").number();

  Row common;
  common.document = &document;
  common.model = run.model;
  common.lane = "capacity";
  common.effort = root.maybe("serve_flags").maybe("reasoning_effort").text();
  common.concurrency = static_cast<int>(std::min<int64_t>(run.concurrency.value_or(1), 1 << 20));
  common.planned_context = run.context_tokens;
  for (const auto& node : root["request_timings"].items()) {
    Row row = common;
    read_timed_row(node, row);
    row.prompt = node["prompt_tokens"].count();
    if (const auto index = node["request_index"].count()) row.item = std::to_string(*index);
    note_missing(row, true);
    run.rows.push_back(std::move(row));
  }
  const auto succeeded = static_cast<int64_t>(run.rows.size());
  read_failures(root, common, run);
  if (run.completed && *run.completed != succeeded)
    root["completed"].odd("counts " + std::to_string(*run.completed) + " requests where " +
                          std::to_string(succeeded) + " are recorded");
  const auto failed = static_cast<int64_t>(run.rows.size()) - succeeded;
  if (run.failed && *run.failed != failed)
    root["failed"].odd("counts " + std::to_string(*run.failed) + " failures where " +
                       std::to_string(failed) + " are recorded");
  campaign.capacity.push_back(std::move(run));
}

namespace {

void read_ladder(const Node& root, Document& document, Campaign& campaign) {
  Ladder ladder;
  ladder.document = &document;
  ladder.model = root["identity"]["model"].text();
  ladder.started_at = root["identity"]["started_at"].text();
  ladder.cap_tokens = root["context"]["cap_tokens"].count();
  for (const auto& node : root["context"]["targets"].items()) {
    Rung rung;
    rung.target = node["target_tokens"].count();
    rung.attempted = node["attempted_context_tokens"].count();
    rung.chars_per_token = node["chars_per_token"].duration();
    Row& row = rung.row;
    row.document = &document;
    row.model = ladder.model;
    row.purpose = Purpose::kLadder;
    row.lane = rung.target ? std::to_string(*rung.target) : "";
    row.effort = root["thinking"].maybe("reasoning_effort").text();
    row.planned_context = rung.attempted;
    read_timed_row(node, row);
    const auto output = row.completion;
    read_usage(node["usage"], row);
    if (output && row.completion && *output != *row.completion)
      node["output_tokens"].odd("is another number than the usage reports");
    row.ok = node["status"].text() == "passed";
    if (!row.ok) row.error = "the rung did not pass";
    note_missing(row, true);
    ladder.rungs.push_back(std::move(rung));
  }
  campaign.ladders.push_back(std::move(ladder));
}

void read_items(const Node& checks, const std::string& section, const std::string& model,
                const std::string& effort, Quality& quality) {
  for (const auto& check : checks.items()) {
    QualityItem item;
    item.id = check.maybe("id").present() ? check["id"].text() : check["name"].text();
    item.section = section;
    item.pointer = check.pointer();
    item.pass_count = check["pass_count"].count();
    for (const auto& node : check["attempts"].items()) {
      Row row;
      row.document = quality.document;
      row.pointer = node.pointer();
      row.model = model;
      row.purpose = Purpose::kCheck;
      row.lane = "quality";
      row.item = item.id;
      row.effort = effort;
      row.stream = false;
      if (const auto attempt = node["attempt"].count())
        row.attempt =
            static_cast<int>(std::min<int64_t>(std::max<int64_t>(*attempt, 1), 10000)) - 1;
      row.e2e_ms = node["latency_ms"].duration();
      row.finish = node["finish_reason"].text();
      row.content = node["content"].text();
      row.ok = node["status"].text() == "passed";
      if (!row.ok) row.error = node.maybe("failure_class").text();
      read_usage(node["usage"], row);
      note_missing(row, false);
      item.attempts.push_back(std::move(row));
    }
    quality.items.push_back(std::move(item));
  }
}

}  // namespace

void read_bakeoff(Document& document, Campaign& campaign) {
  const Node root(document);
  if (!member(document.json, "context").is_object() ||
      !elements(at_path(document.json, "context.targets")).empty()) {
    document.kind = "context-ladder";
    read_ladder(root, document, campaign);
  }
  Quality quality;
  quality.document = &document;
  quality.model = root["identity"]["model"].text();
  quality.started_at = root["identity"]["started_at"].text();
  const std::string effort = root["thinking"].maybe("reasoning_effort").text();
  for (const char* section : {"tool", "session", "intelligence"})
    read_items(root[section]["checks"], section, quality.model, effort, quality);
  for (const auto& [name, suite] : root["suites"].members())
    read_items(suite["checks"], name, quality.model, effort, quality);
  if (!quality.items.empty()) campaign.quality.push_back(std::move(quality));
}

}  // namespace anvil::evidence::imported
