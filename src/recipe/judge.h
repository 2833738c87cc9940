#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "recipe/diagnostic.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

// Diagnostics about one document; a field that the schema refuses is not judged a second time.
class Judge {
 public:
  Judge(const TomlDocument& document, std::vector<Diagnostic>& diagnostics)
      : document_(document), diagnostics_(diagnostics) {
    for (const auto& diagnostic : diagnostics) refused_.insert(diagnostic.at.key);
  }

  void error(const std::string& key, std::string problem, std::string remedy) {
    if (refused_.contains(key)) return;
    diagnostics_.push_back({Diagnostic::Severity::kError, document_.position(key),
                            std::move(problem), std::move(remedy)});
  }
  void warning(const std::string& key, std::string problem, std::string remedy) {
    diagnostics_.push_back({Diagnostic::Severity::kWarning, document_.position(key),
                            std::move(problem), std::move(remedy)});
  }

  // Calls f(element, path) for every table of an array of tables.
  template <class F>
  void each(const std::string& array, F f) const {
    const auto found = document_.value.find(array);
    if (found == document_.value.end() || !found->is_array()) return;
    for (size_t i = 0; i < found->size(); ++i)
      if ((*found)[i].is_object()) f((*found)[i], array + "[" + std::to_string(i) + "]");
  }

  // Every table of the array has another value of `key`.
  void unique(const std::string& array, const std::string& key) {
    std::set<std::string> seen;
    each(array, [&](const Json& element, const std::string& path) {
      const auto found = element.find(key);
      if (found == element.end() || !found->is_string()) return;
      if (!seen.insert(found->get<std::string>()).second)
        error(path + "." + key, found->dump() + " stands twice", "give each its own " + key);
    });
  }

 private:
  const TomlDocument& document_;
  std::vector<Diagnostic>& diagnostics_;
  std::set<std::string> refused_;
};

// A member of a table, or the fallback where it is missing or of another type.
inline std::string text(const Json& table, const char* key, const char* fallback = "") {
  const auto found = table.find(key);
  return found != table.end() && found->is_string() ? found->get<std::string>() : fallback;
}

inline int64_t integer(const Json& table, const char* key, int64_t fallback) {
  const auto found = table.find(key);
  return found != table.end() && found->is_number_integer() ? found->get<int64_t>() : fallback;
}

inline bool flag(const Json& table, const char* key, bool fallback) {
  const auto found = table.find(key);
  return found != table.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

}  // namespace anvil::recipe
