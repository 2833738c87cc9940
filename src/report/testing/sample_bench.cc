#include "report/testing/sample_bench.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "evidence/derive.h"
#include "evidence/request_row.h"
#include "evidence/run_reader.h"
#include "report/testing/noise.h"

namespace anvil::report {

namespace {

using evidence::Outcome;
using evidence::Purpose;
using evidence::RequestRow;

constexpr Nanos kStart = 9'000 * kSecond;
constexpr int64_t kWallStart = 1'790'100'000'000'000'000;

struct LaneShape {
  const char* id;
  const char* load;  // "closed", "poisson"
  int streams;
  double rate;
  int requests;
};
constexpr LaneShape kClosed[] = {{"c1", "closed", 1, 0, 24},
                                 {"c4", "closed", 4, 0, 72},
                                 {"c16", "closed", 16, 0, 140},
                                 {"c32", "closed", 32, 0, 160}};
constexpr LaneShape kOpen[] = {{"poisson-4", "poisson", 64, 4, 80},
                               {"poisson-9", "poisson", 64, 9, 140}};

class Bench {
 public:
  Bench(std::string directory, const BenchShape& shape)
      : directory_(std::move(directory)), shape_(shape), noise_(shape.seed) {}

  Result<void> write() {
    TRY(base::make_directories(directory_));
    std::vector<LaneShape> lanes(
        std::begin(kClosed),
        std::begin(kClosed) + std::min(shape_.closed_lanes, std::size(kClosed)));
    if (shape_.open_loop) lanes.insert(lanes.end(), std::begin(kOpen), std::end(kOpen));
    TRY(freeze(lanes));
    event("begin", "lanes");
    for (const LaneShape& lane : lanes) run_lane(lane);
    event("end", "lanes");
    TRY(file("requests.jsonl", rows_));
    TRY(file("samples.jsonl", samples()));
    TRY(document("load.json", load_));
    TRY(document("calibration.json", calibration_));
    event("begin", "derive");
    TRY(file("journal.jsonl", journal_));
    const auto run = TRY(evidence::RunReader::open(directory_));
    const Json results = TRY(evidence::derive(run));
    TRY(document("results.json", results));
    event("end", "derive");
    event("begin", "decide");
    TRY(document("decision.json",
                 evidence::decide(results, policy_, evidence::failed_step(run), recipe_summary())));
    event("end", "decide");
    event("begin", "report");
    return file("journal.jsonl", journal_);
  }

 private:
  Result<void> file(const std::string& name, std::string_view bytes) {
    return base::write_file_atomic(base::join_path(directory_, name), bytes);
  }
  Result<void> document(const std::string& name, const Json& json) {
    return file(name, base::pretty(json));
  }
  void event(const char* what, const char* step) {
    const std::string line = base::canonical(Json{{"seq", seq_++},
                                                  {"event", what},
                                                  {"step", step},
                                                  {"mono_ns", now_},
                                                  {"wall_ns", kWallStart + now_ - kStart},
                                                  {"data", Json::object()},
                                                  {"prev", head_}}) +
                             "\n";
    head_ = base::sha256(line);
    journal_ += line;
  }
  Json recipe_summary() const {
    return {{"name", shape_.name},
            {"digest", base::sha256(shape_.name)},
            {"pinned", false},
            {"unpinned", Json::array()},
            {"role", "control"}};
  }
  std::string lane_id(const LaneShape& lane) const {
    return shape_.hostile ? std::string(lane.id) + "<b onclick=alert(1)>" : lane.id;
  }

