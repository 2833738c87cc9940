#include "qualify/qualify.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/version.h"
#include "engine/artifacts.h"
#include "engine/identity.h"
#include "engine/orphans.h"
#include "engine/phases.h"
#include "engine/runner.h"
#include "evidence/derive.h"
#include "evidence/run_writer.h"
#include "host/gpu.h"
#include "host/sampler.h"
#include "host/snapshot.h"
#include "measure/calibrate.h"
#include "measure/client.h"
#include "net/http_call.h"
#include "qualify/checks.h"
#include "qualify/fingerprint.h"
#include "qualify/ladder.h"
#include "qualify/lane_step.h"

namespace anvil::qualify {

namespace {

constexpr uint64_t kDiskNeeded =
    64ull << 20;  // evidence of one run, with room for a talkative engine log

std::string count(int64_t number, std::string_view one) {
  return std::to_string(number) + " " + std::string(one) + (number == 1 ? "" : "s");
}

// Tells the observer what a start is doing.
class StartProgress : public engine::StartObserver {
 public:
  StartProgress(Observer& observer, Nanos began, std::function<void()> spawned)
      : observer_(observer), began_(began), spawned_(std::move(spawned)) {}
  void spawned(const Json&) override { spawned_(); }
  void phase(const engine::Phase& phase) override {
    phase_ = phase.name;
    observer_.progress("launch", 0, 0,
                       phase_ + " after " + base::format_duration(phase.at - began_));
  }
  void progress(Nanos, std::string_view last_log_line) override {
    observer_.progress("launch", 0, 0, phase_ + "  " + std::string(last_log_line));
  }

 private:
  Observer& observer_;
  Nanos began_;
  std::function<void()> spawned_;
  std::string phase_;
};

// One qualification from freeze to seal. The steps are methods in the order in which they run; each
// returns what the journal keeps of it. Lives on one thread; the sampler and the log follower have
// their own and end in step_stop().
class Qualification {
 public:
  Qualification(const Inputs& inputs, Observer& observer, const base::Cancel& cancel)
      : inputs_(inputs), observer_(observer), cancel_(cancel), suite_(inputs.suite.canonical) {}

  Result<Outcome> run();

 private:
  using Step = Result<Json> (Qualification::*)();

  evidence::Frozen frozen() const;
  // Runs one step between its journal lines. False when it failed; the first failure is remembered.
  bool step(std::string_view name, Step body);
  void remember(std::string_view name, const Error& error);

  Result<Json> step_preflight();
  Result<Json> step_snapshot();
  Result<Json> step_launch();
  Result<Json> step_identity();
  Result<Json> step_fingerprint();
  Result<Json> step_checks();
  Result<Json> step_lanes();
  Result<Json> step_calibrate();
  Result<Json> step_ladder();
  Result<Json> step_stop();
  Result<Json> step_derive();
  Result<Json> step_decide();
  Result<Json> step_report();

  Result<void> write_launch();
  CheckContext check_context();
  CheckPlan check_plan() const;
  measure::Limits limits() const;
  std::vector<std::string> efforts() const;

  const Inputs& inputs_;
  Observer& observer_;
  const base::Cancel& cancel_;
  const Json& suite_;

