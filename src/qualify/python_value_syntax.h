#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::qualify {

// One expression of the Python subset that python_value.h evaluates.
struct Node {
  enum class Kind {
    kNone,
    kBool,           // integer
    kInt,            // integer
    kFloat,          // real
    kString,         // text
    kName,           // text
    kList,           // children: items
    kComprehension,  // children: element, then per clause its iterable and conditions; names: the
                     // variable of each clause; counts: how many conditions it has
    kLambda,         // names: parameters; children: [body]
    kConditional,    // children: [then, condition, else]
    kAnd,
    kOr,
    kNot,
    kNegative,
    kCompare,    // children: operands; names: the operators between them
    kBinary,     // text: operator; children: [left, right]
    kSubscript,  // children: [value, index]
    kCall,       // text: name of the function; children: arguments
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<std::string> names;
  std::vector<size_t> counts;
  std::vector<std::unique_ptr<Node>> children;
};

// The function `name` of a source text as a kLambda node. kUnsupported for Python outside the
// subset, kInvalidInput for what is not Python.
Result<std::unique_ptr<Node>> parse_python_function(std::string_view source, std::string_view name);

}  // namespace anvil::qualify
