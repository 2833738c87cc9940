#include "report/facts.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/strings.h"
#include "evidence/artifact.h"
#include "evidence/derive.h"
#include "evidence/row_metrics.h"
#include "report/json_read.h"

namespace anvil::report {

namespace {

constexpr size_t kLogTail = 50;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// What may appear of the manifest: everything that is fixed before the first request.
Json frozen_part(const Json& manifest) {
  Json out = Json::object();
  for (const char* key : {"schema", "run", "tool", "anchor", "recipe", "policy", "suite", "plan"})
    if (manifest.contains(key)) out[key] = manifest[key];
  return out;
}

void read_documents(const evidence::RunReader& run, Facts& facts) {
  const std::array<std::pair<const char*, Json*>, 10> documents = {
      {{"recipe.json", &facts.recipe},
       {"suite.json", &facts.suite},
       {"plan.json", &facts.plan},
       {"host.json", &facts.host},
       {"launch.json", &facts.launch},
       {"identity.json", &facts.identity},
       {"checks.json", &facts.checks},
       {"load.json", &facts.load},
       {"results.json", &facts.results},
       {"decision.json", &facts.decision}}};
  for (const auto& [name, target] : documents) {
    *target = nullptr;
    if (!run.has(name)) continue;
    auto document = run.document(name);
    if (document)
      *target = std::move(*document);
    else
      facts.problems.push_back(std::string(name) + " cannot be read: " + document.error().detail);
  }
}

void read_rows(const evidence::RunReader& run, Facts& facts) {
  if (run.has("requests.jsonl")) {
    const auto done = run.for_each_row([&](const evidence::RequestRow& row) -> Result<void> {
      facts.requests.push_back(request_of(row));
      return {};
    });
    if (!done)
      facts.problems.push_back("requests.jsonl cannot be read to its end: " + done.error().detail);
  }
  if (run.has("samples.jsonl")) {
    const auto done = run.for_each_sample([&](const Json& line) -> Result<void> {
      facts.samples.push_back(sample_of(line));
      return {};
    });
    if (!done)
      facts.problems.push_back("samples.jsonl cannot be read to its end: " + done.error().detail);
  }
}

void read_log(const evidence::RunReader& run, Facts& facts) {
  if (!run.has("engine.log")) return;
  const auto text = run.text("engine.log");
  if (!text) {
    facts.problems.push_back("engine.log cannot be read: " + text.error().detail);
    return;
  }
  std::string_view rest = *text;
  if (!rest.empty() && rest.back() == '\n') rest.remove_suffix(1);
  if (rest.empty()) return;
  facts.log_lines = std::count(rest.begin(), rest.end(), '\n') + 1;
  while (facts.log_tail.size() < kLogTail && !rest.empty()) {
    const size_t at = rest.rfind('\n');
    std::string_view line = at == std::string_view::npos ? rest : rest.substr(at + 1);
    // "<mono_ns> o|e text"
    const size_t space = line.find(' ');
    if (space != std::string_view::npos && base::parse_int(line.substr(0, space)) &&
        line.size() > space + 1)
      line.remove_prefix(std::min(line.size(), space + 3));
    facts.log_tail.emplace_back(line);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(0, at);
  }
  std::reverse(facts.log_tail.begin(), facts.log_tail.end());
}

// Of the decompressed bytes, parts joined.
std::string content_digest(const evidence::RunReader& run, const char* name) {
  if (!run.has(name)) return {};
  base::Sha256 hash;
  const auto done =
      evidence::stream_artifact(run.directory(), name, [&](std::string_view piece) -> Result<void> {
        hash.update(piece);
        return {};
      });
  return done ? hash.finish() : std::string();
}

void read_chain(const evidence::RunReader& run, Facts& facts) {
  const auto declared = [&](const char* key) { return text_at(facts.manifest, {key, "digest"}); };
  facts.chain = {
      {"recipe", "what was to be served, in canonical form", declared("recipe"), {}, false},
      {"policy", "the gates, frozen before the first request", declared("policy"), {}, false},
      {"suite", "the checks, lanes and ladder that were asked for", declared("suite"), {}, false},
      {"plan", "every lane, rung, check and seed, resolved", declared("plan"), {}, false},
      {"launch.json", "command line, environment and start-up as executed", {}, {}, false},
      {"identity.json", "what the running engine said of itself", {}, {}, false},
      {"requests.jsonl", "one row per attempt with all its stamps", {}, {}, false},
      {"samples.jsonl", "memory, processor and GPU readings", {}, {}, false},
      {"checks.json", "each check with its request and answer", {}, {}, false},
      {"load.json", "how each lane was loaded, and what our client saw of itself", {}, {}, false},
      {"calibration.json", "our client's own error at the same load", {}, {}, false},
      {"results.json", "every number, derived from the records above", {}, {}, false},
      {"decision.json", "the gates' verdicts and the decision", {}, {}, false},
  };
  const std::string policy = text_at(facts.decision, {"policy_digest"});
  const std::string results = text_at(facts.decision, {"results_sha256"});
  for (Link& link : facts.chain) {
    if (link.name.find('.') != std::string::npos)
      link.digest = content_digest(run, link.name.c_str());
    const std::string& named = link.name == "policy"         ? policy
                               : link.name == "results.json" ? results
                                                             : std::string();
    if (named.empty() || link.digest.empty()) continue;
    link.broken = named != link.digest;
    link.note =
        link.broken ? "decision.json names another digest: " + named : "named by decision.json";
  }
}

std::string last_line_of_error(const Json& data) {
  const std::string detail = text_at(data, {"detail"});
  const std::string hint = text_at(data, {"hint"});
  if (detail.empty()) return data.is_string() ? data.get<std::string>() : text_at(data, {"error"});
  return hint.empty() ? detail : detail + "; " + hint;
}

void find_span(Facts& facts) {
  Nanos low = 0, high = 0;
  bool any = false;
  const auto see = [&](Nanos at) {
    if (at <= 0) return;
    low = any ? std::min(low, at) : at;
    high = any ? std::max(high, at) : at;
    any = true;
  };
  for (const Step& step : facts.steps) see(step.begin), see(step.end);
  for (const Request& request : facts.requests) see(request.start), see(request.end);
  for (const Sample& sample : facts.samples) see(sample.at);
  see(integer_at(facts.manifest, {"anchor", "mono_ns"}).value_or(0));
  facts.zero = low;
  facts.last = high;
}

}  // namespace

const Step* Facts::step(std::string_view name) const {
  for (const Step& each : steps)
    if (each.name == name) return &each;
  return nullptr;
}

const Step* Facts::failed_step() const {
  for (const Step& each : steps)
    if (each.ending == Step::Ending::kFailed) return &each;
  return nullptr;
}

std::vector<Step> steps_of(const std::vector<Json>& journal) {
  std::vector<Step> steps;
  for (const Json& line : journal) {
    const std::string name = text_at(line, {"step"});
    const std::string event = text_at(line, {"event"});
    if (name == "report" || name == "seal") break;
    const Nanos at = std::max<Nanos>(integer_at(line, {"mono_ns"}).value_or(0), 0);
    if (event == "begin") {
      steps.push_back({name, at, at, Step::Ending::kOpen, {}});
    } else if (event == "end" || event == "fail") {
      const auto open =
          std::find_if(steps.rbegin(), steps.rend(), [&](const Step& s) { return s.name == name; });
      if (open == steps.rend()) continue;
      open->end = std::max(at, open->begin);
      open->ending = event == "end" ? Step::Ending::kEnded : Step::Ending::kFailed;
      if (event == "fail" && line.contains("data")) open->error = last_line_of_error(line["data"]);
    }
  }
  return steps;
}

Request request_of(const evidence::RequestRow& row) {
  Request out;
  out.seq = row.seq;
  out.purpose = row.purpose;
  out.outcome = row.outcome;
  out.lane = row.lane;
  out.item = row.item;
  out.effort = row.effort;
  out.cache_state = row.cache_state;
  out.attempt = row.attempt;
  out.status = row.status;
  const auto& s = row.stamps;
  out.first_output = s.first_output;
  out.start = s.sent ? *s.sent : s.connect_begin ? *s.connect_begin : s.intended;
  out.start = std::max<Nanos>(out.start, 0);
  out.end = out.start;
  for (const auto& stamp : {s.connected, s.first_byte, s.first_event, s.first_output, s.last_output,
                            s.usage, s.done, s.eof})
    if (stamp) out.end = std::max(out.end, *stamp);
  const evidence::RowMetrics metrics = evidence::measure(row);
  const auto milli = [](const std::optional<int64_t>& nanos) -> std::optional<double> {
    return nanos ? std::optional<double>(static_cast<double>(*nanos) / 1e6) : std::nullopt;
  };
  out.ttfo_ms = milli(metrics.ttfo);
  out.ttfv_ms = milli(metrics.ttfv);
  out.e2e_ms = milli(metrics.e2e);
  out.prompt_tokens = metrics.prompt_tokens;
  out.cached_tokens = metrics.cached_tokens;
  out.completion_tokens = metrics.completion_tokens;
  out.refused = !evidence::refuse_cache_state(row.cache_state, metrics, false).empty();
  out.unproven = evidence::refuse_cache_state(row.cache_state, metrics, true) == "unproven";
  out.error_kind = row.error_kind;
  out.error_detail = row.error_detail;
  return out;
}

Sample sample_of(const Json& line) {
  const auto scaled = [](const Json& from, std::initializer_list<const char*> path,
                         double by) -> std::optional<double> {
    const auto value = number_at(from, path);
    return value ? std::optional<double>(*value / by) : std::nullopt;
  };
  Sample out;
  out.at = std::max<Nanos>(integer_at(line, {"mono_ns"}).value_or(0), 0);
  out.available_gib = scaled(line, {"host", "mem_available"}, kGib);
  out.load = scaled(line, {"host", "load1"}, 1);
  out.rss_gib = scaled(line, {"engine", "rss"}, kGib);
  out.cpu_s = scaled(line, {"engine", "cpu_ns"}, 1e9);
  if (line.contains("gpus") && line["gpus"].is_array()) {
    for (const Json& gpu : line["gpus"]) {
      GpuSample sample;
      sample.label = text_at(gpu, {"role"});
      if (sample.label.empty())
        sample.label =
            "GPU " +
            std::to_string(
                integer_at(gpu, {"index"}).value_or(static_cast<int64_t>(out.gpus.size())));
      sample.used_gib = scaled(gpu, {"mem_used"}, kGib);
      sample.free_gib = scaled(gpu, {"mem_free"}, kGib);
      sample.power_w = scaled(gpu, {"power_mw"}, 1000);
      sample.temperature_c = scaled(gpu, {"temp_c"}, 1);
      sample.clock_mhz = scaled(gpu, {"sm_clock_mhz"}, 1);
      out.gpus.push_back(std::move(sample));
    }
  }
  return out;
}

Result<Facts> gather(const evidence::RunReader& run) {
  if (!run.manifest().is_object())
    return fail(Kind::kInvalidInput, Side::kClient, "manifest.json is not an object",
                "the folder is not a run");
  Facts facts;
  facts.manifest = frozen_part(run.manifest());
  facts.run_id = text_at(facts.manifest, {"run"});
  read_documents(run, facts);
  auto journal = run.journal();
  if (journal)
    facts.steps = steps_of(*journal);
  else
    facts.problems.push_back("journal.jsonl cannot be read: " + journal.error().detail);
  read_rows(run, facts);
  read_log(run, facts);
  if (run.has("recipe.toml")) facts.recipe_text = run.text("recipe.toml").value_or(std::string());
  const Step* decide = facts.step("decide");
  facts.decided =
      facts.decision.is_object() && decide != nullptr && decide->ending != Step::Ending::kOpen;
  if (facts.results.is_null() && !run.has("results.json")) {
    auto results = evidence::derive(run);
    if (results) {
      facts.results = std::move(*results);
      facts.derived_here = true;
    } else if (!facts.requests.empty()) {
      facts.problems.push_back("no numbers could be derived: " + results.error().detail);
    }
  }
  read_chain(run, facts);
  find_span(facts);
  return facts;
}

}  // namespace anvil::report
