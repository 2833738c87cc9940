#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "evidence/request_row.h"
#include "evidence/row_metrics.h"
#include "evidence/steady_window.h"

namespace anvil::evidence {

// Whether a lane of the plan sends by the clock instead of when a place is free.
bool is_open_loop(const Json& spec);

// How a lane was loaded, and whether its client kept up: the part of a lane's results that is about
// sending, not about answering. `spec` is the lane in the plan, `recorded` its entry in load.json
// ({"client": measure::LoadReport, "counters", "plan_digest", ...}); both may be null.
//
// Lifecycle: add every row of the lane, then ask. One thread.
class LaneLoad {
 public:
  explicit LaneLoad(bool open_loop = false) : open_loop_(open_loop), window_(open_loop) {}
  // `counts`: the row is in the lane's statistics.
  void add(const RequestRow& row, const RowMetrics& metrics, bool counts);

  bool open_loop() const { return open_loop_; }
  // From `sent`, and from `intended`, to the end of the answer (`done`, else the last output).
  std::vector<int64_t> service, schedule;

  // {"kind","rate_target","rate_sent","rate_intended","limit_hits","in_flight","plan_digest",
  //  "connections","threads"}; rates in requests per second.
  Json describe(const Json& spec, const Json& recorded) const;
  // SteadyWindow::finish().
  Json steady() { return window_.finish(); }
  // Requests that met every objective of the lane ("objectives": {"ttfo_ms_p90": 500}), null if it
  // declares none: {"met","of","share","req_s","objectives":[{"metric","percentile","threshold",
  // "met","of","holds","proven"}]}. A failed request meets none. `holds`: the share that met it is
  // at least the percentile; `proven`: and so few lay over it that this is no luck, at 99 %
  // confidence (stats/early_stopping.h).
  Json goodput(const Json& spec);
  // {"valid","invalid_reasons","warnings","stamp_source","path","calibration"}: whether the client
  // was the bottleneck. `calibration` is ClientError::summary.
  Json judge_client(const Json& recorded, const Json& calibration) const;

 private:
  enum Metric { kTtfe, kTtfo, kTtfv, kE2e, kDone, kTpot, kService, kSchedule, kMetrics };
  using Values = std::array<double, kMetrics>;  // ms; NaN where absent
  static std::optional<Metric> metric_named(const std::string& name);

  bool open_loop_;
  SteadyWindow window_;
  std::vector<Values> values_;  // of every row; of a failed one all absent
  std::vector<Nanos> sent_, intended_;
  int64_t total_ = 0, chunks_ = 0, gaps_ = 0, zero_gaps_ = 0;
};

}  // namespace anvil::evidence
