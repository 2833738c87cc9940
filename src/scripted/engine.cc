#include "scripted/engine.h"

#include <algorithm>

namespace anvil::scripted {

namespace {

// What an entry without events costs, in events.
constexpr int64_t kEntryCost = 8;

Nanos smallest_gap(const std::vector<Step>& steps) {
  Nanos smallest = 0, before = -1;
  for (const Step& step : steps) {
    if (!is_output(step.kind)) continue;
    const Nanos gap = step.at - before;
    if (before >= 0 && gap > 0 && (smallest == 0 || gap < smallest)) smallest = gap;
    before = step.at;
  }
  return smallest;
}

}  // namespace

Engine::Engine(Schedule schedule, int64_t ledger_events)
    : schedule_(std::move(schedule)),
      started_(mono_now()),
      created_(base::wall_anchor().wall / kSecond),
      cache_(schedule_.engine.cache_block_tokens, schedule_.engine.cache_tokens),
      met_(schedule_.streams.size(), 0),
      ledger_room_(ledger_events) {
  for (const Stream& stream : schedule_.streams)
    texts_.push_back(std::make_unique<TokenText>(stream));
}

Result<int> Engine::choose(const Request& request, int64_t number) {
  const auto count = static_cast<int64_t>(schedule_.streams.size());
  switch (schedule_.choose) {
    case Choose::kRoundRobin:
      return static_cast<int>(number % count);
    case Choose::kIndex:
      return static_cast<int>(std::min(number, count - 1));
    case Choose::kModel:
      for (int64_t i = 0; i < count; ++i)
        if (stream(static_cast<int>(i)).name == request.model) return static_cast<int>(i);
      return fail(Kind::kNotFound, Side::kClient, "no stream has the name " + request.model);
    case Choose::kMix:
      break;
  }
  double sum = 0;
  for (const Stream& one : schedule_.streams) sum += one.weight;
  uint64_t state = schedule_.seed ^ (static_cast<uint64_t>(number) << 20);
  double rest = stats::Random(stats::splitmix64(state)).uniform() * sum;
  for (int64_t i = 0; i + 1 < count; ++i) {
    rest -= stream(static_cast<int>(i)).weight;
    if (rest < 0) return static_cast<int>(i);
  }
  return static_cast<int>(count - 1);
}

Result<Engine::Admission> Engine::admit(const Request& request, LedgerEntry& entry,
                                        Starter& starter, uint64_t key) {
  const EngineSpec& spec = schedule_.engine;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  entry.prompt_tokens = prompt;
  if (spec.flavour == Flavour::kVllm && schedule_.choose != Choose::kModel &&
      !request.model.empty() && request.model != spec.model)
    return fail(
        Kind::kNotFound, Side::kClient,
        "The model `" + request.model + "` does not exist; this engine has `" + spec.model + "`");
  if (prompt >= spec.context_tokens)
    return fail(Kind::kTooLarge, Side::kClient,
                "This engine's maximum context length is " + std::to_string(spec.context_tokens) +
                    " tokens, and the prompt has " + std::to_string(prompt));
  Admission admission;
  int64_t number = 0;
  bool fault = false;
  {
    const std::lock_guard lock(mutex_);
    number = admitted_;
    admission.stream = TRY(choose(request, number));
    ++admitted_;
    ledger_.in_flight_max = std::max(ledger_.in_flight_max, ++in_flight_);
    if (spec.prefix_cache) entry.cached_tokens = cache_.visit(request.prompt);
    const int64_t met = met_[static_cast<size_t>(admission.stream)]++;
    const Fault& scripted = stream(admission.stream).fault;
    fault = scripted.kind != FaultKind::kNone &&
            (scripted.first_requests == 0 || met < scripted.first_requests);
    admission.waits = spec.slots > 0 && running_ >= spec.slots;
    if (admission.waits)
      waiting_.push_back({&starter, key});
    else
      ++running_;
  }
  entry.stream = admission.stream;
  entry.surface = request.surface;
  counters_.prompt_tokens.fetch_add(prompt, std::memory_order_relaxed);
  counters_.cached_tokens.fetch_add(entry.cached_tokens, std::memory_order_relaxed);
  if (spec.prefix_cache) {
    counters_.cache_queries.fetch_add(prompt, std::memory_order_relaxed);
    counters_.cache_hits.fetch_add(entry.cached_tokens, std::memory_order_relaxed);
  }
  uint64_t state = schedule_.seed + (static_cast<uint64_t>(number) << 32);
  stats::Random random(stats::splitmix64(state));
  admission.plan =
      make_plan(spec, stream(admission.stream), request, text(admission.stream).text_tokens(),
                entry.cached_tokens, fault, random);
  const auto events = static_cast<int64_t>(admission.plan.steps.size());
  const Nanos gap = request.stream ? smallest_gap(admission.plan.steps) : 0;
  const std::lock_guard lock(mutex_);
  if (gap > 0 && (ledger_.smallest_gap == 0 || gap < ledger_.smallest_gap))
    ledger_.smallest_gap = gap;
  entry.cut = ledger_room_ < events + kEntryCost;
  if (!entry.cut) {
    ledger_room_ -= events + kEntryCost;
    entry.events.reserve(admission.plan.steps.size());
  }
  return admission;
}

void Engine::leave(LedgerEntry entry, bool had_slot) {
  Waiting next{nullptr, 0};
  {
    const std::lock_guard lock(mutex_);
    --in_flight_;
    if (had_slot && !waiting_.empty()) {
      next = waiting_.front();
      waiting_.pop_front();
    } else if (had_slot) {
      --running_;
    }
    keep(std::move(entry));
  }
  if (next.starter) next.starter->start(next.key);
}

bool Engine::forget(Starter& starter, uint64_t key) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(waiting_, [&](const Waiting& waiting) {
           return waiting.starter == &starter && waiting.key == key;
         }) > 0;
}

void Engine::refused(LedgerEntry entry) {
  const std::lock_guard lock(mutex_);
  entry.cut = ledger_room_ < kEntryCost;
  if (!entry.cut) ledger_room_ -= kEntryCost;
  keep(std::move(entry));
}

void Engine::keep(LedgerEntry entry) {
  ++ledger_.requests;
  if (entry.cut)
    ++ledger_.cut_requests;
  else
    ledger_.entries.push_back(std::move(entry));
}

void Engine::clear_cache() {
  const std::lock_guard lock(mutex_);
  cache_.clear();
}

Ledger Engine::ledger() const {
  const std::lock_guard lock(mutex_);
  Ledger copy = ledger_;
  copy.connections = connections_.load(std::memory_order_relaxed);
  return copy;
}

}  // namespace anvil::scripted
