#include "qualify/checks_grade.h"

#include <gtest/gtest.h>

namespace anvil::qualify {
namespace {

using evidence::Outcome;
using evidence::RequestRow;

std::string verdict(const Grade& grade) {
  return std::string(name(grade.verdict)) + ": " + grade.detail;
}
bool passes(const Grade& grade) {
  return grade.verdict == CheckVerdict::kPass;
}
bool says(const Grade& grade, std::string_view text) {
  return grade.detail.find(text) != std::string::npos;
}

wire::Answer text_answer(std::string content, std::string finish = "stop") {
  wire::Answer answer;
  answer.content = std::move(content);
  answer.finish = std::move(finish);
  return answer;
}

RequestRow row_of(wire::Answer answer) {
  RequestRow row;
  row.status = 200;
  row.answer = std::move(answer);
  return row;
}

RequestRow refused(int status, std::string message) {
  RequestRow row;
  row.status = status;
  row.outcome = Outcome::kHttpError;
  row.error_detail = "status " + std::to_string(status) + ": " + message;
  row.answer.error = wire::ReportedError{std::move(message), "", ""};
  return row;
}

// json

const Json kSchema = Json::parse(R"({"type":"object","additionalProperties":false,
  "required":["item","quantity"],
  "properties":{"item":{"type":"string"},"quantity":{"type":"integer"}}})");
const Json kOrder = {{"item", "blue tiles"}, {"quantity", 3}};

TEST(GradeJson, TellsShapeFromValue) {
  const auto grade = [](std::string_view text) {
    return grade_json(kSchema, kOrder, text_answer(std::string(text)));
  };
  EXPECT_TRUE(passes(grade(R"({"quantity":3,"item":"blue tiles"})")));
  EXPECT_TRUE(passes(grade("\n {\"quantity\":3.0, \"item\":\"blue tiles\"}\n")));
  EXPECT_EQ(verdict(grade(R"({"item":"blue tiles","quantity":4})")),
            "fail: schema holds, value wrong: /quantity is 4, must be 3");
  EXPECT_EQ(verdict(grade(R"({"item":"Blue tiles","quantity":3})")),
            "fail: schema holds, value wrong: /item is \"Blue tiles\", must be \"blue tiles\"");
  EXPECT_EQ(verdict(grade(R"({"item":"blue tiles","quantity":"3"})")),
            "fail: the answer breaks the schema: /quantity is a string, must be an integer");
  EXPECT_TRUE(says(grade(R"({"item":"blue tiles"})"), "breaks the schema"));
}

TEST(GradeJson, WithoutExpectedValuesOnlyTheSchemaCounts) {
  const auto grade = [](std::string_view text) {
    return grade_json(kSchema, Json::object(), text_answer(std::string(text)));
  };
  EXPECT_EQ(verdict(grade(R"({"item":"x","quantity":0})")), "pass: the schema holds");
  EXPECT_TRUE(says(grade(R"({"item":"x","quantity":0.5})"), "breaks the schema"));
}

TEST(GradeJson, RefusesAnythingAroundTheObject) {
  const auto grade = [](std::string_view text) {
    return grade_json(kSchema, kOrder, text_answer(std::string(text)));
  };
  const std::string good = R"({"item":"blue tiles","quantity":3})";
  EXPECT_TRUE(says(grade("```json\n" + good + "\n```"), "text around the JSON object"));
  EXPECT_TRUE(says(grade("Here it is: " + good), "text around the JSON object: \"Here it is: \""));
  EXPECT_TRUE(says(grade(good + " Done."), "text around the JSON object"));
  EXPECT_TRUE(says(grade(good + good), "not valid JSON"));
  EXPECT_TRUE(says(grade(""), "empty"));
  EXPECT_TRUE(says(grade(R"({"item":"blue tiles","quantity":)"), "not valid JSON"));
  EXPECT_FALSE(passes(grade(R"({"item":"a","item":"blue tiles","quantity":3})")))
      << "duplicate keys";
  EXPECT_TRUE(says(grade("[" + good + "]"), "breaks the schema"));
}

// tools

ToolTask tool_task() {
  ToolTask task;
  task.tool = "book_room";
  task.parameters = Json::parse(R"({"type":"object","additionalProperties":false,
    "required":["guests","budget","projector","attendees"],
    "properties":{"guests":{"type":"integer"},"budget":{"type":"number"},
      "projector":{"type":"boolean"},"attendees":{"type":"array","items":{"type":"string"}}}})");
  task.expected =
      Json::parse(R"({"guests":4,"budget":120.5,"projector":true,"attendees":["Ada","Grace"]})");
  return task;
}
constexpr const char* kArguments =
    R"({"guests":4,"budget":120.5,"projector":true,"attendees":["Ada","Grace"]})";

