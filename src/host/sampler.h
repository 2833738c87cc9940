#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "host/gpu.h"

namespace anvil::host {

// The next instant of an absolute schedule start + k * period that lies after `now`, and how many
// instants since `previous` have been passed over.
struct Tick {
  Nanos at = 0;
  uint64_t missed = 0;
};
Tick next_tick(Nanos start, Nanos period, Nanos previous, Nanos now);

// Samples the host, one engine's processes and the GPUs at a fixed period, on a thread of its own.
//
// The sink is called on that thread, with {"mono_ns","host":{"mem_available","load1"},
// "engine":{"rss","cpu_ns","pids"},"gpus":[...]}: bytes and nanoseconds. `cpu_ns` never falls while
// the roots stay the same: the time of processes that have ended is kept. "pids" is their number; a
// new child is found within a second.
//
// Lifecycle: start() once, stop() once (the destructor stops). After stop() returns the sink is not
// called any more. Thread: start, stop and set_roots from the owner's; missed() from any.
class Sampler {
 public:
  struct Options {
    Nanos period = 500 * kMillisecond;
    GpuProbe* gpus = nullptr;                  // none: "gpus" is empty; must outlive the sampler
    std::map<std::string, std::string> roles;  // GPU uuid -> role
    std::string marker;  // "ANVIL_RUN_ID=...": orphans that belong to the engine too
  };
  using Sink = std::function<void(const Json&)>;

  Sampler(Options options, Sink sink);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start();
  void stop();
  // The processes whose trees count as the engine; may change while it runs.
  void set_roots(std::vector<int> roots);
  // Instants at which no sample could be taken because the one before took too long.
  uint64_t missed() const { return missed_.load(std::memory_order_relaxed); }

 private:
  void run();
  Json take(Nanos now, const std::vector<int>& roots);
  Json read_engine(Nanos now, const std::vector<int>& roots);

  using Member = std::pair<int, uint64_t>;  // pid, start_ticks

  Options options_;
  Sink sink_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;       // guarded by mutex_
  std::vector<int> roots_;  // guarded by mutex_

  // Only the sampling thread:
  std::vector<int> accounted_roots_;
  std::vector<Member> members_;  // of the engine's tree, as of refreshed_
  Nanos refreshed_ = 0;
  std::map<Member, Nanos> cpu_;  // every member ever seen

  std::atomic<uint64_t> missed_{0};
  std::thread thread_;
};

}  // namespace anvil::host
