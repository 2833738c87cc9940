#include "evidence/testing/synthetic_run.h"

#include <cmath>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "evidence/derive.h"

namespace anvil::evidence::testing {

namespace {
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kGib = int64_t{1} << 30;

Json default_policy() {
  const auto gate = [](const char* id, const char* metric, const char* op, Json threshold,
                       const char* on_fail, const char* unit = "", const char* over = "every",
                       Json select = nullptr) {
    Json out{{"id", id},     {"metric", metric},
             {"op", op},     {"threshold", std::move(threshold)},
             {"unit", unit}, {"on_fail", on_fail},
             {"over", over}, {"because", "it shows how gates read"}};
    if (!select.is_null()) out["select"] = std::move(select);
    return out;
  };
  return Json{
      {"name", "synthetic"},
      {"requires_pinned", true},
      {"gates",
       {gate("identity", "identity.mismatch", "==", 0, "reject"),
        gate("free-vram", "hardware.gpus[*].min_free_gib", ">=", 3.0, "no-promotion", "GiB"),
        gate("ttfo", "lanes[*].ttfo_ms.p50", "<=", 400.0, "no-promotion", "ms", "every",
             Json{{"cache_state", "cold"}}),
        gate("success", "lanes[*].success_rate", ">=", 0.9, "no-promotion"),
        gate("checks", "checks.failed", "<=", 0, "watch", "checks"),
        gate("p99", "lanes[*].e2e_ms.p99", "<=", 5000.0, "watch", "ms"),
        gate("ladder", "ladder.largest_complete", ">=", 4096, "no-promotion", "tokens"),
        gate("retrieval", "ladder.rungs[*].retrieval", ">=", 0.5, "watch", "", "min"),
        gate("stop", "stop.clean", "==", true, "no-promotion")}}};
}

Json suite_document(const SyntheticOptions& options) {
  const auto lane = [&](const char* id, int concurrency, const char* cache, int prompt) {
    return Json{{"id", id},
                {"prompt_tokens", prompt},
                {"output_tokens", options.chunks},
                {"concurrency", concurrency},
                {"requests", options.lane_requests},
                {"warmup", 2},
                {"cache", cache},
                {"fixed_output", true},
                {"api", "chat"},
                {"stream", true}};
  };
  return Json{{"name", "synthetic"},
              {"seed", 7},
              {"checks", {{"include", {"smoke", "json", "tools"}}, {"attempts", 1}}},
              {"lane",
               {lane("cold-512", 1, "cold", 512), lane("prefix-512", 1, "prefix", 512),
                lane("cold-512-c4", 4, "cold", 512)}},
              {"ladder",
               {{"targets", {1024, 4096, 8192}},
                {"depths", {0.1, 0.5, 0.9}},
                {"cached", true},
                {"output_tokens", 32},
                {"tolerance_tokens", 2},
                {"tolerance_percent", 0.1}}}};
}

// Writes the measured part of a run.
class Script {
 public:
  Script(RunWriter& writer, const SyntheticOptions& options)
      : writer_(writer), options_(options), now_(options.base_mono_ns) {}

  Result<void> preflight() { return {}; }

  Result<void> snapshot() {
    return writer_.write_document(
        "host.json",
        Json{{"cpu", {{"model", "Synthetic CPU"}, {"cores", 16}}},
             {"memory", {{"total", 128 * kGib}, {"available", 100 * kGib}}},
             {"shm", {{"total", 64 * kGib}, {"free", 63 * kGib}}},
             {"disk", {{"runs", {{"total", 900 * kGib}, {"free", 400 * kGib}}}}},
             {"kernel", "6.1.0-synthetic"},
             {"platform", "bare"},
             {"gpus",
              {{{"role", "compute-a"}, {"name", "Synthetic GPU"}, {"memory_total", 96 * kGib}},
               {{"role", "compute-b"}, {"name", "Synthetic GPU"}, {"memory_total", 96 * kGib}}}},
             {"clock", {{"source", "tsc"}}},
             {"anvil_orphans", Json::array()}});
  }

