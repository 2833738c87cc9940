#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "evidence/request_row.h"
#include "qualify/checks_send.h"
#include "wire/answer.h"

// The verdicts of the checks, apart from sending: pure functions of answers and rows.
namespace anvil::qualify {

// The whole content must be one JSON document (white space around it is allowed), hold the schema,
// and say exactly what the prompt asked for. The detail tells "breaks the schema" from "schema
// holds, value wrong".
Grade grade_json(const Json& schema, const Json& expected, const wire::Answer& answer);

struct ToolTask {
  std::string tool;
  Json parameters;  // JSON schema of the arguments
  Json expected;    // the arguments that the prompt asked for
};
// Every call names the tool and its arguments are JSON that holds the schema; the first has the
// expected values, further ones may repeat it (parallel calls are allowed, calls with other values
// are not). No tool syntax or special token may leak into content or arguments. `finish`, if not
// empty, is the finish reason that must be there.
Grade grade_tools(const ToolTask& task, const wire::Answer& answer, std::string_view finish);

// The final answer after a tool result: says every one of `facts` (case aside) and calls nothing.
Grade grade_tool_result(const std::vector<std::string>& facts, const wire::Answer& answer);

// The code stands in the answer, case, spaces and hyphens aside.
Grade grade_recall(std::string_view code, const wire::Answer& answer);

// The Responses surface: status "completed" and the text exactly `text` (white space, quotes and a
// full stop around it aside).
Grade grade_responses(std::string_view text, const evidence::RequestRow& row);

// What breaks the stream protocol: no terminal marker, no usage, no finish reason, chunk bytes that
// do not add up to the text, output before the first event. Whether the text equals the unary one
// is reported, not judged.
Grade grade_stream(const evidence::RequestRow& stream, const evidence::RequestRow& unary);

// A piece of `text` that can serve as stop string: 3 to 8 bytes of whole characters near its
// middle, not at its beginning and not white space at either end. Nothing if the text is too short.
std::optional<std::string> choose_stop(std::string_view text);
// The answer to the same prompt with `stop`: ends by itself and does not contain it.
Grade grade_stop(std::string_view reference, std::string_view stop, const wire::Answer& answer);

// finish "length" and exactly `limit` completion tokens.
Grade grade_max_tokens(int64_t limit, const wire::Answer& answer);

// Markers of reasoning, chat templates and tool syntax that must never stand in visible content, in
// order of appearance; U+FFFD among them, but not as the last character of a cut answer.
std::vector<std::string> leaked_markers(std::string_view text, bool cut);
Grade grade_reasoning_separation(const wire::Answer& answer);

// Twice the same prompt unary, once streamed.
Grade grade_usage(const evidence::RequestRow& first, const evidence::RequestRow& second,
                  const evidence::RequestRow& streamed);

// An unknown model name: refused with 4xx. `ignores` = this engine line is known to serve one model
// whatever the name.
Grade grade_unknown_model(const evidence::RequestRow& row, bool ignores);

// A prompt of at least `sent` tokens against a context of `context`.
Grade grade_overflow(const evidence::RequestRow& row, int64_t sent, int64_t context);

struct CancelObservation {
  evidence::RequestRow aborted;    // the stream that our side closed
  evidence::RequestRow before;     // a short request before it
  evidence::RequestRow after;      // the same, right after the abort
  std::optional<int64_t> running;  // requests that the engine still ran at the end; nothing if it
                                   // does not say
  Nanos waited = 0;                // until `running` fell to 0, or until we gave up
};
Grade grade_cancel(const CancelObservation& seen);

}  // namespace anvil::qualify
