#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/interface_rules.h"
#include "engine/runner.h"

namespace anvil::engine {

inline constexpr std::string_view kStartPhase = "start";
inline constexpr std::string_view kReadyPhase = "ready";

// Turns the log of one start into phases. Begins in phase "start"; a line that matches a phase rule
// enters that phase, unless it was entered before: then its values are merged into it. Lines of
// workers interleave, so a phase is never left for an earlier one. Not thread-safe.
class PhaseTracker {
 public:
  PhaseTracker(std::shared_ptr<const InterfaceTable::Rules> rules, Nanos started);

  // True when the line entered a new phase.
  bool feed(std::string_view line, Nanos now);
  void enter(std::string_view name, Nanos now);
  // Values that belong to the current phase.
  void note(const Json& values, PhaseRule::Keep keep = PhaseRule::Keep::kFirst);

  const std::vector<Phase>& phases() const { return phases_; }
  const std::string& current() const { return phases_.back().name; }

 private:
  std::shared_ptr<const InterfaceTable::Rules> rules_;
  std::vector<Phase> phases_;
};

// [{"name","at_ns","values"}]
Json to_json(const std::vector<Phase>& phases);

}  // namespace anvil::engine