  Result<void> launch() {
    launch_ =
        Json{{"spec",
              {{"argv", {"synthetic-server", "-m", "model.gguf", "-c", "16384"}},
               {"env", {{"OMP_NUM_THREADS", "8"}}},
               {"secrets", {{"HF_TOKEN", "env:HF_TOKEN"}}},
               {"host", "127.0.0.1"},
               {"port", 18080}}},
             {"runner", "process"},
             {"pid", 4242},
             {"pid_start", 99},
             {"boot_id", "synthetic"},
             {"began_ns", now_},
             {"phases",
              {{{"name", "weights"}, {"at_ns", now_ + 200 * kMs}, {"values", {{"gib", 35.31}}}},
               {{"name", "kv"}, {"at_ns", now_ + 5200 * kMs}, {"values", Json::object()}},
               {{"name", "ready"}, {"at_ns", now_ + 6400 * kMs}, {"values", Json::object()}}}},
             {"ready_ns", now_ + 6500 * kMs},
             {"failure", nullptr},
             {"stop", nullptr}};
    const bool fails = options_.fail_step == "launch";
    if (fails) {
      launch_["ready_ns"] = nullptr;
      launch_["failure"] = Json{{"class", "port_in_use"},
                                {"line", "bind: Address already in use"},
                                {"hint", "stop the other server"},
                                {"phase", "weights"}};
    }
    std::string log;
    for (int i = 0; i < 40; ++i)
      log += std::to_string(now_ + i * 100 * kMs) + " o loading tensor block " + std::to_string(i) +
             "\n";
    if (auto put = writer_.write_text("engine.log", log); !put) return put;
    now_ += 7000 * kMs;
    return writer_.write_document("launch.json", launch_);
  }

  Result<void> identity() {
    const auto field = [](const char* name, Json declared, Json observed, const char* verdict) {
      return Json{{"field", name},
                  {"declared", std::move(declared)},
                  {"observed", std::move(observed)},
                  {"verdict", verdict},
                  {"source", "GET /props"}};
    };
    return writer_.write_document(
        "identity.json", Json{{"fields",
                               {field("serving.context_tokens", 16384, 16384, "match"),
                                field("model.served_name", "synthetic", "synthetic", "match"),
                                field("serving.kv_dtype", "bf16", nullptr, "not observable")}},
                              {"served_model", "synthetic"},
                              {"raw", {{"/props", {{"n_ctx", 16384}}}}}});
  }

  Result<void> fingerprint() {
    checks_["fingerprint"] = Json{{"method", "usage"},
                                  {"efforts",
                                   {{{"effort", "low"},
                                     {"prompt_tokens", 20},
                                     {"delta", 0},
                                     {"declared", 0},
                                     {"verdict", "match"}},
                                    {{"effort", "max"},
                                     {"prompt_tokens", 99},
                                     {"delta", 79},
                                     {"declared", 92},
                                     {"verdict", "mismatch"}}}},
                                  {"verdict", "mismatch"},
                                  {"explanation", "max carries the prefix of high"}};
    for (const int prompt : {20, 99}) {
      RequestRow row = synthetic_row({.sent = now_, .chunks = 2, .prompt_tokens = prompt});
      row.purpose = Purpose::kFingerprint;
      row.lane = "fingerprint";
      row.effort = prompt == 20 ? "low" : "max";
      row.request_body = R"({"messages":[{"role":"user","content":"hi"}]})";
      TRY(append(std::move(row)));
    }
    return writer_.write_document("checks.json", checks_);
  }

