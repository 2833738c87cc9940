#include "scripted/ledger.h"

#include <algorithm>
#include <bit>

#include "base/files.h"
#include "stats/percentile.h"

namespace anvil::scripted {

std::string_view name(Ending ending) {
  switch (ending) {
    case Ending::kDone:
      return "done";
    case Ending::kFault:
      return "fault";
    case Ending::kRefused:
      return "refused";
    case Ending::kClient:
      return "client-closed";
    case Ending::kStopped:
      return "stopped";
  }
  return "";
}

Json to_json(const LedgerEntry& entry, const std::string& stream_name) {
  Json events = Json::array();
  for (const LedgerEvent& event : entry.events)
    events.push_back({{"due_ns", event.due},
                      {"write_begin_ns", event.write_begin},
                      {"write_end_ns", event.write_end},
                      {"kind", name(event.kind)},
                      {"tokens", event.tokens},
                      {"bytes", event.bytes}});
  return {{"id", entry.id},
          {"serial", entry.serial},
          {"stream", entry.stream},
          {"stream_name", stream_name},
          {"surface", name(entry.surface)},
          {"connection", entry.connection},
          {"recv_last_byte_ns", entry.recv_last_byte},
          {"arrived_ns", entry.arrived},
          {"start_ns", entry.start},
          {"prompt_tokens", entry.prompt_tokens},
          {"completion_tokens", entry.completion_tokens},
          {"cached_tokens", entry.cached_tokens},
          {"outcome", name(entry.ending)},
          {"status", entry.status},
          {"cut", entry.cut},
          {"events", std::move(events)}};
}

// Values below 64 have buckets of their own; above, the six bits behind the leading one choose.
void Lateness::add(Nanos value) {
  const auto v = static_cast<uint64_t>(std::max<Nanos>(0, value));
  const int shift = std::max(0, static_cast<int>(std::bit_width(v)) - 7);
  const auto bucket = static_cast<size_t>(shift) * kSub + static_cast<size_t>(v >> shift);
  ++buckets_[std::min(bucket, buckets_.size() - 1)];
  ++count_;
  max_ = std::max(max_, static_cast<Nanos>(v));
}

void Lateness::merge(const Lateness& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Nanos Lateness::at(unsigned per_mille) const {
  if (count_ == 0) return 0;
  const auto rank =
      static_cast<int64_t>(stats::nearest_rank(static_cast<size_t>(count_), per_mille));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    // The highest value of the bucket.
    const size_t shift = i < 2 * kSub ? 0 : i / kSub - 1;
    const uint64_t mantissa = i - shift * kSub;
    return std::min(max_, static_cast<Nanos>(((mantissa + 1) << shift) - 1));
  }
  return max_;
}

Json summary(const Ledger& ledger) {
  const auto us = [](Nanos value) { return static_cast<double>(value) / 1e3; };
  return {{"requests", ledger.requests},
          {"events", ledger.events},
          {"bytes", ledger.bytes},
          {"writes", ledger.writes},
          {"cut", ledger.cut_requests},
          {"connections", ledger.connections},
          {"in_flight_max", ledger.in_flight_max},
          {"lateness_us",
           {{"p50", us(ledger.lateness.at(500))},
            {"p99", us(ledger.lateness.at(990))},
            {"p999", us(ledger.lateness.at(999))},
            {"max", us(ledger.lateness.max())}}},
          {"smallest_gap_us", ledger.smallest_gap > 0 ? Json(us(ledger.smallest_gap)) : Json()},
          {"void", ledger.is_void()},
          {"cpu_ns", ledger.cpu},
          {"cpu_ns_per_event", ledger.events > 0 ? Json(static_cast<double>(ledger.cpu) /
                                                        static_cast<double>(ledger.events))
                                                 : Json()}};
}

Result<void> write_ledger(const std::string& path, const Ledger& ledger, const Schedule& schedule) {
  std::string out;
  for (const LedgerEntry& entry : ledger.entries) {
    const bool known = entry.stream >= 0;
    out += base::canonical(to_json(
        entry, known ? schedule.streams[static_cast<size_t>(entry.stream)].name : std::string()));
    out += '\n';
  }
  out += base::canonical({{"summary", summary(ledger)},
                          {"schedule", schedule.name},
                          {"schedule_sha256", schedule.digest}});
  out += '\n';
  return base::write_file_atomic(path, out);
}

}  // namespace anvil::scripted
