#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/interface_table.h"
#include "evidence/request_row.h"
#include "measure/client.h"
#include "qualify/sandbox.h"

namespace anvil::qualify {

// What a check needs to know of the serve and where its requests go. Filled once per run; `effort`
// is set by run_checks for each pass.
struct CheckContext {
  measure::Client& client;
  measure::Endpoint
      endpoint;  // where `client` sends to; for side calls and for the aborting client
  const base::Cancel& cancel;
  std::function<Result<int64_t>(evidence::RequestRow)> record;  // RunWriter::append
  const Sandbox& sandbox;
  std::string model;   // the id to send
  std::string effort;  // "" = send none
  std::string engine;  // engine.kind of the recipe: "llama.cpp", "vllm", "sglang", "external"
  const engine::InterfaceTable& table;
  std::string salt;            // of the run: its id; makes nonces new to this engine
  int64_t context_tokens = 0;  // of one sequence; 0 = unknown
  int64_t max_tokens = 256;    // answer budget, reasoning included
  int64_t seed = 1;            // codes and values in prompts derive from it
  // Lanes may use prompts of about the right length where the engine counts no tokens at all.
  bool estimates = false;
};

enum class CheckVerdict { kPass, kFail, kSkipped };
std::string_view name(CheckVerdict verdict);  // "pass", "fail", "skipped"

// One attempt of one check: an element of "checks" in checks.json.
struct CheckResult {
  std::string id;
  std::string effort;
  int attempt = 0;
  CheckVerdict verdict = CheckVerdict::kFail;
  std::string proves;
  std::string detail;         // why, one sentence
  std::vector<int64_t> rows;  // seq of its requests, in order
  Json request;               // the body that was graded, null if none was sent
  Json answer;                // {"content","reasoning","tool_calls","finish"}
  Json evidence = Json::object();
};
Json to_json(const CheckResult& result);

struct CheckInfo {
  std::string_view id;
  std::string_view proves;
  // False where the effort cannot change the outcome: run once, with the first effort.
  bool per_effort;
};
// Every check, in the order in which they run.
std::span<const CheckInfo> check_registry();

struct CheckPlan {
  std::vector<std::string> include;  // ids; empty = all
  std::vector<std::string> efforts;  // empty = once, sending none
  int attempts = 1;
};
// kInvalidInput names an unknown id and the nearest known one.
Result<void> validate_plan(const CheckPlan& plan);

// How many results run_checks will give, for progress.
int64_t count_results(const CheckPlan& plan);

// Runs the plan and returns the results in order. Errors are only those of `record` (evidence
// cannot be kept) and kCancelled; everything an engine does becomes a verdict.
Result<std::vector<CheckResult>> run_checks(
    CheckContext context, const CheckPlan& plan,
    const std::function<void(const CheckResult&)>& finished = {});

}  // namespace anvil::qualify
