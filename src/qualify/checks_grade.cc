#include "qualify/checks_grade.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "qualify/json_schema.h"

namespace anvil::qualify {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string excerpt(std::string_view text, size_t limit = 80) {
  std::string shown = base::to_valid_utf8(text.substr(0, limit));
  return Json(shown).dump() + (text.size() > limit ? "..." : "");
}

// Where a value differs from what is expected. Members that nothing is expected of are the schema's
// business.
std::string wrong_values(const Json& expected, const Json& got) {
  Json asked = got;
  if (got.is_object() && expected.is_object())
    for (const auto& [key, value] : got.items())
      if (!expected.contains(key)) asked.erase(key);
  std::vector<std::string> parts;
  for (const auto& difference : base::differences(asked, expected)) {
    // The written form of a number is the model's choice: 3.0 is 3.
    if (difference.left.is_number() && difference.right.is_number() &&
        difference.left == difference.right)
      continue;
    parts.push_back(difference.pointer + " is " + difference.left.dump() + ", must be " +
                    difference.right.dump());
  }
  return base::join(parts, "; ");
}

// The text without what separates letters and digits in a code.
std::string code_letters(std::string_view text) {
  std::string out;
  for (const char c : base::lower(text))
    if (c != ' ' && c != '-' && c != '\n' && c != '\t') out += c;
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  return base::join(words, ", ");
}

Json usage_json(const wire::Usage& usage) {
  const auto value = [](const std::optional<int64_t>& count) {
    return count ? Json(*count) : Json(nullptr);
  };
  return {{"prompt", value(usage.prompt)},
          {"completion", value(usage.completion)},
          {"cached", value(usage.cached)},
          {"reasoning", value(usage.reasoning)},
          {"total", value(usage.total)}};
}

std::string cut_note(const wire::Answer& answer) {
  return answer.finish == "length" ? " (the answer was cut by its token budget)" : "";
}

}  // namespace

Grade grade_json(const Json& schema, const Json& expected, const wire::Answer& answer) {
  const std::string_view text = base::trim(answer.content);
  if (text.empty()) return failed("the answer is empty" + cut_note(answer));
  const auto value = base::parse_json(text, "the answer");
  if (!value) {
    const size_t open = text.find('{'), close = text.rfind('}');
    if (open != std::string_view::npos && close != std::string_view::npos && open < close &&
        (open > 0 || close + 1 < text.size()) &&
        base::parse_json(text.substr(open, close + 1 - open), "the answer"))
      return failed("there is text around the JSON object: " +
                    excerpt(open > 0 ? text.substr(0, open) : text.substr(close + 1)));
    return failed(value.error().detail + cut_note(answer));
  }
  if (const auto violations = validate_schema(schema, *value); !violations.empty())
    return failed("the answer breaks the schema: " + to_string(violations));
  if (const std::string wrong = wrong_values(expected, *value); !wrong.empty())
    return failed("schema holds, value wrong: " + wrong);
  return pass(expected.empty() ? "the schema holds"
                               : "the schema holds and every value is the one that was asked for");
}

Grade grade_tools(const ToolTask& task, const wire::Answer& answer, std::string_view finish) {
  Json evidence = {{"calls", answer.tool_calls.size()}, {"finish", answer.finish}};
  if (const auto leaked = leaked_markers(answer.content, false); !leaked.empty())
    return failed("tool or template syntax stands in the content: " + joined(leaked),
                  std::move(evidence));
  if (answer.tool_calls.empty())
    return failed("no tool was called" + cut_note(answer), std::move(evidence));
  std::optional<Json> first;
  for (size_t i = 0; i < answer.tool_calls.size(); ++i) {
    const wire::ToolCall& call = answer.tool_calls[i];
    const std::string which = "call " + std::to_string(i + 1);
    if (call.name != task.tool)
      return failed(which + " names " + excerpt(call.name) + ", the tool is " + excerpt(task.tool),
                    std::move(evidence));
    if (const auto leaked = leaked_markers(call.arguments, false); !leaked.empty())
      return failed(which + " has template syntax in its arguments: " + joined(leaked),
                    std::move(evidence));
    const auto arguments = base::parse_json(call.arguments, "the argument text");
    if (!arguments)
      return failed(which + ": " + arguments.error().detail + cut_note(answer),
                    std::move(evidence));
    if (const auto violations = validate_schema(task.parameters, *arguments); !violations.empty())
      return failed(which + " breaks the tool's schema: " + to_string(violations),
                    std::move(evidence));
    if (const std::string wrong = wrong_values(task.expected, *arguments); !wrong.empty())
      return failed(which + " has the right shape and wrong values: " + wrong, std::move(evidence));
    if (call.id.empty())
      return failed(which + " has no id, so its result cannot be sent back", std::move(evidence));
  }
  if (!finish.empty() && answer.finish != finish)
    return failed("the call is right, and the finish reason is " + excerpt(answer.finish) +
                      ", must be " + excerpt(finish),
                  std::move(evidence));
  return pass("name, types and values of the arguments are right", std::move(evidence));
}

