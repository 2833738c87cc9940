#pragma once

#include "base/json.h"
#include "recipe/recipe.h"

namespace anvil::recipe {

// Two recipes compared by variable (weights, weight-kernel, kv-dtype, engine-build, topology,
// all-reduce, admission, context, memory-ceiling, speculation, sampling, loader, platform, launch,
// template, hardware; labels are ignored but listed):
//   {"a":{"name","digest"},"b":{...},
//    "changed":[{"variable","fields":[{"path","a","b"}]}],
//    "consequences":[{"what","a","b","because"}],
//    "labels":[{"path","a","b"}],
//    "unchanged":["weights",...]}
// Consequences are what follows from the changes by itself, e.g. the CUDA-graph cap.
// `consequence_rules` come from the interface table of the engine (interfaces/*.toml,
// [[consequence]]): [{"what","expression","because"}].
// A rule that cannot be evaluated is listed with "error". Only identifying fields count; a field at
// its default equals the field left out.
Json diff(const Recipe& a, const Recipe& b, const Json& consequence_rules);

// All variables, in the order of the field table.
std::vector<std::string_view> variables();

}  // namespace anvil::recipe
