#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/qualify.h"
#include "recipe/diagnostic.h"
#include "recipe/policy.h"
#include "recipe/recipe.h"

namespace anvil::app {

// A policy or suite given as a file or as the name of a shipped one. An empty suite argument means
// the suite that the policy was written for, else "standard".
recipe::Loaded<recipe::Policy> load_policy(const std::string& argument);
recipe::Loaded<recipe::Suite> load_suite(const std::string& argument,
                                         const std::optional<recipe::Policy>& policy);

// What one run is made of, judged together: `inputs` is there when nothing is an error.
struct RunInputs {
  std::optional<qualify::Inputs> inputs;
  std::vector<recipe::Diagnostic> diagnostics;  // errors and warnings of all files
  std::optional<Error> error;                   // something else than a file is wrong
};
RunInputs assemble(recipe::Loaded<recipe::Recipe> recipe, recipe::Loaded<recipe::Policy> policy,
                   recipe::Loaded<recipe::Suite> suite, const std::string& host_file,
                   const std::string& runs_dir);

// Adds a finished run to the index; a failure is only worth a line on stderr, since the index can
// be rebuilt.
void index_run(const std::string& run_dir, const std::string& runs_dir, bool quiet);

}  // namespace anvil::app