  Result<void> checks() {
    const auto check = [&](const char* id, const char* verdict, const char* detail,
                           const std::string& answer) -> Result<void> {
      RequestRow row = synthetic_row({.sent = now_, .chunks = 8});
      row.purpose = Purpose::kCheck;
      row.lane = id;
      row.item = id;
      row.answer.content = answer;
      row.request_body = "{\"messages\":[{\"role\":\"user\",\"content\":\"check\"}]}";
      const int64_t seq = TRY(append(std::move(row)));
      checks_["checks"].push_back(
          Json{{"id", id},
               {"effort", ""},
               {"verdict", verdict},
               {"proves", std::string("that ") + id + " works"},
               {"attempt", 0},
               {"rows", {seq}},
               {"detail", detail},
               {"request", {{"messages", Json::array()}, {"temperature", 0}}},
               {"answer",
                {{"content", answer},
                 {"reasoning", ""},
                 {"tool_calls", Json::array()},
                 {"finish", "stop"}}},
               {"evidence", Json::object()}});
      return {};
    };
    if (auto done = check("smoke", "pass", "the code returns 6 for [1, 2, 3]", "sum(xs)"); !done)
      return done;
    if (auto done = check("json", "fail", "the answer is not JSON: expected { at byte 0",
                          "Sure! <b>Here</b> is the object \"language\": C++");
        !done)
      return done;
    if (auto done = check("tools", "skipped", "the recipe declares no tool parser", ""); !done)
      return done;
    return writer_.write_document("checks.json", checks_);
  }

  // What the client and the engine's counters say of a lane that ended now.
  Json load_entry(const std::string& id, int concurrency, int64_t began) const {
    const int64_t rows = options_.lane_requests, drafts = rows * options_.chunks;
    const auto reading = [&](int64_t lanes_before) {
      return Json{
          {"prompt_tokens", 512 * rows * lanes_before},
          {"cached_tokens", 0},
          {"output_tokens", drafts * lanes_before},
          {"preemptions", 0},
          {"drafts", drafts * lanes_before},
          {"draft_tokens", drafts * lanes_before * 2},
          {"accepted_tokens", drafts * lanes_before},
          {"accepted_per_position", {drafts * lanes_before * 3 / 4, drafts * lanes_before / 4}}};
    };
    return {{"id", id},
            {"plan_digest", std::string(64, 'c')},
            {"client",
             {{"began_ns", began},
              {"ended_ns", now_},
              {"threads", 1},
              {"connections", {{"policy", "reuse"}, {"opened", concurrency}}},
              {"stamp_source", {{"kernel", rows}, {"user", 0}}},
              {"in_flight",
               {{"target", concurrency}, {"max", concurrency}, {"mean", concurrency * 0.9}}},
              {"limit_hits", 0},
              {"retransmits", 0},
              {"cpu_ns", (now_ - began) / 50},
              {"loop_lag_us", {{"p50", 4.0}, {"p99", 80.0}, {"max", 900.0}}},
              {"lateness_us", {{"p50", nullptr}, {"p99", nullptr}, {"max", nullptr}}}}},
            {"counters", {{"before", reading(1)}, {"after", reading(2)}, {"error", nullptr}}}};
  }

  Result<void> calibrate() {
    Json points = Json::array();
    for (const Json& lane : load_["lanes"]) {
      Json errors = Json::array();
      for (int i = 0; i < 700; ++i) errors.push_back(2'000 + (i * 7919) % 9'000);
      points.push_back({{"lane", lane["id"]},
                        {"concurrency", lane["client"]["in_flight"]["target"]},
                        {"events_per_s", 100.0},
                        {"stamp_error_ns", errors},
                        {"first_output_error_ns", errors},
                        {"gap_error_ns", errors},
                        {"server", {{"void", false}, {"void_because", ""}}}});
    }
    return writer_.write_document("calibration.json",
                                  {{"schema", "anvil/calibration/v1"}, {"points", points}});
  }

