#include "report/testing/sample_run.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "evidence/derive.h"
#include "evidence/request_row.h"
#include "evidence/run_reader.h"
#include "report/testing/noise.h"
#include "report/testing/sample_bench.h"

namespace anvil::report {

namespace {

using evidence::Outcome;
using evidence::Purpose;
using evidence::RequestRow;

constexpr Nanos kStart = 5'000 * kSecond;
constexpr int64_t kWallStart = 1'790'000'000'000'000'000;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

Nanos nanos(double seconds) {
  return static_cast<Nanos>(std::llround(seconds * 1e9));
}

class Writer {
 public:
  Writer(std::string directory, std::string_view kind)
      : directory_(std::move(directory)),
        gpu_(kind == "gpu"),
        hostile_(kind == "hostile"),
        kind_(kind) {}

  Result<void> write() {
    if (auto made = base::make_directories(directory_); !made) return made;
    freeze();
    instant("preflight", 0.4);
    document("host.json", host());
    instant("snapshot", 0.3);
    begin("launch");
    if (kind_ == "rejected") {
      failed_launch();
    } else {
      launch();
      identity();
      fingerprint();
      checks();
      begin("lanes");
      lanes();
      if (kind_ == "incomplete") return finish();
      end("lanes");
      begin("ladder");
      ladder();
      end("ladder");
      stop();
    }
    document("launch.json", launch_);
    return conclude();
  }

 private:
  void event(const char* what, const std::string& step, Json data = Json::object()) {
    const Json line{{"seq", seq_++},
                    {"event", what},
                    {"step", step},
                    {"mono_ns", now_},
                    {"wall_ns", kWallStart + now_ - kStart},
                    {"data", std::move(data)},
                    {"prev", head_}};
    const std::string text = base::canonical(line) + "\n";
    head_ = base::sha256(text);
    journal_ += text;
  }
  void begin(const char* step) { event("begin", step); }
  void end(const char* step) { event("end", step); }
  void instant(const char* step, double seconds) {
    begin(step);
    now_ += nanos(seconds);
    end(step);
  }
  void document(const std::string& name, const Json& json) { file(name, base::pretty(json)); }
  void file(const std::string& name, std::string_view bytes) {
    auto done = base::write_file_atomic(base::join_path(directory_, name), bytes);
    if (!done && result_) result_ = std::move(done);
  }

  void freeze() {
    const std::string name = hostile_ ? "</title><script>alert(1)</script>"
                             : gpu_   ? "qwen-next-80b-nvfp4"
                                      : "gemma-3-270m";
    recipe_ = Json{
        {"name", name},
        {"role", "candidate"},
        {"model",
         {{"repo", gpu_ ? "Qwen/Qwen3-Next-80B-A3B-Instruct" : "google/gemma-3-270m"},
          {"revision", "9b0cfec892e2bc2afd938c98eabe4e4a7b1e0ca1"},
          {"artifact",
           Json::array({{{"file", gpu_ ? "model.safetensors.index.json" : "gemma-3-270m-q8_0.gguf"},
                         {"kind", "weights"},
                         {"sha256", base::sha256(name)}}})}}},
        {"engine",
         {{"kind", gpu_ ? "vllm" : "llama.cpp"}, {"version", gpu_ ? "0.32.0" : "b11549"}}},
        {"launch", {{"runner", "process"}}}};
    policy_ = Json{{"name", gpu_ ? "workstation" : "quickstart"},
                   {"requires_pinned", false},
                   {"gates", gates()}};
    suite_ = Json{{"name", "quickstart"}, {"cache_proof", "usage"}};
    plan_ =
        Json{{"lanes", lane_plan()},
             {"ladder",
              {{"targets", {256, 1024, 4096, 16384}}, {"cached", true}, {"tolerance_tokens", 2}}}};
    const std::string run =
        "20260921T125320Z-" + std::string(hostile_ ? "hostile" : name) + "-3f9a2c";
    const auto digest = [](const Json& json) { return base::sha256(base::canonical(json)); };
    manifest_ = Json{
        {"schema", "anvil/manifest/v1"},
        {"run", run},
        {"status", "open"},
        {"tool", {{"version", "0.1.0"}, {"build", "4f1c2e9"}}},
        {"anchor", {{"mono_ns", kStart}, {"wall_ns", kWallStart}, {"utc", "2026-09-21T12:53:20Z"}}},
        {"recipe",
         {{"name", name},
          {"digest", digest(recipe_)},
          {"pinned", true},
          {"unpinned", Json::array()},
          {"role", "candidate"}}},
        {"policy", {{"name", policy_["name"]}, {"digest", digest(policy_)}}},
        {"suite", {{"name", "quickstart"}, {"digest", digest(suite_)}}},
        {"plan", {{"digest", digest(plan_)}}},
        {"outcome", {{"decision", nullptr}, {"failed_step", nullptr}}},
        {"artifacts", Json::array()},
        {"journal_head", nullptr}};
    document("manifest.json", manifest_);
    document("recipe.json", recipe_);
    document("policy.json", policy_);
    document("suite.json", suite_);
    document("plan.json", plan_);
    file("recipe.toml", "schema = \"anvil/recipe/v1\"\nname = \"" + name +
                            "\"\nrole = \"candidate\"\n\n[model]\nrepo = \"" +
                            recipe_["model"]["repo"].get<std::string>() + "\"\n");
    begin("freeze");
    end("freeze");
  }

