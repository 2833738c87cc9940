#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace anvil::measure {

// How attempts come by a connection.
enum class Connections {
  kReuse,  // keep-alive, opened on demand
  kFresh,  // a new one for each request
  kPool,   // as many as may be in flight, all opened before the start
};
std::string_view name(Connections connections);

// Durations in nanoseconds, counted in buckets that are at most 1 % wide, so that recording one
// never allocates and threads can be added up. Negative durations count as 0. Thread: the owner's.
class DelayCounts {
 public:
  DelayCounts();
  void add(Nanos delay);
  void add(const DelayCounts& other);

  uint64_t count() const { return count_; }
  Nanos max() const { return max_; }  // exact
  // Nearest rank, the upper end of its bucket but never above max(); 0 without any.
  Nanos quantile(double q) const;
  // {"p50","p99","max"} in microseconds; each null without any.
  Json to_json() const;

 private:
  std::vector<uint32_t> buckets_;
  uint64_t count_ = 0;
  Nanos max_ = 0;
};

// What a run of the client says about itself: enough to tell whether we were the bottleneck.
// docs/measurement.md defines every member.
struct LoadReport {
  struct InFlight {
    int64_t target = 0;  // LoadOptions::concurrency
    int64_t max = 0;
    double mean = 0;
  };

  Nanos began = 0, ended = 0;
  int threads = 1;
  Connections connections = Connections::kReuse;
  uint64_t opened = 0;                      // connections that were opened
  Nanos resolve_ns = 0;                     // the name look-up before the start
  uint64_t kernel_rows = 0, user_rows = 0;  // by the source of their stamps; others had no byte
  uint64_t events = 0, reads = 0, multi_event_reads = 0, late_in_batch = 0;
  DelayCounts loop_lag;
  DelayCounts stamp_delay;
  DelayCounts lateness;
  uint64_t receive_queue_max_bytes = 0;
  uint64_t retransmits = 0, out_of_order = 0;
  InFlight in_flight;
  uint64_t limit_hits = 0;
  uint64_t rate_limited = 0;  // answers with status 429
  Nanos held_ns = 0;          // waited because of Retry-After
  Nanos cpu_ns = 0;

  // Adds what one thread has counted.
  void add(const LoadReport& thread);
  Json to_json() const;
};

}  // namespace anvil::measure
