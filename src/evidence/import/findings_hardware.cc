// Findings about memory, sampling, and the speculation counters.
#include <cmath>

#include "evidence/import/findings.h"

namespace anvil::evidence::imported {

namespace {

void memory(const Campaign& campaign, std::vector<Finding>& findings) {
  Finding out;
  out.id = "memory";
  out.table = {{"file", "card", "total MiB", "used MiB", "free MiB", "in neither", "reserve MiB"}};
  std::optional<int64_t> gap;
  size_t below = 0, cards = 0;
  for (const auto& snapshot : campaign.snapshots)
    for (const auto& gpu : snapshot.gpus) {
      if (!gpu.total_mib || !gpu.used_mib || !gpu.free_mib) continue;
      const int64_t missing = *gpu.total_mib - *gpu.used_mib - *gpu.free_mib;
      gap = std::max(gap.value_or(missing), missing);
      ++cards;
      below += snapshot.reserve_mib && static_cast<double>(*gpu.free_mib) < *snapshot.reserve_mib;
      out.table.push_back({snapshot.document->file, gpu.role, grouped(*gpu.total_mib),
                           grouped(*gpu.used_mib), grouped(*gpu.free_mib), grouped(missing),
                           snapshot.reserve_mib ? fixed(*snapshot.reserve_mib, 0) : "-"});
      out.evidence.push_back(place(*snapshot.document, gpu.pointer));
    }
  if (cards == 0) return;
  out.title = std::to_string(below) + " of " + std::to_string(cards) +
              " readings are below the declared reserve" +
              (gap && *gap > 0 ? "; used and free memory leave " + grouped(*gap) +
                                     " MiB of each card unaccounted for"
                               : std::string());
  out.text.push_back(
      "The reserve is held against free memory as reported. Total less used is more than that: "
      "what "
      "lies between is in use and counted for nobody, most likely by the driver"
      " itself.");
  out.values = {{"cards", cards}, {"below_reserve", below}, {"gap_mib", gap.value_or(0)}};
  findings.push_back(std::move(out));
}

void sampling_interval(const Campaign& campaign, std::vector<Finding>& findings) {
  for (const auto& sampling : campaign.samplings) {
    Finding out;
    out.id = "sampling-interval";
    out.table = {{"segment", "samples", "declared ms", "real ms"}};
    double worst = 0;
    for (const auto& segment : sampling.segments) {
      const auto first = day_ms(segment.first_sample), last = day_ms(segment.last_sample);
      if (!first || !last || !segment.samples || *segment.samples < 2 || !sampling.interval_ms)
        continue;
      const double real = (*last - *first) / static_cast<double>(*segment.samples - 1);
      worst = std::max(worst, real);
      out.table.push_back({std::to_string(out.table.size()), grouped(*segment.samples),
                           fixed(*sampling.interval_ms, 0), fixed(real, 1)});
      out.values["interval_ms"].push_back(real);
      out.evidence.push_back(place(*sampling.document, segment.pointer));
    }
    if (worst == 0 || worst <= *sampling.interval_ms * 1.01) continue;
    out.title = "Hardware was sampled every " + fixed(worst, 0) + " ms at worst, not every " +
                fixed(*sampling.interval_ms, 0) + " ms";
    out.text.push_back(
        "Extremes that were published are those of the samples; between two of them more memory or "
        "power may have been in use. The samples themselves were not kept.");
    findings.push_back(std::move(out));
  }
}

// Counters since the start of the engine against the rows that are in the directory.
void counters(const Campaign& campaign, std::vector<Finding>& findings) {
  for (const auto& one : campaign.acceptance) {
    if (!one.drafts || !one.accepted || !one.draft_tokens || *one.drafts == 0) continue;
    int64_t tokens = 0, requests = 0;
    const auto add = [&](const Row& row) {
      ++requests;
      tokens += row.completion.value_or(0);
    };
    for (const Row* row : campaign.rows()) {
      if (row->model != one.model) continue;
      std::string started;
      for (const auto& run : campaign.capacity)
        if (run.document == row->document) started = run.started_at;
      for (const auto& ladder : campaign.ladders)
        if (ladder.document == row->document) started = ladder.started_at;
      for (const auto& quality : campaign.quality)
        if (quality.document == row->document) started = quality.started_at;
      if (started < one.observed_at) add(*row);
    }
    if (requests == 0) continue;
    const auto steps = static_cast<double>(*one.drafts);
    const double emitted = steps + static_cast<double>(*one.accepted);
    Finding out;
    out.id = "counters";
    out.title = "The acceptance counters run since the engine's start and belong to no lane";
    out.text.push_back(
        "They cover " + std::to_string(requests) +
        " requests of functional checks, capacity runs and ladders together. The published number "
        "is accepted tokens per draft (" +
        fixed(static_cast<double>(*one.accepted) / steps, 3) +
        "); with the token that every step yields anyway a step yields " +
        fixed(emitted / steps, 3) + ".");
    out.text.push_back("Steps and accepted tokens come to " +
                       grouped(static_cast<int64_t>(emitted)) + " tokens; the rows report " +
                       grouped(tokens) + " (" +
                       percent(percent_change(emitted, static_cast<double>(tokens)), 2) +
                       "): counters and rows tell the same story.");
    if (std::fabs(percent_change(emitted, static_cast<double>(tokens))) > 2)
      out.text.back() = "Steps and accepted tokens come to " +
                        grouped(static_cast<int64_t>(emitted)) + " tokens, the rows report " +
                        grouped(tokens) +
                        ": the directory does not hold everything that the "
                        "counters saw.";
    out.values = {{"requests", requests},
                  {"row_tokens", tokens},
                  {"counter_tokens", static_cast<int64_t>(emitted)},
                  {"tokens_per_step", emitted / steps}};
    out.evidence = {place(*one.document, "/counters"), place(*one.document, "/scope")};
    findings.push_back(std::move(out));
  }
}

}  // namespace

void add_hardware_findings(const Campaign& campaign, std::vector<Finding>& findings) {
  memory(campaign, findings);
  sampling_interval(campaign, findings);
  counters(campaign, findings);
}

}  // namespace anvil::evidence::imported