  Result<void> freeze(const std::vector<LaneShape>& lanes) {
    Json planned = Json::array();
    for (const LaneShape& lane : lanes) {
      Json spec{{"id", lane_id(lane)},   {"prompt_tokens", 512},        {"output_tokens", 48},
                {"load", lane.load},     {"concurrency", lane.streams}, {"cache", "cold"},
                {"cache_proof", "none"}, {"fixed_output", true}};
      if (lane.rate > 0) spec["rate"] = lane.rate;
      if (shape_.open_loop) spec["objectives"] = {{"ttfo_ms_p90", 600.0}, {"tpot_ms_p50", 30.0}};
      planned.push_back(std::move(spec));
    }
    const auto gate = [](const char* id, const char* metric, const char* op, const Json& threshold,
                         const char* on_fail, const char* because) {
      return Json{{"id", id},           {"metric", metric},  {"over", "every"},
                  {"op", op},           {"unit", ""},        {"threshold", threshold},
                  {"on_fail", on_fail}, {"because", because}};
    };
    policy_ = {{"name", "measure"},
               {"requires_pinned", false},
               {"gates",
                {gate("client-valid", "lanes[*].client.valid", "==", true, "no-promotion",
                      "else the numbers are about our client"),
                 gate("answered", "lanes[*].success_rate", ">=", 1, "watch",
                      "latencies of the survivors alone flatter a serve that drops requests")}}};
    const Json plan{{"lanes", planned}};
    const auto digest = [](const Json& json) { return base::sha256(base::canonical(json)); };
    TRY(document("plan.json", plan));
    TRY(document("policy.json", policy_));
    TRY(document("recipe.json", {{"name", shape_.name}, {"engine", {{"kind", "vllm"}}}}));
    TRY(document("suite.json", {{"name", "steps"}}));
    event("begin", "freeze");
    event("end", "freeze");
    return document(
        "manifest.json",
        {{"schema", "anvil/manifest/v1"},
         {"run", "20260922T160640Z-bench-" + std::to_string(shape_.seed)},
         {"status", "open"},
         {"tool", {{"version", "0.1.0"}, {"build", "4f1c2e9"}}},
         {"anchor",
          {{"mono_ns", kStart}, {"wall_ns", kWallStart}, {"utc", "2026-09-22T16:06:40Z"}}},
         {"recipe", recipe_summary()},
         {"policy", {{"name", "measure"}, {"digest", digest(policy_)}}},
         {"suite", {{"name", "steps"}, {"digest", digest("steps")}}},
         {"plan", {{"digest", digest(plan)}}},
         {"outcome", nullptr},
         {"artifacts", Json::array()},
         {"journal_head", nullptr}});
  }

  RequestRow row(const LaneShape& lane, Nanos intended, Nanos sent, double busy) {
    RequestRow r;
    r.seq = seq_of_row_++;
    r.purpose = Purpose::kLane;
    r.lane = lane_id(lane);
    r.status = 200;
    r.concurrency = lane.streams;
    r.cache_state = "cold";
    r.arrival = lane.rate > 0 ? "open" : "closed";
    const auto ms = [&](double value) { return static_cast<Nanos>(value / shape_.speed * 1e6); };
    const double tail = noise_(0, 1) > 0.96 ? 2.4 : 1;
    Nanos at = ms(60 * (1 + busy * busy * 9) * noise_(0.8, 1.3) * tail);
    int64_t tokens = 0;
    r.stamps.intended = intended;
    r.stamps.sent = sent;
    r.stamps.first_byte = r.stamps.first_event = sent + at / 2;
    r.stamps.first_output = r.stamps.first_visible = sent + at;
    while (tokens < 48) {
      const int64_t carried = std::min<int64_t>(
          48 - tokens, shape_.counters ? 1 + static_cast<int64_t>(noise_(0, 3.99)) : 1);
      r.chunks.push_back({at, 'c', static_cast<uint32_t>(carried * 4), carried});
      tokens += carried;
      // A buffer on the way lets eight events through at once.
      const bool held = shape_.troubled && r.chunks.size() % 8 != 0;
      if (!held) at += ms((12 + 26 * busy) * static_cast<double>(carried) * noise_(0.7, 1.2));
    }
    r.stamps.last_output = sent + r.chunks.back().since_sent;
    r.stamps.usage = r.stamps.done = r.stamps.eof = *r.stamps.last_output + 300'000;
    r.answer.usage.prompt = 512;
    r.answer.usage.completion = tokens;
    r.token_source = "usage";
    r.stamp_source = "kernel";
    return r;
  }

  static void fail_row(RequestRow& r) {
    r.outcome = Outcome::kHttpError;
    r.status = 503;
    r.error_kind = "http_status";
    r.error_detail = "status 503: overloaded";
    auto& s = r.stamps;
    s.first_event.reset(), s.first_output.reset(), s.first_visible.reset(), s.last_output.reset(),
        s.usage.reset(), s.done.reset();
    s.eof = *s.first_byte;
    r.chunks.clear();
    r.answer = {};
    r.token_source = "none";
  }

  void run_lane(const LaneShape& lane) {
    now_ += kSecond;
    const Nanos began = now_;
    const int requests = shape_.requests > 0 ? shape_.requests : lane.requests;
    std::vector<Nanos> free(static_cast<size_t>(lane.streams), began);
    Nanos due = began;
    std::vector<RequestRow> made;
    for (int i = 0; i < requests; ++i) {
      const auto next = std::min_element(free.begin(), free.end());
      Nanos intended = *next, sent = *next + 60'000;
      double busy = lane.streams / 32.0;
      if (lane.rate > 0) {
        due += static_cast<Nanos>(-std::log(1 - noise_(0, 0.999)) / lane.rate * 1e9);
        intended = due;
        sent = std::max(due, *next) +
               static_cast<Nanos>(shape_.troubled ? noise_(0, 90) * 1e6 : noise_(2, 90) * 1e3);
        busy = lane.rate / 12;
      }
      RequestRow r = row(lane, intended, sent, busy);
      if (shape_.failures > 0 && i % std::max(1, requests / shape_.failures) == 3) fail_row(r);
      *next = r.stamps.eof.value_or(sent) + 1'000'000;
      now_ = std::max(now_, *next);
      made.push_back(std::move(r));
    }
    std::stable_sort(made.begin(), made.end(), [](const RequestRow& a, const RequestRow& b) {
      return a.stamps.intended < b.stamps.intended;
    });
    for (const RequestRow& r : made) rows_ += evidence::to_line(r);
    record(lane, began, requests);
  }