Grade grade_tool_result(const std::vector<std::string>& facts, const wire::Answer& answer) {
  if (!answer.tool_calls.empty())
    return failed("the model called a tool again instead of using its result");
  const std::string said = base::lower(answer.content);
  std::vector<std::string> missing;
  for (const std::string& fact : facts)
    if (said.find(base::lower(fact)) == std::string::npos) missing.push_back(excerpt(fact));
  if (!missing.empty())
    return failed("the answer does not use the tool's result: " + joined(missing) + " missing in " +
                  excerpt(answer.content) + cut_note(answer));
  return pass("the answer uses the tool's result");
}

Grade grade_recall(std::string_view code, const wire::Answer& answer) {
  if (code_letters(answer.content).find(code_letters(code)) != std::string::npos)
    return pass("the code of the first turn came back in the third");
  return failed("the code " + excerpt(code) + " is not in the answer " + excerpt(answer.content) +
                cut_note(answer));
}

Grade grade_responses(std::string_view text, const evidence::RequestRow& row) {
  const wire::Answer& answer = row.answer;
  Json evidence = {{"status", answer.finish}, {"usage", usage_json(answer.usage)}};
  if (answer.finish != "completed")
    return failed("the status is " + excerpt(answer.finish) + ", must be \"completed\"",
                  std::move(evidence));
  if (!answer.usage.prompt || !answer.usage.completion)
    return failed("the answer has no usage", std::move(evidence));
  std::string_view said = base::trim(answer.content);
  while (!said.empty() && (said.front() == '"' || said.front() == '*')) said.remove_prefix(1);
  while (!said.empty() && (said.back() == '"' || said.back() == '*' || said.back() == '.'))
    said.remove_suffix(1);
  if (said != text)
    return failed("status completed, and the text is " + excerpt(answer.content) + ", must be " +
                      excerpt(text),
                  std::move(evidence));
  return pass("status completed, the text is exactly what was asked for", std::move(evidence));
}

Grade grade_stream(const evidence::RequestRow& stream, const evidence::RequestRow& unary) {
  const wire::Answer& answer = stream.answer;
  uint64_t bytes = 0;
  for (const auto& chunk : stream.chunks) bytes += chunk.bytes;
  uint64_t text = answer.reasoning.size() + answer.content.size();
  for (const auto& call : answer.tool_calls) text += call.name.size() + call.arguments.size();
  const bool same =
      answer.content == unary.answer.content && answer.reasoning == unary.answer.reasoning;
  Json evidence = {{"chunks", stream.chunks.size()},
                   {"chunk_bytes", bytes},
                   {"text_bytes", text},
                   {"usage", usage_json(answer.usage)},
                   {"same_text_as_unary", same}};
  std::vector<std::string> broken;
  if (!stream.stamps.done) broken.push_back("no terminal marker");
  if (!answer.usage.prompt || !answer.usage.completion)
    broken.push_back("no usage although it was asked for");
  if (answer.finish.empty()) broken.push_back("no finish reason");
  if (stream.chunks.empty()) broken.push_back("no output");
  if (bytes != text) broken.push_back("the chunks do not add up to the text");
  if (std::any_of(stream.chunks.begin(), stream.chunks.end(),
                  [](const evidence::Chunk& chunk) { return chunk.bytes == 0; }))
    broken.push_back("an event without output was counted as output");
  if (!broken.empty()) return failed(joined(broken), std::move(evidence));
  return pass(std::string("terminal marker, usage and finish reason are there; the text ") +
                  (same ? "equals the unary answer"
                        : "differs from the unary answer (the engine is not deterministic)"),
              std::move(evidence));
}

std::optional<std::string> choose_stop(std::string_view text) {
  const auto boundary = [text](size_t at) {
    return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
  };
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  for (size_t from = text.size() / 2; from < text.size(); ++from) {
    if (from == 0 || !boundary(from) || space(text[from])) continue;
    for (size_t length = 3; length <= 8 && from + length <= text.size(); ++length) {
      if (!boundary(from + length) || space(text[from + length - 1])) continue;
      const std::string_view piece = text.substr(from, length);
      // Where it occurs first decides what must be left; at the very beginning that is nothing.
      if (base::trim(text.substr(0, text.find(piece))).empty()) continue;
      return std::string(piece);
    }
  }
  return std::nullopt;
}

