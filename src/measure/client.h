#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "measure/load_report.h"
#include "net/tls.h"
#include "wire/answer.h"

namespace anvil::measure {

// Where requests go.
struct Endpoint {
  std::string base_url;  // "http://127.0.0.1:18080", "https://[::1]:8000", "unix:/run/engine.sock"
  std::string api_key;   // sent as a bearer token if not empty; never recorded
  net::TlsOptions tls = {};  // of an https address
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
//
// When it is due: `at` after the run's start (open loop), or `think` after the attempt `after` has
// ended (a session's next turn), or, with neither, as soon as there is a place (closed loop). The
// moment it is due is stamps.intended.
struct Attempt {
  evidence::RequestRow row;
  std::string body;
  bool keep_body = false;        // copy the body into the row
  std::optional<Nanos> at = {};  // since the run's start
  int64_t after = -1;            // index of an earlier attempt of the same run; -1 none
  Nanos think = 0;               // with `after`
};

// How a run goes about its attempts.
struct LoadOptions {
  // Most attempts in flight: the level of a closed loop. A due attempt waits when it is reached.
  int concurrency = 1;
  int threads = 1;
  Connections connections = Connections::kReuse;
  // After a 429 with Retry-After nothing new is sent until that has passed. The answer stays the
  // failure that it is.
  bool respect_retry_after = false;
  // A refused key ends the run: what was not answered yet ends as kCancelled and says why.
  bool stop_on_auth = true;
  // How long after the last planned moment (Attempt::at) answers are waited for; what is left then
  // ends as kCancelled and says why. Nothing: until all have ended.
  std::optional<Nanos> drain = {};
};

// Sends attempts and measures their answers. Returns the rows in the order they finished; every
// attempt yields exactly one row, whatever happens. On cancel the attempts in flight end as
// kCancelled and the rest are not sent. `finished` is called after each row, never concurrently.
class Client {
 public:
  using Finished = std::function<void(const evidence::RequestRow&)>;

  Client(Endpoint endpoint, Limits limits);

  std::vector<evidence::RequestRow> run(std::vector<Attempt> attempts, const LoadOptions& options,
                                        const base::Cancel& cancel, const Finished& finished = {},
                                        LoadReport* report = nullptr);
  // A closed loop with reused connections on one thread.
  std::vector<evidence::RequestRow> run(std::vector<Attempt> attempts, int concurrency,
                                        const base::Cancel& cancel, const Finished& finished = {});
  evidence::RequestRow run_one(Attempt attempt, const base::Cancel& cancel);

 private:
  Endpoint endpoint_;
  Limits limits_;
};

}  // namespace anvil::measure
