#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"
#include "engine/runner.h"
#include "recipe/recipe.h"

namespace anvil::engine {

// Where a recipe's file lies: an absolute path; beside the recipe; in the models folder
// (base::models_home()). Nothing when it is in none of them.
std::optional<std::string> find_file(const recipe::Recipe& recipe, std::string_view name);
// The places that find_file() looked at, for error messages.
std::vector<std::string> search_places(const recipe::Recipe& recipe, std::string_view name);

// What the engine gets as its model: launch.model_path, else the first artifact of kind "weights"
// (its folder where the engine line loads folders), else model.repo. Paths are made absolute when
// the file is found.
Result<std::string> resolve_model_path(const recipe::Recipe& recipe, const InterfaceTable& table);
// Fills in `model_path` and `chat_template` of the options. The error names the places looked at.
Result<LaunchOptions> resolve_launch_files(const recipe::Recipe& recipe,
                                           const InterfaceTable& table, LaunchOptions options = {});

struct ArtifactCheck {
  std::string file;  // as the recipe names it
  std::string path;  // where it was found; empty if nowhere
  std::string kind;
  uint64_t bytes = 0;
  std::string
      sha256;  // as computed; empty if the file could not be read or the recipe names no digest
  bool remembered =
      false;  // the digest was computed before and the file is unchanged since (inode, size, times)
  std::optional<Error> error;
};
// [{"file","path","kind","bytes","sha256","remembered","error":null|"..."}]
Json to_json(const std::vector<ArtifactCheck>& checks);

// `file`, bytes done, bytes of the file; return false to stop.
using HashProgress = std::function<bool(const std::string& file, uint64_t done, uint64_t total)>;

// Proves that every artifact of the recipe is there, has the declared size and SHA-256, and, for
// GGUF, that the header is sane and the file holds every tensor it lists. Digests are remembered in
// base::state_home()/hash-cache.json. All artifacts are checked; a check that failed carries its
// error. Cancelling gives kCancelled.
Result<std::vector<ArtifactCheck>> verify_artifacts(const recipe::Recipe& recipe,
                                                    const HashProgress& progress,
                                                    const base::Cancel& cancel);

}  // namespace anvil::engine
