#pragma once

#include <functional>
#include <string>

#include "measure/prompts.h"
#include "qualify/checks.h"
#include "wire/answer.h"

namespace anvil::qualify {

// A counter of request tokens for texts sent through `api`: `body` makes the request body of a
// text. Counts with the engine's own tokenizer where it offers one for that surface ("tokenize"),
// else by sending the request with one output token and reading its usage ("usage"; rows of
// Purpose::kCalibrate). `method`, if given, is set to which. The context must outlive the counter.
measure::TokenCounter token_counter(const CheckContext& context, wire::Api api,
                                    std::function<std::string(const std::string& text)> body,
                                    std::string* method = nullptr);

}  // namespace anvil::qualify