wire::Answer call(std::string arguments, std::string name = "book_room") {
  wire::Answer answer;
  answer.tool_calls.push_back({"call_1", std::move(name), std::move(arguments)});
  answer.finish = "tool_calls";
  return answer;
}

TEST(GradeTools, ChecksNameTypesAndValues) {
  const auto grade = [](const wire::Answer& answer) {
    return grade_tools(tool_task(), answer, "tool_calls");
  };
  EXPECT_TRUE(passes(grade(call(kArguments))));
  EXPECT_TRUE(says(grade(call(kArguments, "bookRoom")), "names \"bookRoom\""));
  EXPECT_TRUE(says(
      grade(call(R"({"guests":5,"budget":120.5,"projector":true,"attendees":["Ada","Grace"]})")),
      "right shape and wrong values: /guests is 5, must be 4"));
  EXPECT_TRUE(says(
      grade(call(R"({"guests":"4","budget":120.5,"projector":true,"attendees":["Ada","Grace"]})")),
      "breaks the tool's schema: /guests is a string"));
  EXPECT_TRUE(says(
      grade(call(R"({"guests":4,"budget":120.5,"projector":true,"attendees":["Grace","Ada"]})")),
      "wrong values"))
      << "order was asked for";
  EXPECT_TRUE(says(grade(call(R"({"guests":4,"budget")")), "not valid JSON"));
  EXPECT_TRUE(says(grade(call("")), "not valid JSON"));
  EXPECT_TRUE(says(grade(text_answer("I would call book_room.")), "no tool was called"));
}

TEST(GradeTools, AllowsParallelCallsThatAgree) {
  wire::Answer twice = call(kArguments);
  twice.tool_calls.push_back({"call_2", "book_room", kArguments});
  EXPECT_TRUE(passes(grade_tools(tool_task(), twice, "tool_calls")));
  twice.tool_calls[1].arguments = R"({"guests":9,"budget":1,"projector":false,"attendees":[]})";
  EXPECT_TRUE(says(grade_tools(tool_task(), twice, ""), "call 2 has the right shape"));
  twice.tool_calls[1].arguments = R"({"guests": 4,)";
  twice.finish = "length";
  EXPECT_TRUE(says(grade_tools(tool_task(), twice, ""), "cut by its token budget"));
}

TEST(GradeTools, FindsLeakedSyntax) {
  wire::Answer leaked = call(kArguments);
  leaked.content = "<tool_call>";
  EXPECT_TRUE(
      says(grade_tools(tool_task(), leaked, ""), "syntax stands in the content: <tool_call"));
  leaked =
      call(R"({"guests":4,"budget":120.5,"projector":true,"attendees":["Ada<|im_end|>","Grace"]})");
  EXPECT_TRUE(says(grade_tools(tool_task(), leaked, ""), "template syntax in its arguments"));
  leaked = call(R"({"guests":4,"budget":120.5,"projector":true,"attendees":["Ad\ufffd","Grace"]})");
  EXPECT_FALSE(passes(grade_tools(tool_task(), leaked, "")));
}

TEST(GradeTools, NeedsAnIdAndTheFinishReason) {
  wire::Answer answer = call(kArguments);
  answer.finish = "stop";
  EXPECT_TRUE(says(grade_tools(tool_task(), answer, "tool_calls"),
                   "the finish reason is \"stop\", must be \"tool_calls\""));
  EXPECT_TRUE(passes(grade_tools(tool_task(), answer, "")));
  answer.tool_calls[0].id.clear();
  EXPECT_TRUE(says(grade_tools(tool_task(), answer, ""), "no id"));
}