  Result<void> lanes() {
    for (const char* lane : {"cold-512", "prefix-512", "cold-512-c4"}) {
      const std::string id = lane;
      const bool prefix = id == "prefix-512";
      const int concurrency = id == "cold-512-c4" ? 4 : 1;
      const int64_t began = now_;
      RequestRow warm = synthetic_row({.sent = now_, .ttfo = 900 * kMs});
      warm.purpose = Purpose::kWarmup;
      warm.lane = id;
      warm.item = "warmup-0";
      TRY(append(std::move(warm)));
      for (int i = 0; i < options_.lane_requests; ++i) {
        const int64_t jitter = (i * 7919) % 41;
        RequestRow row = synthetic_row({.sent = now_,
                                        .ttfo = ((prefix ? 90 : 210) + jitter) * kMs,
                                        .gap = (9 + concurrency) * kMs + jitter * 10'000,
                                        .chunks = options_.chunks,
                                        .count_chunks = concurrency == 4,
                                        .cached_tokens = prefix ? 460 : 0});
        row.lane = id;
        row.item = "request-" + std::to_string(i);
        row.concurrency = concurrency;
        row.cache_state = prefix ? "prefix" : "cold";
        row.expect = Json{{"prompt_tokens", 512}, {"output_tokens", options_.chunks}};
        if (options_.cancelled_rows && concurrency == 4 && i == 5) truncate(row);
        if (options_.cancelled_rows && id == "cold-512" && i == 3) row.answer.usage.cached = 128;
        if (concurrency == 1 || i % concurrency == concurrency - 1)
          now_ = *row.stamps.sent + row.chunks.back().since_sent + 5 * kMs;
        TRY(append(std::move(row)));
      }
      load_["lanes"].push_back(load_entry(id, concurrency, began));
    }
    return writer_.write_document("load.json", load_);
  }

  Result<void> ladder() {
    for (const int64_t target : {int64_t{1024}, int64_t{4096}, int64_t{8192}}) {
      for (const bool prefix : {false, true}) {
        RequestRow row = synthetic_row({.sent = now_,
                                        .ttfo = (prefix ? 40 : target / 8) * kMs,
                                        .chunks = 24,
                                        .prompt_tokens = target - 1,
                                        .cached_tokens = prefix ? target - 64 : 0});
        row.purpose = Purpose::kLadder;
        row.lane = "ladder-" + std::to_string(target);
        row.item = row.cache_state = prefix ? "prefix" : "cold";
        row.expect = Json{{"target", target},
                          {"tolerance", 2},
                          {"needles",
                           {{{"depth", 0.1}, {"code", "RAVEN-41-OAK"}},
                            {{"depth", 0.5}, {"code", "DELTA-77-FIR"}},
                            {{"depth", 0.9}, {"code", "AMBER-19-ELM"}}}}};
        row.answer.content = target == 8192
                                 ? "RAVEN-41-OAK, delta 77 fir and something with AMBER and 19"
                                 : "RAVEN-41-OAK DELTA-77-FIR AMBER-19-ELM";
        // The largest rung was not cold: its row is refused.
        if (target == 8192 && !prefix) row.answer.usage.cached = 2816;
        now_ += target * kMs / 8 + 400 * kMs;
        TRY(append(std::move(row)));
      }
      RequestRow probe = synthetic_row({.sent = now_, .chunks = 1});
      probe.purpose = Purpose::kProbe;
      probe.lane = "ladder-" + std::to_string(target);
      TRY(append(std::move(probe)));
    }
    return {};
  }

