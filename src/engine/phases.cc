#include "engine/phases.h"

#include <algorithm>

namespace anvil::engine {

namespace {

void merge(Json& into, const Json& values, PhaseRule::Keep keep) {
  for (const auto& [name, value] : values.items()) {
    const auto found = into.find(name);
    if (found == into.end() || keep == PhaseRule::Keep::kLast) {
      into[name] = value;
    } else if (value.is_number() && found->is_number() &&
               ((keep == PhaseRule::Keep::kMin && value < *found) ||
                (keep == PhaseRule::Keep::kMax && value > *found))) {
      *found = value;
    }
  }
}

}  // namespace

PhaseTracker::PhaseTracker(std::shared_ptr<const InterfaceTable::Rules> rules, Nanos started)
    : rules_(std::move(rules)) {
  phases_.push_back({std::string(kStartPhase), started, Json::object()});
}

bool PhaseTracker::feed(std::string_view line, Nanos now) {
  bool entered = false;
  for (const PhaseRule& rule : rules_->phases) {
    const auto values = rule.pattern.match(line);
    if (!values) continue;
    if (rule.fact) {
      note(*values, rule.keep);
      continue;
    }
    const auto known = std::find_if(phases_.begin(), phases_.end(),
                                    [&](const Phase& phase) { return phase.name == rule.name; });
    if (known != phases_.end()) {
      merge(known->values, *values, rule.keep);
    } else {
      enter(rule.name, now);
      merge(phases_.back().values, *values, rule.keep);
      entered = true;
    }
  }
  return entered;
}

void PhaseTracker::enter(std::string_view name, Nanos now) {
  phases_.push_back({std::string(name), now, Json::object()});
}

void PhaseTracker::note(const Json& values, PhaseRule::Keep keep) {
  merge(phases_.back().values, values, keep);
}

Json to_json(const std::vector<Phase>& phases) {
  Json list = Json::array();
  for (const Phase& phase : phases) {
    list.push_back({{"name", phase.name}, {"at_ns", phase.at}, {"values", phase.values}});
  }
  return list;
}

}  // namespace anvil::engine
