#include "host/doctor.h"

#include <CLI/CLI.hpp>

#include "app/app.h"

namespace anvil::app {

namespace {
int run_doctor(bool json) {
  const auto findings = host::examine();
  int failed = 0, warned = 0;
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& finding : findings) {
    failed += finding.verdict == host::Finding::Verdict::kFail;
    warned += finding.verdict == host::Finding::Verdict::kWarn;
    list.push_back(host::to_json(finding));
    rows.push_back({std::string(host::name(finding.verdict)), finding.id, finding.what});
    if (!finding.remedy.empty()) rows.push_back({"", "", "-> " + finding.remedy});
  }
  const int printed =
      json ? print_json(
                 {{"ok", failed == 0}, {"failed", failed}, {"warned", warned}, {"findings", list}})
           : print(table(rows) + "\n" + std::to_string(failed) + " failed, " +
                   std::to_string(warned) + " warnings, " + std::to_string(findings.size()) +
                   " looked at\n");
  return printed != base::kExitOk ? printed : failed ? base::kExitEnvironment : base::kExitOk;
}
}  // namespace

void add_doctor(CLI::App& root, Context& context) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      root.add_subcommand("doctor", "What this host offers and lacks, with the remedy for each");
  command->add_flag("--json", *json, "One JSON object on stdout");
  command->footer(
      "Example:\n  anvil doctor\n\nExit code 3 if something that a qualification needs is "
      "missing.");
  command->callback([json, &context] { context.command = [json] { return run_doctor(*json); }; });
}

}  // namespace anvil::app
