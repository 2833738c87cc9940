#include <algorithm>

#include "evidence/counter_delta.h"
#include "evidence/curve.h"
#include "evidence/derive_parts.h"
#include "evidence/distribution.h"
#include "evidence/json_access.h"
#include "evidence/knee.h"
#include "evidence/lane_load.h"
#include "evidence/row_metrics.h"

namespace anvil::evidence {

namespace {
constexpr int64_t kMostRequests = 1'000'000, kMostOutputs = 1'000'000, kMostGaps = 4'000'000;

// Sum of the counts that were reported; nothing if none was.
struct Sum {
  std::optional<int64_t> value;
  void add(const std::optional<int64_t>& count) {
    int64_t sum = 0;
    if (count && !__builtin_add_overflow(value.value_or(0), *count, &sum)) value = sum;
  }
};

template <class T>
void keep(std::vector<T>& values, const std::optional<T>& value) {
  if (value) values.push_back(*value);
}
}  // namespace

struct Lanes::Lane {
  std::string id;
  Json spec = nullptr;
  bool proof_demanded = true;

  std::string cache_state;
  std::optional<int64_t> concurrency;
  int64_t total = 0, ok = 0, failed = 0, refused = 0;
  std::map<std::string, int64_t> refusals, token_source, tokens_per_chunk, proofs;
  std::vector<int64_t> ttfe, ttfo, ttfv, e2e, done, generation, gaps, send_delay;
  std::vector<double> tpot, decode, effective_prefill, computed_prefill;
  Sum prompt, completion, cached, reasoning, drafted, accepted;
  bool completion_known = true;
  int64_t per_chunk = 0, assumed = 0, missed_length = 0;
  LaneLoad load;
  std::optional<Nanos> first_sent, last_output;

  void add(const RequestRow& row) {
    ++total;
    if (cache_state.empty()) cache_state = row.cache_state;
    if (!concurrency) concurrency = row.concurrency;
    const RowMetrics metrics = measure(row);
    if (row.outcome != Outcome::kOk) {
      ++failed;
      load.add(row, metrics, false);
      return;
    }
    ++proofs[std::string(metrics.cached_source)];
    if (const auto why = refuse_cache_state(row.cache_state, metrics, proof_demanded);
        !why.empty()) {
      ++refused;
      ++refusals[std::string(why)];
      load.add(row, metrics, false);
      return;
    }
    ++ok;
    load.add(row, metrics, true);
    ++token_source[row.token_source.empty() ? "none" : row.token_source];
    count(row, metrics);
    time(row, metrics);
  }

  void count(const RequestRow& row, const RowMetrics& metrics) {
    prompt.add(metrics.prompt_tokens);
    completion.add(metrics.completion_tokens);
    cached.add(metrics.cached_tokens);
    reasoning.add(metrics.reasoning_tokens);
    if (row.answer.timings) {
      drafted.add(row.answer.timings->draft_n);
      accepted.add(row.answer.timings->draft_n_accepted);
    }
    if (!metrics.completion_tokens) completion_known = false;
    const auto wanted = integer(spec, "output_tokens");
    if (flag(spec, "fixed_output") && wanted && metrics.completion_tokens != wanted)
      ++missed_length;
  }

  void time(const RequestRow& row, const RowMetrics& metrics) {
    keep(ttfe, metrics.ttfe);
    keep(ttfo, metrics.ttfo);
    keep(ttfv, metrics.ttfv);
    keep(e2e, metrics.e2e);
    keep(done, metrics.done);
    keep(generation, metrics.generation);
    keep(send_delay, metrics.send_delay);
    keep(tpot, metrics.tpot_ms);
    keep(decode, metrics.decode_tok_s);
    keep(effective_prefill, metrics.effective_prefill_tok_s);
    keep(computed_prefill, metrics.computed_prefill_tok_s);
    if (metrics.tpot_ms) ++(metrics.per_chunk ? per_chunk : assumed);
    for (size_t i = 1; i < row.chunks.size(); ++i)
      gaps.push_back(row.chunks[i].since_sent - row.chunks[i - 1].since_sent);
    int64_t unknown = 0, single = 0;
    for (const Chunk& chunk : row.chunks) {
      if (!chunk.tokens)
        ++unknown;
      else if (*chunk.tokens == 1)
        ++single;
      else
        ++tokens_per_chunk[std::to_string(*chunk.tokens)];
    }
    if (unknown) tokens_per_chunk["unknown"] += unknown;
    if (single) tokens_per_chunk["1"] += single;
    if (row.stamps.sent && *row.stamps.sent > 0)
      first_sent = std::min(first_sent.value_or(*row.stamps.sent), *row.stamps.sent);
    if (row.stamps.last_output && *row.stamps.last_output > 0)
      last_output =
          std::max(last_output.value_or(*row.stamps.last_output), *row.stamps.last_output);
  }

