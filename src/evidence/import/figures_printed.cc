// Tables that were printed about the r16 campaign of a speculative-decoding comparison on two
// cards. The files do not contain them; they are compared with what the files give, to the printed
// precision. A table is about named files and is listed when one of them is there.
#include <span>

#include "evidence/import/figures.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

constexpr std::string_view kTreatment[] = {
    "capacity-r16-b12x-dspark5-low-4k-c1-r3-headroom2048-r1.json",
    "capacity-r16-b12x-dspark5-low-4k-c1-r3-headroom2048-r2.json",
    "capacity-r16-b12x-dspark5-low-4k-c1-r3-headroom2048-r3.json"};
constexpr std::string_view kControl[] = {
    "capacity-r16-b12x-nospec-low-4k-c1-r3-headroom2048-r1.json",
    "capacity-r16-b12x-nospec-low-4k-c1-r3-headroom2048-r3.json",
    "capacity-r16-b12x-nospec-low-4k-c1-r3-headroom2048-r4.json"};

struct ComparedMetric {
  const char* metric;
  const char* treatment;
  const char* control;
  const char* change;
};
constexpr ComparedMetric kCompared[] = {
    {"decode_tok_s_p50", "130.7116", "64.8902", "+101.435"},
    {"throughput_tok_s", "101.6616", "59.6356", "+70.471"},
    {"time_to_first_output_p50_ms", "333.945", "315.438", "+5.867"},
    {"ttft_p50_ms", "1428.695", "3533.825", "-59.571"},
    {"effective_prefill_tok_s_p50", "8863.735", "9383.772", "-5.542"},
    {"generation_p50_ms", "1266.724", "3590.681", "-64.722"},
    {"e2e_p50_ms", "1597.290", "3876.587", "-58.796"},
};

struct PrintedRung {
  const char* size;
  const char* ttfo_s;
  const char* ttfv_s;
  const char* prefill;
  const char* decode;
};
constexpr std::string_view kColdFile = "quality-r16-b12x-dspark5-context-ladder-low-r2.json";
constexpr PrintedRung kCold[] = {{"32,768", "15.14", "19.30", "1,573.9", "102.09"},
                                 {"65,536", "38.60", "41.63", "1,746.7", "88.95"},
                                 {"128,000", "84.75", "85.75", "1,484.3", "113.36"}};
constexpr std::string_view kWarmFile =
    "quality-r16-b12x-dspark5-context-ladder-low-r3-telemetry.json";
constexpr PrintedRung kWarm[] = {{"32,768", "3.602", "6.894", "6,615.9", "118.73"},
                                 {"65,536", "9.696", "12.413", "6,952.9", "114.00"},
                                 {"128,000", "19.444", "23.815", "6,469.1", "128.89"}};
constexpr std::string_view kFirstFile = "quality-r16-b12x-dspark5-context-ladder-low.json";
constexpr const char* kFirstSeconds[] = {"19.06", "42.59", "81.05"};

constexpr std::string_view kSamplingFile = "hardware-r16-b12x-dspark5-context-sampling.json";
struct PrintedSegment {
  const char* free_mib[2];
  const char* power_w[2];
};
constexpr PrintedSegment kSegments[] = {{{"1179", "2031"}, {"240.85", "228.31"}},
                                        {{"1197", "2031"}, {"250.26", "237.94"}},
                                        {{"1203", "2031"}, {"265.32", "251.88"}}};

constexpr std::string_view kAcceptanceFile = "dspark-r16-b12x-k5-cumulative-after-context.json";
constexpr const char* kPositions[] = {"0.845", "0.690", "0.524", "0.406", "0.290"};

struct PrintedGate {
  const char* file;
  const char* checks;
};
constexpr PrintedGate kGates[] = {
    {"preflight-r16-b12x-dspark5-128k-low.json", "6/6"},
    {"preflight-r16-b12x-dspark5-128k-high.json", "4/4"},
    {"preflight-r16-b12x-dspark5-128k-max.json", "4/4"},
    {"preflight-r16-b12x-nospec-128k-low.json", "6/6"},
};
constexpr std::string_view kQualityFile = "quality-r16-b12x-dspark5-coding-intelligence-low.json";