TEST(GradeToolResult, NeedsEveryFactAndNoFurtherCall) {
  EXPECT_TRUE(passes(grade_tool_result({"47", "KV-1"}, text_answer("47 knots, report kv-1."))));
  EXPECT_TRUE(
      says(grade_tool_result({"47", "KV-1"}, text_answer("47 knots.")), "\"KV-1\" missing"));
  EXPECT_TRUE(says(grade_tool_result({"47"}, call("{}")), "called a tool again"));
  EXPECT_FALSE(passes(grade_tool_result({"47"}, text_answer(""))));
}

TEST(GradeRecall, SeparatorsAndCaseAside) {
  EXPECT_TRUE(passes(grade_recall("KV-4821-MZ", text_answer("The code is KV-4821-MZ."))));
  EXPECT_TRUE(passes(grade_recall("KV-4821-MZ", text_answer("kv 4821 mz"))));
  EXPECT_FALSE(passes(grade_recall("KV-4821-MZ", text_answer("KV-4812-MZ"))));
  EXPECT_FALSE(passes(grade_recall("KV-4821-MZ", text_answer("KV-4821", "length"))));
}

// responses

TEST(GradeResponses, StatusUsageAndExactText) {
  const auto grade = [](std::string text, std::string status, bool usage = true) {
    wire::Answer answer = text_answer(std::move(text), std::move(status));
    if (usage)
      answer.usage = {.prompt = 9, .completion = 2, .cached = {}, .reasoning = {}, .total = {}};
    return grade_responses("READY", row_of(std::move(answer)));
  };
  EXPECT_TRUE(passes(grade("READY", "completed")));
  EXPECT_TRUE(passes(grade(" \"READY.\"\n", "completed")));
  EXPECT_TRUE(says(grade("READY", "incomplete"), "the status is \"incomplete\""));
  EXPECT_TRUE(says(grade("I am READY", "completed"), "must be \"READY\""));
  EXPECT_TRUE(says(grade("", "completed"), "must be \"READY\""));
  EXPECT_TRUE(says(grade("READY", "completed", false), "no usage"));
}

// stream

RequestRow good_stream() {
  RequestRow row = row_of(text_answer("Mercury Venus", "stop"));
  row.answer.usage.prompt = 9;
  row.answer.usage.completion = 2;
  row.chunks = {{10, 'c', 7, {}}, {20, 'c', 6, {}}};
  row.stamps.done = 40;
  return row;
}

TEST(GradeStream, FailsOnlyOnTheProtocol) {
  const RequestRow same = row_of(text_answer("Mercury Venus"));
  const RequestRow other = row_of(text_answer("Venus"));
  EXPECT_TRUE(passes(grade_stream(good_stream(), same)));
  EXPECT_TRUE(passes(grade_stream(good_stream(), other)));
  EXPECT_EQ(grade_stream(good_stream(), other).evidence["same_text_as_unary"], false);
  RequestRow bad = good_stream();
  bad.stamps.done.reset();
  EXPECT_TRUE(says(grade_stream(bad, same), "no terminal marker"));
  bad = good_stream();
  bad.answer.usage = {};
  EXPECT_TRUE(says(grade_stream(bad, same), "no usage"));
  bad = good_stream();
  bad.answer.finish.clear();
  EXPECT_TRUE(says(grade_stream(bad, same), "no finish reason"));
  bad = good_stream();
  bad.chunks.pop_back();
  EXPECT_TRUE(says(grade_stream(bad, same), "do not add up"));
  bad.chunks.push_back({20, 'c', 0, {}});
  EXPECT_TRUE(says(grade_stream(bad, same), "without output was counted"));
}

// stop

TEST(ChooseStop, TakesAPieceFromTheMiddle) {
  EXPECT_EQ(choose_stop("Mercury Venus Earth Mars"), "s E") << "no white space at its ends";
  EXPECT_FALSE(choose_stop(""));
  EXPECT_FALSE(choose_stop("ab"));
  EXPECT_FALSE(choose_stop("aaaaaaaaaaaa")) << "every piece stands at the beginning too";
  const auto stop = choose_stop("ääääöööö");
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->size() % 2, 0u) << "whole characters";
}