  Result<void> stop() {
    for (int i = 0; i < options_.samples; ++i) {
      const double wave = std::sin(i * 0.1);
      const auto card = [&](const char* role, int64_t free) {
        return Json{{"role", role},
                    {"mem_used", 96 * kGib - free},
                    {"mem_free", free},
                    {"power_mw", 300'000 + static_cast<int64_t>(wave * 90'000)},
                    {"temp_c", 60 + static_cast<int64_t>(wave * 8)},
                    {"sm_clock_mhz", 2400}};
      };
      const int64_t at = options_.base_mono_ns +
                         (now_ - options_.base_mono_ns) * i / std::max(1, options_.samples - 1);
      auto put = writer_.append_sample(Json{
          {"mono_ns", at},
          {"host", {{"mem_available", 100 * kGib - i * 1'000'000}, {"load1", 1.5}}},
          {"engine", {{"rss", 4 * kGib + i * 1'000'000}, {"cpu_ns", i * 250 * kMs}, {"pids", 3}}},
          {"gpus", {card("compute-a", 5 * kGib), card("compute-b", 4 * kGib - i * 1'000'000)}}});
      if (!put) return put;
    }
    launch_["stop"] =
        Json{{"how", "exit 0"}, {"seconds", 1.25}, {"port_free", true}, {"left", Json::array()}};
    return writer_.write_document("launch.json", launch_);
  }

  Result<void> derive() {
    const RunReader reader = TRY(RunReader::open(writer_.directory()));
    results_ = TRY(evidence::derive(reader));
    return writer_.write_document("results.json", results_);
  }

  Result<void> decide() {
    const RunReader reader = TRY(RunReader::open(writer_.directory()));
    const Json policy = TRY(reader.document("policy.json"));
    decision_ =
        evidence::decide(results_, policy, failed_step(reader), reader.manifest()["recipe"]);
    return writer_.write_document("decision.json", decision_);
  }

  Result<void> report() {
    const RunReader reader = TRY(RunReader::open(writer_.directory()));
    const std::string html = TRY(render_plain(reader));
    return writer_.write_text("report.html", html);
  }

  const Json& decision() const { return decision_; }

 private:
  Result<int64_t> append(RequestRow row) {
    now_ += kMs;
    return writer_.append(std::move(row));
  }

  static void truncate(RequestRow& row) {
    row.chunks.resize(row.chunks.size() / 2);
    row.outcome = Outcome::kTruncated;
    row.error_kind = "reset";
    row.error_detail = "the connection was reset after half of the answer";
    row.stamps.done = row.stamps.usage = std::nullopt;
    row.answer.usage = {};
    row.token_source = "none";
  }

  RunWriter& writer_;
  const SyntheticOptions& options_;
  int64_t now_;
  Json launch_;
  Json checks_ = Json{{"checks", Json::array()}, {"fingerprint", nullptr}};
  Json load_ = {{"schema", "anvil/load/v1"}, {"lanes", Json::array()}};
  Json results_, decision_;
};
}  // namespace

Frozen synthetic_frozen(const SyntheticOptions& options) {
  Frozen frozen;
  frozen.recipe_name = "synthetic";
  frozen.recipe_source = "schema = \"anvil/recipe/v1\"\nname = \"synthetic\"\n";
  frozen.recipe =
      Json{{"model", {{"repo", "example/synthetic"}, {"revision", std::string(40, 'a')}}},
           {"engine", {{"kind", "external"}}},
           {"serving", {{"context_tokens", 16384}, {"max_sequences", 4}}}};
  frozen.recipe_digest = base::sha256(base::canonical(frozen.recipe));
  frozen.recipe_summary = Json{{"pinned", true},
                               {"unpinned", Json::array()},
                               {"role", "candidate"},
                               {"engine", "external"},
                               {"model", "example/synthetic"}};
  frozen.policy = options.policy.is_null() ? default_policy() : options.policy;
  frozen.policy_name = frozen.policy.value("name", "synthetic");
  frozen.policy_source = "schema = \"anvil/policy/v1\"\nname = \"synthetic\"\n";
  frozen.policy_digest = base::sha256(base::canonical(frozen.policy));
  frozen.suite = suite_document(options);
  frozen.suite_name = "synthetic";
  frozen.suite_source = "schema = \"anvil/suite/v1\"\nname = \"synthetic\"\n";
  frozen.suite_digest = base::sha256(base::canonical(frozen.suite));
  frozen.plan = Json{{"schema", "anvil/plan/v1"},
                     {"lanes", frozen.suite["lane"]},
                     {"ladder", frozen.suite["ladder"]},
                     {"seed", 7}};
  frozen.tool = Json{{"version", "0.1.0"}, {"build", options.build}};
  return frozen;
}

