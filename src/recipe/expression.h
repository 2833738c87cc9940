#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "recipe/recipe.h"

namespace anvil::recipe {

// Small expressions over the fields of a recipe, as interface tables use them for flag values and
// consequences:
//
//   serving.context_tokens * serving.max_sequences
//   speculation.depth > 0 ? serving.max_sequences * (speculation.depth + 1) : 32
//   speculation.method == 'dspark' && serving.tensor_parallel >= 2
//
// Operators, loosest first: ?:  ||  &&  == != < <= > >=  + -  * / %  unary - !  and the functions
// min(a, b), max(a, b). Values: integers (64 bits, overflow is an error; / rounds toward zero),
// decimals (as soon as one operand is one), 'text', true, false. Names are dotted paths. A missing
// field is 0, and '' beside a text.
//
// Pure; at most 4096 bytes and 64 levels.
using FieldLookup = std::function<Json(std::string_view path)>;

// A number, text, bool, or whatever value the one named field has. Errors: kInvalidInput with the
// place in the expression.
Result<Json> evaluate(std::string_view expression, const FieldLookup& lookup);
Result<Json> evaluate(std::string_view expression, const Recipe& recipe);

// The dotted names in an expression, sorted, each once. The same errors as evaluate() for syntax.
Result<std::vector<std::string>> names_in(std::string_view expression);

}  // namespace anvil::recipe
