#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "qualify/checks_send.h"
#include "qualify/sandbox.h"

namespace anvil::qualify {

// A function to be written, and what it must return. Expected values never enter the sandbox, so
// code cannot find them there.
struct CodeTask {
  struct Case {
    Json arguments;  // a list
    Json expected;
  };
  std::string function;
  std::vector<Case> cases;
};

// The Python in an answer that defines `function`: the first fenced block that does, an unclosed
// fence up to the end, else the definition found in bare text with the imports before it. Common
// indentation is removed. Nothing if there is none.
std::optional<std::string> extract_code(std::string_view answer, std::string_view function);

// Executes the answer's code on every case and judges the values. Where nothing may be executed
// the built-in evaluator is used. The evidence says which: {"execution":"bubblewrap"|
// "kernel-filter"|"built-in evaluator","code","sandbox",
// "cases":[{"arguments","expected","got"|"error"}]}. Errors: the sandbox could not be started.
Result<Grade> grade_code(const CodeTask& task, std::string_view answer, const Sandbox& sandbox,
                         const base::Cancel& cancel);

}  // namespace anvil::qualify