RequestRow synthetic_row(const RowShape& shape) {
  RequestRow row;
  row.lane = "lane";
  row.cache_state = "cold";
  row.status = 200;
  row.request_bytes = 2048;
  row.request_sha256 = std::string(64, 'b');
  Stamps& at = row.stamps;
  at.intended = shape.sent - 50'000;
  at.connect_begin = shape.sent - 40'000;
  at.connected = shape.sent - 20'000;
  at.sent = shape.sent;
  at.first_byte = at.first_event = shape.sent + 2 * kMs;
  at.first_output = at.first_visible = shape.sent + shape.ttfo;
  at.last_output = *at.first_output + shape.gap * (shape.chunks - 1);
  at.usage = *at.last_output + kMs;
  at.done = *at.last_output + 2 * kMs;
  at.eof = *at.last_output + 3 * kMs;
  for (int i = 0; i < shape.chunks; ++i) {
    Chunk chunk{shape.ttfo + i * shape.gap, 'c', 4, std::nullopt};
    if (shape.count_chunks) chunk.tokens = shape.tokens_per_chunk;
    row.chunks.push_back(chunk);
    row.answer.content += "word";
  }
  row.answer.id = "chatcmpl-1";
  row.answer.model = "synthetic";
  row.answer.finish = "length";
  row.answer.usage.prompt = shape.prompt_tokens;
  row.answer.usage.completion = shape.tokens_per_chunk * shape.chunks;
  row.answer.usage.cached = shape.cached_tokens;
  row.token_source = "usage";
  return row;
}

Result<std::string> write_synthetic_run(const std::string& runs_dir,
                                        const SyntheticOptions& options) {
  const auto writer = TRY(RunWriter::create(runs_dir, synthetic_frozen(options)));
  Script script(*writer, options);
  const std::pair<const char*, Result<void> (Script::*)()> steps[] = {
      {"preflight", &Script::preflight},
      {"snapshot", &Script::snapshot},
      {"launch", &Script::launch},
      {"identity", &Script::identity},
      {"fingerprint", &Script::fingerprint},
      {"checks", &Script::checks},
      {"lanes", &Script::lanes},
      {"calibrate", &Script::calibrate},
      {"ladder", &Script::ladder},
      {"stop", &Script::stop},
      {"derive", &Script::derive},
      {"decide", &Script::decide},
      {"report", &Script::report}};
  if (options.stop_after == "freeze") return writer->directory();
  bool failed = false;
  for (const auto& [step, body] : steps) {
    const std::string name = step;
    const bool measures =
        name != "stop" && name != "derive" && name != "decide" && name != "report";
    if (failed && measures) continue;
    if (auto done = writer->begin_step(step); !done) return fail(std::move(done).error());
    if (auto done = (script.*body)(); !done) return fail(std::move(done).error());
    if (name == options.fail_step) {
      failed = true;
      const Error error(Kind::kEngineExited, Side::kEngine, "the engine exited with status 1",
                        "read engine.log");
      if (auto done = writer->fail_step(step, error); !done) return fail(std::move(done).error());
    } else if (auto done = writer->end_step(step); !done) {
      return fail(std::move(done).error());
    }
    if (name == options.stop_after) return writer->directory();
  }
  auto sealed =
      writer->seal(Json{{"decision", script.decision()["decision"]},
                        {"failed_step", failed ? Json(options.fail_step) : Json(nullptr)}});
  if (!sealed) return fail(std::move(sealed).error());
  return writer->directory();
}

Result<std::string> render_plain(const RunReader& run) {
  const std::string results = TRY(run.text("results.json"));
  const std::string decision = TRY(run.text("decision.json"));
  return "<!doctype html><title>run</title><pre>" + results + decision + "</pre>\n";
}

}  // namespace anvil::evidence::testing
