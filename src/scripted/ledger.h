#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "scripted/plan.h"
#include "scripted/request.h"

namespace anvil::scripted {

// One event that was written. Stamps on CLOCK_MONOTONIC; `write_begin` and `write_end` are those of
// the write that carried its last byte, 0 if that never happened.
struct LedgerEvent {
  Nanos due = 0;
  Nanos write_begin = 0;
  Nanos write_end = 0;
  StepKind kind = StepKind::kHead;
  uint32_t tokens = 0;
  uint32_t bytes = 0;  // of the event stream, without HTTP framing
};

// How a request ended, as the server saw it.
enum class Ending {
  kDone,     // everything was sent
  kFault,    // as its stream's Fault says
  kRefused,  // an error status that no schedule asked for: bad request, unknown model, wrong key
  kClient,   // the client closed first
  kStopped,  // the server was stopped
};
std::string_view name(Ending ending);

struct LedgerEntry {
  std::string id;      // x-request-id of the request, else "scripted-" and the serial number
  int64_t serial = 0;  // from 0, in the order of arrival
  int stream = -1;     // index in the schedule; -1 if the request was refused
  Surface surface = Surface::kChat;
  int64_t connection = 0;
  Nanos recv_last_byte = 0;  // the read that gave it returned
  Nanos arrived = 0;  // it came in, by the kernel's stamp; ours where there is none (TLS, unix)
  Nanos start = 0;    // when it got a slot; times of its schedule count from here
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  Ending ending = Ending::kStopped;
  int status = 200;
  bool cut = false;  // events were left out because the ledger is full
  std::vector<LedgerEvent> events;
};
Json to_json(const LedgerEntry& entry, const std::string& stream_name);

// Counts of nanoseconds in buckets that are at most 1/64 wide, so that a percentile is at most
// 1.6 % too high. No allocation after construction. Not thread-safe.
class Lateness {
 public:
  void add(Nanos value);
  void merge(const Lateness& other);
  int64_t count() const { return count_; }
  Nanos max() const { return max_; }
  // Nearest rank in thousandths (999 is p99.9); 0 of none.
  Nanos at(unsigned per_mille) const;

 private:
  static constexpr int kSub = 64;
  std::array<int64_t, 59 * kSub> buckets_{};
  int64_t count_ = 0;
  Nanos max_ = 0;
};

// What a server did, as far as it is finished.
struct Ledger {
  std::vector<LedgerEntry> entries;  // in the order in which they ended
  int64_t requests = 0;              // all that ended, entries or not
  int64_t events = 0, bytes = 0, writes = 0;
  int64_t cut_requests = 0;  // requests and events that found no place
  int64_t connections = 0, in_flight_max = 0;
  Lateness lateness;       // start of a write minus the moment when it was due
  Nanos smallest_gap = 0;  // shortest time above 0 between two output events of a stream; 0 if none
  Nanos cpu = 0;           // of the server's threads

  // The server was later than a tenth of the smallest gap (p99): what a client measured on it says
  // nothing about the client.
  bool is_void() const { return smallest_gap > 0 && lateness.at(990) * 10 > smallest_gap; }
};
// {"requests","events","bytes","writes","cut","connections","in_flight_max","lateness_us":{"p50",
// "p99","p999","max"},"smallest_gap_us","void","cpu_ns","cpu_ns_per_event"}
Json summary(const Ledger& ledger);

// One JSON line per request, then {"summary": ...}.
Result<void> write_ledger(const std::string& path, const Ledger& ledger, const Schedule& schedule);

}  // namespace anvil::scripted
