#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::qualify {

// Evaluates a small, pure part of Python without running anything: for hosts on which foreign code
// may not be executed. The source must hold one function `name`, as
//   def NAME(PARAMETERS): [docstring] return EXPRESSION        or        NAME = lambda PARAMETERS:
//   EXPRESSION
// with annotations allowed. EXPRESSION may use numbers, strings, True/False/None, names, lists and
// tuples, subscripts with integers, + - * / // % **, comparisons (chained), and/or/not, in/not in,
// conditional expressions, list comprehensions, generator arguments and calls of sum, len, min,
// max, abs, range, sorted, list, int, bool, any, all, map and filter (the last two with a lambda).
// Work is bounded by `max_steps`. kUnsupported names what it does not understand; kInvalidInput is
// a Python error of the code (syntax, unknown name, wrong type, division by zero).
Result<Json> call_python_function(std::string_view source, std::string_view name,
                                  const std::vector<Json>& arguments, int64_t max_steps = 100'000);

}  // namespace anvil::qualify
