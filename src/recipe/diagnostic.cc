#include "recipe/diagnostic.h"

#include <algorithm>
#include <tuple>

namespace anvil::recipe {

std::string to_string(const Diagnostic& diagnostic) {
  std::string out = base::to_string(diagnostic.at);
  if (!out.empty()) out += ": ";
  if (diagnostic.severity == Diagnostic::Severity::kWarning) out += "warning: ";
  out += diagnostic.problem;
  if (!diagnostic.remedy.empty()) out += "; " + diagnostic.remedy;
  return out;
}

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Diagnostic::Severity::kError;
  });
}

void sort_by_position(std::vector<Diagnostic>& diagnostics) {
  std::stable_sort(
      diagnostics.begin(), diagnostics.end(), [](const Diagnostic& left, const Diagnostic& right) {
        return std::tie(left.at.line, left.at.column) < std::tie(right.at.line, right.at.column);
      });
}

Error to_error(const std::vector<Diagnostic>& diagnostics) {
  const Diagnostic* first = nullptr;
  size_t errors = 0;
  for (const auto& diagnostic : diagnostics) {
    if (diagnostic.severity != Diagnostic::Severity::kError) continue;
    if (!first) first = &diagnostic;
    ++errors;
  }
  if (!first) return Error(Kind::kInternal, Side::kInternal, "no error among the diagnostics");
  Error error(Kind::kInvalidInput, Side::kClient, first->problem, first->remedy);
  if (errors > 1) {
    if (!error.hint.empty()) error.hint += "; ";
    error.hint += "and " + std::to_string(errors - 1) +
                  (errors == 2 ? " more error" : " more errors") + " in this file";
  }
  return error.with_position(first->at);
}

}  // namespace anvil::recipe
