#include <algorithm>

#include "base/strings.h"
#include "scripted/engine.h"
#include "scripted/tokens.h"

namespace anvil::scripted {

namespace {

// Prometheus text, one family after the other.
class Exposition {
 public:
  explicit Exposition(std::string labels) : labels_(std::move(labels)) {}

  void counter(const std::string& name, double value, const std::string& more = {}) {
    add("counter", name, value, more);
  }
  void gauge(const std::string& name, double value) { add("gauge", name, value, {}); }
  std::string take() { return std::move(text_); }

 private:
  void add(const char* type, const std::string& name, double value, const std::string& more) {
    if (name != last_) text_ += "# TYPE " + name + " " + type + "\n";
    last_ = name;
    const std::string labels = labels_ + (labels_.empty() || more.empty() ? "" : ",") + more;
    text_ +=
        name + (labels.empty() ? "" : "{" + labels + "}") + " " + base::format_number(value) + "\n";
  }
  std::string labels_, last_, text_;
};

double value(const std::atomic<int64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

void speculation(Exposition& out, const std::string& prefix, const Counters& counters,
                 int64_t positions) {
  if (positions == 0) return;
  out.counter(prefix + "spec_decode_num_drafts_total", value(counters.drafts));
  out.counter(prefix + "spec_decode_num_draft_tokens_total", value(counters.draft_tokens));
  out.counter(prefix + "spec_decode_num_accepted_tokens_total", value(counters.accepted_tokens));
  for (int64_t i = 0; i < positions; ++i)
    out.counter(prefix + "spec_decode_num_accepted_tokens_per_pos_total",
                value(counters.accepted_at[static_cast<size_t>(i)]),
                "position=\"" + std::to_string(i) + "\"");
}

}  // namespace

std::string Engine::metrics() const {
  int64_t running = 0, waiting = 0, cache = 0;
  {
    const std::lock_guard lock(mutex_);
    running = running_;
    waiting = static_cast<int64_t>(waiting_.size());
    cache = cache_.tokens();
  }
  const EngineSpec& spec = schedule_.engine;
  const Counters& c = counters_;
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  if (spec.flavour == Flavour::kLlamaCpp) {
    Exposition out("");
    out.counter("llamacpp:prompt_tokens_total", value(c.prompt_tokens) - value(c.cached_tokens));
    out.counter("llamacpp:prompt_tokens_cached_total", value(c.cached_tokens));
    out.counter("llamacpp:prompt_seconds_total", value(c.prefill_us) / 1e6);
    out.counter("llamacpp:tokens_predicted_total", value(c.output_tokens));
    out.counter("llamacpp:tokens_predicted_seconds_total", value(c.decode_us) / 1e6);
    out.counter("llamacpp:n_decode_total", value(c.output_events));
    out.counter("llamacpp:n_tokens_max", value(c.longest));
    out.gauge("llamacpp:requests_processing", number(running));
    out.gauge("llamacpp:requests_deferred", number(waiting));
    speculation(out, "llamacpp:", c, spec.draft_tokens);
    return out.take();
  }
  Exposition out("model_name=\"" + json_escaped(spec.model) + "\",engine=\"0\"");
  out.gauge("vllm:num_requests_running", number(running));
  out.gauge("vllm:num_requests_waiting", number(waiting));
  out.gauge("vllm:kv_cache_usage_perc",
            std::min(1.0, number(cache) / number(std::max<int64_t>(1, spec.cache_tokens))));
  out.counter("vllm:prefix_cache_queries_total", value(c.cache_queries));
  out.counter("vllm:prefix_cache_hits_total", value(c.cache_hits));
  out.counter("vllm:num_preemptions_total", 0);
  out.counter("vllm:prompt_tokens_total", value(c.prompt_tokens));
  out.counter("vllm:prompt_tokens_cached_total", value(c.cached_tokens));
  out.counter("vllm:generation_tokens_total", value(c.output_tokens));
  out.counter("vllm:request_success_total", value(c.stopped), "finished_reason=\"stop\"");
  out.counter("vllm:request_success_total", value(c.length), "finished_reason=\"length\"");
  out.counter("vllm:request_success_total", value(c.aborted), "finished_reason=\"abort\"");
  out.counter("vllm:request_success_total", value(c.failed), "finished_reason=\"error\"");
  speculation(out, "vllm:", c, spec.draft_tokens);
  return out.take();
}

}  // namespace anvil::scripted
