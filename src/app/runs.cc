#include <CLI/CLI.hpp>

#include "app/app.h"
#include "base/files.h"
#include "base/strings.h"
#include "engine/orphans.h"
#include "evidence/campaign.h"
#include "evidence/index.h"
#include "evidence/run_reader.h"

namespace anvil::app {

namespace {

struct Options {
  std::string run;
  std::string runs_dir = default_runs_dir();
  bool json = false;
};

// Runs of the folder, newest first; directories that hold no manifest are no runs.
std::vector<evidence::RunReader> read_runs(const std::string& runs_dir) {
  std::vector<evidence::RunReader> runs;
  auto names = base::list_directory(runs_dir);
  if (!names) return runs;
  for (auto name = names->rbegin(); name != names->rend(); ++name)
    if (auto reader = evidence::RunReader::open(base::join_path(runs_dir, *name)))
      runs.push_back(std::move(*reader));
  return runs;
}

std::string status_text(const evidence::RunState& state) {
  if (state.status == evidence::RunState::Status::kSealed) return "sealed";
  return "incomplete";
}

Json summary(const evidence::RunReader& run) {
  const Json& manifest = run.manifest();
  Json decision = nullptr;
  if (run.has("decision.json"))
    if (auto document = run.document("decision.json")) decision = (*document)["decision"];
  const auto& state = run.state();
  return {{"run", manifest.value("run", base::base_name(run.directory()))},
          {"run_dir", run.directory()},
          {"recipe", manifest["recipe"].value("name", "")},
          {"policy", manifest["policy"].value("name", "")},
          {"started", manifest["anchor"].value("utc", "")},
          {"status", status_text(state)},
          {"decision", decision},
          {"last_step", state.last_step},
          {"last_step_ended", state.last_step_ended},
          {"failed_step", state.failed_step.empty() ? Json(nullptr) : Json(state.failed_step)},
          {"failure", state.failure.empty() ? Json(nullptr) : Json(state.failure)}};
}

// A campaign where runs are listed: its arms in the place of a recipe.
Json campaign_summary(const evidence::Campaign& campaign) {
  const Json& frozen = campaign.frozen;
  const auto arm = [&](const char* which) {
    return frozen.value(which, Json::object()).value("recipe", std::string());
  };
  return {{"run", frozen.value("id", base::base_name(campaign.directory))},
          {"run_dir", campaign.directory},
          {"recipe", arm("a") + " against " + arm("b")},
          {"policy", frozen.value("policy", Json::object()).value("name", "")},
          {"started", frozen.value("anchor", Json::object()).value("utc", "")},
          {"status", campaign.finished ? "campaign" : "campaign, unfinished"},
          {"decision", nullptr},
          {"runs", campaign.runs.size()}};
}

int run_list(const Options& options) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"RUN", "STATUS", "DECISION", "POLICY", "LAST STEP"}};
  for (const auto& run : read_runs(options.runs_dir)) {
    if (evidence::is_campaign(run.directory())) {
      auto campaign = evidence::read_campaign(run.directory());
      if (!campaign) continue;
      Json entry = campaign_summary(*campaign);
      rows.push_back({entry["run"], entry["status"], "-",
                      campaign->frozen["policy"].value("name", ""),
                      std::to_string(campaign->runs.size()) + " runs compared"});
      list.push_back(std::move(entry));
      continue;
    }
    Json entry = summary(run);
    rows.push_back({entry["run"], entry["status"],
                    entry["decision"].is_null() ? "-" : entry["decision"].get<std::string>(),
                    entry["policy"],
                    entry["last_step"].get<std::string>() +
                        (entry["last_step_ended"].get<bool>() ? "" : " (unfinished)")});
    list.push_back(std::move(entry));
  }
  if (options.json) return print_json({{"runs_dir", options.runs_dir}, {"runs", list}});
  if (list.empty()) return print("no runs in " + options.runs_dir + "\n");
  return print(table(rows));
}

