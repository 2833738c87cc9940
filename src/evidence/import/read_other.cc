// Readers of the files that time nothing: preflights, hardware, counters, and what ties them.
#include "evidence/import/campaign.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

void read_preflight(Document& document, Campaign& campaign) {
  const Node root(document);
  Preflight preflight;
  preflight.document = &document;
  preflight.model = root["model"].text();
  preflight.effort = root["thinking"].maybe("reasoning_effort").text();
  for (const auto& node : root["results"].items()) {
    node["name"].text();
    node["passed"].boolean();
  }
  root["passed"].boolean();
  for (const auto& node : root["observations"].items()) {
    Row row;
    row.document = &document;
    row.pointer = node.pointer();
    row.model = preflight.model;
    row.purpose = Purpose::kCheck;
    row.lane = "preflight";
    row.item = node["test"].text();
    row.effort = preflight.effort;
    row.stream = node.maybe("sse_done").present();
    if (row.item == "responses") row.api = wire::Api::kResponses;
    if (const auto index = node.maybe("request_index").count())
      row.attempt = static_cast<int>(std::min<int64_t>(*index, 10000));
    if (const auto seconds = node["seconds"].duration()) row.e2e_ms = *seconds * 1000;
    row.finish = node["finish_reason"].text();
    row.content = node.maybe("content").text();
    row.ok = node["passed"].boolean().value_or(false);
    if (!row.ok) row.error = node.maybe("validation_detail").text();
    read_usage(node["usage"], row);
    note_missing(row, row.stream);
    preflight.rows.push_back(std::move(row));
  }
  campaign.preflights.push_back(std::move(preflight));
}

void read_sampling(Document& document, Campaign& campaign) {
  const Node root(document);
  Sampling sampling;
  sampling.document = &document;
  sampling.model = root["model"].text();
  sampling.source_artifact = root["source_artifact"].text();
  sampling.interval_ms = root["interval_ms"].duration();
  sampling.reserve_mib = root["reserve_policy_mib_per_gpu"].duration();
  for (const auto& node : root["segments"].items()) {
    SampledSegment segment;
    segment.pointer = node.pointer();
    segment.first_sample = node["first_sample"].text();
    segment.last_sample = node["last_sample"].text();
    segment.samples = node["samples"].count();
    segment.prompt_tokens = node["actual_prompt_tokens"].count();
    for (const auto& gpu : node["gpus"].items())
      segment.gpus.push_back({gpu["role"].text(), gpu.pointer(), gpu["max_used_mib"].duration(),
                              gpu["min_free_mib"].duration(), gpu["max_power_w"].duration(),
                              gpu["reserve_pass"].boolean()});
    sampling.segments.push_back(std::move(segment));
  }
  campaign.samplings.push_back(std::move(sampling));
}

void read_snapshot(Document& document, Campaign& campaign) {
  const Node root(document);
  Snapshot snapshot;
  snapshot.document = &document;
  snapshot.model = root["model"].text();
  snapshot.reserve_mib = root["reserve_policy_mib_per_gpu"].duration();
  for (const auto& gpu : root["gpus"].items())
    snapshot.gpus.push_back({gpu["role"].text(), gpu.pointer(), gpu["memory_total_mib"].count(),
                             gpu["memory_used_mib"].count(),
                             gpu["memory_free_reported_mib"].count(),
                             gpu["reserve_pass"].boolean()});
  campaign.snapshots.push_back(std::move(snapshot));
}

void read_acceptance(Document& document, Campaign& campaign) {
  const Node root(document);
  Acceptance acceptance;
  acceptance.document = &document;
  acceptance.model = root["source"]["model"].text();
  acceptance.observed_at = root["observed_at"].text();
  acceptance.draft_length = root["configuration"]["draft_tokens"].count();
  const Node scope = root["scope"];
  acceptance.chat_requests = scope.maybe("chat_completion_requests_2xx").count();
  acceptance.responses_requests = scope.maybe("responses_requests_2xx").count();
  const Node counters = root["counters"];
  acceptance.drafts = counters["drafts"].count();
  acceptance.draft_tokens = counters["draft_tokens"].count();
  acceptance.accepted = counters["accepted_tokens"].count();
  for (const auto& node : counters["accepted_tokens_per_position"].items())
    acceptance.per_position.push_back(node.count().value_or(0));
  root["derived"].members();
  campaign.acceptance.push_back(std::move(acceptance));
}

namespace {
Arm read_arm(const Node& node, std::string name) {
  Arm arm{std::move(name), node["served_model"].text(), {}};
  for (const auto& file : node["artifacts"].items()) arm.artifacts.push_back(file.text());
  return arm;
}
}  // namespace

void read_comparison(Document& document, Campaign& campaign) {
  const Node root(document);
  Comparison comparison;
  comparison.document = &document;
  comparison.treatment = read_arm(root["dspark"], "dspark");
  comparison.control = read_arm(root["control"], "control");
  comparison.retained = root["control"].maybe("retained_failure_artifact").maybe("path").text();
  for (const auto& [name, metric] : root["metrics"].members())
    for (const char* arm : {"dspark", "control"}) {
      metric[std::string(arm) + "_median"].number();
      for (const auto& value : metric[std::string(arm) + "_values"].items()) value.number();
    }
  root["protocol"].members();
  campaign.comparisons.push_back(std::move(comparison));
}

void read_suite(Document& document, Campaign&) {
  const Node root(document);
  for (const auto& eval : root["evals"].items()) {
    eval["id"].text();
    eval["prompt"].text();
    for (const auto& check : eval["checks"].items()) {
      check["name"].text();
      if (!check.maybe("contains").present() && !check.maybe("contains_all").present() &&
          !check.maybe("contains_any").present())
        check.odd("asserts nothing that is known here");
      check.maybe("contains").text();
      for (const char* key : {"contains_all", "contains_any"})
        for (const auto& word : check.maybe(key).items()) word.text();
    }
  }
}

void read_control(Document& document, Campaign&) {
  const Node root(document);
  root["status"].text();
  root["control_mechanism"].text();
}

void read_registry(Document& document, Campaign&) {
  for (const auto& source : Node(document)["sources"].items()) source["url"].text();
}

}  // namespace anvil::evidence::imported
