#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "evidence/client_error.h"
#include "measure/calibrate.h"

namespace anvil::app {

namespace {

struct Options {
  std::vector<int> concurrency{1, 32, 256};
  double rate = 20;  // events per second and stream
  int threads = 1;
  bool saturation = false;
  bool json = false;
  bool quiet = false;
};

measure::CalibrationPoint point_of(const Options& options, size_t number, int concurrency,
                                   double rate) {
  measure::CalibrationPoint point;
  point.lane = "c" + std::to_string(concurrency) + "#" + std::to_string(number);
  point.concurrency = concurrency;
  point.threads = options.threads;
  point.events_per_s = rate * concurrency;
  return point;
}

// Whether the client was still right at that load: the time to first output within 5 ms, gaps
// within 5 % in the median. `by` says who gave way.
bool kept_up(const Json& point, double gap_ms, std::string& by) {
  const evidence::ClientError errors(Json{{"points", Json::array({point})}});
  const Json summary = errors.summary(point["lane"].get<std::string>());
  by = summary.value("because", "");
  if (summary["valid"] != true) return false;
  const auto within = [](const Json& error, double limit_ms) {
    return error.is_object() && error["p50"].get<double>() / 1e3 <= limit_ms;
  };
  const bool ok = within(summary["first_output_us"], 5) && within(summary["gap_us"], gap_ms * 0.05);
  if (!ok) by = "the client";
  return ok;
}

// Doubles the event rate until client or scripted engine gives way.
Result<Json> find_saturation(const Options& options, int concurrency, const base::Cancel& cancel) {
  Json out = {{"concurrency", concurrency}, {"events_per_s", nullptr}, {"limited_by", nullptr}};
  for (double rate = options.rate; rate <= 20'000; rate *= 2) {
    const Json document =
        TRY(measure::calibrate({point_of(options, 1, concurrency, rate)}, cancel, {}));
    const Json& point = document["points"][0];
    std::string by;
    if (!kept_up(point, 1e3 / rate, by)) {
      out["limited_by"] = by;
      break;
    }
    out["events_per_s"] = point["events_per_s"];
  }
  return out;
}

int run_calibrate(const Options& options, const base::Cancel& cancel) {
  std::vector<measure::CalibrationPoint> points;
  for (const int level : options.concurrency)
    points.push_back(point_of(options, points.size() + 1, level, options.rate));
  const auto document =
      measure::calibrate(points, cancel, [&](size_t done, const std::string& what) {
        if (!options.quiet && !options.json)
          std::fprintf(stderr, "calibrating %s (%zu of %zu)\n", what.c_str(), done + 1,
                       points.size());
      });
  if (!document) return print_error(document.error(), options.json);
  const evidence::ClientError errors(*document);

  Json answer = {{"points", Json::array()}, {"saturation", nullptr}};
  bool valid = true;
  std::vector<std::vector<std::string>> rows{{"streams", "events/s", "stamp p50 us", "p99", "p99.9",
                                              "first output p99 us", "gap p99 us", "CPU us/event",
                                              "server late p99 us", ""}};
  const auto cell = [](const Json& object, const char* key, double scale = 1) {
    char text[64] = "-";
    if (object.is_object() && object.contains(key) && object[key].is_number())
      std::snprintf(text, sizeof text, "%.1f", object[key].get<double>() * scale);
    return std::string(text);
  };
  for (const Json& point : (*document)["points"]) {
    Json summary = errors.summary(point["lane"].get<std::string>());
    valid = valid && summary["valid"] == true;
    summary["client"] = point["client"];
    summary["server"] = point["server"];
    rows.push_back({std::to_string(point["concurrency"].get<int>()), cell(point, "events_per_s"),
                    cell(summary["stamp_us"], "p50"), cell(summary["stamp_us"], "p99"),
                    cell(summary["stamp_us"], "p999"), cell(summary["first_output_us"], "p99"),
                    cell(summary["gap_us"], "p99"), cell(point["client"], "cpu_ns_per_event", 1e-3),
                    cell(point["server"]["lateness_us"], "p99"),
                    summary["valid"] == true ? "" : "VOID: " + summary.value("because", "")});
    answer["points"].push_back(std::move(summary));
  }
  if (options.saturation) {
    auto found = find_saturation(options, options.concurrency.back(), cancel);
    if (!found) return print_error(found.error(), options.json);
    answer["saturation"] = std::move(*found);
  }
  answer["valid"] = valid;
  int printed = base::kExitOk;
  if (options.json) {
    printed = print_json(answer);
  } else {
    std::string text = table(rows);
    if (const Json& found = answer["saturation"]; found.is_object())
      text += "saturation with " + std::to_string(found["concurrency"].get<int>()) +
              " streams: " + cell(found, "events_per_s") + " events/s held" +
              (found["limited_by"].is_string()
                   ? "; then limited by: " + found["limited_by"].get<std::string>()
                   : "") +
              "\n";
    printed = print(text);
  }
  if (printed != base::kExitOk) return printed;
  return valid ? base::kExitOk : base::kExitGate;
}

}  // namespace

void add_calibrate(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = root.add_subcommand(
      "calibrate", "Measure the error of our own client on this host, against a scripted engine");
  command->add_option("--concurrency", options->concurrency, "Streams; several levels: 1,32,256")
      ->delimiter(',')
      ->check(CLI::Range(1, 16384));
  command->add_option("--rate", options->rate, "Events per second of each stream (default 20)")
      ->check(CLI::Range(0.5, 5000.0));
  command->add_option("--threads", options->threads, "Threads of the client")
      ->check(CLI::Range(1, 64));
  command->add_flag("--saturation", options->saturation,
                    "Also double the rate at the last level until something gives way");
  command->add_flag("--json", options->json, "One JSON object on stdout, at the end");
  command->add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "Example:\n  anvil calibrate --concurrency 1,32,256 --rate 50\n\n"
      "Every qualify, bench and ab does this by itself for its own lanes. Exit code 1 when the\n"
      "scripted engine was too late on this host for the figures to mean anything.");
  command->callback([options, &context] {
    context.command = [options, &context] { return run_calibrate(*options, context.cancel); };
  });
}

}  // namespace anvil::app