  Json gates() const {
    const auto gate = [](const char* id, const char* metric, const char* over, const char* op,
                         const Json& threshold, const char* unit, const char* on_fail,
                         const char* because) {
      return Json{{"id", id},           {"metric", metric},       {"over", over},
                  {"op", op},           {"threshold", threshold}, {"unit", unit},
                  {"on_fail", on_fail}, {"because", because}};
    };
    Json out = Json::array(
        {gate("identity-mismatch", "identity.mismatch", "every", "==", 0, "fields", "reject",
              "what is served must be what was asked for"),
         gate("failed-requests", "requests.failed", "every", "<=", gpu_ ? 0 : 10, "requests",
              "reject", "a server that drops requests is not fit to serve"),
         gate("first-output", "lanes[*].ttfo_ms.p50", "max", "<=", gpu_ ? 2500.0 : 900.0, "ms",
              "no-promotion", "people notice a second of silence"),
         gate("decode-rate", "lanes[*].decode_tok_s.p50", "min", ">=", 20.0, "tok/s", "watch",
              "slower than reading speed"),
         gate("clean-stop", "stop.clean", "every", "==", true, "", "no-promotion",
              "a serve that cannot be stopped cannot be swapped"),
         gate("context", "ladder.largest_complete", "every", ">=", 4096, "tokens", "no-promotion",
              "agents fill this much"),
         gate("smoke", "checks.by_id.smoke.failed", "every", "==", 0, "checks", "watch",
              "the code that it writes must run")});
    if (!gpu_)
      out.push_back(gate("gpu-reserve", "hardware.gpus[*].min_free_gib", "every", ">=", 3.0, "GiB",
                         "watch", "a card without reserve dies under load"));
    return out;
  }

  Json lane_plan() const {
    const auto lane = [](const char* id, int in, int out, int streams, const char* cache) {
      return Json{
          {"id", id},       {"prompt_tokens", in}, {"output_tokens", out}, {"concurrency", streams},
          {"cache", cache}, {"fixed_output", true}};
    };
    return Json::array({lane("c1-cold", 512, 64, 1, "cold"),
                        lane("c1-prefix", 512, 64, 1, "prefix"),
                        lane("c4-cold", 512, 64, 4, "cold"), lane("c8-long", 2048, 96, 8, "cold")});
  }

