#include "evidence/run_reader.h"

#include "base/files.h"
#include "base/strings.h"
#include "evidence/artifact.h"
#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr uint64_t kLargestText = 256ull << 20;

// Reads how far the run got from its journal lines.
void follow(const Json& line, RunState& state) {
  const std::string event = text(line, "event");
  const std::string step = text(line, "step");
  if (event == "begin") {
    state.last_step = step;
    state.last_step_ended = false;
  } else if (event == "end") {
    state.last_step_ended = true;
    state.steps.push_back(step);
  } else if (event == "fail") {
    state.last_step_ended = true;
    if (state.failed_step.empty()) {
      state.failed_step = step;
      const Json& data = member(line, "data");
      state.failure = text(data, "detail");
      if (const std::string hint = text(data, "hint"); !hint.empty())
        state.failure += " (" + hint + ")";
    }
  }
}

// What a lost or damaged manifest said is known from the journal; its members are objects in any
// case.
void complete_manifest(Json& manifest, const Json& fixed, const std::string& run) {
  if (!manifest.is_object()) manifest = Json::object();
  for (const char* name : {"recipe", "policy", "suite", "plan", "anchor", "tool"})
    if (!member(manifest, name).is_object())
      manifest[name] = member(fixed, name).is_object() ? member(fixed, name) : Json::object();
  if (!member(manifest, "run").is_string()) manifest["run"] = run;
}
}  // namespace

std::string explain(const RunState& state) {
  std::string out;
  if (state.status == RunState::Status::kSealed) {
    out = "The run is sealed: its evidence is complete.";
  } else if (state.last_step.empty()) {
    out = "The run is incomplete, and its journal does not say how far it got.";
  } else if (state.last_step == "seal" && state.last_step_ended) {
    out = "The run is incomplete: everything was done, but the final manifest was not written.";
  } else if (state.last_step_ended) {
    out = "The run is incomplete: it was cut off after the step " + state.last_step + ".";
  } else {
    out = "The run is incomplete: it was cut off during the step " + state.last_step +
          ", or it still runs.";
  }
  if (!state.failed_step.empty())
    out += " The step " + state.failed_step + " failed: " + state.failure + ".";
  if (!state.steps.empty() && state.status != RunState::Status::kSealed)
    out += " Finished steps: " + base::join(state.steps, ", ") + ".";
  for (const std::string& damage : state.damage) out += " " + damage + ".";
  return out;
}

Result<RunReader> RunReader::open(const std::string& directory) {
  if (!base::is_directory(directory))
    return fail(Kind::kNotFound, Side::kClient, directory + " is not a folder",
                "name a run directory, or list them with anvil runs");
  RunReader reader;
  reader.directory_ = directory;
  const bool has_manifest = base::exists(base::join_path(directory, "manifest.json"));
  if (!has_manifest && !base::exists(base::join_path(directory, "journal.jsonl")))
    return fail(
        Kind::kNotFound, Side::kClient,
        directory + " is not a run directory: it has neither manifest.json nor journal.jsonl");

  if (base::base_name(directory).starts_with(".creating-"))
    return fail(Kind::kNotFound, Side::kClient,
                directory + " is the remainder of a run that was cut off before it was frozen",
                "nothing was started for it; it can be deleted");

  RunState& state = reader.state_;
  if (!has_manifest) {
    state.damage.emplace_back("manifest.json is missing");
  } else if (auto manifest = reader.document("manifest.json"); manifest && manifest->is_object()) {
    reader.manifest_ = std::move(*manifest);
    if (evidence::text(reader.manifest_, "status") == "sealed")
      state.status = RunState::Status::kSealed;
  } else {
    state.damage.push_back("manifest.json cannot be read" +
                           (manifest ? std::string() : ": " + manifest.error().detail));
  }

  bool readable = true;
  Json fixed = nullptr;
  const auto torn = stream_lines(directory, "journal.jsonl",
                                 [&](std::string_view line, int64_t position) -> Result<void> {
                                   if (!readable) return {};
                                   auto parsed = base::parse_json(line, "journal.jsonl");
                                   if (parsed) {
                                     follow(*parsed, state);
                                     if (fixed.is_null()) fixed = at_path(*parsed, "data.fixed");
                                   } else {
                                     readable = false;
                                     state.damage.push_back("line " + std::to_string(position + 1) +
                                                            " of journal.jsonl cannot be read");
                                   }
                                   return {};
                                 });
  if (!torn) state.damage.push_back("journal.jsonl cannot be read: " + torn.error().detail);
  if (torn && *torn > 0)
    state.damage.emplace_back("the last line of journal.jsonl was cut off while it was written");
  complete_manifest(reader.manifest_, fixed, base::base_name(directory));
  if (state.status != RunState::Status::kSealed)
    for (const char* name : {"requests.jsonl", "samples.jsonl"}) {
      if (!reader.has(name)) continue;
      const auto rest = stream_lines(directory, name,
                                     [](std::string_view, int64_t) -> Result<void> { return {}; });
      if (!rest)
        state.damage.push_back(std::string(name) + " cannot be read: " + rest.error().detail);
      if (rest && *rest > 0)
        state.damage.push_back("the last line of " + std::string(name) +
                               " was cut off while it was written");
    }
  return reader;
}

