#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "evidence/request_row.h"
#include "evidence/row_metrics.h"

namespace anvil::evidence {

// The part of a lane in which it ran as planned, and what was delivered in it.
//
// Closed loop: from the moment at which as many requests were under way as the lane ever had (its
// concurrency, if it reached that) to the first end of a request after the last one had been sent:
// neither filling up nor draining is in it. Open loop: from the first to the last intended moment.
// Tokens are credited by the moment of their event, not by their request: a request that is under
// way at a border counts with the part that lies inside.
//
// Failed requests take part in the borders (they occupied their place), and deliver nothing.
//
// Lifecycle: add every row of the lane, finish once. One thread.
class SteadyWindow {
 public:
  explicit SteadyWindow(bool open_loop) : open_loop_(open_loop) {}
  void add(const RequestRow& row, const RowMetrics& metrics, bool counts);

  // {"from_ns","to_ns","seconds","output_tokens","output_tok_s","finished","requests_per_s",
  //  "crediting": "per-chunk counts"|"even over the chunks"|"mixed"|null}, null without a window.
  Json finish();

 private:
  struct Span {
    Nanos from = 0, to = 0;
  };
  struct Event {
    Nanos at = 0;
    double tokens = 0;
  };
  std::optional<Span> borders() const;

  bool open_loop_;
  std::vector<Span> spans_;     // sent to end, of every request that was sent
  std::vector<Nanos> planned_;  // intended moments
  std::vector<Nanos> ends_;     // of the requests that count
  std::vector<Event> events_;
  bool per_chunk_ = false, spread_ = false, unknown_ = false;
};

}  // namespace anvil::evidence
