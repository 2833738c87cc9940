#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "app/endpoint.h"
#include "app/progress.h"
#include "app/run_inputs.h"
#include "base/files.h"
#include "engine/interface_table.h"
#include "evidence/compare_values.h"
#include "qualify/ab.h"
#include "recipe/diff.h"
#include "report/report.h"

namespace anvil::app {

namespace {

struct Options {
  std::vector<std::string> recipes;
  std::string a_url, b_url, model, api_key;
  std::string policy = "measure", suite, host;
  std::string primary;
  std::string order = "abba";
  qualify::AbPlan plan;
  double until_width = 0;
  std::string runs_dir = default_runs_dir();
  bool json = false;
  bool quiet = false;
};

int refuse(const Error& error, bool json) {
  return print_error(error, json);
}

Result<recipe::Loaded<recipe::Recipe>> load_arm(const Options& options, size_t index) {
  if (!options.recipes.empty()) return recipe::load_recipe(options.recipes[index]);
  EndpointOptions endpoint;
  endpoint.url = index == 0 ? options.a_url : options.b_url;
  endpoint.model = options.model;
  endpoint.api_key = options.api_key;
  const std::string text = TRY(endpoint_recipe(endpoint));
  return recipe::parse_recipe(text, index == 0 ? "(--a-url)" : "(--b-url)");
}

// What may differ between the arms: one variable, or anything when the comparison is declared
// exploratory. Two equal recipes measure the noise floor.
Result<Json> judge_difference(const qualify::Inputs& a, const qualify::Inputs& b,
                              bool exploratory) {
  Json diff = recipe::diff(a.recipe, b.recipe, a.table.consequence_rules());
  // Of two engines that somebody else runs, the address may be all that is known to differ.
  const std::string url_a = a.recipe.text("launch.url"), url_b = b.recipe.text("launch.url");
  if (diff["changed"].empty() && url_a != url_b)
    diff["changed"].push_back({{"variable", "endpoint"},
                               {"fields", {{{"path", "launch.url"}, {"a", url_a}, {"b", url_b}}}}});
  const Json& changed = diff["changed"];
  if (changed.size() <= 1 || exploratory) return diff;
  std::string names;
  for (const Json& entry : changed)
    names += (names.empty() ? "" : ", ") + entry["variable"].get<std::string>();
  return fail(Kind::kUsage, Side::kClient,
              "the recipes differ in " + std::to_string(changed.size()) + " variables: " + names,
              "an effect could not be laid to one of them; make them equal but for one ('anvil "
              "recipe diff' shows the fields), or say --exploratory and the report will say so");
}

// "LANE:METRIC" -> the plan's primary endpoint; by default the first lane's decode speed.
Result<void> choose_primary(const std::string& text, const Json& suite, qualify::AbPlan& plan) {
  const Json& lanes = suite.value("lane", Json::array());
  std::string known;
  for (const Json& lane : lanes) known += (known.empty() ? "" : ", ") + lane.value("id", "");
  if (lanes.empty())
    return fail(Kind::kUsage, Side::kClient, "the suite has no lanes to compare",
                "choose one with --suite");
  const size_t mark = text.find(':');
  plan.primary_lane = text.empty() ? lanes[0].value("id", "") : text.substr(0, mark);
  plan.primary_metric = mark == std::string::npos ? "decode_tok_s" : text.substr(mark + 1);
  const auto metric = TRY(evidence::compared_metric(plan.primary_metric));
  plan.primary_metric = metric.name;
  for (const Json& lane : lanes)
    if (lane.value("id", "") == plan.primary_lane) return {};
  return fail(Kind::kUsage, Side::kClient, "no lane is named \"" + plan.primary_lane + "\"",
              "the suite has " + known);
}

std::string fixed(const Json& value, int digits) {
  if (!value.is_number()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value.get<double>());
  return text;
}

std::string summary(const Json& comparison) {
  std::vector<std::vector<std::string>> rows{
      {"lane", "metric", "A", "B", "B/A", "95 % interval", "verdict"}};
  for (const Json& lane : comparison["lanes"])
    for (const Json& metric : lane["metrics"]) {
      const Json& interval = metric["interval"];
      rows.push_back(
          {lane["id"].get<std::string>(),
           metric["metric"].get<std::string>() + (metric["primary"] == true ? " (primary)" : ""),
           fixed(metric["medians"]["a"], 2), fixed(metric["medians"]["b"], 2),
           fixed(metric["ratio"], 4),
           interval.is_object() ? fixed(interval["low"], 4) + " .. " + fixed(interval["high"], 4) +
                                      (comparison["pairs"]["trusted"] == true ? "" : " ?")
                                : "-",
           metric["verdict"].get<std::string>()});
    }
  std::string text = table(rows);
  for (const Json& run : comparison["excluded"])
    text += "excluded  " + run["run"].get<std::string>() + ": " +
            run["excluded"].get<std::string>() + "\n";
  if (comparison["pairs"]["because"].is_string())
    text += "note      " + comparison["pairs"]["because"].get<std::string>() + "\n";
  return text;
}

int run_command(const Options& options, const base::Cancel& cancel) {
  const bool endpoints = !options.a_url.empty() || !options.b_url.empty();
  if (endpoints ? options.a_url.empty() || options.b_url.empty() || !options.recipes.empty()
                : options.recipes.size() != 2)
    return refuse(
        Error(Kind::kUsage, Side::kClient,
              "two arms are needed: two recipes, or --a-url and --b-url", "see 'anvil ab --help'"),
        options.json);
  std::optional<qualify::Inputs> arms[2];
  for (size_t i = 0; i < 2; ++i) {
    auto loaded = load_arm(options, i);
    if (!loaded) return refuse(loaded.error(), options.json);
    auto policy = load_policy(options.policy);
    auto suite = load_suite(options.suite, policy.value);
    RunInputs run = assemble(std::move(*loaded), std::move(policy), std::move(suite), options.host,
                             options.runs_dir);
    if (run.error) return refuse(*run.error, options.json);
    if (!run.inputs) return print_diagnostics(run.diagnostics, options.json);
    arms[i] = std::move(run.inputs);
  }
  qualify::AbPlan plan = options.plan;
  plan.random_order = options.order == "random";
  if (options.until_width > 0) plan.until_width = options.until_width;
  if (auto chosen = choose_primary(options.primary, arms[0]->suite.canonical, plan); !chosen)
    return refuse(chosen.error(), options.json);
  const auto diff = judge_difference(*arms[0], *arms[1], plan.exploratory);
  if (!diff) return refuse(diff.error(), options.json);

  Progress progress(options.quiet ? Progress::Mode::kQuiet : Progress::detect());
  const auto outcome = qualify::run_ab(*arms[0], *arms[1], plan, *diff, options.runs_dir,
                                       report::render_campaign, progress, cancel);
  if (!outcome) return refuse(outcome.error(), options.json);
  int printed = base::kExitOk;
  if (options.json) {
    printed = print_json({{"campaign", outcome->id},
                          {"campaign_dir", outcome->directory},
                          {"runs", outcome->runs},
                          {"excluded", outcome->excluded},
                          {"cancelled", outcome->cancelled},
                          {"comparison", outcome->comparison}});
  } else {
    printed = print(summary(outcome->comparison) + "\nreport   " +
                    base::join_path(outcome->directory, "report.html") +
                    "\nverify   anvil verify " + outcome->directory + "\n");
  }
  if (printed != base::kExitOk) return printed;
  return outcome->cancelled || outcome->excluded == outcome->runs ? base::kExitGate : base::kExitOk;
}

}  // namespace

void add_ab(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = root.add_subcommand(
      "ab", "Compare two recipes that differ in one variable: paired, ordered, with intervals");
  command->add_option("RECIPES", options->recipes, "Recipe A and recipe B")->expected(0, 2);
  command->add_option("--a-url", options->a_url, "Instead of recipes: endpoint A");
  command->add_option("--b-url", options->b_url, "and endpoint B; engines are not restarted");
  command->add_option("--model", options->model, "Model id at both endpoints");
  command->add_option("--api-key", options->api_key, "Key by reference: env:NAME or file:PATH");
  command->add_option("--suite", options->suite,
                      "Suite whose lanes are run (file or shipped name); default: standard");
  command->add_option("--policy", options->policy, "Policy of the single runs; default: measure");
  command->add_option("--host", options->host, "Private host file: which GPU is which role");
  command->add_option("--pairs", options->plan.pairs, "Pairs of runs, one of each arm (default 6)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--primary", options->primary,
                      "The one endpoint that decides, LANE:METRIC; default: the first lane's "
                      "decode_tok_s");
  command
      ->add_option("--margin", options->plan.margin, "Equivalence margin as a share (default 0.05)")
      ->check(CLI::Range(0.001, 1.0));
  command->add_option("--order", options->order, "abba or random")
      ->check(CLI::IsMember({"abba", "random"}));
  command
      ->add_option("--until-width", options->until_width,
                   "Stop rule: end early once the primary interval is narrower than this share")
      ->check(CLI::Range(0.001, 10.0));
  command->add_option("--seed", options->plan.seed, "Of the random order and of the resampling");
  command->add_flag("--exploratory", options->plan.exploratory,
                    "Allow more than one changed variable; the report says so");
  command->add_option("--runs-dir", options->runs_dir, "Where the campaign's folder is made");
  command->add_flag("--json", options->json, "One JSON object on stdout, at the end");
  command->add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "Example:\n"
      "  anvil ab recipes/target-only.toml recipes/ngram.toml --suite standard --pairs 6\n"
      "  anvil ab --a-url http://127.0.0.1:8000 --b-url http://127.0.0.1:8001 --pairs 6\n\n"
      "The plan (order, pairs, primary endpoint, stop rule) is fixed before the first run. Exit "
      "code\n"
      "0 when it was carried out, 1 when it was stopped or every run was excluded, 2 for wrong\n"
      "input or more than one changed variable, 3 when evidence cannot be kept.");
  command->callback([options, &context] {
    context.command = [options, &context] { return run_command(*options, context.cancel); };
  });
}

}  // namespace anvil::app
