#include "evidence/row_metrics.h"

namespace anvil::evidence {

namespace {
// A stamp counts only if it lies at or after the moment it is measured from; zero means that it
// never came.
std::optional<int64_t> since(const std::optional<Nanos>& from, const std::optional<Nanos>& to) {
  if (!from || !to || *from <= 0 || *to <= 0 || *to < *from) return std::nullopt;
  return *to - *from;
}

std::optional<double> per_second(double tokens, const std::optional<int64_t>& nanos) {
  if (!nanos || *nanos <= 0) return std::nullopt;
  return tokens / (static_cast<double>(*nanos) / 1e9);
}

void count_tokens(const RequestRow& row, RowMetrics& metrics) {
  const auto& usage = row.answer.usage;
  const auto& timings = row.answer.timings;
  metrics.prompt_tokens = usage.prompt;
  metrics.reasoning_tokens = usage.reasoning;
  if (row.token_source == "usage") metrics.completion_tokens = usage.completion;
  if (row.token_source == "timings" && timings) {
    metrics.completion_tokens = timings->predicted_n;
    if (!metrics.prompt_tokens && timings->prompt_n && timings->cache_n)
      metrics.prompt_tokens = *timings->prompt_n + *timings->cache_n;
  }
  if (usage.cached) {
    metrics.cached_tokens = usage.cached;
    metrics.cached_source = "usage";
  } else if (timings && timings->cache_n) {
    metrics.cached_tokens = timings->cache_n;
    metrics.cached_source = "timings";
  }
}
}  // namespace

RowMetrics measure(const RequestRow& row) {
  RowMetrics metrics;
  const Stamps& at = row.stamps;
  // An answer that came as a whole has no first output before its last.
  if (row.stream) {
    metrics.ttfe = since(at.sent, at.first_event);
    metrics.ttfo = since(at.sent, at.first_output);
    metrics.ttfv = since(at.sent, at.first_visible);
  }
  metrics.e2e = since(at.sent, at.last_output);
  metrics.done = since(at.sent, at.done);
  if (row.stream) metrics.generation = since(at.first_output, at.last_output);
  metrics.send_delay = since(at.intended, at.sent);
  count_tokens(row, metrics);

  if (metrics.completion_tokens && !row.chunks.empty()) {
    const auto first = row.chunks.front().tokens;
    const auto total = static_cast<double>(*metrics.completion_tokens);
    const auto chunks = static_cast<double>(row.chunks.size());
    metrics.per_chunk = first.has_value();
    if (!first)
      metrics.tokens_after_first = total * (chunks - 1) / chunks;
    else if (*metrics.completion_tokens >= *first)
      metrics.tokens_after_first = total - static_cast<double>(*first);
  }
  // One output event, or several with the same stamp: no time passed between tokens, so there is no
  // rate.
  if (row.chunks.size() > 1 && metrics.tokens_after_first.value_or(0) > 0 &&
      metrics.generation.value_or(0) > 0) {
    metrics.decode_tok_s = per_second(*metrics.tokens_after_first, metrics.generation);
    metrics.tpot_ms = static_cast<double>(*metrics.generation) / *metrics.tokens_after_first / 1e6;
  }
  if (metrics.prompt_tokens) {
    metrics.effective_prefill_tok_s =
        per_second(static_cast<double>(*metrics.prompt_tokens), metrics.ttfo);
    if (metrics.cached_tokens && *metrics.cached_tokens <= *metrics.prompt_tokens)
      metrics.computed_prefill_tok_s = per_second(
          static_cast<double>(*metrics.prompt_tokens - *metrics.cached_tokens), metrics.ttfo);
  }
  return metrics;
}

std::string_view refuse_cache_state(std::string_view declared, const RowMetrics& metrics,
                                    bool proof_demanded) {
  if (declared != "cold" && declared != "prefix") return "";
  if (!metrics.cached_tokens) return proof_demanded ? "unproven" : "";
  if (declared == "cold" && *metrics.cached_tokens > 0) return "cached";
  if (declared == "prefix" && *metrics.cached_tokens <= 0) return "not-cached";
  return "";
}

}  // namespace anvil::evidence
