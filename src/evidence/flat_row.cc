#include "evidence/flat_row.h"

#include <array>

#include "base/strings.h"
#include "evidence/json_access.h"
#include "evidence/row_metrics.h"

namespace anvil::evidence {

namespace {
constexpr std::array<const char*, 24> kColumns = {
    "lane",          "item",          "purpose",
    "outcome",       "error_class",   "status",
    "ttfe_ms",       "ttfo_ms",       "ttfv_ms",
    "generation_ms", "e2e_ms",        "done_ms",
    "service_ms",    "schedule_ms",   "send_delay_ms",
    "tpot_ms",       "decode_tok_s",  "prompt_tokens",
    "cached_tokens", "output_tokens", "reasoning_tokens",
    "token_source",  "flags",         "chunk_gaps_ms"};

Json millis(const std::optional<int64_t>& nanos) {
  return nanos ? Json(static_cast<double>(*nanos) / 1e6) : Json(nullptr);
}

std::optional<int64_t> until_end(const std::optional<Nanos>& from, const Stamps& at) {
  const auto end = at.done ? at.done : at.last_output;
  if (!from || *from <= 0 || !end || *end < *from) return std::nullopt;
  return *end - *from;
}

Json flags_of(const RequestRow& row, const RowMetrics& metrics) {
  Json flags = Json::array();
  if (row.outcome == Outcome::kOk && row.token_source != "usage") flags.push_back("no-usage");
  if (metrics.tpot_ms && !metrics.per_chunk) flags.push_back("even-chunks-assumed");
  const auto refused = refuse_cache_state(row.cache_state, metrics, false);
  if (refused == "cached") flags.push_back("cold-but-cached");
  if (refused == "not-cached") flags.push_back("prefix-not-cached");
  return flags;
}

std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return base::format_number(value.get<double>());
  if (value.is_array()) {
    std::string joined;
    for (const Json& element : value) joined += (joined.empty() ? "" : " ") + field(element);
    return joined;
  }
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}
}  // namespace

Json flat_row(const RequestRow& row) {
  const RowMetrics metrics = measure(row);
  Json gaps = Json::array();
  for (size_t i = 1; i < row.chunks.size(); ++i)
    gaps.push_back(static_cast<double>(row.chunks[i].since_sent - row.chunks[i - 1].since_sent) /
                   1e6);
  const std::optional<Nanos> intended =
      row.stamps.intended > 0 ? std::optional(row.stamps.intended) : std::nullopt;
  return Json{{"lane", row.lane},
              {"item", row.item},
              {"answer_id", row.answer.id.empty() ? Json(nullptr) : Json(row.answer.id)},
              {"sent_ns", or_null(row.stamps.sent)},
              {"purpose", name(row.purpose)},
              {"outcome", name(row.outcome)},
              {"error_class", row.error_kind.empty() ? Json(nullptr) : Json(row.error_kind)},
              {"status", row.status == 0 ? Json(nullptr) : Json(row.status)},
              {"ttfe_ms", millis(metrics.ttfe)},
              {"ttfo_ms", millis(metrics.ttfo)},
              {"ttfv_ms", millis(metrics.ttfv)},
              {"generation_ms", millis(metrics.generation)},
              {"e2e_ms", millis(metrics.e2e)},
              {"done_ms", millis(metrics.done)},
              {"service_ms", millis(until_end(row.stamps.sent, row.stamps))},
              {"schedule_ms", millis(until_end(intended, row.stamps))},
              {"send_delay_ms", millis(metrics.send_delay)},
              {"chunk_gaps_ms", gaps},
              {"tpot_ms", or_null(metrics.tpot_ms)},
              {"decode_tok_s", or_null(metrics.decode_tok_s)},
              {"output_tokens", or_null(metrics.completion_tokens)},
              {"prompt_tokens", or_null(metrics.prompt_tokens)},
              {"cached_tokens", or_null(metrics.cached_tokens)},
              {"reasoning_tokens", or_null(metrics.reasoning_tokens)},
              {"token_source", row.token_source.empty() ? "none" : row.token_source},
              {"flags", flags_of(row, metrics)}};
}

std::string csv_header() {
  std::string line;
  for (const char* column : kColumns) line += (line.empty() ? "" : ",") + std::string(column);
  return line + "\n";
}

std::string csv_line(const RequestRow& row) {
  const Json flat = flat_row(row);
  std::string line;
  bool first = true;
  for (const char* column : kColumns) {
    if (!first) line += ',';
    first = false;
    line += field(flat[column]);
  }
  return line + "\n";
}

}  // namespace anvil::evidence