TEST(GradeStop, TheStringIsHonouredAndNotPartOfTheText) {
  const std::string reference = "Mercury Venus Earth";
  EXPECT_TRUE(passes(grade_stop(reference, "nus", text_answer("Mercury Ve"))));
  EXPECT_TRUE(
      says(grade_stop(reference, "nus", text_answer("Mercury Venus")), "stands in the answer"));
  EXPECT_TRUE(says(grade_stop(reference, "nus", text_answer("Mercury Ve", "length")),
                   "finish reason is \"length\""));
  const Grade other = grade_stop(reference, "nus", text_answer("Jupiter"));
  EXPECT_TRUE(passes(other));
  EXPECT_EQ(other.evidence["cut_at_the_stop_string"], false);
}

TEST(GradeMaxTokens, ExactlyTheLimit) {
  const auto grade = [](std::optional<int64_t> count, std::string finish) {
    wire::Answer answer = text_answer("1 2 3", std::move(finish));
    answer.usage.completion = count;
    return grade_max_tokens(8, answer);
  };
  EXPECT_TRUE(passes(grade(8, "length")));
  EXPECT_TRUE(says(grade(9, "length"), "9 tokens came"));
  EXPECT_TRUE(says(grade(5, "stop"), "must be \"length\""));
  EXPECT_TRUE(says(grade(7, "length"), "cut after 7"));
  EXPECT_TRUE(says(grade({}, "length"), "no usage"));
}

// separation

TEST(LeakedMarkers, InOrderOfAppearance) {
  EXPECT_TRUE(leaked_markers("a < b and c > d | e", false).empty());
  EXPECT_EQ(leaked_markers("x </think> y <|im_end|>", false),
            (std::vector<std::string>{"</think>", "<|", "|>"}));
  EXPECT_EQ(leaked_markers("a\xEF\xBF\xBD"
                           "b",
                           true),
            std::vector<std::string>{"U+FFFD"});
  EXPECT_TRUE(leaked_markers("a\xEF\xBF\xBD", true).empty()) << "a character cut by the budget";
  EXPECT_EQ(leaked_markers("a\xEF\xBF\xBD", false), std::vector<std::string>{"U+FFFD"});
  EXPECT_EQ(leaked_markers("<｜DSML｜tool_calls>", false).front(), "<｜");
}

TEST(GradeReasoningSeparation, NeedsCleanVisibleContent) {
  wire::Answer answer = text_answer("There are 51 lamps.");
  EXPECT_TRUE(passes(grade_reasoning_separation(answer)));
  answer.reasoning = "17 * 3 = 51";
  EXPECT_TRUE(says(grade_reasoning_separation(answer), "apart from clean content"));
  EXPECT_TRUE(says(grade_reasoning_separation(text_answer("hm</think>51")), "</think>"));
  EXPECT_TRUE(says(grade_reasoning_separation(text_answer("", "length")), "token budget ended"));
  EXPECT_TRUE(says(grade_reasoning_separation(text_answer("", "stop")), "no visible content"));
}

// usage

RequestRow counted(int64_t prompt, int64_t completion, std::optional<int64_t> total = {}) {
  RequestRow row = row_of(text_answer("hello"));
  row.answer.usage.prompt = prompt;
  row.answer.usage.completion = completion;
  row.answer.usage.total = total;
  return row;
}

TEST(GradeUsage, SamePromptSameCount) {
  EXPECT_TRUE(passes(grade_usage(counted(9, 2, 11), counted(9, 8, 17), counted(9, 8))));
  EXPECT_TRUE(says(grade_usage(counted(9, 2), counted(10, 2), counted(9, 2)), "9, 10 and"));
  EXPECT_TRUE(
      says(grade_usage(counted(9, 2, 12), counted(9, 2), counted(9, 2)), "total 12 is not"));
  RequestRow odd = counted(9, 2);
  odd.answer.usage.cached = 10;
  EXPECT_TRUE(says(grade_usage(odd, counted(9, 2), counted(9, 2)), "more cached"));
  odd = counted(9, 2);
  odd.answer.usage.reasoning = 3;
  EXPECT_TRUE(says(grade_usage(odd, counted(9, 2), counted(9, 2)), "more reasoning"));
  odd.answer.usage = {};
  EXPECT_TRUE(says(grade_usage(odd, counted(9, 2), counted(9, 2)), "does not report"));
  EXPECT_FALSE(passes(grade_usage(counted(9, 0), counted(9, 2), counted(9, 2))));
}