Grade grade_stop(std::string_view reference, std::string_view stop, const wire::Answer& answer) {
  Json evidence = {{"stop", stop}, {"reference", base::to_valid_utf8(reference)}};
  if (answer.content.find(stop) != std::string::npos)
    return failed("the stop string " + excerpt(stop) + " stands in the answer",
                  std::move(evidence));
  if (answer.finish != "stop")
    return failed("the finish reason is " + excerpt(answer.finish) + ", must be \"stop\"",
                  std::move(evidence));
  const bool same = answer.content == reference.substr(0, reference.find(stop));
  evidence["cut_at_the_stop_string"] = same;
  return pass(same ? "the answer ends right before the stop string"
                   : "the stop string is not in the answer (which differs from the one without it)",
              std::move(evidence));
}

Grade grade_max_tokens(int64_t limit, const wire::Answer& answer) {
  Json evidence = {
      {"limit", limit}, {"usage", usage_json(answer.usage)}, {"finish", answer.finish}};
  if (!answer.usage.completion) return failed("the answer has no usage", std::move(evidence));
  const int64_t count = *answer.usage.completion;
  if (count > limit)
    return failed(
        std::to_string(count) + " tokens came, " + std::to_string(limit) + " were allowed",
        std::move(evidence));
  if (answer.finish != "length")
    return failed("the finish reason is " + excerpt(answer.finish) + " after " +
                      std::to_string(count) + " tokens, must be \"length\" after " +
                      std::to_string(limit),
                  std::move(evidence));
  if (count != limit)
    return failed(
        "cut after " + std::to_string(count) + " tokens, must be " + std::to_string(limit),
        std::move(evidence));
  return pass("cut after exactly " + std::to_string(limit) + " tokens, finish \"length\"",
              std::move(evidence));
}

std::vector<std::string> leaked_markers(std::string_view text, bool cut) {
  static constexpr std::array<std::string_view, 23> kMarkers{"<think>",
                                                             "</think>",
                                                             "<|",
                                                             "|>",
                                                             "<｜",
                                                             "｜>",
                                                             "<tool_call",
                                                             "</tool_call",
                                                             "<tool_result",
                                                             "<tool▁",
                                                             "<<tool",
                                                             "<function",
                                                             "function=",
                                                             "[TOOL_CALLS]",
                                                             "[INST]",
                                                             "[/INST]",
                                                             "<start_of_turn>",
                                                             "<end_of_turn>",
                                                             "<bos>",
                                                             "<eos>",
                                                             "<s>",
                                                             "</s>",
                                                             "DSML"};
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string_view marker : kMarkers)
    if (const size_t at = text.find(marker); at != std::string_view::npos)
      found.emplace_back(at, std::string(marker));
  std::string_view whole = text;
  // A budget may cut a character in two; the engine then has nothing better to say.
  if (cut && whole.size() >= kReplacement.size() &&
      whole.substr(whole.size() - kReplacement.size()) == kReplacement)
    whole.remove_suffix(kReplacement.size());
  if (const size_t at = whole.find(kReplacement); at != std::string_view::npos)
    found.emplace_back(at, "U+FFFD");
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (auto& [at, marker] : found) out.push_back(std::move(marker));
  return out;
}

Grade grade_reasoning_separation(const wire::Answer& answer) {
  Json evidence = {{"content_bytes", answer.content.size()},
                   {"reasoning_bytes", answer.reasoning.size()},
                   {"finish", answer.finish}};
  if (const auto leaked = leaked_markers(answer.content, answer.finish == "length");
      !leaked.empty())
    return failed("the visible content holds " + joined(leaked), std::move(evidence));
  if (base::trim(answer.content).empty() && answer.finish != "length")
    return failed("the answer ends with no visible content, finish " + excerpt(answer.finish),
                  std::move(evidence));
  if (base::trim(answer.content).empty())
    return failed("the token budget ended before any visible content", std::move(evidence));
  return pass(answer.reasoning.empty() ? "clean content, no reasoning came"
                                       : "reasoning came apart from clean content",
              std::move(evidence));
}

Grade grade_usage(const evidence::RequestRow& first, const evidence::RequestRow& second,
                  const evidence::RequestRow& streamed) {
  Json evidence = {{"first", usage_json(first.answer.usage)},
                   {"second", usage_json(second.answer.usage)},
                   {"streamed", usage_json(streamed.answer.usage)}};
  for (const auto* row : {&first, &second, &streamed}) {
    const wire::Usage& usage = row->answer.usage;
    if (!usage.prompt || !usage.completion)
      return failed(std::string(row->stream ? "the streamed" : "a unary") +
                        " answer does not report prompt and completion tokens",
                    std::move(evidence));
    if (*usage.prompt <= 0 || *usage.completion <= 0)
      return failed("a count is not positive", std::move(evidence));
    if (usage.cached.value_or(0) > *usage.prompt)
      return failed("more cached than prompt tokens are reported", std::move(evidence));
    if (usage.reasoning.value_or(0) > *usage.completion)
      return failed("more reasoning than completion tokens are reported", std::move(evidence));
    if (usage.total && *usage.total != *usage.prompt + *usage.completion)
      return failed("total " + std::to_string(*usage.total) + " is not prompt + completion",
                    std::move(evidence));
  }
  if (first.answer.usage.prompt != second.answer.usage.prompt ||
      first.answer.usage.prompt != streamed.answer.usage.prompt)
    return failed("the same prompt was counted as " + std::to_string(*first.answer.usage.prompt) +
                      ", " + std::to_string(*second.answer.usage.prompt) + " and, streamed, " +
                      std::to_string(*streamed.answer.usage.prompt) + " tokens",
                  std::move(evidence));
  return pass("the same prompt counts the same " + std::to_string(*first.answer.usage.prompt) +
                  " tokens each time, and the counts fit together",
              std::move(evidence));
}