  std::unique_ptr<evidence::RunWriter> writer_;
  std::unique_ptr<host::GpuProbe> gpus_;
  std::map<std::string, std::string> roles_;  // GPU uuid -> role
  std::unique_ptr<engine::Runner> runner_;
  Json artifacts_ = Json::array();  // what preflight proved
  Nanos launch_began_ = 0;
  Json stop_ = nullptr;
  std::unique_ptr<host::Sampler> sampler_;
  std::string api_key_;
  std::string served_model_;
  std::unique_ptr<measure::Client> client_;
  std::optional<Sandbox> sandbox_;
  Json checks_ = {{"checks", Json::array()}, {"fingerprint", nullptr}};
  Json load_ = Json::array();  // of each lane that was run
  Json results_, decision_;
  std::string summary_;  // of the step that just ended, for people
  std::string failed_step_;
  std::optional<Error> failure_;
};

evidence::Frozen Qualification::frozen() const {
  const auto& recipe = inputs_.recipe;
  const Json role = recipe.at("role");
  return {.recipe_name = recipe.name(),
          .recipe_source = inputs_.recipe_source,
          .recipe = recipe.canonical(),
          .recipe_digest = recipe.digest(),
          .recipe_summary = {{"pinned", recipe.unpinned().empty()},
                             {"unpinned", recipe.unpinned()},
                             {"role", role.is_string() ? role : Json("candidate")},
                             {"engine", recipe.text("engine.kind")},
                             {"model", recipe.text("model.repo")}},
          .policy_name = inputs_.policy.name,
          .policy_source = inputs_.policy_source,
          .policy_digest = inputs_.policy.digest,
          .policy = inputs_.policy.canonical,
          .suite_name = inputs_.suite.name,
          .suite_source = inputs_.suite_source,
          .suite_digest = inputs_.suite.digest,
          .suite = suite_,
          .plan = {{"schema", "anvil/plan/v1"},
                   {"interface", inputs_.table.name()},
                   {"runner", recipe.text("launch.runner")},
                   {"efforts", efforts()},
                   {"seed", suite_.value("seed", 1)},
                   {"checks", suite_.value("checks", Json::object())},
                   {"lanes", suite_.value("lane", Json::array())},
                   {"ladder", suite_.value("ladder", Json(nullptr))},
                   {"fingerprint", suite_.value("fingerprint", Json::object())}},
          .tool = {{"version", base::version()}, {"build", base::build_id()}}};
}

std::vector<std::string> Qualification::efforts() const {
  const Json& checks = suite_.value("checks", Json::object());
  if (const auto it = checks.find("efforts"); it != checks.end() && it->is_array() && !it->empty())
    return it->get<std::vector<std::string>>();
  return inputs_.recipe.list("serving.efforts");
}

measure::Limits Qualification::limits() const {
  measure::Limits limits;
  const Json& wanted = suite_.value("limits", Json::object());
  const auto seconds = [&wanted](const char* key, Nanos fallback) {
    const auto it = wanted.find(key);
    return it != wanted.end() && it->is_number() ? static_cast<Nanos>(it->get<double>() * kSecond)
                                                 : fallback;
  };
  limits.first_byte = seconds("first_byte_s", limits.first_byte);
  limits.idle = seconds("idle_s", limits.idle);
  limits.total = seconds("total_s", limits.total);
  limits.event_bytes = wanted.value("event_bytes", limits.event_bytes);
  return limits;
}

void Qualification::remember(std::string_view name, const Error& error) {
  if (!failed_step_.empty()) return;
  failed_step_ = name;
  failure_ = error;
}

bool Qualification::step(std::string_view name, Step body) {
  observer_.step_begin(name);
  summary_.clear();
  auto journalled = writer_->begin_step(name);
  Result<Json> outcome = journalled ? (this->*body)() : Result<Json>(fail(journalled.error()));
  if (outcome) journalled = writer_->end_step(name, *outcome);
  if (outcome && !journalled) outcome = fail(journalled.error());
  if (!outcome) {
    // A journal that cannot be written is the failure itself; what is on disk already says how far
    // the run got.
    (void)writer_->fail_step(name, outcome.error());
    remember(name, outcome.error());
    summary_ = base::to_string(outcome.error());
  }
  observer_.step_end(name, outcome.has_value(), summary_);
  return outcome.has_value();
}

Result<Json> Qualification::step_preflight() {
  const std::string runner = inputs_.recipe.text("launch.runner");
  Json out = {{"runner", runner}};
  if (!inputs_.recipe.text("launch.api_key").empty())
    api_key_ = TRY(recipe::resolve_secret(inputs_.recipe.text("launch.api_key")));
  if (runner == "external") {
    summary_ = "external engine, nothing to check on this host";
    return out;
  }
  if (runner != "process")
    return fail(
        Kind::kUnsupported, Side::kHost,
        "the runner \"" + runner + "\" is not built into this version",
        "use launch.runner = \"process\", or start the engine yourself and use \"external\"");
  const auto checks = TRY(engine::verify_artifacts(
      inputs_.recipe,
      [this](const std::string& file, uint64_t done, uint64_t total) {
        observer_.progress("preflight", static_cast<int64_t>(done >> 20),
                           static_cast<int64_t>(total >> 20), "MiB hashed of " + file);
        return !cancel_.requested();
      },
      cancel_));
  artifacts_ = engine::to_json(checks);
  out["artifacts"] = artifacts_;
  if (auto noted = writer_->note("artifacts", artifacts_); !noted) return fail(noted.error());
  uint64_t weights = 0;
  for (const auto& check : checks) {
    if (check.error) return fail(*check.error);
    if (check.kind == "weights" || check.kind == "draft") weights += check.bytes;
  }
  const auto memory = host::read_memory();
  out["fit"] = {{"weights_bytes", weights}, {"memory_available", memory.available}};
  if (inputs_.recipe.integer("hardware.gpus") == 0 && weights > memory.available)
    return fail(Kind::kUnsupported, Side::kHost,
                "the weights have " + base::format_bytes(weights) + " and this host has " +
                    base::format_bytes(memory.available) + " of memory available",
                "stop what uses the memory, or choose a smaller quantisation");
  summary_ = count(static_cast<int64_t>(checks.size()), "artifact") + " verified, " +
             base::format_bytes(weights) + " of weights";
  return out;
}

Result<Json> Qualification::step_snapshot() {
  gpus_ = host::open_nvml();
  if (inputs_.host)
    for (const auto& [role, entry] : inputs_.host->roles.items())
      if (entry.contains("gpu")) roles_[entry["gpu"].get<std::string>()] = role;
  Json snapshot =
      host::snapshot({.folders = {{"runs", inputs_.runs_dir}, {"models", base::models_home()}},
                      .gpus = gpus_.get(),
                      .roles = roles_});
  Json orphans = Json::array();
  for (const auto& orphan : engine::find_orphans(inputs_.runs_dir, writer_->run_id()))
    orphans.push_back(engine::to_json(orphan));
  snapshot["anvil_orphans"] = orphans;
  if (auto written = writer_->write_document("host.json", snapshot); !written)
    return fail(written.error());
  const Json free = snapshot["disk"].value("runs", Json::object()).value("free", Json(nullptr));
  if (free.is_number() && free.get<uint64_t>() < kDiskNeeded)
    return fail(Kind::kDiskFull, Side::kHost,
                "the runs folder has " + base::format_bytes(free.get<uint64_t>()) + " left",
                "free some space or use --runs-dir on another disk");
  summary_ = snapshot["cpu"].value("model", std::string("unknown CPU")) + ", " +
             count(static_cast<int64_t>(snapshot["gpus"].size()), "GPU");
  if (!orphans.empty()) {
    summary_ += "; WARNING: " + count(static_cast<int64_t>(orphans.size()), "process") +
                " of earlier runs still running:";
    for (const auto& orphan : orphans)
      summary_ += " pid " + std::to_string(orphan["pid"].get<int>()) + " of " +
                  orphan["run"].get<std::string>();
  }
  return Json{{"orphans", orphans}};
}

Result<void> Qualification::write_launch() {
  Json launch = runner_->describe();
  launch["began_ns"] = launch_began_;
  if (!stop_.is_null()) launch["stop"] = stop_;
  return writer_->write_document("launch.json", launch);
}

Result<Json> Qualification::step_launch() {
  const auto& recipe = inputs_.recipe;
  if (recipe.text("launch.runner") == "external") {
    runner_ = engine::make_external_runner(recipe.text("launch.url"), inputs_.table);
  } else {
    engine::LaunchOptions options;
    options.platform = host::platform();
    options.log_path = writer_->engine_log_path();
    if (recipe.integer("launch.port") == 0) options.port = TRY(net::pick_free_port());
    options = TRY(engine::resolve_launch_files(recipe, inputs_.table, std::move(options)));
    auto spec = TRY(engine::build_launch(recipe, inputs_.table, options));
    runner_ = engine::make_process_runner(std::move(spec), inputs_.table, writer_->run_id());
  }
  launch_began_ = mono_now();
  // Written before the engine exists, so that even a kill at this moment leaves the command on
  // disk.
  if (auto written = write_launch(); !written) return fail(written.error());
  // With the pid on disk at once, an engine that outlives a killed anvil is found again.
  StartProgress progress(observer_, launch_began_, [this] { (void)write_launch(); });
  if (auto started = runner_->start(progress, cancel_); !started) {
    (void)write_launch();
    return fail(started.error());
  }
  if (auto written = write_launch(); !written) return fail(written.error());
  host::Sampler::Options options;
  options.gpus = gpus_.get();
  options.roles = roles_;
  if (!runner_->pids().empty()) options.marker = "ANVIL_RUN_ID=" + writer_->run_id();
  sampler_ = std::make_unique<host::Sampler>(
      options, [this](const Json& sample) { (void)writer_->append_sample(sample); });
  sampler_->set_roots(runner_->pids());
  sampler_->start();
  client_ =
      std::make_unique<measure::Client>(measure::Endpoint{runner_->base_url(), api_key_}, limits());
  summary_ = "ready at " + runner_->base_url();
  return Json{{"base_url", runner_->base_url()}};
}

Result<Json> Qualification::step_identity() {
  const Json phases = engine::to_json(runner_->phases());
  const auto identity = TRY(engine::observe_identity(
      inputs_.recipe, inputs_.table, runner_->base_url(), phases, api_key_, artifacts_));
  if (auto written = writer_->write_document("identity.json", engine::to_json(identity)); !written)
    return fail(written.error());
  served_model_ = identity.served_model;
  int64_t match = 0, mismatch = 0, hidden = 0;
  std::string which;
  for (const auto& field : identity.fields) {
    match += field.verdict == engine::IdentityField::Verdict::kMatch;
    hidden += field.verdict == engine::IdentityField::Verdict::kNotObservable;
    if (field.verdict != engine::IdentityField::Verdict::kMismatch) continue;
    ++mismatch;
    which += (which.empty() ? "" : "; ") + field.field + " is " + base::canonical(field.observed) +
             ", declared " + base::canonical(field.declared);
  }
  summary_ = std::to_string(match) + " match, " + std::to_string(mismatch) + " mismatch, " +
             std::to_string(hidden) + " not observable";
  // Measuring something else than what was declared would produce numbers about nothing.
  if (mismatch > 0)
    return fail(Kind::kMismatch, Side::kEngine,
                "the engine serves something else than the recipe declares: " + which,
                "correct the recipe, or the engine's configuration");
  return Json{{"match", match},
              {"mismatch", mismatch},
              {"not_observable", hidden},
              {"served_model", served_model_}};
}

CheckPlan Qualification::check_plan() const {
  const Json& wanted = suite_.value("checks", Json::object());
  CheckPlan plan;
  plan.include = wanted.value("include", std::vector<std::string>{});
  plan.efforts = efforts();
  plan.attempts = wanted.value("attempts", 1);
  return plan;
}

CheckContext Qualification::check_context() {
  const Json& checks = suite_.value("checks", Json::object());
  if (!sandbox_) sandbox_ = Sandbox::detect();
  return {.client = *client_,
          .endpoint = {runner_->base_url(), api_key_},
          .cancel = cancel_,
          .record = [this](evidence::RequestRow row) { return writer_->append(std::move(row)); },
          .sandbox = *sandbox_,
          .model = served_model_,
          .effort = efforts().empty() ? "" : efforts().front(),
          .engine = inputs_.recipe.text("engine.kind"),
          .table = inputs_.table,
          .salt = writer_->run_id(),
          .context_tokens = inputs_.recipe.integer("serving.context_tokens"),
          .max_tokens = checks.value("max_tokens", int64_t{256}),
          .seed = suite_.value("seed", int64_t{1}),
          .estimates = inputs_.measure_only};
}

Result<Json> Qualification::step_fingerprint() {
  if (!suite_.value("fingerprint", Json::object()).value("enabled", true)) {
    summary_ = "not in the suite";
    return Json{{"enabled", false}};
  }
  FingerprintPlan plan{efforts(), Json::object()};
  if (const Json& declared = inputs_.recipe.at("fingerprint.efforts"); declared.is_object())
    plan.declared = declared;
  checks_["fingerprint"] = TRY(run_fingerprint(check_context(), plan));
  if (auto written = writer_->write_document("checks.json", checks_); !written)
    return fail(written.error());
  summary_ = checks_["fingerprint"].value("verdict", "") + ": " +
             checks_["fingerprint"].value("explanation", "");
  return Json{{"verdict", checks_["fingerprint"].value("verdict", "")}};
}

Result<Json> Qualification::step_checks() {
  const CheckPlan plan = check_plan();
  const int64_t total = count_results(plan);
  int64_t done = 0, passed = 0, skipped = 0;
  const auto results = TRY(run_checks(check_context(), plan, [&](const CheckResult& result) {
    ++done;
    passed += result.verdict == CheckVerdict::kPass;
    skipped += result.verdict == CheckVerdict::kSkipped;
    checks_["checks"].push_back(to_json(result));
    // After every check, so that a crash keeps the verdicts so far.
    (void)writer_->write_document("checks.json", checks_);
    observer_.progress("checks", done, total, result.id + " " + std::string(name(result.verdict)));
  }));
  if (auto written = writer_->write_document("checks.json", checks_); !written)
    return fail(written.error());
  const int64_t failed = static_cast<int64_t>(results.size()) - passed - skipped;
  summary_ = std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
             std::to_string(skipped) + " skipped";
  return Json{{"passed", passed}, {"failed", failed}, {"skipped", skipped}};
}

Result<Json> Qualification::step_lanes() {
  Json load = {{"schema", "anvil/load/v1"}, {"lanes", Json::array()}};
  LaneObserver observer;
  observer.progress = [this](int64_t done, int64_t total, const std::string& what) {
    observer_.progress("lanes", done, total, what);
  };
  observer.lane_done = [&](Json entry) {
    load["lanes"].push_back(std::move(entry));
    return writer_->write_document("load.json", load);
  };
  const LaneReport report = TRY(run_lanes(check_context(), suite_, observer));
  load_ = load["lanes"];
  summary_ = count(report.lanes, "lane") + ", " + std::to_string(report.ok) + " of " +
             count(report.requests, "request") + " ok";
  return Json{{"lanes", report.lanes}, {"requests", report.requests}, {"ok", report.ok}};
}

// After the lanes, because only now the event rate of each is known.
Result<Json> Qualification::step_calibrate() {
  std::vector<measure::CalibrationPoint> points;
  for (const Json& lane : load_) {
    const Json& client = lane["client"];
    const auto took = client["ended_ns"].get<double>() - client["began_ns"].get<double>();
    measure::CalibrationPoint point;
    point.lane = lane["id"].get<std::string>();
    point.concurrency = std::max(1, client["in_flight"]["max"].get<int>());
    point.threads = client["threads"].get<int>();
    if (took > 0) point.events_per_s = std::max(1.0, client["events"].get<double>() / (took / 1e9));
    points.push_back(std::move(point));
  }
  const Json calibration =
      TRY(measure::calibrate(points, cancel_, [&](size_t done, const std::string& lane) {
        observer_.progress("calibrate", static_cast<int64_t>(done),
                           static_cast<int64_t>(points.size()), "our own error as in lane " + lane);
      }));
  if (auto written = writer_->write_document("calibration.json", calibration); !written)
    return fail(written.error());
  int64_t proven = 0;
  for (const Json& point : calibration["points"]) proven += point["server"]["void"] == false;
  summary_ = "client error measured for " + std::to_string(proven) + " of " +
             count(static_cast<int64_t>(points.size()), "lane");
  return Json{{"points", points.size()}, {"proven", proven}};
}

Result<Json> Qualification::step_ladder() {
  const LadderPlan plan = ladder_plan(suite_);
  Json rungs = Json::array();
  const auto reports = TRY(run_ladder(check_context(), plan, [&](const RungReport& rung) {
    rungs.push_back(to_json(rung));
    observer_.progress("ladder", static_cast<int64_t>(rungs.size()),
                       static_cast<int64_t>(plan.targets.size()),
                       std::to_string(rung.target) + " tokens");
  }));
  summary_ = count(static_cast<int64_t>(reports.size()), "rung");
  if (!reports.empty()) {
    summary_ += " up to " + std::to_string(reports.back().prompt_tokens) + " tokens";
    if (!reports.back().stopped.empty()) summary_ += "; stopped: " + reports.back().stopped;
  }
  return Json{{"rungs", rungs}};
}

Result<Json> Qualification::step_stop() {
  if (sampler_) sampler_->stop();
  if (!runner_) return Json{{"started", false}};
  auto stopped = runner_->stop(cancel_);
  if (stopped) stop_ = *stopped;
  if (auto written = write_launch(); !written) return fail(written.error());
  if (!stopped) return fail(stopped.error());
  summary_ = stop_.value("how", "");
  if (stop_.contains("port_free") && stop_["port_free"].is_boolean())
    summary_ += stop_["port_free"].get<bool>() ? ", port free" : ", PORT STILL TAKEN";
  return stop_;
}

Result<Json> Qualification::step_derive() {
  const auto reader = TRY(evidence::RunReader::open(writer_->directory()));
  results_ = TRY(evidence::derive(reader));
  if (auto written = writer_->write_document("results.json", results_); !written)
    return fail(written.error());
  return Json{{"sha256", base::sha256(base::canonical(results_))}};
}

Result<Json> Qualification::step_decide() {
  const auto reader = TRY(evidence::RunReader::open(writer_->directory()));
  decision_ = evidence::decide(results_, inputs_.policy.canonical, evidence::failed_step(reader),
                               reader.manifest()["recipe"]);
  if (auto written = writer_->write_document("decision.json", decision_); !written)
    return fail(written.error());
  summary_ = decision_.value("decision", "");
  return Json{{"decision", decision_["decision"]}};
}

Result<Json> Qualification::step_report() {
  const auto reader = TRY(evidence::RunReader::open(writer_->directory()));
  const std::string html = TRY(inputs_.render(reader));
  if (auto written = writer_->write_text("report.html", html); !written)
    return fail(written.error());
  return Json{{"sha256", base::sha256(html)}};
}

Result<Outcome> Qualification::run() {
  if (!inputs_.measure_only) TRY(validate_plan(check_plan()));
  writer_ = TRY(evidence::RunWriter::create(inputs_.runs_dir, frozen()));
  observer_.run_created(writer_->directory());

  const std::pair<std::string_view, Step> measuring[] = {
      {"preflight", &Qualification::step_preflight},
      {"snapshot", &Qualification::step_snapshot},
      {"launch", &Qualification::step_launch},
      {"identity", &Qualification::step_identity},
      {"fingerprint", &Qualification::step_fingerprint},
      {"checks", &Qualification::step_checks},
      {"lanes", &Qualification::step_lanes},
      {"calibrate", &Qualification::step_calibrate},
      {"ladder", &Qualification::step_ladder}};
  for (const auto& [name, body] : measuring) {
    const bool functional = name == "fingerprint" || name == "checks" || name == "ladder";
    if (inputs_.measure_only && functional) continue;
    if (cancel_.requested()) {
      remember(name, base::cancelled_error());
      (void)writer_->fail_step(name, base::cancelled_error());
      break;
    }
    if (!step(name, body)) break;
  }
  step("stop", &Qualification::step_stop);
  if (step("derive", &Qualification::step_derive) && step("decide", &Qualification::step_decide))
    step("report", &Qualification::step_report);

  if (decision_.is_null()) {
    // The evidence could not be completed: the run stays incomplete on disk, and that is the
    // answer.
    const Error error =
        failure_.value_or(Error(Kind::kInternal, Side::kInternal, "no decision was reached"));
    return fail(Error(error).with_context("the run " + writer_->directory() +
                                          " stays incomplete (step " + failed_step_ + ")"));
  }
  if (auto sealed = writer_->seal(
          {{"decision", decision_["decision"]},
           {"failed_step", failed_step_.empty() ? Json(nullptr) : Json(failed_step_)}});
      !sealed)
    return fail(Error(sealed.error()).with_context("sealing " + writer_->directory()));
  return Outcome{writer_->run_id(), writer_->directory(), decision_, failed_step_, failure_};
}

}  // namespace

Result<Outcome> qualify(const Inputs& inputs, Observer& observer, const base::Cancel& cancel) {
  Qualification qualification(inputs, observer, cancel);
  return qualification.run();
}

}  // namespace anvil::qualify
