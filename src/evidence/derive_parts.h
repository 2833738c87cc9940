#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "evidence/client_error.h"
#include "evidence/derivation.h"
#include "evidence/request_row.h"

// The parts of results.json, one per subject. Each is pure and total: documents of any shape give a
// value, with null where something is not known.
namespace anvil::evidence {

// "requests"
class RequestTotals {
 public:
  void add(const RequestRow& row);
  Json finish() const;

 private:
  int64_t total_ = 0, ok_ = 0;
  std::map<std::string, int64_t> by_outcome_, by_purpose_;
};

// "lanes": one object per lane of the plan in its order, then lanes that only rows name. Rows of
// Purpose::kLane.
class Lanes {
 public:
  explicit Lanes(const DerivationInputs& inputs);
  ~Lanes();
  void add(const RequestRow& row);
  Json finish();
  // "knees": what the searches for the highest good rate found, from the lanes' own goodput.
  // `lanes` is what finish() returned.
  Json knees(const Json& lanes) const;

 private:
  struct Lane;
  Lane& plan_lane(const Json& spec);
  Lane& lane(const std::string& id);
  std::vector<std::unique_ptr<Lane>> lanes_;
  Json default_proof_;
  std::vector<Json> searches_;  // specs of the lanes that search
  Json load_;  // load.json: what the client and the engine's counters say of each lane
  ClientError client_error_;
};

// "ladder": one object per target and cache state. Rows of Purpose::kLadder, and Purpose::kProbe
// for the health after a rung.
class Ladder {
 public:
  Ladder(const Json& plan, const Json& suite);
  ~Ladder();
  void add(const RequestRow& row);
  void add_probe(const RequestRow& row);
  Json finish();

 private:
  struct Rung;
  Rung& rung(int64_t target, const std::string& state);
  Json judge(const Rung& rung) const;
  std::vector<std::unique_ptr<Rung>> rungs_;
  std::map<std::string, std::pair<int64_t, int64_t>> probes_;  // lane -> all, failed
  int64_t tolerance_tokens_ = 2;
  double tolerance_percent_ = 0.1;
  bool proof_demanded_ = true;
};

// How much of a hidden code an answer gives back: 1 the exact code; 0.75 its letters and digits in
// order, case and separators aside; 0.5 at least half of its parts (between separators), each as a
// word of its own; else 0.
double grade_needle(const std::string& code, const std::string& answer);

// "hardware"
class Hardware {
 public:
  void add(const Json& sample);
  Json finish() const;

 private:
  struct Gpu {
    Json role, index;
    std::optional<double> least_free, most_power, most_temperature;
  };
  std::optional<double> least_available_, most_rss_, most_cpu_;
  std::vector<Gpu> gpus_;
  int64_t samples_ = 0;
};

Json derive_identity(const Json& identity);
Json derive_startup(const Json& launch, const std::vector<Json>& journal);
Json derive_stop(const Json& launch);
Json derive_checks(const Json& checks);
Json derive_fingerprint(const Json& checks);
Json derive_wall_clock(const std::vector<Json>& journal);

}  // namespace anvil::evidence
