#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::evidence {

// A path into results.json as policies write it: members joined by ".", each followed by any number
// of "[*]" (all elements of an array, all values of an object) or "[N]" (one element):
// "lanes[*].ttfo_ms.p50".
struct MetricPath {
  struct Step {
    enum class What { kMember, kAll, kElement } what = What::kMember;
    std::string member;
    size_t element = 0;
  };
  std::vector<Step> steps;
};
Result<MetricPath> parse_metric_path(std::string_view text);

// One value that a path leads to; `value` is null where the path breaks off, `pointer` then names
// what is missing.
struct MetricMatch {
  std::string pointer;  // JSON pointer
  const Json* value = nullptr;
};
struct MetricMatches {
  std::vector<MetricMatch> found;
  std::string collection;  // pointer to what the first "[*]" runs over, "" without one
  bool collection_exists = false;
};
// `select` filters the elements that "[*]" runs over: {"key": value} or {"key": [values]}. An
// element that has the key with another value is left out, and every key must have been met
// somewhere on the way.
MetricMatches match(const Json& results, const MetricPath& path, const Json& select);

}  // namespace anvil::evidence
