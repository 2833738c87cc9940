// Findings about context ladders: what their cold and warm labels stand for, and what was not kept.
#include <cmath>

#include "evidence/import/findings.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

std::string rung_name(const Rung& rung) {
  return rung.target ? grouped(*rung.target) : std::string("-");
}

// The same rung, measured several times, by what the engine says it had in its cache.
void cache_and_warmth(const Campaign& campaign, std::vector<Finding>& findings) {
  Finding out;
  out.id = "ladder-cache";
  out.table = {{"file", "rung", "prompt tokens", "cached", "TTFO s", "computed / TTFO, tok/s"}};
  size_t rows = 0, cached = 0;
  double best = 1;
  std::string apart;
  for (size_t l = 0; l < campaign.ladders.size(); ++l) {
    const Ladder& ladder = campaign.ladders[l];
    for (const auto& rung : ladder.rungs) {
      const Row& row = rung.row;
      if (!row.prompt || !row.cached) continue;
      ++rows;
      cached += *row.cached > 0 ? 1 : 0;
      std::string rate = "-";
      if (row.ttfo_ms && *row.ttfo_ms > 0)
        rate = fixed(static_cast<double>(*row.prompt - *row.cached) / *row.ttfo_ms * 1000, 1);
      out.table.push_back({ladder.document->file, rung_name(rung), grouped(*row.prompt),
                           grouped(*row.cached),
                           row.ttfo_ms ? fixed(*row.ttfo_ms / 1000, 3) : "not kept", rate});
      out.evidence.push_back(
          place(*ladder.document, row.pointer + "/usage/prompt_tokens_details/cached_tokens"));
      // Two measurements of one prompt that differ although both were computed whole.
      for (size_t m = 0; m < l; ++m)
        for (const auto& other : campaign.ladders[m].rungs) {
          const Row& twin = other.row;
          if (twin.prompt != row.prompt || twin.cached != 0 || row.cached != 0 || !twin.ttfo_ms ||
              !row.ttfo_ms || *row.ttfo_ms <= 0 || *twin.ttfo_ms <= 0)
            continue;
          const double slow = std::max(*row.ttfo_ms, *twin.ttfo_ms);
          const double fast = std::min(*row.ttfo_ms, *twin.ttfo_ms);
          if (slow / fast <= best) continue;
          best = slow / fast;
          apart = "The same prompt of " + grouped(*row.prompt) + " tokens took " +
                  fixed(slow / 1000, 2) + " s in one ladder and " + fixed(fast / 1000, 2) +
                  " s in another (a factor of " + fixed(best, 2) +
                  "), and the engine reported no cached token in either. What separates the "
                  "\"cold\" from the \"warm\" column is therefore not the prefix cache that the "
                  "engine reports; what it is was not recorded.";
        }
    }
  }
  if (rows == 0 || (cached == 0 && apart.empty())) return;
  out.title = std::to_string(cached) + " of " + std::to_string(rows) +
              " ladder requests took prompt tokens from the cache, whatever the ladder was called";
  out.text.push_back(
      "A rung is cold when the engine computed its whole prompt. Earlier rungs and earlier runs "
      "begin with the same text, so that a later prompt finds its beginning in the cache.");
  if (!apart.empty()) out.text.push_back(apart);
  out.values = {{"rows", rows}, {"cached_rows", cached}, {"cold_against_cold", best}};
  findings.push_back(std::move(out));
}

// The first-output time of a row whose file kept only percentiles: a value that two independent
// published numbers agree on.
std::optional<double> recover_ttfo(const Row& row, const Json& chat) {
  if (!row.e2e_ms || !row.prompt || !row.completion) return std::nullopt;
  std::vector<double> candidates[4];
  for (const char* q : {"_p50", "_p95"}) {
    const std::string suffix = q;
    if (const auto value = number(chat, "time_to_first_output" + suffix + "_ms"))
      candidates[0].push_back(*value);
    if (const auto value = number(chat, "generation" + suffix + "_ms"))
      candidates[1].push_back(*row.e2e_ms - *value);
    if (const auto value = number(chat, "effective_prefill_tok_s" + suffix); value && *value > 0)
      candidates[2].push_back(static_cast<double>(*row.prompt) / *value * 1000);
    if (const auto value = number(chat, "decode_tok_s" + suffix); value && *value > 0)
      candidates[3].push_back(*row.e2e_ms -
                              static_cast<double>(*row.completion - 1) / *value * 1000);
  }
  for (size_t a = 0; a < 4; ++a)
    for (size_t b = a + 1; b < 4; ++b)
      for (double one : candidates[a])
        for (double two : candidates[b])
          if (one > 0 && std::fabs(one - two) < 1e-6 * one) return one;
  return std::nullopt;
}

void dropped_rows(const Campaign& campaign, std::vector<Finding>& findings) {
  Finding out;
  out.id = "incomplete-rows";
  out.table = {{"file", "rung", "e2e s", "TTFO kept", "TTFO s, from the file's percentiles"}};
  size_t lacking = 0, recovered = 0;
  for (const auto& ladder : campaign.ladders)
    for (const auto& rung : ladder.rungs) {
      const Row& row = rung.row;
      if (row.ttfo_ms) continue;
      ++lacking;
      const auto ttfo = recover_ttfo(row, at_path(ladder.document->json, "timing.chat"));
      recovered += ttfo ? 1 : 0;
      out.table.push_back({ladder.document->file, rung_name(rung),
                           row.e2e_ms ? fixed(*row.e2e_ms / 1000, 2) : "-", "no",
                           ttfo ? fixed(*ttfo / 1000, 3) : "-"});
      out.evidence.push_back(place(*ladder.document, row.pointer));
      out.values["recovered_ttfo_ms"].push_back(ttfo ? Json(*ttfo) : Json(nullptr));
    }
  if (lacking == 0) return;
  out.title = std::to_string(lacking) +
              " ladder rows do not have the time to first output that their file's percentiles "
              "were computed from";
  out.text.push_back(
      "Such rows are marked incomplete, and what needs the stamp is not derivable from them. For " +
      std::to_string(recovered) +
      " of them two of the file's percentiles agree on one value, which is shown; it is a "
      "reconstruction and enters no figure.");
  findings.push_back(std::move(out));
}

}  // namespace

void add_ladder_findings(const Campaign& campaign, std::vector<Finding>& findings) {
  cache_and_warmth(campaign, findings);
  dropped_rows(campaign, findings);
}

}  // namespace anvil::evidence::imported
