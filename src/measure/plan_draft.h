#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/dataset.h"
#include "measure/lanes.h"
#include "measure/prompt_pool.h"

namespace anvil::measure {

// One message of an attempt in the making.
struct PlannedMessage {
  std::string role;
  PlannedText text;
};

// One attempt in the making.
struct PlannedAttempt {
  std::string item;
  std::optional<Nanos> at;
  int64_t after = -1;
  Nanos think = 0;
  std::optional<int> turn;
  int64_t prompt_tokens = 0;  // wanted; 0 = whatever the messages have
  int64_t output_tokens = 0;
  int beginning = -1;           // of LaneDraft::beginnings
  std::string stream;           // of its own text; equal streams have equal texts
  std::string part;             // of the mixture
  std::string prompt;           // item of a dataset
  std::string session;          // of a trace
  std::vector<int64_t> blocks;  // of a trace
  std::vector<PlannedMessage> messages;
};

// A lane between its numbers and its attempts.
struct LaneDraft {
  std::vector<PlannedAttempt> warmup, prime, measured;
  Json prompts = nullptr, trace = nullptr, making = nullptr;  // for the summary
  int counter_calls = 0;
};

// What is sent when and how long it is, without texts: plan_draft.cc.
Result<LaneDraft> draft_lane(const LanePlan& lane, uint64_t seed);

// Fills in the texts of synthetic prompts.
Result<void> write_synthetic(const LanePlan& lane, const LaneContext& context,
                             PromptBuilder& prompts, const std::function<void(int)>& made,
                             LaneDraft& draft);
// Those of a trace; `draft` comes from the same file.
Result<void> write_trace(const LanePlan& lane, const LaneContext& context, PromptBuilder& prompts,
                         const std::function<void(int)>& made, LaneDraft& draft);
// Those of a dataset.
Result<void> write_dataset(const LanePlan& lane, const LaneContext& context, LaneDraft& draft);

}  // namespace anvil::measure
