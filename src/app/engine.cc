#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/app.h"
#include "app/shipped.h"
#include "base/files.h"
#include "base/strings.h"
#include "scripted/server.h"

namespace anvil::app {

namespace {

struct EngineArguments {
  std::string schedule;
  scripted::Options options;
  std::string ledger;
  double max_seconds = 0;
  bool json = false;
};

recipe::Loaded<scripted::Schedule> load_schedule(const std::string& argument) {
  if (is_shipped_name(argument))
    if (const auto text = shipped("schedules", argument))
      return scripted::parse(*text, "schedules/" + argument + ".toml");
  return scripted::load(argument);
}

std::string summary_text(const Json& summary) {
  const auto us = [&](const char* key) {
    const double value = summary["lateness_us"][key].get<double>();
    return base::format_duration(static_cast<int64_t>(value * 1e3));
  };
  const auto counted = [&](const char* key, const char* one) {
    const auto count = summary[key].get<int64_t>();
    return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
  };
  std::string out = counted("requests", "request") + ", " + counted("events", "event") +
                    ", at most " + std::to_string(summary["in_flight_max"].get<int64_t>()) +
                    " in flight; own lateness p50 " + us("p50") + ", p99 " + us("p99") + ", max " +
                    us("max") + "\n";
  if (summary["void"].get<bool>())
    out +=
        "void: the engine itself was late by more than a tenth of the smallest gap, so a client "
        "cannot be judged by it; give it a core of its own, or spin_us\n";
  if (summary["cut"].get<int64_t>() > 0)
    out += "the ledger was full: " + counted("cut", "request") +
           " found no place in it; raise --ledger-events\n";
  return out;
}

int run_engine(const EngineArguments& arguments, const base::Cancel& cancel) {
  auto loaded = load_schedule(arguments.schedule);
  if (!loaded.ok()) return print_diagnostics(loaded.diagnostics, arguments.json);
  for (const auto& diagnostic : loaded.diagnostics)
    std::fprintf(stderr, "%s\n", recipe::to_string(diagnostic).c_str());
  // Found out before anything is sent, not after.
  if (const std::string folder = base::parent_path(arguments.ledger);
      !arguments.ledger.empty() && !base::is_directory(folder.empty() ? "." : folder))
    return print_error(
        Error(Kind::kUsage, Side::kClient, "--ledger cannot be written to " + arguments.ledger,
              "name a file in a folder that exists"),
        arguments.json);
  auto server = scripted::Server::start(std::move(*loaded.value), arguments.options);
  if (!server) return print_error(server.error(), arguments.json);
  const std::string url = (*server)->base_url();
  if (arguments.json)
    std::fprintf(stderr, "listening on %s\n", url.c_str());
  else if (const int printed = print("listening on " + url + "\n"); printed != base::kExitOk)
    return printed;

  const double seconds = arguments.max_seconds > 0 ? arguments.max_seconds : 1e9;
  base::sleep_unless_cancelled(cancel, static_cast<long long>(seconds * 1e9));
  (*server)->stop();
  const scripted::Ledger ledger = (*server)->ledger();
  if (!arguments.ledger.empty())
    if (const auto written =
            scripted::write_ledger(arguments.ledger, ledger, (*server)->schedule());
        !written)
      return print_error(written.error(), arguments.json);
  Json summary = scripted::summary(ledger);
  if (!arguments.json) return print(summary_text(summary));
  summary["listening"] = url;
  summary["schedule"] = (*server)->schedule().name;
  summary["schedule_sha256"] = (*server)->schedule().digest;
  return print_json(summary);
}

}  // namespace

void add_engine(CLI::App& root, Context& context) {
  auto arguments = std::make_shared<EngineArguments>();
  CLI::App* command = root.add_subcommand(
      "engine", "Run a scripted engine that sends exactly what a schedule says");
  command
      ->add_option("--schedule", arguments->schedule,
                   "Schedule file, or the name of a shipped one, e.g. sd-1")
      ->required();
  command
      ->add_option("--listen", arguments->options.listen,
                   "ADDRESS:PORT or unix:PATH; port 0 takes any free port")
      ->capture_default_str();
  command->add_option("--tls-cert", arguments->options.tls_certificate,
                      "Certificate chain (PEM): serves https");
  command->add_option("--tls-key", arguments->options.tls_key, "Its key (PEM)");
  command->add_option("--threads", arguments->options.threads, "Threads that send")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--ledger", arguments->ledger,
                      "Write what was sent and when to this file (JSON Lines), at the end");
  command
      ->add_option("--ledger-events", arguments->options.ledger_events,
                   "Events that the ledger keeps")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--max-seconds", arguments->max_seconds, "Stop by itself after this time")
      ->check(CLI::Range(0.0, 1e9));
  command->add_flag("--json", arguments->json, "One JSON object on stdout, at the end");
  command->footer(
      "Example:\n"
      "  anvil engine --schedule sd-1 --listen 127.0.0.1:8000 --ledger sent.jsonl\n\n"
      "Says where it listens, answers until Ctrl-C or --max-seconds, and then says what it sent "
      "and how late it was. It is no model and never pretends to be one.");
  command->callback([arguments, &context] {
    context.command = [arguments, &context] { return run_engine(*arguments, context.cancel); };
  });
}

}  // namespace anvil::app
