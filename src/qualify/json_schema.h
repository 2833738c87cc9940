#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace anvil::qualify {

// One place where a value breaks its schema.
struct SchemaViolation {
  std::string pointer;  // JSON pointer into the value, "" for the whole
  std::string problem;

  bool operator==(const SchemaViolation&) const = default;
};

// Validates against the subset of JSON Schema that our own checks use: type (a name or a list),
// properties, required, additionalProperties (bool or schema), items (one schema), minItems,
// maxItems, enum, const, minimum, maximum, minLength, maxLength. As in the standard a number with a
// zero fraction is an integer. Annotations (title, description, $schema, default) are ignored; any
// other keyword is itself a violation, because a rule that is not enforced must not look enforced.
std::vector<SchemaViolation> validate_schema(const Json& schema, const Json& value);

// "/guests: is a string, must be an integer; /names: missing"; "" for no violations.
std::string to_string(const std::vector<SchemaViolation>& violations);

}  // namespace anvil::qualify
