#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace anvil::recipe {

// One thing that is wrong (or suspicious) in a file that a person wrote.
struct Diagnostic {
  enum class Severity { kError, kWarning };
  Severity severity = Severity::kError;
  Position at;
  std::string problem;
  std::string remedy;  // what would be right
};
// "FILE:LINE:COL: key: what is wrong; what would be right". Warnings say "warning: " after the key.
std::string to_string(const Diagnostic& diagnostic);

// Whether any of them is an error.
bool has_errors(const std::vector<Diagnostic>& diagnostics);
// By line and column, so that a person can work from the top of the file to its end.
void sort_by_position(std::vector<Diagnostic>& diagnostics);
// All errors as one error value: the first as its detail and position, the number of the others
// in the hint.
Error to_error(const std::vector<Diagnostic>& diagnostics);

// A checked file: the value, if there were no errors, and everything to say about it, in file
// order.
template <class T>
struct Loaded {
  std::optional<T> value;
  std::vector<Diagnostic> diagnostics;
  std::string source;  // the bytes as read

  bool ok() const { return value.has_value(); }
};

}  // namespace anvil::recipe
