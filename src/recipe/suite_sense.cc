#include "recipe/suite_sense.h"

#include <set>

namespace anvil::recipe {

void judge_suite(Judge& judge, const TomlDocument& document) {
  judge_lanes(judge);
  for (const char* list : {"include", "efforts"}) {
    std::set<std::string> seen;
    const Json* values = find_value(document.value, std::string("checks.") + list);
    if (!values || !values->is_array()) continue;
    for (size_t i = 0; i < values->size(); ++i)
      if ((*values)[i].is_string() && !seen.insert((*values)[i].get<std::string>()).second)
        judge.error(std::string("checks.") + list + "[" + std::to_string(i) + "]",
                    (*values)[i].dump() + " stands twice", "remove one of the two");
  }
  if (const Json* targets = find_value(document.value, "ladder.targets");
      targets && targets->is_array()) {
    for (size_t i = 1; i < targets->size(); ++i)
      if ((*targets)[i].is_number() && (*targets)[i - 1].is_number() &&
          (*targets)[i] <= (*targets)[i - 1])
        judge.error("ladder.targets[" + std::to_string(i) + "]",
                    (*targets)[i].dump() + " is not above " + (*targets)[i - 1].dump(),
                    "list the targets in ascending order");
  }
  if (const Json* depths = find_value(document.value, "ladder.depths");
      depths && depths->is_array()) {
    for (size_t i = 0; i < depths->size(); ++i)
      if ((*depths)[i].is_number() && ((*depths)[i] <= 0 || (*depths)[i] >= 1))
        judge.error("ladder.depths[" + std::to_string(i) + "]", "found " + (*depths)[i].dump(),
                    "wanted a number above 0 and below 1");
  }
}

}  // namespace anvil::recipe