  Json proof() const {
    if (proofs.empty()) return nullptr;
    return proofs.size() == 1 ? proofs.begin()->first : "mixed";
  }

  Json assumption() const {
    if (per_chunk && assumed) return "mixed";
    if (per_chunk) return "per-chunk counts";
    if (assumed) return "even over the chunks";
    return nullptr;
  }

  Json speculation() const {
    if (!drafted.value || *drafted.value <= 0 || !accepted.value) return nullptr;
    return Json{
        {"drafted", *drafted.value},
        {"accepted", *accepted.value},
        {"acceptance", static_cast<double>(*accepted.value) / static_cast<double>(*drafted.value)}};
  }

  // The whole time in which requests were under way, those that failed included.
  static Json wall(const Json& client) {
    const auto began = number(client, "began_ns"), ended = number(client, "ended_ns");
    if (!began || !ended || *ended <= *began) return nullptr;
    return (*ended - *began) / 1e9;
  }

  // `recorded`: of this lane in load.json.
  Json finish(const Json& recorded, const ClientError& client_error) {
    using Of = ClientError::Of;
    const auto timed = [&](std::vector<int64_t>& nanos, Of what) {
      Json out = distribution_ms(nanos);
      client_error.annotate(id, what, out);
      return out;
    };
    Json tpot_ms = distribution(tpot);
    client_error.annotate(id, Of::kGap, tpot_ms);
    Json curves{{"ttfo_ms", curve_ms(ttfo)},
                {"e2e_ms", curve_ms(e2e)},
                {"chunk_gap_ms", curve_ms(gaps)},
                {"tpot_ms", curve(tpot)},
                {"decode_tok_s", curve(decode)}};
    std::optional<double> window_s, aggregate, success;
    if (first_sent && last_output && *last_output > *first_sent)
      window_s = static_cast<double>(*last_output - *first_sent) / 1e9;
    // A row without a count would make the sum too small without a sign of it.
    if (window_s && completion_known && completion.value)
      aggregate = static_cast<double>(*completion.value) / *window_s;
    if (total > 0) success = static_cast<double>(ok + refused) / static_cast<double>(total);
    const Json& planned_cache = member(spec, "cache");
    const Json& planned_concurrency = member(spec, "concurrency");
    return Json{
        {"id", id},
        {"cache_state", planned_cache.is_string() ? planned_cache : Json(cache_state)},
        {"cache_proof", proof()},
        {"concurrency",
         planned_concurrency.is_number() ? planned_concurrency : or_null(concurrency)},
        {"prompt_tokens_target", or_null(integer(spec, "prompt_tokens"))},
        {"output_tokens_target", or_null(integer(spec, "output_tokens"))},
        {"fixed_output", member(spec, "fixed_output")},
        {"fixed_output_missed", missed_length},
        {"requests", {{"total", total}, {"ok", ok}, {"failed", failed}, {"refused", refused}}},
        {"refusals", refusals},
        {"success_rate", or_null(success)},
        {"ttfe_ms", timed(ttfe, Of::kFirstOutput)},
        {"ttfo_ms", timed(ttfo, Of::kFirstOutput)},
        {"ttfv_ms", timed(ttfv, Of::kFirstOutput)},
        {"e2e_ms", timed(e2e, Of::kFirstOutput)},
        {"done_ms", timed(done, Of::kFirstOutput)},
        {"generation_ms", timed(generation, Of::kFirstOutput)},
        {"chunk_gap_ms", timed(gaps, Of::kGap)},
        {"send_delay_ms", distribution_ms(send_delay)},
        {"tpot_ms", tpot_ms},
        {"tpot_assumption", assumption()},
        {"decode_tok_s", distribution(decode)},
        {"effective_prefill_tok_s", distribution(effective_prefill)},
        {"computed_prefill_tok_s", distribution(computed_prefill)},
        {"window_s", or_null(window_s)},
        {"wall_s", wall(member(recorded, "client"))},
        {"aggregate_output_tok_s", or_null(aggregate)},
        {"tokens",
         {{"prompt", or_null(prompt.value)},
          {"completion", or_null(completion.value)},
          {"cached", or_null(cached.value)},
          {"reasoning", or_null(reasoning.value)}}},
        {"token_source", token_source},
        {"tokens_per_chunk", tokens_per_chunk},
        {"speculation", speculation()},
        {"curves", curves},
        {"service_ms", timed(load.service, Of::kFirstOutput)},
        {"schedule_ms", timed(load.schedule, Of::kFirstOutput)},
        {"load", load.describe(spec, recorded)},
        {"steady", load.steady()},
        {"goodput", load.goodput(spec)},
        {"counters", counter_delta(member(member(recorded, "counters"), "before"),
                                   member(member(recorded, "counters"), "after"))},
        {"client", load.judge_client(recorded, client_error.summary(id))}};
  }
};

Lanes::Lanes(const DerivationInputs& inputs)
    : default_proof_(member(inputs.suite, "cache_proof")),
      load_(inputs.load),
      client_error_(inputs.calibration) {
  const Json& planned = member(inputs.plan, "lanes").is_array() ? member(inputs.plan, "lanes")
                                                                : member(inputs.suite, "lane");
  for (const Json& spec : elements(planned)) {
    const std::string id = text(spec, "id");
    if (id.empty()) continue;
    if (!flag(spec, "find_knee")) {
      plan_lane(spec);
      continue;
    }
    searches_.push_back(spec);
    // Its probes are lanes of their own, planned one after the other.
    for (const Json& entry : elements(member(load_, "lanes"))) {
      if (text(entry, "of") != id) continue;
      Json probe = spec;
      probe["id"] = text(entry, "id");
      probe["rate"] = member(entry, "rate");
      plan_lane(probe);
    }
  }
}

Lanes::~Lanes() = default;

Lanes::Lane& Lanes::plan_lane(const Json& spec) {
  Lane& planned = lane(text(spec, "id"));
  planned.spec = spec;
  planned.load = LaneLoad(is_open_loop(spec));
  const std::string proof = text(spec, "cache_proof");
  if (!proof.empty()) planned.proof_demanded = proof != "none";
  // Most of what is kept; a plan that asks for more than a run can hold is not believed.
  const int64_t requests = integer(spec, "requests").value_or(0);
  const int64_t outputs = integer(spec, "output_tokens").value_or(0);
  if (requests > 0 && requests <= kMostRequests && outputs > 0 && outputs <= kMostOutputs)
    planned.gaps.reserve(static_cast<size_t>(std::min(requests * outputs, kMostGaps)));
  return planned;
}

Lanes::Lane& Lanes::lane(const std::string& id) {
  for (const auto& lane : lanes_)
    if (lane->id == id) return *lane;
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.back()->id = id;
  lanes_.back()->proof_demanded = default_proof_ != "none";
  return *lanes_.back();
}

void Lanes::add(const RequestRow& row) {
  lane(row.lane).add(row);
}

Json Lanes::finish() {
  Json out = Json::array();
  for (const auto& lane : lanes_) {
    Json recorded = nullptr;
    for (const Json& entry : elements(member(load_, "lanes")))
      if (text(entry, "id") == lane->id) recorded = entry;
    out.push_back(lane->finish(recorded, client_error_));
  }
  return out;
}

Json Lanes::knees(const Json& lanes) const {
  Json out = Json::array();
  for (const Json& spec : searches_) {
    const std::string id = text(spec, "id");
    auto search = KneeSearch::make(knee_options(spec));
    if (!search) continue;
    for (const Json& entry : elements(member(load_, "lanes"))) {
      if (text(entry, "of") != id) continue;
      for (const Json& lane : elements(lanes))
        if (text(lane, "id") == text(entry, "id") && flag(member(lane, "client"), "valid"))
          (void)search->add(number(entry, "rate").value_or(0),
                            objective_counts(member(lane, "goodput")));
    }
    Json found = search->result();
    found["lane"] = id;
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace anvil::evidence