int run_show(const Options& options) {
  auto directory = find_run(options.run, options.runs_dir);
  if (!directory) return print_error(directory.error(), options.json);
  if (evidence::is_campaign(*directory)) {
    auto campaign = evidence::read_campaign(*directory);
    if (!campaign) return print_error(campaign.error(), options.json);
    const Json answer = campaign_summary(*campaign);
    if (options.json) return print_json(answer);
    std::vector<std::vector<std::string>> rows = {{"campaign", answer["run"]},
                                                  {"directory", *directory},
                                                  {"compares", answer["recipe"]},
                                                  {"started", answer["started"]},
                                                  {"status", answer["status"]}};
    for (const auto& one : campaign->runs)
      rows.push_back({"run " + std::to_string(one.index + 1) + " (" + one.arm + ")",
                      one.run + (one.excluded ? ", excluded: " + *one.excluded : "")});
    return print(table(rows));
  }
  auto run = evidence::RunReader::open(*directory);
  if (!run) return print_error(run.error(), options.json);
  Json answer = summary(*run);
  const auto& state = run->state();
  answer["steps"] = state.steps;
  answer["damage"] = state.damage;
  answer["explanation"] = evidence::explain(state);
  const std::string run_id = answer["run"];
  answer["orphans"] = Json::array();
  for (const auto& orphan : engine::find_orphans(base::parent_path(*directory)))
    if (orphan.run == run_id) answer["orphans"].push_back(engine::to_json(orphan));
  if (options.json) return print_json(answer);

  std::vector<std::vector<std::string>> rows = {{"run", run_id},
                                                {"directory", *directory},
                                                {"recipe", answer["recipe"]},
                                                {"policy", answer["policy"]},
                                                {"started", answer["started"]},
                                                {"status", answer["status"]}};
  if (answer["decision"].is_string()) rows.push_back({"decision", answer["decision"]});
  rows.push_back({"steps done", base::join(state.steps, " ")});
  if (!state.failed_step.empty())
    rows.push_back({"failed step", state.failed_step}), rows.push_back({"because", state.failure});
  std::string text = table(rows);
  text += "\n" + evidence::explain(state) + "\n";
  for (const auto& orphan : answer["orphans"])
    text += "\nIts engine still runs: pid " + std::to_string(orphan["pid"].get<int>()) + ", " +
            orphan["command"].get<std::string>() + "\nStop it with: kill " +
            std::to_string(orphan["pid"].get<int>()) + "\n";
  return print(text);
}

int run_reindex(const Options& options) {
  auto index = open_index(options.runs_dir);
  if (!index) return print_error(index.error(), options.json);
  auto count = index->reindex({options.runs_dir});
  if (!count) return print_error(count.error(), options.json);
  if (options.json) return print_json({{"runs_dir", options.runs_dir}, {"runs", *count}});
  return print(std::to_string(*count) + " runs indexed from " + options.runs_dir + "\n");
}

}  // namespace

void add_runs(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* group = root.add_subcommand("runs", "List and explain runs; rebuild their index");
  group->require_subcommand(0, 1);
  group->add_option("--runs-dir", options->runs_dir, "Where runs are kept");
  group->add_flag("--json", options->json, "One JSON object on stdout");
  group->footer("Example:\n  anvil runs show 20261130T172047Z-gemma-3-270m-1a2b3c");
  group->fallthrough();
  group->callback([options, &context] {
    if (!context.command) context.command = [options] { return run_list(*options); };
  });

  const auto add = [&](const char* name, const char* what, const char* example,
                       int (*body)(const Options&)) {
    CLI::App* command = group->add_subcommand(name, what);
    command->add_option("--runs-dir", options->runs_dir, "Where runs are kept");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->footer(std::string("Example:\n  ") + example);
    command->callback([options, body, &context] {
      context.command = [options, body] { return body(*options); };
    });
    return command;
  };
  add("list", "The runs of a folder, newest first", "anvil runs list --runs-dir runs", run_list);
  add("show", "How far a run got, why it failed, what still runs",
      "anvil runs show 20261130T172047Z-gemma-3-270m-1a2b3c", run_show)
      ->add_option("ID", options->run, "Run id (or its beginning, or its short id) or directory")
      ->required();
  add("reindex", "Rebuild the index from the run directories", "anvil runs reindex --runs-dir runs",
      run_reindex);
}

}  // namespace anvil::app
