#include "measure/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/load_report.h"
#include "scripted/schedule.h"
#include "scripted/server.h"
#include "wire/chat_request.h"

namespace anvil::measure {

namespace {
constexpr std::string_view kChatPrefix = "chatcmpl-";
constexpr size_t kMostErrors = 4096;
// A p99 needs this many (stats/percentile.h), and a point should not take much longer than this.
constexpr int64_t kEventsWanted = 1400;
constexpr int64_t kAnswersWanted = 24;
constexpr double kSeconds = 1.0, kMostSeconds = 3.0;
constexpr Nanos kFirstAt = 20 * kMillisecond;

// Every stream the same: a role, the first output, then constant gaps.
scripted::Schedule schedule_of(int64_t events, Nanos gap) {
  scripted::Schedule schedule;
  schedule.name = "calibration";
  schedule.engine.context_tokens = 1 << 20;
  scripted::Stream stream;
  stream.name = "constant";
  stream.role_at = kFirstAt / 4;
  stream.first_at = kFirstAt;
  stream.content_tokens = events;
  stream.gap = gap;
  stream.honours_max_tokens = false;
  schedule.streams.push_back(std::move(stream));
  return schedule;
}

Json thinned(std::vector<Nanos> values) {
  std::sort(values.begin(), values.end());
  Json out = Json::array();
  const size_t n = values.size(), kept = std::min(n, kMostErrors);
  for (size_t i = 0; i < kept; ++i) out.push_back(values[kept == n ? i : i * (n - 1) / (kept - 1)]);
  return out;
}

std::string void_reason(const scripted::Ledger& ledger) {
  if (!ledger.is_void()) return "";
  return "its writes were " + std::to_string(ledger.lateness.at(990) / 1000) +
         " us late (p99), more than a tenth of the smallest gap of " +
         std::to_string(ledger.smallest_gap / 1000) + " us";
}

Result<Json> run_point(const CalibrationPoint& point, const base::Cancel& cancel) {
  const double per_stream = std::max(point.events_per_s, 1.0) / std::max(point.concurrency, 1);
  const auto gap = static_cast<Nanos>(1e9 / per_stream);
  // Long enough for the percentiles, unless the lane itself was too slow for that.
  const double seconds =
      std::clamp(static_cast<double>(kEventsWanted) / point.events_per_s, kSeconds, kMostSeconds);
  // Each place gives several short answers, so that first outputs have samples too.
  const auto per_place = static_cast<int64_t>(std::llround(seconds * per_stream));
  const int64_t answers =
      std::clamp<int64_t>((kAnswersWanted + point.concurrency - 1) / point.concurrency, 1,
                          std::max<int64_t>(1, per_place / 3));
  const int64_t events = std::clamp<int64_t>(per_place / answers, 2, 20'000);

  auto server = TRY(scripted::Server::start(schedule_of(events, gap)));
  wire::GenerationRequest request;
  request.model = "scripted";
  request.prompt = "calibration";
  request.max_tokens = events;
  request.stream = true;
  const std::string body = wire::to_body(request);
  std::vector<Attempt> attempts(static_cast<size_t>(point.concurrency * answers));
  for (size_t i = 0; i < attempts.size(); ++i) {
    attempts[i].row.purpose = evidence::Purpose::kCalibrate;
    attempts[i].row.item = "answer-" + std::to_string(i);
    attempts[i].body = body;
  }
  Client client({server->base_url(), ""}, {});
  LoadOptions load;
  load.concurrency = point.concurrency;
  load.threads = point.threads;
  load.connections = point.connections;
  LoadReport report;
  const auto rows = client.run(std::move(attempts), load, cancel, {}, &report);
  server->stop();
  if (cancel.requested()) return fail(base::cancelled_error());

  const scripted::Ledger ledger = server->ledger();
  ClientErrors errors = client_errors(rows, ledger);
  const double took = static_cast<double>(report.ended - report.began) / 1e9;
  Json about_server = scripted::summary(ledger);
  about_server["void_because"] = void_reason(ledger);
  return Json{{"lane", point.lane},
              {"concurrency", point.concurrency},
              {"threads", point.threads},
              {"events_per_s_target", point.events_per_s},
              {"events_per_s", took > 0 ? static_cast<double>(errors.stamp.size()) / took : 0.0},
              {"unmatched", errors.unmatched},
              {"stamp_error_ns", thinned(std::move(errors.stamp))},
              {"first_output_error_ns", thinned(std::move(errors.first_output))},
              {"gap_error_ns", thinned(std::move(errors.gap))},
              {"client", report.to_json()},
              {"server", about_server}};
}
}  // namespace

ClientErrors client_errors(const std::vector<evidence::RequestRow>& rows,
                           const scripted::Ledger& ledger) {
  std::map<std::string_view, const scripted::LedgerEntry*> by_id;
  for (const auto& entry : ledger.entries) by_id[entry.id] = &entry;
  ClientErrors errors;
  for (const auto& row : rows) {
    std::string_view id = row.answer.id;
    if (id.starts_with(kChatPrefix)) id.remove_prefix(kChatPrefix.size());
    const auto found = by_id.find(id);
    std::vector<Nanos> written;
    if (found != by_id.end())
      for (const auto& event : found->second->events)
        if (scripted::is_output(event.kind) && event.write_begin > 0)
          written.push_back(event.write_begin);
    if (written.empty() || written.size() != row.chunks.size() || !row.stamps.sent) {
      ++errors.unmatched;
      continue;
    }
    const Nanos sent = *row.stamps.sent, received = found->second->arrived;
    for (size_t i = 0; i < written.size(); ++i) {
      errors.stamp.push_back(sent + row.chunks[i].since_sent - written[i]);
      if (i > 0)
        errors.gap.push_back((row.chunks[i].since_sent - row.chunks[i - 1].since_sent) -
                             (written[i] - written[i - 1]));
    }
    errors.first_output.push_back(row.chunks[0].since_sent - (written[0] - received));
  }
  return errors;
}

Result<Json> calibrate(const std::vector<CalibrationPoint>& points, const base::Cancel& cancel,
                       const std::function<void(size_t, const std::string&)>& progress) {
  Json out = {{"schema", "anvil/calibration/v1"}, {"points", Json::array()}};
  for (size_t i = 0; i < points.size(); ++i) {
    if (progress) progress(i, points[i].lane);
    out["points"].push_back(TRY(run_point(points[i], cancel)));
  }
  return out;
}

}  // namespace anvil::measure
