#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "wire/answer.h"

namespace anvil::measure {

// Where requests go.
struct Endpoint {
  std::string base_url;  // "http://127.0.0.1:18080", "http://[::1]:8000", "unix:/run/engine.sock"
  std::string api_key;   // sent as a bearer token if not empty; never recorded
};

// Separate, named limits; 0 = off. The one that fired is named in the row's error.
struct Limits {
  Nanos connect = 10 * kSecond;
  Nanos first_byte = 600 * kSecond;
  Nanos idle = 120 * kSecond;  // between two reads of one answer
  Nanos total = 3600 * kSecond;
  uint64_t event_bytes = 4u << 20;
  uint64_t body_bytes = 64u << 20;
};

// One attempt to be made. `row` carries everything the plan knows (purpose, lane, item, effort,
// api, stream, expect); the client fills stamps, chunks, answer, outcome.
struct Attempt {
  evidence::RequestRow row;
  std::string body;
  bool keep_body = false;  // copy the body into the row
};

// Sends attempts with at most `concurrency` in flight (closed loop) on one epoll thread: the
// caller's. Returns the rows in the order they finished; every attempt yields exactly one row,
// whatever happens. On cancel the attempts in flight end as kCancelled and the rest are not sent.
// `finished` is called after each row, on the same thread.
class Client {
 public:
  Client(Endpoint endpoint, Limits limits);

  std::vector<evidence::RequestRow> run(
      std::vector<Attempt> attempts, int concurrency, const base::Cancel& cancel,
      const std::function<void(const evidence::RequestRow&)>& finished = {});
  evidence::RequestRow run_one(Attempt attempt, const base::Cancel& cancel);

 private:
  Endpoint endpoint_;
  Limits limits_;
};

}  // namespace anvil::measure