  Json host() const {
    Json out{{"cpu", {{"model", "Intel Xeon Platinum 8581C"}, {"cores", 2}}},
             {"memory", {{"total", 25276510208}, {"available", 24000000000}}},
             {"shm", {{"total", 12638255104}, {"available", 12638255104}}},
             {"disk", {{"total", 270000000000}, {"available", 90000000000}}},
             {"kernel", "6.1.0-44-amd64"},
             {"platform", "container"},
             {"gpus", Json::array()},
             {"clock", {{"source", "tsc"}}},
             {"anvil_orphans", Json::array()}};
    if (gpu_)
      for (const char* role : {"compute-a", "compute-b"})
        out["gpus"].push_back({{"role", role},
                               {"name", "NVIDIA RTX PRO 6000 Blackwell"},
                               {"mem_total", 102'641'958'912}});
    return out;
  }

  void spec() {
    launch_ = Json{{"spec",
                    {{"argv",
                      {"llama-server", "-m", "/models/gemma-3-270m-q8_0.gguf", "-c", "65536",
                       "--parallel", "8", "--host", "127.0.0.1", "--port", "18080", "--slots",
                       "--metrics", "--chat-template", "a 'quoted' one"}},
                     {"env", {{"OMP_NUM_THREADS", "2"}}},
                     {"secrets", {{"HF_TOKEN", "env:HF_TOKEN"}}},
                     {"base_url", "http://127.0.0.1:18080"},
                     {"port", 18080}}},
                   {"runner", "process"},
                   {"pid", 41231},
                   {"began_ns", now_},
                   {"failure", nullptr}};
  }

  void failed_launch() {
    spec();
    now_ += nanos(1.8);
    launch_["phases"] =
        Json::array({{{"name", "load"}, {"at_ns", now_ - nanos(1.2)}, {"values", Json::object()}}});
    launch_["ready_ns"] = nullptr;
    launch_["failure"] = {
        {"class", "bad_model_file"},
        {"line", "gguf_init_from_file: invalid magic characters: 'GGML', expected 'GGUF'"},
        {"hint", "the file is not a GGUF model or is damaged; compare its SHA-256 with the recipe"},
        {"phase", "load"}};
    event("fail", "launch",
          {{"kind", "engine_exited"},
           {"side", "engine"},
           {"detail", "the engine exited with status 1 after 1.8 s"},
           {"hint", "see the end of engine.log"}});
    file("engine.log",
         std::to_string(now_) + " e main: loading model\n" + std::to_string(now_) +
             " e gguf_init_from_file: invalid magic characters: 'GGML', expected 'GGUF'\n" +
             std::to_string(now_) + " e main: exiting due to model loading error\n");
  }

  void launch() {
    spec();
    const Nanos began = now_;
    Json phases = Json::array();
    const auto phase = [&](const char* name, double seconds) {
      phases.push_back({{"name", name}, {"at_ns", now_}, {"values", Json::object()}});
      now_ += nanos(seconds);
    };
    phase("start", 0.31);
    phase("weights", gpu_ ? 24.0 : 0.9);
    if (gpu_) phase("compile", 13.5);
    phase("kv", 0.42);
    if (gpu_) phase("graphs", 9.1);
    phase("warm-up", 0.9);
    launch_["phases"] = phases;
    launch_["ready_ns"] = now_;
    ready_ = now_;
    launched_ = began;
    end("launch");
    std::string log;
    for (int i = 0; i < 180; ++i)
      log += std::to_string(began + i * 20 * kMillisecond) + (i % 7 ? " e " : " o ") +
             "srv  update_slots: slot " + std::to_string(i % 8) + " | task " + std::to_string(i) +
             " | n_past = " + std::to_string(i * 37) + "\n";
    if (hostile_)
      log += std::to_string(now_) +
             " e \x1b[31m<script>alert('log')</script>\xff\xfe \xE2\x80\xAEgnp.exe\n";
    file("engine.log", log);
  }

  void identity() {
    begin("identity");
    now_ += nanos(0.2);
    const auto field = [](const char* name, const Json& declared, const Json& observed,
                          const char* verdict, const char* source) {
      return Json{{"field", name},
                  {"declared", declared},
                  {"observed", observed},
                  {"verdict", verdict},
                  {"source", source}};
    };
    Json fields =
        Json::array({field("model.repo", recipe_["model"]["repo"], recipe_["model"]["repo"],
                           "match", "GET /v1/models /data/0/id"),
                     field("serving.context_tokens", 8192, 8192, "match",
                           "GET /props /default_generation_settings/n_ctx"),
                     field("serving.max_sequences", 8, 8, "match", "GET /props /total_slots"),
                     field("engine.version", "b11549", "b11549", "match", "GET /props /build_info"),
                     field("serving.kv_dtype", "f16", nullptr, "not observable", ""),
                     field("sampling.temperature", 0.8, 0.8, "match",
                           "GET /props /default_generation_settings/params/temperature"),
                     field("speculation.method", "none", nullptr, "not observable", "")});
    if (hostile_)
      fields.push_back(field("<img src=x onerror=alert(1)>", "\"><svg onload=alert(2)>",
                             "\xE2\x80\xAE"
                             "drawkcab",
                             "mismatch", "GET <b>"));
    document(
        "identity.json",
        {{"fields", fields}, {"served_model", recipe_["model"]["repo"]}, {"raw", Json::object()}});
    end("identity");
  }

  RequestRow row(Purpose purpose, const std::string& lane, const std::string& item, double at,
                 double ttfo, double generation, int in, int cached, int out) {
    RequestRow r;
    r.seq = static_cast<int64_t>(rows_);
    r.purpose = purpose;
    r.lane = lane;
    r.item = item;
    r.status = 200;
    r.cache_state = "cold";
    auto& s = r.stamps;
    const Nanos sent = kStart + nanos(at);
    s.intended = sent - 40'000;
    s.connect_begin = sent - 300'000;
    s.connected = sent - 200'000;
    s.sent = sent;
    s.first_byte = s.first_event = sent + nanos(ttfo * 0.6);
    s.first_output = s.first_visible = sent + nanos(ttfo);
    s.last_output = sent + nanos(ttfo + generation);
    s.usage = s.done = s.eof = *s.last_output + 400'000;
    const int chunks = std::min(out, 24);
    for (int i = 0; i < chunks; ++i)
      r.chunks.push_back({nanos(ttfo + generation * i / std::max(1, chunks - 1)), 'c', 5, {}});
    r.answer.usage.prompt = in;
    r.answer.usage.cached = cached;
    r.answer.usage.completion = out;
    r.answer.content = "The code is 7421.";
    r.answer.finish = "stop";
    r.token_source = "usage";
    return r;
  }

  void put(RequestRow r) {
    r.seq = static_cast<int64_t>(rows_++);
    const Nanos last = r.stamps.eof.value_or(r.stamps.sent.value_or(now_));
    now_ = std::max(now_, last);
    requests_ += evidence::to_line(r);
  }

  static void spoil(RequestRow& r, Outcome outcome, const char* kind, const char* detail,
                    int status) {
    r.outcome = outcome;
    r.error_kind = kind;
    r.error_detail = detail;
    r.status = status;
    auto& s = r.stamps;
    if (status == 0) s.first_byte.reset();
    s.first_event.reset(), s.first_output.reset(), s.first_visible.reset(), s.last_output.reset(),
        s.usage.reset(), s.done.reset();
    r.chunks.clear();
    r.answer = {};
    r.token_source = "none";
  }

  double elapsed() const { return static_cast<double>(now_ - kStart) / 1e9; }

  void fingerprint() {
    begin("fingerprint");
    for (int i = 0; i < 3; ++i)
      put(row(Purpose::kFingerprint, "fingerprint", "", elapsed() + 0.02, 0.05, 0.01, 41, 0, 1));
    end("fingerprint");
  }

  void checks() {
    begin("checks");
    Json all = Json::array();
    const auto check = [&](const char* id, const char* effort, const char* verdict,
                           const char* proves, const char* detail, const std::string& content) {
      const double start = elapsed() + 0.05;
      RequestRow made =
          row(Purpose::kCheck, id, effort, start, noise_(0.04, 0.2), noise_(0.4, 1.6), 60, 0, 80);
      if (id == std::string("overflow"))
        spoil(made, Outcome::kHttpError, "http_status",
              "status 400: the prompt exceeds the context", 400);
      put(std::move(made));
      all.push_back(
          {{"id", id},
           {"effort", effort},
           {"verdict", verdict},
           {"proves", proves},
           {"attempt", 0},
           {"rows", {rows_ - 1}},
           {"detail", detail},
           {"request",
            {{"model", recipe_["model"]["repo"]},
             {"messages",
              {{{"role", "user"},
                {"content",
                 "Write a function that returns the n-th prime. Answer with code only."}}}},
             {"max_tokens", 256}}},
           {"answer",
            {{"content", content},
             {"reasoning", ""},
             {"tool_calls", Json::array()},
             {"finish", "stop"}}},
           {"evidence",
            {{"executed", "python3"}, {"exit", verdict == std::string("pass") ? 0 : 1}}}});
    };
    const bool good = gpu_;
    check("smoke", "", "pass", "the answer is a program that runs and prints the right value",
          "printed 29 as wanted", "def prime(n):\n    ...\nprint(prime(10))\n");
    check("json-schema", "", good ? "pass" : "fail",
          "the answer is JSON that fits a schema, with the right values",
          good ? "valid, all values right"
               : "the answer is not JSON: expected '{' at byte 0, found 'H'",
          "Here is the JSON you asked for:\n\n- name: Ada\n- year: 1843\n");
    check("tools-typed", "", good ? "pass" : "fail",
          "a tool is called by its name with arguments of the declared types and values",
          good ? "get_weather(city=Paris, days=3)" : "no tool was called; the answer is prose",
          "I can't check the weather, but Paris is lovely in spring.");
    check("tools-streaming", "", good ? "pass" : "fail",
          "tool-call pieces of a stream join to valid arguments",
          good ? "3 pieces joined" : "no tool was called", "");
    check("recall", "", "pass", "a fact from the first turn is known in the third",
          "answered \"cobalt\"", "The word was cobalt.");
    check("responses-api", "", "pass", "the Responses surface answers like chat", "completed",
          "OK");
    if (!gpu_)
      check("overflow", "", "pass", "a prompt beyond the context is refused",
            "refused with status 400", "");
    check("effort-low", "low", "skipped", "a lower reasoning effort changes the prompt",
          "the recipe declares no efforts", "");
    if (hostile_) {
      check("<script>alert(3)</script>", "\"onmouseover=alert(4)", "fail",
            "</details><h1>broken</h1>",
            "\xE2\x80\xAE"
            "reversed\xE2\x80\xAC and \x01 control \x1b[31m and | pipes",
            "</pre></details><script>document.title='owned'</"
            "script>\n\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D " +
                std::string("\x00\x07", 2));
      check("long-answer", "", "fail", "a long answer is cut", "1 MB", std::string(1 << 20, 'x'));
    }
    document("checks.json", {{"checks", all},
                             {"fingerprint",
                              {{"method", "usage"},
                               {"verdict", "pass"},
                               {"efforts", Json::array({{{"effort", ""},
                                                         {"prompt_tokens", 41},
                                                         {"delta", 0},
                                                         {"declared", nullptr},
                                                         {"verdict", "pass"}}})}}}});
    end("checks");
  }

  // `streams` requests at a time, one after the other on each.
  void lane(const std::string& id, int streams, int requests, double ttfo, double generation,
            int in, int cached, int out, const char* state) {
    const double begin_at = elapsed() + 0.1;
    std::vector<double> free(static_cast<size_t>(streams), begin_at);
    std::vector<RequestRow> made;
    for (int i = -streams; i < requests; ++i) {
      const auto next = std::min_element(free.begin(), free.end());
      const double first = ttfo * noise_(0.8, 1.5) * (noise_(0, 1) > 0.93 ? 2.2 : 1),
                   rest = generation * noise_(0.92, 1.12);
      RequestRow r = row(i < 0 ? Purpose::kWarmup : Purpose::kLane, id, "", *next, first, rest, in,
                         cached, out);
      r.cache_state = state;
      r.concurrency = streams;
      if (!gpu_ && id == "c8-long" && i % 17 == 11)
        spoil(r, Outcome::kTimeout, "timeout", "no event for 10 s (limit idle_s)", 200);
      else if (!gpu_ && id == "c4-cold" && i == 23)
        spoil(r, Outcome::kHttpError, "http_status",
              hostile_ ? "<b>500</b> \x1b[2J"
                       : "status 500: {\"error\":{\"message\":\"slot unavailable\"}}",
              500);
      *next += first + rest + 0.004;
      made.push_back(std::move(r));
      if (kind_ == "incomplete" && i > 6) break;
    }
    std::stable_sort(made.begin(), made.end(), [](const RequestRow& a, const RequestRow& b) {
      return a.stamps.intended < b.stamps.intended;
    });
    for (auto& r : made) put(std::move(r));
  }

  void lanes() {
    lane("c1-cold", 1, 24, 0.11, 0.62, 512, 0, 64, "cold");
    if (kind_ == "incomplete") return;
    lane("c1-prefix", 1, gpu_ ? 70 : 24, 0.021, 0.6, 512, 500, 64, "prefix");
    lane("c4-cold", 4, gpu_ ? 140 : 48, 0.34, 1.1, 512, 0, 64, "cold");
    lane("c8-long", 8, gpu_ ? 64 : 40, 1.4, 3.2, 2048, 0, 96, "cold");
  }

  void ladder() {
    for (const int target : {256, 1024, 4096, 16384}) {
      for (const char* state : {"cold", "prefix"}) {
        const bool cold = state == std::string("cold");
        int position = 0;
        for (const double depth : {0.1, 0.5, 0.9}) {
          const double ttfo =
              cold ? target / 4600.0 * (1 + target / 30000.0) : 0.02 + target / 400000.0;
          RequestRow r = row(Purpose::kLadder, "ladder-" + std::to_string(target), "depth",
                             elapsed() + 0.02, ttfo * noise_(0.95, 1.05), 0.4, target,
                             cold ? (target == 16384 && !gpu_ ? 12 : 0) : target - 8, 24);
          r.cache_state = state;
          r.expect = {
              {"target", target},
              {"depth", depth},
              {"code",
               gpu_ || target < 1024 || (target == 1024 && position != 1) ? "7421" : "9188"}};
          put(std::move(r));
          ++position;
        }
        RequestRow probe = row(Purpose::kProbe, "ladder-" + std::to_string(target), "health",
                               elapsed() + 0.01, 0.002, 0, 0, 0, 0);
        probe.chunks.clear();
        put(std::move(probe));
      }
    }
  }

  void stop() {
    begin("stop");
    launch_["stop"] = {
        {"how", "exit 0"}, {"seconds", 0.41}, {"port_free", true}, {"left", Json::array()}};
    now_ += nanos(0.45);
    end("stop");
  }

  void samples() {
    if (kind_ == "rejected") return;
    std::string out;
    double cpu = 0;
    for (Nanos at = launched_; at < now_; at += 500 * kMillisecond) {
      const double up = std::min(
          1.0, static_cast<double>(at - launched_) / static_cast<double>(ready_ - launched_));
      const bool busy = at > ready_;
      cpu += 0.5 * (busy ? noise_(1.3, 1.98) : 0.7);
      Json line{
          {"mono_ns", at},
          {"host", {{"mem_available", (22.3 - 1.1 * up - noise_(0, 0.05)) * kGib}, {"load1", 1.4}}},
          {"engine",
           {{"rss", (0.2 + 0.9 * up + (busy ? noise_(0, 0.08) : 0)) * kGib},
            {"cpu_ns", cpu * 1e9},
            {"pids", 1}}}};
      if (gpu_)
        for (const char* role : {"compute-a", "compute-b"})
          line["gpus"].push_back(
              {{"role", role},
               {"mem_used", (2 + 86 * up) * kGib},
               {"mem_free", (93 - 86 * up) * kGib},
               {"power_mw", busy ? noise_(280'000, 420'000) : noise_(70'000, 90'000)},
               {"temp_c", busy ? noise_(58, 71) : noise_(38, 41)},
               {"sm_clock_mhz", busy ? noise_(2300, 2600) : 180}});
      out += base::canonical(line) + "\n";
    }
    file("samples.jsonl", out);
  }

  Result<void> finish() {
    samples();
    if (!requests_.empty()) file("requests.jsonl", requests_);
    file("journal.jsonl", journal_);
    return result_;
  }

  Result<void> conclude() {
    instant("derive", 0.05);
    begin("decide");
    if (auto done = finish(); !done) return done;
    const auto run = TRY(evidence::RunReader::open(directory_));
    const Json results = TRY(evidence::derive(run));
    document("results.json", results);
    document("decision.json",
             evidence::decide(results, policy_, evidence::failed_step(run), manifest_["recipe"]));
    end("decide");
    begin("report");
    file("journal.jsonl", journal_);
    return result_;
  }

  std::string directory_;
  bool gpu_, hostile_;
  std::string kind_;
  Noise noise_;
  Nanos now_ = kStart, ready_ = kStart, launched_ = kStart;
  int64_t seq_ = 0;
  size_t rows_ = 0;
  std::string head_ = std::string(64, '0');
  std::string journal_, requests_;
  Json manifest_, recipe_, policy_, suite_, plan_, launch_;
  Result<void> result_;
};

}  // namespace

Result<void> write_sample_run(const std::string& directory, std::string_view kind) {
  if (base::exists(directory))
    return fail(Kind::kUsage, Side::kClient, directory + " exists already");
  if (kind == "bench") return write_sample_bench(directory, {});
  if (kind == "troubled")
    return write_sample_bench(directory, {.name = "troubled", .seed = 2, .troubled = true});
  return Writer(directory, kind).write();
}

}  // namespace anvil::report
