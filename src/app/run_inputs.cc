#include "app/run_inputs.h"

#include <cstdio>

#include "app/app.h"
#include "app/shipped.h"
#include "evidence/index.h"
#include "report/report.h"

namespace anvil::app {

recipe::Loaded<recipe::Policy> load_policy(const std::string& argument) {
  if (is_shipped_name(argument))
    if (const auto bytes = shipped("policies", argument))
      return recipe::parse_policy(*bytes, argument);
  return recipe::load_policy(argument);
}

recipe::Loaded<recipe::Suite> load_suite(const std::string& argument,
                                         const std::optional<recipe::Policy>& policy) {
  std::string name = argument;
  if (name.empty()) name = policy ? policy->canonical.value("suite", "standard") : "standard";
  if (is_shipped_name(name))
    if (const auto bytes = shipped("suites", name)) return recipe::parse_suite(*bytes, name);
  return recipe::load_suite(name);
}

RunInputs assemble(recipe::Loaded<recipe::Recipe> recipe, recipe::Loaded<recipe::Policy> policy,
                   recipe::Loaded<recipe::Suite> suite, const std::string& host_file,
                   const std::string& runs_dir) {
  RunInputs out;
  const auto collect = [&out](std::vector<recipe::Diagnostic>& diagnostics) {
    for (auto& diagnostic : diagnostics) out.diagnostics.push_back(std::move(diagnostic));
  };
  collect(recipe.diagnostics);
  collect(policy.diagnostics);
  collect(suite.diagnostics);
  std::optional<recipe::HostFile> host;
  if (!host_file.empty()) {
    auto loaded = recipe::load_host(host_file);
    collect(loaded.diagnostics);
    host = std::move(loaded.value);
  }
  std::optional<engine::InterfaceTable> table;
  if (recipe.value) {
    auto loaded = engine::InterfaceTable::for_recipe(*recipe.value);
    if (!loaded) {
      out.error = loaded.error();
      return out;
    }
    auto found = loaded->check(*recipe.value);
    collect(found);
    table = std::move(*loaded);
  }
  if (recipe::has_errors(out.diagnostics) || !recipe.value || !policy.value || !suite.value ||
      !table)
    return out;
  out.inputs = qualify::Inputs{std::move(*recipe.value),
                               std::move(recipe.source),
                               std::move(*policy.value),
                               std::move(policy.source),
                               std::move(*suite.value),
                               std::move(suite.source),
                               std::move(*table),
                               std::move(host),
                               runs_dir,
                               [](const evidence::RunReader& reader) {
                                 return report::render(reader, report::Format::kHtml);
                               }};
  return out;
}

void index_run(const std::string& run_dir, const std::string& runs_dir, bool quiet) {
  auto index = open_index(runs_dir);
  if (!index) return;
  auto run = evidence::RunReader::open(run_dir);
  const auto added = run ? index->put(evidence::describe(*run)) : Result<void>(fail(run.error()));
  if (!added && !quiet)
    std::fprintf(stderr,
                 "anvil: the index was not updated (%s); 'anvil runs reindex' rebuilds it\n",
                 base::to_string(added.error()).c_str());
}

}  // namespace anvil::app
