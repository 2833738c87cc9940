#include "host/sampler.h"

#include <algorithm>
#include <chrono>

#include "base/files.h"
#include "base/strings.h"
#include "host/process.h"
#include "host/snapshot.h"

namespace anvil::host {

namespace {

// Finding the members of a process tree reads all of /proc; their counters are read at every tick.
constexpr Nanos kTreeRefresh = kSecond;

}  // namespace

Tick next_tick(Nanos start, Nanos period, Nanos previous, Nanos now) {
  const Nanos after = std::max(previous, now);
  const Nanos at = after < start ? start : start + ((after - start) / period + 1) * period;
  return {at, static_cast<uint64_t>(std::max<Nanos>((at - previous) / period - 1, 0))};
}

Sampler::Sampler(Options options, Sink sink)
    : options_(std::move(options)), sink_(std::move(sink)) {
  options_.period = std::max<Nanos>(options_.period, kMillisecond);
}

Sampler::~Sampler() {
  stop();
}

void Sampler::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sampler::set_roots(std::vector<int> roots) {
  const std::lock_guard lock(mutex_);
  roots_ = std::move(roots);
}

void Sampler::run() {
  const Nanos start = mono_now();
  Nanos due = start;
  for (;;) {
    std::vector<int> roots;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      roots = roots_;
    }
    sink_(take(mono_now(), roots));

    const Tick next = next_tick(start, options_.period, due, mono_now());
    missed_.fetch_add(next.missed, std::memory_order_relaxed);
    due = next.at;
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(due)};
    std::unique_lock lock(mutex_);
    if (wake_.wait_until(lock, until, [this] { return stop_; })) return;
  }
}

Json Sampler::take(Nanos now, const std::vector<int>& roots) {
  Json sample = {{"mono_ns", now}, {"host", {{"mem_available", read_memory().available}}}};
  const std::string load = base::read_file("/proc/loadavg").value_or(std::string());
  if (const auto load1 = base::parse_double(base::split(load, ' ').front())) {
    sample["host"]["load1"] = *load1;
  }
  sample["engine"] = read_engine(now, roots);
  sample["gpus"] = Json::array();
  if (options_.gpus != nullptr) {
    for (const Gpu& gpu : options_.gpus->sample()) {
      sample["gpus"].push_back(to_sample(gpu, options_.roles));
    }
  }
  return sample;
}

Json Sampler::read_engine(Nanos now, const std::vector<int>& roots) {
  if (roots != accounted_roots_) {
    accounted_roots_ = roots;
    cpu_.clear();
    members_.clear();
    refreshed_ = 0;
  }
  if (refreshed_ == 0 || now - refreshed_ >= kTreeRefresh) {
    members_.clear();
    for (const Process& process : serve_tree(roots, options_.marker)) {
      members_.push_back({process.pid, process.start_ticks});
    }
    refreshed_ = now;
  }
  uint64_t rss = 0;
  size_t alive = 0;
  for (const auto& member : members_) {
    const std::optional<Process> process = read_process(member.first);
    if (!process || process->start_ticks != member.second) continue;
    ++alive;
    rss += process->rss_bytes;
    cpu_[member] = process->cpu;
  }
  Nanos cpu = 0;
  for (const auto& entry : cpu_) cpu += entry.second;
  return {{"rss", rss}, {"cpu_ns", cpu}, {"pids", alive}};
}

}  // namespace anvil::host
