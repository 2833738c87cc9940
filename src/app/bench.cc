#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "app/endpoint.h"
#include "app/progress.h"
#include "app/run_inputs.h"
#include "base/files.h"
#include "evidence/flat_row.h"
#include "evidence/run_reader.h"

namespace anvil::app {

namespace {

struct Options {
  EndpointOptions endpoint;
  std::string plan;
  std::vector<int> concurrency{1};
  double rate = 0;
  std::string arrivals = "poisson";
  int requests = 0;
  int warmup = 2;
  int prompt_tokens = 512;
  int max_tokens = 128;
  int max_outstanding = 512;
  int threads = 1;
  int seed = 1;
  bool stream = true;
  bool natural = false;
  bool find_knee = false;
  std::string cache = "cold";
  std::string api = "chat";
  std::string connections = "reuse";
  std::vector<std::string> objectives;
  std::string runs_dir = default_runs_dir();
  std::string csv;
  bool json = false;
  bool rows = false;
  bool markdown = false;
  bool quiet = false;
};

// "ttfo_ms_p90=500" -> "ttfo_ms_p90 = 500"; the suite's own check judges name and value.
Result<std::string> objective_line(const std::string& text) {
  const size_t mark = text.find('=');
  if (mark == std::string::npos || mark == 0 || mark + 1 == text.size() ||
      text.find_first_of("\"\\\n{}, ") != std::string::npos)
    return fail(Kind::kUsage, Side::kClient, "\"" + text + "\" is no objective",
                "write METRIC_PERCENTILE=MILLISECONDS, e.g. ttfo_ms_p90=500");
  return text.substr(0, mark) + " = " + text.substr(mark + 1);
}

// The lanes that the flags describe, as a suite file would.
Result<std::string> suite_of(const Options& options) {
  if (options.find_knee && (options.rate <= 0 || options.objectives.empty()))
    return fail(Kind::kUsage, Side::kClient, "--find-knee needs a rate to begin at and objectives",
                "add --rate R and --objective METRIC_PERCENTILE=MILLISECONDS");
  std::string objectives;
  for (const auto& objective : options.objectives)
    objectives += (objectives.empty() ? "" : ", ") + TRY(objective_line(objective));
  std::string toml =
      "schema = \"anvil/suite/v1\"\nname = \"bench\"\nseed = " + std::to_string(options.seed) +
      "\n";
  // An endpoint that nobody prepared for Anvil rarely counts cached tokens: rows say so instead of
  // being refused.
  toml += "cache_proof = \"none\"\n";
  const auto lane = [&](const std::string& id, const std::string& load, int requests) {
    toml += "\n[[lane]]\nid = \"" + id + "\"\n" + load;
    toml += "requests = " + std::to_string(requests) +
            "\nwarmup = " + std::to_string(options.warmup) +
            "\nprompt_tokens = " + std::to_string(options.prompt_tokens) +
            "\noutput_tokens = " + std::to_string(options.max_tokens) +
            "\nfixed_output = " + (options.natural ? "false" : "true") +
            "\nstream = " + (options.stream ? "true" : "false") + "\ncache = \"" + options.cache +
            "\"\napi = \"" + options.api + "\"\n";
    if (options.connections != "reuse") toml += "connections = \"" + options.connections + "\"\n";
    if (options.threads != 1) toml += "threads = " + std::to_string(options.threads) + "\n";
    if (!objectives.empty()) toml += "objectives = { " + objectives + " }\n";
    if (options.find_knee) toml += "find_knee = true\n";
  };
  if (options.rate > 0) {
    char rate[64];
    std::snprintf(rate, sizeof rate, "%.6f", options.rate);
    lane("rate",
         std::string("load = \"") + options.arrivals + "\"\nrate = " + rate +
             "\nmax_outstanding = " + std::to_string(options.max_outstanding) + "\n",
         options.requests > 0 ? options.requests : 64);
    return toml;
  }
  for (const int level : options.concurrency)
    lane("c" + std::to_string(level), "concurrency = " + std::to_string(level) + "\n",
         options.requests > 0 ? options.requests : std::max(16, 4 * level));
  return toml;
}

Json answer_of(const qualify::Outcome& outcome, const evidence::RunReader& run, bool rows) {
  const Json results =
      run.has("results.json") ? run.document("results.json").value_or(Json()) : Json();
  Json lanes = results.is_object() ? results.value("lanes", Json::array()) : Json::array();
  Json reasons = Json::array();
  if (!outcome.failed_step.empty())
    reasons.push_back("step " + outcome.failed_step + " failed" +
                      (outcome.failure ? ": " + base::to_string(*outcome.failure) : ""));
  for (const Json& lane : lanes) {
    const std::string id = lane.value("id", "");
    for (const Json& reason : lane["client"]["invalid_reasons"])
      reasons.push_back("lane " + id + ": " + reason.get<std::string>());
    if (lane["requests"]["ok"] == 0) reasons.push_back("lane " + id + ": no request was answered");
  }
  Json answer = {
      {"run", outcome.run},
      {"run_dir", outcome.run_dir},
      {"valid", reasons.empty()},
      {"invalid_reasons", reasons},
      {"lanes", lanes},
      {"knees", results.is_object() ? results.value("knees", Json::array()) : Json::array()}};
  Json failures = Json::object();
  (void)run.for_each_row([&](const evidence::RequestRow& row) -> Result<void> {
    if (row.purpose != evidence::Purpose::kLane || row.outcome == evidence::Outcome::kOk) return {};
    std::string what(evidence::name(row.outcome));
    if (row.status >= 400) what += " " + std::to_string(row.status);
    Json& count = failures[row.lane][what];
    count = count.is_null() ? 1 : count.get<int>() + 1;
    return {};
  });
  answer["failures"] = failures;
  if (rows) {
    Json list = Json::array();
    (void)run.for_each_row([&](const evidence::RequestRow& row) -> Result<void> {
      if (row.purpose == evidence::Purpose::kLane) list.push_back(evidence::flat_row(row));
      return {};
    });
    answer["requests"] = list;
  }
  return answer;
}

std::string cell(const Json& value, int digits = 1) {
  if (!value.is_number()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value.get<double>());
  return text;
}

// A percentile that was not published, with what stands in for it.
std::string median_cell(const Json& distribution) {
  if (distribution["p50"].is_number()) return cell(distribution["p50"]);
  const Json& few = distribution["median_below_floor"];
  return few.is_number() ? "(" + cell(few) + ")" : "-";
}

std::vector<std::vector<std::string>> summary_rows(const Json& lanes) {
  std::vector<std::vector<std::string>> out{{"lane", "ok", "TTFO p50 ms", "p99", "TPOT p50 ms",
                                             "decode tok/s", "E2E p50 ms", "output tok/s",
                                             "client error p99 ms"}};
  for (const Json& lane : lanes) {
    const Json& steady = lane["steady"];
    const Json& calibration = lane["client"]["calibration"];
    const Json error = calibration.is_object() && calibration["valid"] == true
                           ? Json(calibration["first_output_us"]["p99"].get<double>() / 1e3)
                           : Json(nullptr);
    out.push_back(
        {lane["id"].get<std::string>(),
         std::to_string(lane["requests"]["ok"].get<int64_t>()) + "/" +
             std::to_string(lane["requests"]["total"].get<int64_t>()),
         median_cell(lane["ttfo_ms"]), cell(lane["ttfo_ms"]["p99"]), median_cell(lane["tpot_ms"]),
         median_cell(lane["decode_tok_s"]), median_cell(lane["e2e_ms"]),
         cell(steady.is_object() ? steady["output_tok_s"] : Json(nullptr)), cell(error, 3)});
  }
  return out;
}

std::string markdown_of(const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    out += "|";
    for (const auto& text : rows[i]) out += " " + text + " |";
    out += "\n";
    if (i > 0) continue;
    out += "|";
    for (size_t k = 0; k < rows[0].size(); ++k) out += k == 0 ? "---|" : "---:|";
    out += "\n";
  }
  return out;
}

Result<void> write_csv(const evidence::RunReader& run, const std::string& path) {
  std::string text = evidence::csv_header();
  TRY(run.for_each_row([&](const evidence::RequestRow& row) -> Result<void> {
    if (row.purpose == evidence::Purpose::kLane) text += evidence::csv_line(row);
    return {};
  }));
  return base::write_file_atomic(path, text);
}

int refuse(const Error& error, const Options& options) {
  if (!options.json) return print_error(error, false);
  print_json({{"run", nullptr},
              {"run_dir", nullptr},
              {"valid", false},
              {"invalid_reasons", {base::to_string(error)}},
              {"lanes", Json::array()},
              {"error", to_json(error)}});
  return base::describe(error.kind).exit_code;
}

int run_bench(const Options& options, const base::Cancel& cancel) {
  const auto recipe_text = endpoint_recipe(options.endpoint);
  if (!recipe_text) {
    // An endpoint that cannot even say what it is cannot be measured, whatever is the matter.
    const int code = refuse(recipe_text.error(), options);
    return recipe_text.error().side == Side::kUpstream ? base::kExitEnvironment : code;
  }
  auto policy = load_policy("measure");
  // Found out before anything is measured, not after.
  if (!options.csv.empty()) {
    const std::string folder = base::parent_path(options.csv);
    if (!base::is_directory(folder.empty() ? "." : folder) || base::is_directory(options.csv))
      return refuse(Error(Kind::kUsage, Side::kClient, "--csv cannot be written to " + options.csv,
                          "name a file in a folder that exists"),
                    options);
  }
  recipe::Loaded<recipe::Suite> suite;
  if (!options.plan.empty()) {
    suite = load_suite(options.plan, policy.value);
  } else {
    const auto text = suite_of(options);
    if (!text) return refuse(text.error(), options);
    suite = recipe::parse_suite(*text, "(from the command line)");
  }
  if (suite.value && suite.value->canonical.value("lane", Json::array()).empty())
    return refuse(Error(Kind::kInvalidInput, Side::kClient, options.plan + " has no lanes",
                        "add a [[lane]]; docs/suite.md has the form"),
                  options);
  RunInputs run = assemble(recipe::parse_recipe(*recipe_text, "(from the command line)"),
                           std::move(policy), std::move(suite), "", options.runs_dir);
  if (run.error) return refuse(*run.error, options);
  if (!run.inputs) return print_diagnostics(run.diagnostics, options.json);
  run.inputs->measure_only = true;

  Progress progress(options.quiet ? Progress::Mode::kQuiet : Progress::detect());
  auto outcome = qualify::qualify(*run.inputs, progress, cancel);
  if (!outcome) return refuse(outcome.error(), options);
  index_run(outcome->run_dir, options.runs_dir, options.quiet);
  const auto reader = evidence::RunReader::open(outcome->run_dir);
  if (!reader) return refuse(reader.error(), options);
  if (!options.csv.empty())
    if (auto written = write_csv(*reader, options.csv); !written)
      return refuse(written.error(), options);

  const Json answer = answer_of(*outcome, *reader, options.rows);
  int printed = base::kExitOk;
  if (options.json) {
    printed = print_json(answer);
  } else {
    const auto rows = summary_rows(answer["lanes"]);
    std::string text = options.markdown ? markdown_of(rows) : table(rows);
    if (!options.markdown) {
      text += "\n";
      for (const auto& [lane, kinds] : answer["failures"].items())
        for (const auto& [kind, count] : kinds.items())
          text += "failed   lane " + lane + ": " + std::to_string(count.get<int>()) + " x " + kind +
                  "\n";
      for (const Json& lane : answer["lanes"])
        for (const Json& warning : lane["client"]["warnings"])
          text += "note     lane " + lane["id"].get<std::string>() + ": " +
                  warning.get<std::string>() + "\n";
      for (const Json& knee : answer["knees"])
        text += "knee     lane " + knee["lane"].get<std::string>() + ": " +
                knee["statement"].get<std::string>() + "\n";
      for (const Json& reason : answer["invalid_reasons"])
        text += "INVALID  " + reason.get<std::string>() + "\n";
      text += "report   " + base::join_path(outcome->run_dir, "report.html") +
              "\nverify   anvil verify " + outcome->run_dir + "\n";
    }
    printed = print(text);
  }
  if (printed != base::kExitOk) return printed;
  return answer["valid"] == true ? base::kExitOk : base::kExitGate;
}

}  // namespace

