#include "measure/load_report.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace anvil::measure {

namespace {
// Below 2^kFineBits a bucket holds one value; above, each power of two has 2^kFineBits buckets.
constexpr int kFineBits = 7;
constexpr uint64_t kFine = uint64_t{1} << kFineBits;
constexpr int kPowers =
    40 - kFineBits;  // up to 2^40 ns, 18 minutes; the last bucket takes the rest

size_t bucket_of(uint64_t value) {
  if (value < kFine) return value;
  const int shift = std::bit_width(value) - 1 - kFineBits;
  if (shift >= kPowers) return kFine * (kPowers + 1) - 1;
  return kFine * static_cast<uint64_t>(shift + 1) + ((value >> shift) - kFine);
}

uint64_t upper_end(size_t bucket) {
  if (bucket < kFine) return bucket;
  const uint64_t shift = bucket / kFine - 1;
  return ((bucket % kFine + kFine + 1) << shift) - 1;
}
}  // namespace

std::string_view name(Connections connections) {
  switch (connections) {
    case Connections::kReuse:
      return "reuse";
    case Connections::kFresh:
      return "fresh";
    case Connections::kPool:
      return "pool";
  }
  return "";
}

DelayCounts::DelayCounts() : buckets_(kFine * (kPowers + 1)) {}

void DelayCounts::add(Nanos delay) {
  delay = std::max<Nanos>(delay, 0);
  ++buckets_[bucket_of(static_cast<uint64_t>(delay))];
  ++count_;
  max_ = std::max(max_, delay);
}

void DelayCounts::add(const DelayCounts& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Nanos DelayCounts::quantile(double q) const {
  const auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size() && count_ > 0; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<uint64_t>(rank, 1))
      return i + 1 == buckets_.size() ? max_ : std::min(max_, static_cast<Nanos>(upper_end(i)));
  }
  return max_;
}

Json DelayCounts::to_json() const {
  const auto micros = [&](Nanos nanos) {
    return count_ > 0 ? Json(static_cast<double>(nanos) / 1e3) : Json(nullptr);
  };
  return {{"p50", micros(quantile(0.5))}, {"p99", micros(quantile(0.99))}, {"max", micros(max_)}};
}

void LoadReport::add(const LoadReport& thread) {
  opened += thread.opened;
  kernel_rows += thread.kernel_rows;
  user_rows += thread.user_rows;
  events += thread.events;
  reads += thread.reads;
  multi_event_reads += thread.multi_event_reads;
  late_in_batch += thread.late_in_batch;
  loop_lag.add(thread.loop_lag);
  stamp_delay.add(thread.stamp_delay);
  lateness.add(thread.lateness);
  receive_queue_max_bytes = std::max(receive_queue_max_bytes, thread.receive_queue_max_bytes);
  retransmits += thread.retransmits;
  out_of_order += thread.out_of_order;
  limit_hits += thread.limit_hits;
  rate_limited += thread.rate_limited;
  cpu_ns += thread.cpu_ns;
}

Json LoadReport::to_json() const {
  Json out;
  out["began_ns"] = began;
  out["ended_ns"] = ended;
  out["threads"] = threads;
  out["connections"] = {{"policy", name(connections)}, {"opened", opened}};
  out["resolve_ns"] = resolve_ns;
  out["stamp_source"] = {{"kernel", kernel_rows}, {"user", user_rows}};
  out["events"] = events;
  out["reads"] = reads;
  out["multi_event_reads"] = multi_event_reads;
  out["late_in_batch"] = late_in_batch;
  out["loop_lag_us"] = loop_lag.to_json();
  out["stamp_delay_us"] = stamp_delay.to_json();
  out["lateness_us"] = lateness.to_json();
  out["receive_queue_max_bytes"] = receive_queue_max_bytes;
  out["retransmits"] = retransmits;
  out["out_of_order"] = out_of_order;
  out["in_flight"] = {
      {"target", in_flight.target}, {"max", in_flight.max}, {"mean", in_flight.mean}};
  out["limit_hits"] = limit_hits;
  out["rate_limited"] = rate_limited;
  out["held_ns"] = held_ns;
  out["cpu_ns"] = cpu_ns;
  out["cpu_ns_per_event"] =
      events > 0 ? Json(static_cast<double>(cpu_ns) / static_cast<double>(events)) : Json(nullptr);
  return out;
}

}  // namespace anvil::measure
