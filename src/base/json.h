#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace anvil::base {

// Documents (not hot paths). Objects keep their keys sorted, so a dump is canonical by itself.
using Json = nlohmann::json;

// Strict parse of foreign or stored text: no comments, no trailing bytes, no duplicate keys, depth
// <= 200. `what` names the text in the error, e.g. "results.json".
Result<Json> parse_json(std::string_view text, std::string_view what);

// Canonical form: sorted keys, no white space, shortest round-trip numbers, invalid UTF-8 replaced.
// The digest of a document is the SHA-256 of this.
std::string canonical(const Json& value);
// Indented form for files that people read, with a final newline.
std::string pretty(const Json& value);

// The first places where two documents differ, as JSON pointers into them; at most `limit`.
struct JsonDifference {
  std::string pointer;
  Json left, right;  // null where one side lacks the value
};
std::vector<JsonDifference> differences(const Json& left, const Json& right, size_t limit = 100);

}  // namespace anvil::base

namespace anvil {
using base::Json;
}
