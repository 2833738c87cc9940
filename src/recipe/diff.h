#pragma once

#include "base/json.h"
#include "recipe/recipe.h"

namespace anvil::recipe {

// Two recipes compared by variable (weights, weight-kernel, kv-dtype, engine-build, topology,
// all-reduce, admission, context, memory-ceiling, speculation, sampling, loader, platform, launch;
// labels are ignored but listed):
// {"a":{"name","digest"},"b":{...},
//  "changed":[{"variable","fields":[{"path","a","b"}]}],
//  "consequences":[{"what","a","b","because"}],   // what follows from the changes, e.g. the
//  CUDA-graph cap "labels":[{"path","a","b"}], "unchanged":["weights",...]}
// `consequence_rules` come from the interface table of the engine (see interfaces/*.toml,
// [[consequence]]).
Json diff(const Recipe& a, const Recipe& b, const Json& consequence_rules);

}  // namespace anvil::recipe
