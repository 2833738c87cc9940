#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/interface_table.h"
#include "engine/log_pattern.h"

namespace anvil::engine {

// A phase of start-up and the line that announces it, or a fact that is worth keeping.
struct PhaseRule {
  enum class Keep { kFirst, kLast, kMin, kMax };
  std::string name;
  LogPattern pattern;
  bool fact = false;         // begins no phase: the values belong to the phase they were seen in
  Keep keep = Keep::kFirst;  // which value counts when several lines carry it (one per rank)
};

// A cause of failure and the lines that show it.
struct FailureRule {
  std::string klass;
  std::string hint;
  std::vector<LogPattern> patterns;
  std::vector<std::string> phases;  // only in these; empty: in any ("" is before the first phase)
  bool wrapper = false;             // these lines only wrap a cause that stands elsewhere
  bool last = false;                // says more than nothing; any other cause is better
};

struct Readiness {
  std::string path = "/health";
  int ready = 200;
  std::vector<int> loading;  // statuses of an engine that is coming up
};

// The parts of a table that are looked at for every log line, compiled once.
struct InterfaceTable::Rules {
  std::vector<PhaseRule> phases;
  std::vector<FailureRule> failures;
  // Marks of lines that report no error (" WARNING "), looked for in the first 64 bytes.
  std::vector<std::string> mild;
  Readiness readiness;
  std::string program_hint;                  // how to get the program when it is missing
  std::vector<LogPattern> version_patterns;  // of what the program prints about its version
};

}  // namespace anvil::engine