bool RunReader::has(std::string_view name) const {
  return !artifact_files(directory_, name).empty();
}

std::vector<std::string> RunReader::files() const {
  std::vector<std::string> out;
  if (auto names = base::list_directory(directory_))
    for (std::string& name : *names)
      if (!base::is_directory(base::join_path(directory_, name))) out.push_back(std::move(name));
  return out;
}

Result<Json> RunReader::document(std::string_view name) const {
  return base::parse_json(TRY(text(name)), name);
}

Result<std::string> RunReader::text(std::string_view name) const {
  std::string out;
  auto done = stream_artifact(directory_, name, [&](std::string_view piece) -> Result<void> {
    if (out.size() + piece.size() > kLargestText)
      return fail(Kind::kTooLarge, Side::kClient, std::string(name) + " is above 256 MiB");
    out += piece;
    return {};
  });
  if (!done) return fail(std::move(done).error());
  return out;
}

Result<std::vector<Json>> RunReader::journal() const {
  std::vector<Json> lines;
  bool readable = true;
  auto done = for_each_line("journal.jsonl", [&](std::string_view line, int64_t) -> Result<void> {
    if (!readable) return {};
    auto parsed = base::parse_json(line, "journal.jsonl");
    if (parsed) {
      lines.push_back(std::move(*parsed));
    } else if (state_.status == RunState::Status::kSealed) {
      return fail(std::move(parsed).error());
    } else {
      readable = false;
    }
    return {};
  });
  if (!done) return fail(std::move(done).error());
  return lines;
}

Result<void> RunReader::for_each_line(
    std::string_view name,
    const std::function<Result<void>(std::string_view, int64_t)>& line) const {
  auto rest = stream_lines(directory_, name, line);
  if (!rest) return fail(std::move(rest).error());
  return {};
}

Result<void> RunReader::for_each_row(
    const std::function<Result<void>(const RequestRow&)>& row) const {
  if (!has("requests.jsonl")) return {};
  return for_each_line(
      "requests.jsonl", [&](std::string_view line, int64_t position) -> Result<void> {
        auto parsed = parse_row(line);
        if (!parsed)
          return fail(std::move(parsed).error().with_context("requests.jsonl, row " +
                                                             std::to_string(position)));
        return row(*parsed);
      });
}

Result<void> RunReader::for_each_sample(
    const std::function<Result<void>(const Json&)>& sample) const {
  if (!has("samples.jsonl")) return {};
  return for_each_line(
      "samples.jsonl", [&](std::string_view line, int64_t position) -> Result<void> {
        auto parsed = base::parse_json(line, "samples.jsonl");
        if (!parsed)
          return fail(std::move(parsed).error().with_context("sample " + std::to_string(position)));
        return sample(*parsed);
      });
}

}  // namespace anvil::evidence
