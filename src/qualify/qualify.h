#pragma once

#include <optional>
#include <string>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"
#include "evidence/verify.h"
#include "recipe/policy.h"
#include "recipe/recipe.h"

namespace anvil::qualify {

// Everything that a qualification is decided by, loaded and checked. Sources are the bytes as the
// person wrote them.
struct Inputs {
  recipe::Recipe recipe;
  std::string recipe_source;
  recipe::Policy policy;
  std::string policy_source;
  recipe::Suite suite;
  std::string suite_source;
  engine::InterfaceTable table;
  std::optional<recipe::HostFile> host;
  std::string runs_dir;
  evidence::RenderReport render;  // the report room lies above this one
  bool measure_only = false;      // the lanes alone: no fingerprint, checks or ladder
};

// Follows a qualification. Called on the thread that runs it.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run_created(const std::string& directory) { (void)directory; }
  virtual void step_begin(std::string_view step) { (void)step; }
  // `done` of `total` (0 = unknown) and what is being done.
  virtual void progress(std::string_view step, int64_t done, int64_t total, std::string_view what) {
    (void)step, (void)done, (void)total, (void)what;
  }
  virtual void step_end(std::string_view step, bool ok, std::string_view summary) {
    (void)step, (void)ok, (void)summary;
  }
};

struct Outcome {
  std::string run;
  std::string run_dir;
  Json decision;            // decision.json
  std::string failed_step;  // "" if every step ended well
  std::optional<Error> failure;
};

// The main job: from frozen inputs to a sealed run directory with a decision (docs/architecture.md
// names the steps). An error means that no run could be created or its evidence could not be kept;
// everything else that goes wrong is part of the evidence and of the outcome. The engine that this
// call started is stopped before it returns.
Result<Outcome> qualify(const Inputs& inputs, Observer& observer, const base::Cancel& cancel);

}  // namespace anvil::qualify
