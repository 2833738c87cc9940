#include <array>

#include "base/strings.h"
#include "qualify/checks_code.h"
#include "qualify/checks_grade.h"
#include "qualify/checks_list.h"

namespace anvil::qualify {

namespace {

// Sends the one request that a check consists of and grades a complete answer.
template <class Judge>
Result<Grade> ask_and_judge(CheckSender& sender, wire::GenerationRequest request, Judge judge) {
  const evidence::RequestRow row = TRY(sender.ask(std::move(request)));
  if (auto broken = transport_verdict(row)) return *broken;
  return judge(row);
}

wire::ChatMessage message(std::string role, std::string content) {
  wire::ChatMessage out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

// smoke

const CodeTask& smoke_task() {
  static const CodeTask task = [] {
    CodeTask out;
    out.function = "sum_even";
    // Cases that a plain sum, a count, a set or a mutating loop gets wrong.
    for (const auto& [numbers, sum] :
         std::initializer_list<std::pair<Json, int64_t>>{{{1, 2, 3, 4}, 6},
                                                         {Json::array(), 0},
                                                         {{1, 3, 5}, 0},
                                                         {{-2, -3, -4}, -6},
                                                         {{2, 2, 2}, 6},
                                                         {{10, 0, 7, -8}, 2},
                                                         {{1000000000000, 1}, 1000000000000}})
      out.cases.push_back({Json::array({numbers}), sum});
    return out;
  }();
  return task;
}

Result<Grade> smoke(CheckSender& sender) {
  const auto& context = sender.context();
  const evidence::RequestRow row = TRY(sender.ask(user_request(
      "Write a Python function sum_even(numbers) that takes a list of integers and returns the sum "
      "of the even ones. Write it as one return statement. Answer with the code only.",
      context.max_tokens, false)));
  if (auto broken = transport_verdict(row)) return *broken;
  return grade_code(smoke_task(), row.answer.content, context.sandbox, context.cancel);
}

// json

const Json& order_schema() {
  static const Json schema = Json::parse(R"({
    "type":"object","additionalProperties":false,
    "required":["item","quantity","price","express","city"],
    "properties":{"item":{"type":"string"},"quantity":{"type":"integer"},
      "price":{"type":"number"},"express":{"type":"boolean"},"city":{"type":"string"}}})");
  return schema;
}

// Asks for one order as an object and holds it against the schema and the `expected` values.
Result<Grade> order(CheckSender& sender, const Json& expected) {
  auto request = user_request(
      "Write this order as a JSON object with the keys item, quantity, price, express and city: "
      "3 boxes of \"blue tiles\" at a price of 41.5, express delivery, to the city Oslo. Use "
      "\"blue tiles\" as the item, numbers for quantity and price, true or false for express. "
      "Answer with the JSON object only.",
      sender.context().max_tokens, false);
  request.json_schema = {{"name", "order"}, {"schema", order_schema()}, {"strict", true}};
  return ask_and_judge(sender, std::move(request), [&expected](const evidence::RequestRow& row) {
    return grade_json(order_schema(), expected, row.answer);
  });
}

Result<Grade> json_schema(CheckSender& sender) {
  static const Json nothing = Json::object();
  return order(sender, nothing);
}

Result<Grade> json(CheckSender& sender) {
  static const Json expected = {{"item", "blue tiles"},
                                {"quantity", 3},
                                {"price", 41.5},
                                {"express", true},
                                {"city", "Oslo"}};
  return order(sender, expected);
}

// tools

struct BookingTask {
  ToolTask task;
  std::string prompt;
};

BookingTask booking_task(int64_t seed) {
  static constexpr std::array<const char*, 3> kBuildings{"north", "south", "harbour"};
  const auto pick = static_cast<uint64_t>(seed);
  const std::string building = kBuildings[pick % kBuildings.size()];
  const auto guests = static_cast<int64_t>(3 + pick % 7);
  const double budget = 120.5 + static_cast<double>(pick % 40);
  BookingTask out;
  out.task.tool = "book_room";
  out.task.parameters = {
      {"type", "object"},
      {"additionalProperties", false},
      {"required", {"building", "guests", "budget", "projector", "attendees"}},
      {"properties",
       {{"building", {{"type", "string"}, {"enum", kBuildings}}},
        {"guests", {{"type", "integer"}, {"description", "how many people come"}}},
        {"budget", {{"type", "number"}, {"description", "in euro"}}},
        {"projector", {{"type", "boolean"}, {"description", "whether a projector is needed"}}},
        {"attendees", {{"type", "array"}, {"items", {{"type", "string"}}}}}}}};
  out.task.expected = {{"building", building},
                       {"guests", guests},
                       {"budget", budget},
                       {"projector", true},
                       {"attendees", {"Ada", "Grace"}}};
  out.prompt = "Book a room in the " + building + " building for " + std::to_string(guests) +
               " guests with a budget of " + base::format_number(budget) +
               " euro. A projector is needed. The attendees to list are Ada and Grace, in this "
               "order. Use the book_room tool.";
  return out;
}

Json tool_list(const std::string& name, const std::string& description, const Json& parameters) {
  return Json::array(
      {{{"type", "function"},
        {"function", {{"name", name}, {"description", description}, {"parameters", parameters}}}}});
}

Result<Grade> tools_in(CheckSender& sender, bool stream) {
  const BookingTask booking = booking_task(sender.context().seed);
  auto request = user_request(booking.prompt, sender.context().max_tokens, stream);
  request.tools = tool_list("book_room", "Books a meeting room.", booking.task.parameters);
  request.tool_choice = "auto";
  return ask_and_judge(sender, std::move(request), [&](const evidence::RequestRow& row) {
    return grade_tools(booking.task, row.answer, stream ? "tool_calls" : "");
  });
}
Result<Grade> tools(CheckSender& sender) {
  return tools_in(sender, false);
}
Result<Grade> tools_stream(CheckSender& sender) {
  return tools_in(sender, true);
}

// tool-result

Result<Grade> tool_result(CheckSender& sender) {
  const auto& context = sender.context();
  ToolTask task;
  task.tool = "get_station_report";
  task.parameters = {{"type", "object"},
                     {"additionalProperties", false},
                     {"required", {"station"}},
                     {"properties", {{"station", {{"type", "string"}}}}}};
  task.expected = {{"station", "Skagen"}};
  const std::string code = code_word(context.seed, "tool-result");
  const std::string wind = std::to_string(31 + context.seed % 60) + " knots";

  auto request = user_request(
      "Use the get_station_report tool for the station Skagen. Then tell me the wind speed and the "
      "report code.",
      context.max_tokens, false);
  request.tools =
      tool_list(task.tool, "Returns the latest report of a weather station.", task.parameters);
  request.tool_choice = "auto";
  const evidence::RequestRow first = TRY(sender.ask(request));
  if (auto broken = transport_verdict(first)) return *broken;
  Grade called = grade_tools(task, first.answer, "");
  if (called.verdict != CheckVerdict::kPass) {
    called.detail = "first turn: " + called.detail;
    return called;
  }
  wire::ChatMessage call = message("assistant", "");
  call.content = first.answer.content.empty() ? Json(nullptr) : Json(first.answer.content);
  call.tool_calls = first.answer.tool_calls;
  call.reasoning = first.answer.reasoning;
  request.messages.push_back(std::move(call));
  for (const wire::ToolCall& made : first.answer.tool_calls) {
    wire::ChatMessage result =
        message("tool", Json{{"wind", wind}, {"report_code", code}, {"station", "Skagen"}}.dump());
    result.tool_call_id = made.id;
    request.messages.push_back(std::move(result));
  }
  return ask_and_judge(sender, std::move(request), [&](const evidence::RequestRow& row) {
    return grade_tool_result({wind.substr(0, wind.find(' ')), code}, row.answer);
  });
}

// recall

Result<Grade> recall(CheckSender& sender) {
  const auto& context = sender.context();
  const std::string code = code_word(context.seed, "recall");
  const std::array<std::string, 3> turns{
      "The access code of locker 7 is " + code + ". Remember it. Answer with OK.",
      "What is 12 + 30? Answer with the number only.",
      "What is the access code of locker 7? Answer with the code only."};
  wire::GenerationRequest request = user_request(turns[0], context.max_tokens, false);
  evidence::RequestRow row;
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    if (turn > 0) request.messages.push_back(message("user", turns[turn]));
    row = TRY(sender.ask(request));
    if (auto broken = transport_verdict(row)) return *broken;
    wire::ChatMessage said = message("assistant", row.answer.content);
    said.reasoning = row.answer.reasoning;
    request.messages.push_back(std::move(said));
  }
  return grade_recall(code, row.answer);
}

// responses

Result<Grade> responses_in(CheckSender& sender, bool stream) {
  auto request = user_request("Reply with exactly the word READY and nothing else.",
                              sender.context().max_tokens, stream);
  request.api = wire::Api::kResponses;
  return ask_and_judge(sender, std::move(request), [stream](const evidence::RequestRow& row) {
    if (stream && !row.stamps.done) return failed("the stream has no response.completed event");
    if (stream && row.chunks.empty()) return failed("the stream carried no output event");
    return grade_responses("READY", row);
  });
}
Result<Grade> responses(CheckSender& sender) {
  return responses_in(sender, false);
}
Result<Grade> responses_stream(CheckSender& sender) {
  return responses_in(sender, true);
}

constexpr std::array<Check, 9> kChecks{{
    {"smoke",
     "the model writes a small Python function that computes the right values when it runs", true,
     smoke},
    {"json-schema", "an answer that is constrained by a JSON schema satisfies it", true,
     json_schema},
    {"json", "an answer under a JSON schema is one JSON object with the values that were asked for",
     true, json},
    {"tools", "a tool is called by its name with the right types and values of all arguments", true,
     tools},
    {"tools-stream", "the same call arrives whole through streamed pieces, finish tool_calls", true,
     tools_stream},
    {"tool-result", "a tool's result is fed back and its values are used in the final answer", true,
     tool_result},
    {"recall", "a code given in the first of three turns is known in the third", true, recall},
    {"responses", "the Responses API completes with exactly the text that was asked for", true,
     responses},
    {"responses-stream", "the Responses API streams the same to its completed event", true,
     responses_stream},
}};

}  // namespace

std::span<const Check> answer_checks() {
  return kChecks;
}

}  // namespace anvil::qualify