Grade grade_unknown_model(const evidence::RequestRow& row, bool ignores) {
  Json evidence = {{"status", row.status}, {"answered_as", row.answer.model}};
  if (row.outcome == evidence::Outcome::kHttpError && row.status >= 400 && row.status < 500)
    return pass("refused with status " + std::to_string(row.status), std::move(evidence));
  if (row.outcome == evidence::Outcome::kOk && ignores)
    return skipped("this engine serves one model whatever the name; it answered as " +
                       excerpt(row.answer.model),
                   std::move(evidence));
  if (row.outcome == evidence::Outcome::kOk)
    return failed("a model that does not exist was answered, as " + excerpt(row.answer.model),
                  std::move(evidence));
  return failed(std::string(name(row.outcome)) + ": " + row.error_detail, std::move(evidence));
}

Grade grade_overflow(const evidence::RequestRow& row, int64_t sent, int64_t context) {
  Json evidence = {{"status", row.status},
                   {"context_tokens", context},
                   {"sent_at_least", sent},
                   {"usage", usage_json(row.answer.usage)}};
  if (row.outcome == evidence::Outcome::kHttpError && row.status >= 400 && row.status < 500)
    return pass("refused with status " + std::to_string(row.status), std::move(evidence));
  if (row.outcome == evidence::Outcome::kErrorInStream)
    return pass("refused with an error: " + row.error_detail, std::move(evidence));
  if (row.outcome != evidence::Outcome::kOk)
    return failed(std::string(name(row.outcome)) + ": " + row.error_detail, std::move(evidence));
  const auto counted = row.answer.usage.prompt;
  if (counted && *counted < sent)
    return failed("a prompt of at least " + std::to_string(sent) +
                      " tokens was silently truncated to " + std::to_string(*counted),
                  std::move(evidence));
  return failed(
      "a prompt above the declared context of " + std::to_string(context) + " tokens was accepted",
      std::move(evidence));
}

Grade grade_cancel(const CancelObservation& seen) {
  const auto took = [](const evidence::RequestRow& row) {
    return row.stamps.sent && row.stamps.eof ? *row.stamps.eof - *row.stamps.sent : 0;
  };
  const Nanos before = took(seen.before), after = took(seen.after);
  Json evidence = {{"aborted_chunks", seen.aborted.chunks.size()},
                   {"before_ms", before / kMillisecond},
                   {"after_ms", after / kMillisecond},
                   {"running", seen.running ? Json(*seen.running) : Json(nullptr)},
                   {"waited_ms", seen.waited / kMillisecond}};
  if (seen.aborted.outcome == evidence::Outcome::kOk)
    return failed("the answer ended before it could be aborted", std::move(evidence));
  if (seen.aborted.outcome != evidence::Outcome::kTimeout)
    return failed("the stream broke before it could be aborted: " +
                      std::string(name(seen.aborted.outcome)) + ": " + seen.aborted.error_detail,
                  std::move(evidence));
  if (seen.aborted.chunks.empty())
    return failed("no output came before the abort: " + seen.aborted.error_detail,
                  std::move(evidence));
  if (seen.after.outcome != evidence::Outcome::kOk)
    return failed("the request after the abort failed: " + std::string(name(seen.after.outcome)) +
                      ": " + seen.after.error_detail,
                  std::move(evidence));
  if (after > 3 * before + 2 * kSecond)
    return failed("the request after the abort took " + base::format_duration(after) +
                      ", the same one before " + base::format_duration(before),
                  std::move(evidence));
  if (seen.running.value_or(0) > 0)
    return failed("the engine still ran " + std::to_string(*seen.running) + " requests " +
                      base::format_duration(seen.waited) + " after the abort",
                  std::move(evidence));
  return pass(seen.running ? "the next request was prompt and the engine runs nothing any more"
                           : "the next request was prompt; the engine does not say what it runs",
              std::move(evidence));
}

}  // namespace anvil::qualify
