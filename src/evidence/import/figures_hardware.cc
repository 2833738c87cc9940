// The figures of hardware samples and snapshots, and of speculation counters.
#include <cmath>

#include "evidence/import/figures.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

std::optional<bool> above_reserve(std::optional<double> free_mib, std::optional<double> reserve) {
  if (!free_mib || !reserve) return std::nullopt;
  return *free_mib >= *reserve;
}

Json json_of(const std::optional<bool>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

void add_hardware_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& sampling : campaign.samplings) {
    figures.group(sampling.document->file);
    const Ladder* ladder = campaign.ladder(sampling.source_artifact);
    size_t index = 0;
    for (const auto& segment : sampling.segments) {
      const std::string name = "segment " + std::to_string(++index);
      const auto first = day_ms(segment.first_sample), last = day_ms(segment.last_sample);
      std::optional<double> interval;
      if (first && last && segment.samples && *segment.samples > 1)
        interval = (*last - *first) / static_cast<double>(*segment.samples - 1);
      figures.stored(name + ", interval_ms", place(*sampling.document, "/interval_ms"),
                     sampling.interval_ms ? Json(*sampling.interval_ms) : Json(nullptr), interval,
                     interval ? "from the first and last sample's time and their number"
                              : "the segment has no times",
                     "each sample took longer than the period that was asked for");
      std::optional<double> prompt;
      if (ladder && index <= ladder->rungs.size() && ladder->rungs[index - 1].row.prompt)
        prompt = static_cast<double>(*ladder->rungs[index - 1].row.prompt);
      figures.stored(name + ", actual_prompt_tokens",
                     place(*sampling.document, segment.pointer + "/actual_prompt_tokens"),
                     segment.prompt_tokens ? Json(*segment.prompt_tokens) : Json(nullptr), prompt,
                     prompt ? "usage of the rung in " + ladder->document->file
                            : "the ladder's file is not in the directory");
      for (const auto& gpu : segment.gpus) {
        const Json& record = sampling.document->json.at(Json::json_pointer(gpu.pointer));
        for (const char* key : {"max_used_mib", "min_free_mib", "max_power_w", "max_sm_clock_mhz",
                                "max_utilization_percent"})
          figures.not_derivable(name + ", " + gpu.role + ", " + key,
                                place(*sampling.document, gpu.pointer + "/" + key),
                                member(record, key), "the single samples were not kept");
        figures.exact(name + ", " + gpu.role + ", reserve_pass",
                      place(*sampling.document, gpu.pointer + "/reserve_pass"),
                      member(record, "reserve_pass"),
                      json_of(above_reserve(gpu.min_free_mib, sampling.reserve_mib)),
                      "smallest free memory against the reserve");
      }
    }
  }
  for (const auto& snapshot : campaign.snapshots) {
    figures.group(snapshot.document->file);
    for (const auto& gpu : snapshot.gpus) {
      std::optional<double> free;
      if (gpu.free_mib) free = static_cast<double>(*gpu.free_mib);
      figures.exact(gpu.role + ", reserve_pass",
                    place(*snapshot.document, gpu.pointer + "/reserve_pass"),
                    gpu.reserve_pass ? Json(*gpu.reserve_pass) : Json(nullptr),
                    json_of(above_reserve(free, snapshot.reserve_mib)),
                    "reported free memory against the reserve");
    }
  }
}

void add_acceptance_figures(const Campaign& campaign, Figures& figures) {
  for (const auto& one : campaign.acceptance) {
    figures.group(one.document->file);
    const Json& derived = member(one.document->json, "derived");
    const auto ratio = [](std::optional<int64_t> above,
                          std::optional<int64_t> below) -> std::optional<double> {
      if (!above || !below || *below == 0) return std::nullopt;
      return static_cast<double>(*above) / static_cast<double>(*below);
    };
    figures.stored("accepted_token_fraction",
                   place(*one.document, "/derived/accepted_token_fraction"),
                   member(derived, "accepted_token_fraction"),
                   ratio(one.accepted, one.draft_tokens), "accepted / drafted");
    figures.stored("accepted_tokens_per_draft",
                   place(*one.document, "/derived/accepted_tokens_per_draft"),
                   member(derived, "accepted_tokens_per_draft"), ratio(one.accepted, one.drafts),
                   "accepted / drafts");
    const auto& positions = elements(member(derived, "acceptance_by_position"));
    for (size_t i = 0; i < positions.size(); ++i)
      figures.stored(
          "acceptance of position " + std::to_string(i + 1),
          place(*one.document, "/derived/acceptance_by_position/" + std::to_string(i)),
          positions[i],
          i < one.per_position.size() ? ratio(one.per_position[i], one.drafts) : std::nullopt,
          "accepted at the position / drafts");
    std::optional<double> product, sum;
    if (one.drafts && one.draft_length)
      product = static_cast<double>(*one.drafts) * static_cast<double>(*one.draft_length);
    if (!one.per_position.empty()) {
      sum = 0;
      for (const auto value : one.per_position) *sum += static_cast<double>(value);
    }
    const Json& counters = member(one.document->json, "counters");
    figures.stored("draft_tokens", place(*one.document, "/counters/draft_tokens"),
                   member(counters, "draft_tokens"), product, "drafts x draft length");
    figures.stored("accepted_tokens", place(*one.document, "/counters/accepted_tokens"),
                   member(counters, "accepted_tokens"), sum, "sum over the positions");

    // The counters run since the start of the engine: whatever this model answered before.
    int64_t chat = 0, responses = 0;
    const auto count = [&](const Row& row) {
      if (row.api == wire::Api::kResponses)
        ++responses;
      else
        ++chat;
    };
    for (const auto& run : campaign.capacity)
      if (run.model == one.model && run.started_at < one.observed_at)
        for (const auto& row : run.rows) count(row);
    for (const auto& ladder : campaign.ladders)
      if (ladder.model == one.model && ladder.started_at < one.observed_at)
        for (const auto& rung : ladder.rungs) count(rung.row);
    for (const auto& quality : campaign.quality)
      if (quality.model == one.model && quality.started_at < one.observed_at)
        for (const auto& item : quality.items)
          for (const auto& row : item.attempts) count(row);
    for (const auto& preflight : campaign.preflights)
      if (preflight.model == one.model)
        for (const auto& row : preflight.rows) count(row);
    const Json& scope = member(one.document->json, "scope");
    const std::string from =
        "rows of this model's files that began before the counters were read; preflights carry no "
        "time and are all counted";
    figures.stored("chat requests", place(*one.document, "/scope/chat_completion_requests_2xx"),
                   member(scope, "chat_completion_requests_2xx"), static_cast<double>(chat), from);
    figures.stored("responses requests", place(*one.document, "/scope/responses_requests_2xx"),
                   member(scope, "responses_requests_2xx"), static_cast<double>(responses), from);
  }
}

}  // namespace anvil::evidence::imported
