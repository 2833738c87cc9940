// Findings about the requests that were timed: cached prompts, sizes, lengths, first chunks.
#include <cmath>

#include "evidence/import/findings.h"

namespace anvil::evidence::imported {

namespace {

std::string count_text(size_t count) {
  return std::to_string(count);
}

// Prompts that the engine took from its cache stand inside figures that are called prefill.
void cached_prefill(const ArmRuns& treatment, const ArmRuns& control,
                    std::vector<Finding>& findings) {
  Finding out;
  out.id = "cached-prefill";
  out.table = {{"arm", "request", "prompt tokens", "cached", "computed", "TTFO ms",
                "prompt / TTFO, tok/s", "computed / TTFO, tok/s"}};
  struct Side {
    size_t rows = 0, cached = 0, cold = 0;
    int64_t hit = 0, prompt = 0;
    const Row* cold_row = nullptr;
    std::vector<double> warm_ttfo;
  };
  Side sides[2];
  const ArmRuns* arms[2] = {&treatment, &control};
  for (int i = 0; i < 2; ++i)
    for (const Row* row : arms[i]->all_rows()) {
      const auto cached = row->cached ? row->cached : row->inferred_cached;
      if (!row->prompt || !row->ttfo_ms || !cached) continue;
      Side& side = sides[i];
      ++side.rows;
      side.prompt = *row->prompt;
      if (*cached == 0) {
        ++side.cold;
        if (!side.cold_row) side.cold_row = row;
      } else {
        ++side.cached;
        side.hit = *cached;
        side.warm_ttfo.push_back(*row->ttfo_ms);
      }
      out.table.push_back(
          {arms[i]->name, row->document->file + " " + row->item, grouped(*row->prompt),
           grouped(*cached), grouped(*row->prompt - *cached), fixed(*row->ttfo_ms, 1),
           fixed(prefill_tok_s(*row).value_or(0), 1),
           fixed(static_cast<double>(*row->prompt - *cached) / *row->ttfo_ms * 1000, 1)});
    }
  const size_t rows = sides[0].rows + sides[1].rows, cached = sides[0].cached + sides[1].cached;
  if (cached == 0) return;
  out.title =
      count_text(cached) + " of " + count_text(rows) +
      " requests behind the prefill figures took most of their prompt from the prefix cache";
  out.text.push_back(
      "The runs kept the mean share of cached prompt tokens only. All prompts have the same "
      "length, "
      "so that the share says how many requests hit, and the slowest ones are the ones that did "
      "not. A request that hit computed " +
      grouped(sides[0].prompt - sides[0].hit) + " of its " + grouped(sides[0].prompt) +
      " prompt tokens. Prompt tokens over time to first output is then no prefill rate.");
  out.values = {{"rows", rows},
                {"cached_rows", cached},
                {"cached_tokens", sides[0].hit},
                {"prompt_tokens", sides[0].prompt}};
  if (sides[0].cold_row && sides[1].cold_row) {
    const double a = *sides[0].cold_row->ttfo_ms, b = *sides[1].cold_row->ttfo_ms;
    std::string text = "Requests that computed their whole prompt: " + count_text(sides[0].cold) +
                       " in `" + treatment.name + "` (" + fixed(a, 0) + " ms, " +
                       fixed(prefill_tok_s(*sides[0].cold_row).value_or(0), 0) + " tok/s) and " +
                       count_text(sides[1].cold) + " in `" + control.name + "` (" + fixed(b, 0) +
                       " ms, " + fixed(prefill_tok_s(*sides[1].cold_row).value_or(0), 0) +
                       " tok/s). Between these the time to first output changes by " +
                       percent(percent_change(b, a)) +
                       "; with so few requests nothing follows from it.";
    out.text.push_back(std::move(text));
    out.values["cold_ttfo_ms"] = {a, b};
    out.values["cold_change_percent"] = percent_change(b, a);
    if (!sides[0].warm_ttfo.empty() && !sides[1].warm_ttfo.empty()) {
      const double wa = median_of(sides[0].warm_ttfo), wb = median_of(sides[1].warm_ttfo);
      out.text.push_back("Requests that hit: median time to first output " + fixed(wa, 0) +
                         " ms against " + fixed(wb, 0) + " ms (" + percent(percent_change(wb, wa)) +
                         ").");
    }
    for (const Side& side : sides)
      out.evidence.push_back(place(*side.cold_row->document, side.cold_row->pointer));
  }
  for (const ArmRuns* arm : arms)
    for (const auto* run : arm->all)
      out.evidence.push_back(place(*run->document, "/metrics/prefix_cache_hit_avg"));
  findings.push_back(std::move(out));
}

// Answers of different length make end-to-end times and throughput incomparable.
void output_lengths(const ArmRuns& treatment, const ArmRuns& control,
                    std::vector<Finding>& findings) {
  Finding out;
  out.id = "output-lengths";
  out.table = {{"arm", "run", "output tokens", "sum of e2e, ms", "e2e per output token, ms"}};
  double per_token[2] = {0, 0}, decode[2] = {0, 0}, tokens_of[2] = {0, 0};
  int64_t least = INT64_MAX, most = 0;
  const ArmRuns* arms[2] = {&treatment, &control};
  for (int i = 0; i < 2; ++i) {
    double all_ms = 0, all_after_first = 0, all_generation = 0;
    for (const auto* run : arms[i]->listed) {
      int64_t tokens = 0;
      double ms = 0;
      for (const Row* row : run->ok_rows()) {
        if (!row->completion || !row->e2e_ms || !row->generation_ms()) return;
        tokens += *row->completion;
        ms += *row->e2e_ms;
        all_after_first += static_cast<double>(*row->completion - 1);
        all_generation += *row->generation_ms();
      }
      if (tokens == 0) return;
      out.table.push_back({arms[i]->name, run->document->file, grouped(tokens), fixed(ms, 1),
                           fixed(ms / static_cast<double>(tokens), 3)});
      out.evidence.push_back(place(*run->document, "/metrics/output_tokens"));
      out.values[arms[i]->name + "_tokens"].push_back(tokens);
      tokens_of[i] += static_cast<double>(tokens);
      all_ms += ms;
      least = std::min(least, tokens);
      most = std::max(most, tokens);
    }
    per_token[i] = all_ms / tokens_of[i];
    decode[i] = all_after_first / all_generation * 1000;
  }
  if (least == most) return;
  out.title = "The runs wrote answers of different length: " + grouped(least) + " to " +
              grouped(most) + " tokens for the same prompts";
  out.text.push_back(
      "End-to-end time, generation time and throughput follow the length of the answer. Between "
      "these runs they mix speed with how much the model happened to write: `" +
      treatment.name + "` wrote " + grouped(static_cast<int64_t>(tokens_of[0])) + " tokens, `" +
      control.name + "` " + grouped(static_cast<int64_t>(tokens_of[1])) + ".");
  out.text.push_back("Per output token the listed runs took " + fixed(per_token[0], 3) +
                     " ms against " + fixed(per_token[1], 3) + " ms end to end (" +
                     percent(percent_change(per_token[1], per_token[0])) +
                     "), and decoded, all requests pooled, " + fixed(decode[0], 1) + " against " +
                     fixed(decode[1], 1) + " tok/s (" +
                     percent(percent_change(decode[1], decode[0])) +
                     "). Fixed-length answers would have kept the two apart.");
  out.values["e2e_per_token_change_percent"] = percent_change(per_token[1], per_token[0]);
  out.values["pooled_decode_change_percent"] = percent_change(decode[1], decode[0]);
  findings.push_back(std::move(out));
}

// Median over the listed runs of the median decode rate, with `first` tokens in the first chunk.
double decode_median(const ArmRuns& arm, double first) {
  std::vector<double> medians;
  for (const auto* run : arm.listed) {
    std::vector<double> rates;
    for (const Row* row : run->ok_rows())
      if (const auto generation = row->generation_ms(); generation && row->completion)
        rates.push_back((static_cast<double>(*row->completion) - first) / *generation * 1000);
    medians.push_back(median_of(std::move(rates)));
  }
  return median_of(std::move(medians));
}

// Under speculation the first chunk may carry several tokens, which the decode rate must not count.
void first_chunk(const Campaign& campaign, const ArmRuns& treatment, const ArmRuns& control,
                 std::vector<Finding>& findings) {
  const Acceptance* counters = nullptr;
  for (const auto& one : campaign.acceptance)
    if (one.model == treatment.model && one.draft_length && *one.draft_length > 0) counters = &one;
  if (!counters) return;
  Finding out;
  out.id = "first-chunk";
  out.table = {{"arm", "output tokens", "output chunks", "tokens per chunk"}};
  double per_chunk[2] = {0, 0};
  const ArmRuns* arms[2] = {&treatment, &control};
  for (int i = 0; i < 2; ++i) {
    int64_t tokens = 0, chunks = 0;
    for (const Row* row : arms[i]->listed_rows()) {
      if (!row->completion || !row->chunks() || !row->generation_ms()) return;
      tokens += *row->completion;
      chunks += *row->chunks();
    }
    if (chunks == 0) return;
    per_chunk[i] = static_cast<double>(tokens) / static_cast<double>(chunks);
    out.table.push_back({arms[i]->name, grouped(tokens), grouped(chunks), fixed(per_chunk[i], 3)});
  }
  const auto most = static_cast<double>(*counters->draft_length + 1);
  const double high = decode_median(treatment, 1), low = decode_median(treatment, most),
               base = decode_median(control, 1);
  out.title =
      "The decode rate subtracts one token for a first chunk that may hold " + fixed(most, 0);
  out.text.push_back(
      "The published rate is (completion tokens - 1) / generation time. With drafts of " +
      std::to_string(*counters->draft_length) + " a chunk carries up to " + fixed(most, 0) +
      " tokens, and what came with the first one took no generation time. `" + treatment.name +
      "` wrote " + fixed(per_chunk[0], 2) + " tokens per chunk, `" + control.name + "` " +
      fixed(per_chunk[1], 2) + ".");
  out.text.push_back("With 1 and with " + fixed(most, 0) + " tokens in the first chunk, `" +
                     treatment.name + "` decodes " + fixed(high, 2) + " and " + fixed(low, 2) +
                     " tok/s: against `" + control.name + "` a change between " +
                     percent(percent_change(base, low)) + " and " +
                     percent(percent_change(base, high)) +
                     ". The truth lies between; the chunks' token counts were not kept.");
  out.values = {{"draft_length", *counters->draft_length},
                {"tokens_per_chunk", {per_chunk[0], per_chunk[1]}},
                {"decode_tok_s", {low, high}},
                {"change_percent", {percent_change(base, low), percent_change(base, high)}}};
  out.evidence = {place(*counters->document, "/configuration/draft_tokens")};
  for (const auto* run : treatment.listed)
    out.evidence.push_back(place(*run->document, "/request_timings"));
  findings.push_back(std::move(out));
}

// Prompts that are not as long as their label says.
void sizes_off_target(const Campaign& campaign, std::vector<Finding>& findings) {
  Finding out;
  out.id = "sizes-off-target";
  out.table = {{"file", "asked for", "after clamping", "engine's count", "off target"}};
  double worst = 0;
  size_t sizes = 0, off_target = 0;
  const auto add = [&](const Document& document, const std::string& pointer, int64_t target,
                       int64_t attempted, int64_t real) {
    if (target <= 0) return;
    ++sizes;
    if (real == target) return;
    const double off = percent_change(static_cast<double>(target), static_cast<double>(real));
    out.table.push_back(
        {document.file, grouped(target), grouped(attempted), grouped(real), percent(off)});
    out.evidence.push_back(place(document, pointer));
    out.values["sizes"].push_back({{"target", target}, {"real", real}, {"off_percent", off}});
    if (std::fabs(off) > std::fabs(worst)) worst = off;
    ++off_target;
  };
  for (const auto& run : campaign.capacity) {
    const auto rows = run.ok_rows();
    if (rows.empty() || !run.context_tokens || !rows.front()->prompt) continue;
    add(*run.document, rows.front()->pointer, *run.context_tokens, *run.context_tokens,
        *rows.front()->prompt);
  }
  for (const auto& ladder : campaign.ladders)
    for (const auto& rung : ladder.rungs)
      if (rung.target && rung.row.prompt)
        add(*ladder.document, rung.row.pointer, *rung.target, rung.attempted.value_or(*rung.target),
            *rung.row.prompt);
  if (off_target == 0) return;
  out.title = count_text(off_target) + " of " + count_text(sizes) +
              " prompt sizes are not what their label states; the worst is off by " +
              percent(worst);
  out.text.push_back(
      "Prompts were cut by an assumed number of characters per token, which each ladder corrected "
      "from rung to rung. The engine's own count is what was measured.");
  for (const auto& ladder : campaign.ladders)
    if (ladder.cap_tokens && !ladder.rungs.empty() && ladder.rungs.back().target &&
        *ladder.rungs.back().target > *ladder.cap_tokens) {
      out.text.push_back("The last rung asked for " + grouped(*ladder.rungs.back().target) +
                         " tokens and was clamped to " + grouped(*ladder.cap_tokens) +
                         "; it is still called by the first number.");
      out.evidence.push_back(place(*ladder.document, "/context/cap_tokens"));
      break;
    }
  findings.push_back(std::move(out));
}

}  // namespace

void add_timing_findings(const Campaign& campaign, std::vector<Finding>& findings) {
  for (const auto& comparison : campaign.comparisons) {
    const auto arms = arms_of(campaign, comparison);
    if (arms.size() != 2) continue;
    cached_prefill(arms[0], arms[1], findings);
    output_lengths(arms[0], arms[1], findings);
    first_chunk(campaign, arms[0], arms[1], findings);
  }
  sizes_off_target(campaign, findings);
}

}  // namespace anvil::evidence::imported