std::optional<double> median_of_runs(const Campaign& campaign,
                                     std::span<const std::string_view> files,
                                     std::string_view metric) {
  std::vector<double> values;
  for (const auto file : files) {
    const CapacityRun* run = campaign.run(file);
    const auto value = run ? run_metric(*run, metric) : std::nullopt;
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return median_of(std::move(values));
}

void add_compared(const Campaign& campaign, Figures& figures) {
  const std::string where = "published table: speculation against none at 4K";
  figures.group(where.substr(17));
  bool any = false;
  for (const auto file : kTreatment) any = any || campaign.run(file);
  for (const auto file : kControl) any = any || campaign.run(file);
  if (!any) return;
  for (const auto& row : kCompared) {
    const auto a = median_of_runs(campaign, kTreatment, row.metric);
    const auto b = median_of_runs(campaign, kControl, row.metric);
    const std::string name = row.metric;
    const auto because = [](bool there) {
      return there ? "median of the three listed runs, from their rows"
                   : "a listed run's file is not in the directory, or lacks its rows";
    };
    figures.printed(name + ", with speculation", where, row.treatment, a, because(a.has_value()));
    figures.printed(name + ", without", where, row.control, b, because(b.has_value()));
    const bool both = a && b && *b != 0;
    figures.printed(name + ", change in percent", where, row.change,
                    both ? std::optional(percent_change(*b, *a)) : std::nullopt,
                    both ? "ratio of the two medians" : because(false));
  }
}

void add_rungs(const Campaign& campaign, Figures& figures, std::string_view file,
               std::span<const PrintedRung> rungs, const std::string& table, bool called_cold) {
  const Ladder* ladder = campaign.ladder(file);
  if (!ladder) return;
  const std::string where = "published table: " + table;
  figures.group(table);
  for (size_t i = 0; i < rungs.size(); ++i) {
    const Row* row = i < ladder->rungs.size() ? &ladder->rungs[i].row : nullptr;
    const auto seconds = [](std::optional<double> ms) -> std::optional<double> {
      if (!ms) return std::nullopt;
      return *ms / 1000;
    };
    const std::string name = "rung " + std::string(rungs[i].size);
    const std::string from =
        row ? "row " + row->pointer + " of " + ladder->document->file : "the file has no such row";
    std::optional<double> prompt;
    if (row && row->prompt) prompt = static_cast<double>(*row->prompt);
    figures.printed(name + ", context tokens", where, rungs[i].size, prompt, from,
                    "the size was asked for, and is not what the engine counted");
    figures.printed(name + ", time to first output, s", where, rungs[i].ttfo_s,
                    row ? seconds(row->ttfo_ms) : std::nullopt, from);
    figures.printed(name + ", time to first visible output, s", where, rungs[i].ttfv_s,
                    row ? seconds(row->ttfv_ms) : std::nullopt, from);
    figures.printed(name + ", prefill tok/s", where, rungs[i].prefill,
                    row ? prefill_tok_s(*row) : std::nullopt, from);
    figures.printed(name + ", decode tok/s", where, rungs[i].decode,
                    row ? decode_tok_s(*row) : std::nullopt, from);
    if (called_cold && row && row->cached)
      figures.exact(name + ", cache state", where, "cold",
                    *row->cached == 0
                        ? Json("cold")
                        : Json(std::to_string(*row->cached) + " of " +
                               shown(Json(row->prompt.value_or(0))) + " tokens from cache"),
                    from, "the engine took prompt tokens from its cache");
  }
}

void add_first_ladder(const Campaign& campaign, Figures& figures) {
  const Ladder* ladder = campaign.ladder(kFirstFile);
  if (!ladder) return;
  figures.group("context ladder, first run");
  for (size_t i = 0; i < std::size(kFirstSeconds); ++i) {
    const Row* row = i < ladder->rungs.size() ? &ladder->rungs[i].row : nullptr;
    std::optional<double> seconds;
    if (row && row->e2e_ms) seconds = *row->e2e_ms / 1000;
    figures.printed("rung " + std::to_string(i + 1) + ", whole request, s",
                    "published table: context ladder, first run", kFirstSeconds[i], seconds,
                    "row of " + ladder->document->file);
  }
}

void add_segments(const Campaign& campaign, Figures& figures) {
  const std::string where = "published table: memory and power during the ladder";
  figures.group("memory and power during the ladder");
  for (const auto& sampling : campaign.samplings) {
    if (sampling.document->file != kSamplingFile) continue;
    for (size_t i = 0; i < std::size(kSegments); ++i)
      for (size_t card = 0; card < 2; ++card) {
        const SampledGpu* gpu = nullptr;
        if (i < sampling.segments.size() && card < sampling.segments[i].gpus.size())
          gpu = &sampling.segments[i].gpus[card];
        const std::string name =
            "segment " + std::to_string(i + 1) + ", card " + std::to_string(card);
        const char* because =
            "equals the file's summary of the segment; the single samples were not kept";
        figures.printed(name + ", least free MiB", where, kSegments[i].free_mib[card],
                        gpu ? gpu->min_free_mib : std::nullopt, because);
        figures.printed(name + ", highest power, W", where, kSegments[i].power_w[card],
                        gpu ? gpu->max_power_w : std::nullopt, because);
      }
  }
}

void add_acceptance(const Campaign& campaign, Figures& figures) {
  const std::string where = "published table: acceptance";
  figures.group("acceptance");
  for (const auto& one : campaign.acceptance) {
    if (one.document->file != kAcceptanceFile) continue;
    std::optional<double> share, per_draft;
    if (one.accepted && one.draft_tokens && *one.draft_tokens > 0)
      share = 100 * static_cast<double>(*one.accepted) / static_cast<double>(*one.draft_tokens);
    if (one.accepted && one.drafts && *one.drafts > 0)
      per_draft = static_cast<double>(*one.accepted) / static_cast<double>(*one.drafts);
    figures.printed("accepted share, percent", where, "55.1", share, "accepted / drafted");
    figures.printed("accepted tokens per draft", where, "2.75", per_draft, "accepted / drafts");
    for (size_t i = 0; i < std::size(kPositions); ++i) {
      std::optional<double> at;
      if (i < one.per_position.size() && one.drafts && *one.drafts > 0)
        at = static_cast<double>(one.per_position[i]) / static_cast<double>(*one.drafts);
      figures.printed("acceptance of position " + std::to_string(i + 1), where, kPositions[i], at,
                      "accepted at the position / drafts");
    }
  }
}

std::string share_text(size_t passed, size_t total) {
  return std::to_string(passed) + "/" + std::to_string(total);
}

void add_gates(const Campaign& campaign, Figures& figures) {
  const std::string where = "published table: functional checks";
  figures.group("functional checks");
  Figures counted;
  add_preflight_figures(campaign, counted);
  const auto results = counted.take();
  for (const auto& gate : kGates) {
    size_t passed = 0, total = 0, calls = 0, called = 0;
    for (const auto& figure : results)
      if (figure.group == gate.file && figure.figure != "passed") {
        ++total;
        passed += figure.derived == Json(true) ? 1 : 0;
      }
    for (const auto& preflight : campaign.preflights)
      if (preflight.document->file == gate.file)
        for (const auto& row : preflight.rows)
          if (row.item == "tools") ++called, calls += row.ok ? 1 : 0;
    if (total == 0) continue;
    figures.exact(std::string(gate.file) + ", checks passed", where, gate.checks,
                  share_text(passed, total), "the file's observations");
    figures.exact(std::string(gate.file) + ", parallel tool calls", where, "3/3",
                  share_text(calls, called),
                  "the file's observations; of tool calls it kept the verdict only");
  }
}

void add_quality(const Campaign& campaign, Figures& figures) {
  for (const auto& quality : campaign.quality) {
    if (quality.document->file != kQualityFile) continue;
    figures.group("quality suite");
    size_t passed = 0, total = 0;
    bool known = true;
    for (const auto& item : quality.items)
      for (const auto& attempt : item.attempts) {
        const auto held = grade_again(campaign, item, attempt);
        known = known && held.has_value();
        passed += held.value_or(false) ? 1 : 0;
        ++total;
      }
    figures.exact("attempts passed", "published table: quality suite", "27/27",
                  known ? Json(share_text(passed, total)) : Json(nullptr),
                  known ? "the stored answers graded again"
                        : "the file that says what is asked for is not in the directory");
  }
}

}  // namespace

void add_printed_tables(const Campaign& campaign, Figures& figures) {
  add_compared(campaign, figures);
  add_rungs(campaign, figures, kColdFile, kCold, "context ladder, cold", true);
  add_rungs(campaign, figures, kWarmFile, kWarm, "context ladder, warm", false);
  add_first_ladder(campaign, figures);
  add_segments(campaign, figures);
  add_acceptance(campaign, figures);
  add_gates(campaign, figures);
  add_quality(campaign, figures);
}

}  // namespace anvil::evidence::imported