void add_bench(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = root.add_subcommand(
      "bench", "Measure any OpenAI-compatible endpoint, with our own error beside the numbers");
  add_endpoint_options(*command, options->endpoint);
  CLI::Option* plan = command->add_option(
      "--plan", options->plan, "Suite file whose lanes are run, instead of the flags below");
  CLI::Option* concurrency =
      command
          ->add_option(
              "--concurrency", options->concurrency,
              "Closed loop: requests in flight; several levels make several lanes (1,8,32)")
          ->delimiter(',')
          ->check(CLI::Range(1, 4096));
  CLI::Option* rate =
      command->add_option("--rate", options->rate, "Open loop: mean arrivals per second")
          ->check(CLI::Range(0.001, 10000.0))
          ->excludes(concurrency);
  command->add_option("--arrivals", options->arrivals, "Open loop: constant or poisson")
      ->check(CLI::IsMember({"constant", "poisson"}))
      ->needs(rate);
  plan->excludes(concurrency)->excludes(rate);
  command
      ->add_option("--max-outstanding", options->max_outstanding,
                   "Open loop: most requests in flight")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--requests", options->requests,
                   "Measured requests per lane; default: 16 or 4 per place")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--warmup", options->warmup, "Requests before them, with other prompts")
      ->check(CLI::Range(0, 10000));
  command->add_option("--prompt-tokens", options->prompt_tokens, "Exact length of every prompt")
      ->check(CLI::Range(8, 16777216));
  command->add_option("--max-tokens", options->max_tokens, "Length of every answer")
      ->check(CLI::Range(1, 1048576));
  command->add_flag("--natural", options->natural,
                    "Let answers end by themselves (natural length); --max-tokens is the budget");
  command->add_flag("--stream,!--no-stream", options->stream, "Stream the answers (default)");
  command->add_option("--cache", options->cache, "cold or prefix")
      ->check(CLI::IsMember({"cold", "prefix"}));
  command->add_option("--api", options->api, "chat or completions")
      ->check(CLI::IsMember({"chat", "completions"}));
  command->add_option("--connections", options->connections, "reuse, fresh or pool")
      ->check(CLI::IsMember({"reuse", "fresh", "pool"}));
  command->add_option("--threads", options->threads, "Threads of the client")
      ->check(CLI::Range(1, 64));
  command->add_option("--objective", options->objectives,
                      "Service-level objective for goodput, e.g. ttfo_ms_p90=500; may be repeated");
  command->add_flag("--find-knee", options->find_knee,
                    "Search the highest rate that keeps the objectives, beginning at --rate");
  command->add_option("--seed", options->seed, "Same seed, same prompts and arrivals")
      ->check(CLI::Range(0, 2147483647));
  command->add_option("--runs-dir", options->runs_dir, "Where the run directory is made");
  command->add_option("--csv", options->csv, "Also write one line per request to this file");
  command->add_flag("--json", options->json, "One JSON object on stdout, at the end");
  command->add_flag("--rows", options->rows, "With --json: every request too");
  command->add_flag("--markdown", options->markdown, "The table as Markdown, to paste");
  command->add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "Example:\n"
      "  anvil bench --url http://127.0.0.1:8080 --concurrency 1,8,32 --max-tokens 256\n"
      "  anvil bench --url http://127.0.0.1:8000 --rate 4 --objective ttfo_ms_p90=500\n\n"
      "Exit code 0 when the run is valid, 1 when it is not (our client was the bottleneck, or\n"
      "nothing was answered), 2 for wrong input, 3 when nobody answers or the key is refused.\n"
      "Every number can be recomputed: anvil verify RUN_DIR.");
  command->callback([options, &context] {
    context.command = [options, &context] { return run_bench(*options, context.cancel); };
  });
}

}  // namespace anvil::app
