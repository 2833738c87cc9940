#include "evidence/steady_window.h"

#include <algorithm>

#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
// The last moment at which the request is known to have been under way.
std::optional<Nanos> end_of(const Stamps& at) {
  std::optional<Nanos> end;
  for (const auto& stamp :
       {at.sent, at.first_byte, at.first_event, at.last_output, at.usage, at.done, at.eof})
    if (stamp && *stamp > 0) end = std::max(end.value_or(0), *stamp);
  return end;
}
}  // namespace

void SteadyWindow::add(const RequestRow& row, const RowMetrics& metrics, bool counts) {
  if (row.stamps.intended > 0) planned_.push_back(row.stamps.intended);
  if (!row.stamps.sent || *row.stamps.sent <= 0) return;
  const Nanos sent = *row.stamps.sent;
  const Nanos end = end_of(row.stamps).value_or(sent);
  spans_.push_back({sent, end});
  if (!counts) return;
  ends_.push_back(end);
  if (!metrics.completion_tokens) {
    unknown_ = true;
    return;
  }
  const int64_t total = *metrics.completion_tokens;
  if (row.chunks.empty()) {
    events_.push_back({end, static_cast<double>(total)});
    return;
  }
  // Without counts per chunk: evenly over them, which is what TPOT assumes too.
  const size_t n = row.chunks.size();
  const double even = static_cast<double>(total) / static_cast<double>(n);
  (metrics.per_chunk ? per_chunk_ : spread_) = true;
  for (size_t i = 0; i < n; ++i) {
    const Chunk& chunk = row.chunks[i];
    const double tokens = metrics.per_chunk ? static_cast<double>(chunk.tokens.value_or(0)) : even;
    events_.push_back({sent + chunk.since_sent, tokens});
  }
}

std::optional<SteadyWindow::Span> SteadyWindow::borders() const {
  if (open_loop_) {
    if (planned_.empty()) return std::nullopt;
    const auto [first, last] = std::minmax_element(planned_.begin(), planned_.end());
    return Span{*first, *last};
  }
  if (spans_.empty()) return std::nullopt;
  struct Edge {
    Nanos at;
    int step;
  };
  std::vector<Edge> edges;
  edges.reserve(spans_.size() * 2);
  Nanos last_sent = 0;
  for (const Span& span : spans_) {
    edges.push_back({span.from, +1});
    edges.push_back({span.to, -1});
    last_sent = std::max(last_sent, span.from);
  }
  // At one moment, a place is given up before it is taken again.
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.at != b.at ? a.at < b.at : a.step < b.step;
  });
  int level = 0, most = 0;
  Nanos from = edges.front().at;
  for (const Edge& edge : edges) {
    level += edge.step;
    if (level <= most) continue;
    most = level;
    from = edge.at;
  }
  std::optional<Nanos> to;
  for (const Span& span : spans_)
    if (span.to > last_sent) to = std::min(to.value_or(span.to), span.to);
  return Span{from, to.value_or(last_sent)};
}

Json SteadyWindow::finish() {
  const auto span = borders();
  if (!span || span->to <= span->from) return nullptr;
  const double seconds = static_cast<double>(span->to - span->from) / 1e9;
  const auto inside = [&](Nanos at) { return at >= span->from && at <= span->to; };
  const auto finished = std::count_if(ends_.begin(), ends_.end(), inside);
  // In one order whatever the order of the rows: sums of doubles depend on it.
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.tokens < b.tokens;
  });
  double tokens = 0;
  bool any = false;
  for (const Event& event : events_)
    if (inside(event.at)) {
      tokens += event.tokens;
      any = true;
    }
  Json crediting = nullptr;
  if (per_chunk_ && spread_)
    crediting = "mixed";
  else if (per_chunk_)
    crediting = "per-chunk counts";
  else if (spread_)
    crediting = "even over the chunks";
  // A request without a count would make the sum too small without a sign of it.
  const bool known = !unknown_ && any;
  return Json{{"from_ns", span->from},
              {"to_ns", span->to},
              {"seconds", seconds},
              {"output_tokens", known ? Json(tokens) : Json(nullptr)},
              {"output_tok_s", known ? Json(tokens / seconds) : Json(nullptr)},
              {"finished", finished},
              {"requests_per_s", static_cast<double>(finished) / seconds},
              {"crediting", crediting}};
}

}  // namespace anvil::evidence