// refusals

TEST(GradeUnknownModel, RefusedIgnoredOrAnswered) {
  EXPECT_TRUE(passes(grade_unknown_model(refused(404, "no such model"), false)));
  EXPECT_EQ(grade_unknown_model(row_of(text_answer("hi")), true).verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(grade_unknown_model(row_of(text_answer("hi")), false).verdict, CheckVerdict::kFail);
  EXPECT_EQ(grade_unknown_model(refused(500, "boom"), true).verdict, CheckVerdict::kFail);
}

TEST(GradeOverflow, RefusedTruncatedOrAccepted) {
  EXPECT_TRUE(passes(grade_overflow(refused(400, "too long"), 5000, 4096)));
  EXPECT_TRUE(says(grade_overflow(row_of(text_answer("x")), 5000, 4096), "was accepted"));
  RequestRow cut = counted(4000, 3);
  EXPECT_TRUE(says(grade_overflow(cut, 5000, 4096), "silently truncated to 4000"));
  EXPECT_FALSE(passes(grade_overflow(refused(500, "boom"), 5000, 4096)));
  RequestRow late = row_of(text_answer(""));
  late.outcome = Outcome::kErrorInStream;
  EXPECT_TRUE(passes(grade_overflow(late, 5000, 4096)));
}

TEST(TransportVerdict, SkipsOnlyASurfaceThatIsNotThere) {
  EXPECT_FALSE(transport_verdict(row_of(text_answer("x"))));
  EXPECT_EQ(transport_verdict(refused(404, "File Not Found"))->verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(transport_verdict(refused(501, "not supported"))->verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(transport_verdict(refused(404, "The model `x` does not exist."))->verdict,
            CheckVerdict::kFail);
  const auto bad = transport_verdict(refused(400, "tools need a parser"));
  EXPECT_EQ(verdict(*bad), "fail: http_error: status 400: tools need a parser");
  RequestRow gone = row_of({});
  gone.outcome = Outcome::kTruncated;
  gone.error_detail = "closed";
  EXPECT_EQ(verdict(*transport_verdict(gone)), "fail: truncated: closed");
}

// cancel

CancelObservation aborted() {
  CancelObservation seen;
  seen.aborted.outcome = Outcome::kTimeout;
  seen.aborted.chunks = {{1, 'c', 1, {}}};
  for (auto* row : {&seen.before, &seen.after}) {
    row->stamps.sent = 0;
    row->stamps.eof = 100 * kMillisecond;
  }
  seen.running = 0;
  return seen;
}

TEST(GradeCancel, TheEngineLetsGo) {
  EXPECT_TRUE(passes(grade_cancel(aborted())));
  CancelObservation seen = aborted();
  seen.running.reset();
  EXPECT_TRUE(says(grade_cancel(seen), "does not say what it runs"));
  seen.running = 1;
  EXPECT_TRUE(says(grade_cancel(seen), "still ran 1 requests"));
  seen = aborted();
  seen.after.stamps.eof = 9 * kSecond;
  EXPECT_TRUE(says(grade_cancel(seen), "took 9"));
  seen = aborted();
  seen.after.outcome = Outcome::kConnectFailed;
  EXPECT_TRUE(says(grade_cancel(seen), "request after the abort failed"));
  seen = aborted();
  seen.aborted.outcome = Outcome::kOk;
  EXPECT_TRUE(says(grade_cancel(seen), "ended before it could be aborted"));
  seen = aborted();
  seen.aborted.chunks.clear();
  EXPECT_FALSE(passes(grade_cancel(seen)));
}

}  // namespace
}  // namespace anvil::qualify