  void record(const LaneShape& lane, Nanos began, int requests) {
    const int64_t drafts = requests * 18;
    const auto reading = [&](int64_t times) -> Json {
      if (!shape_.counters) return nullptr;
      return {
          {"prompt_tokens", 512 * requests * times},
          {"cached_tokens", 0},
          {"output_tokens", 48 * requests * times},
          {"preemptions", times - 1},
          {"drafts", drafts * times},
          {"draft_tokens", drafts * 4 * times},
          {"accepted_tokens", drafts * 17 / 10 * times},
          {"accepted_per_position",
           {drafts * 4 / 5 * times, drafts / 2 * times, drafts / 4 * times, drafts / 7 * times}}};
    };
    const bool open = lane.rate > 0;
    const double late = shape_.troubled ? 62'000 : 80;
    load_["lanes"].push_back(
        {{"id", lane_id(lane)},
         {"plan_digest", base::sha256(lane.id)},
         {"client",
          {{"began_ns", began},
           {"ended_ns", now_},
           {"threads", 1},
           {"connections", {{"policy", "reuse"}, {"opened", lane.streams}}},
           {"stamp_source", {{"kernel", requests * 20}, {"user", shape_.troubled ? 40 : 0}}},
           {"in_flight",
            {{"target", lane.streams},
             {"max", open ? std::min(lane.streams, static_cast<int>(lane.rate * 2)) : lane.streams},
             {"mean", (open ? lane.rate : lane.streams) * 0.87}}},
           {"limit_hits", 0},
           {"retransmits", shape_.troubled ? 7 : 0},
           {"cpu_ns", static_cast<int64_t>(static_cast<double>(now_ - began) *
                                           (shape_.troubled ? 0.94 : 0.03))},
           {"loop_lag_us", {{"p50", 4.0}, {"p99", 90.0}, {"max", late}}},
           {"lateness_us",
            {{"p50", open ? Json(40.0) : Json(nullptr)},
             {"p99", open ? Json(late) : Json(nullptr)},
             {"max", open ? Json(late * 1.4) : Json(nullptr)}}}}},
         {"counters", {{"before", reading(1)}, {"after", reading(2)}, {"error", nullptr}}}});
    Json errors = Json::array();
    for (int i = 0; i < 700; ++i)
      errors.push_back((shape_.troubled ? 900'000 : 2'000) +
                       (i * 7919) % (shape_.troubled ? 60'000'000 : 9'000));
    calibration_["points"].push_back(
        {{"lane", lane_id(lane)},
         {"concurrency", lane.streams},
         {"events_per_s", 40.0 * lane.streams},
         {"stamp_error_ns", errors},
         {"first_output_error_ns", errors},
         {"gap_error_ns", errors},
         {"server",
          {{"void", shape_.hostile},
           {"void_because", shape_.hostile ? "</dd><script>alert(2)</script>" : ""}}}});
  }

  std::string samples() {
    std::string out;
    double cpu = 0;
    for (Nanos at = kStart; at < now_; at += 500 * kMillisecond) {
      cpu += 0.5 * noise_(1.2, 7.8);
      out +=
          base::canonical(Json{
              {"mono_ns", at},
              {"host", {{"mem_available", 2.1e10 + noise_(0, 1e8)}, {"load1", 3.5}}},
              {"engine", {{"rss", 6.4e9 + noise_(0, 9e7)}, {"cpu_ns", cpu * 1e9}, {"pids", 4}}}}) +
          "\n";
    }
    return out;
  }

  std::string directory_;
  BenchShape shape_;
  Noise noise_;
  Nanos now_ = kStart;
  int64_t seq_ = 0, seq_of_row_ = 0;
  std::string head_ = std::string(64, '0'), journal_, rows_;
  Json policy_;
  Json load_ = {{"schema", "anvil/load/v1"}, {"lanes", Json::array()}};
  Json calibration_ = {{"schema", "anvil/calibration/v1"}, {"points", Json::array()}};
};

}  // namespace

Result<void> write_sample_bench(const std::string& directory, const BenchShape& shape) {
  if (base::exists(directory))
    return fail(Kind::kUsage, Side::kClient, directory + " exists already");
  return Bench(directory, shape).write();
}

}  // namespace anvil::report
