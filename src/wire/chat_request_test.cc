#include "wire/chat_request.h"

#include <gtest/gtest.h>

namespace anvil::wire {
namespace {

const Json kTool = Json::parse(
    R"({"type":"function","function":{"name":"add","description":"d","parameters":{"type":"object"}}})");

GenerationRequest conversation(Api api) {
  GenerationRequest request;
  request.api = api;
  request.model = "m";
  ChatMessage system{.role = "system", .content = "be brief"};
  ChatMessage user{.role = "user", .content = Json::parse(R"([{"type":"text","text":"1+1?"}])")};
  ChatMessage assistant{.role = "assistant", .content = nullptr, .reasoning = "hm"};
  assistant.tool_calls.push_back({"call_1", "add", R"({"a":1})"});
  ChatMessage tool{.role = "tool", .content = "2", .tool_call_id = "call_1"};
  request.messages = {system, user, assistant, tool};
  request.max_tokens = 64;
  request.temperature = 0.5;
  request.seed = 7;
  request.stop = {"\n"};
  request.tools = Json::array({kTool});
  request.tool_choice = Json::parse(R"({"type":"function","function":{"name":"add"}})");
  request.json_schema = Json::parse(R"({"type":"object","properties":{}})");
  request.effort = "high";
  return request;
}

TEST(ChatRequestTest, WritesChatBodies) {
  EXPECT_EQ(Json::parse(to_body(conversation(Api::kChat))), Json::parse(R"({
        "model":"m","stream":true,"stream_options":{"include_usage":true},
        "max_tokens":64,"temperature":0.5,"seed":7,"stop":["\n"],"reasoning_effort":"high",
        "messages":[
          {"role":"system","content":"be brief"},
          {"role":"user","content":[{"type":"text","text":"1+1?"}]},
          {"role":"assistant","content":null,"reasoning_content":"hm",
           "tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},
          {"role":"tool","content":"2","tool_call_id":"call_1"}],
        "tools":[{"type":"function","function":{"name":"add","description":"d","parameters":{"type":"object"}}}],
        "tool_choice":{"type":"function","function":{"name":"add"}},
        "response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,
                           "schema":{"type":"object","properties":{}}}}})"));
}

TEST(ChatRequestTest, WritesResponsesBodies) {
  EXPECT_EQ(Json::parse(to_body(conversation(Api::kResponses))), Json::parse(R"({
        "model":"m","stream":true,"max_output_tokens":64,"temperature":0.5,"seed":7,"stop":["\n"],
        "reasoning":{"effort":"high"},
        "input":[
          {"type":"message","role":"system","content":[{"type":"input_text","text":"be brief"}]},
          {"type":"message","role":"user","content":[{"type":"input_text","text":"1+1?"}]},
          {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
          {"type":"function_call","call_id":"call_1","name":"add","arguments":"{\"a\":1}"},
          {"type":"function_call_output","call_id":"call_1","output":"2"}],
        "tools":[{"type":"function","name":"add","description":"d","parameters":{"type":"object"}}],
        "tool_choice":{"type":"function","name":"add"},
        "text":{"format":{"type":"json_schema","name":"answer","strict":true,
                "schema":{"type":"object","properties":{}}}}})"));
}

TEST(ChatRequestTest, MarksWhatTheModelSaidAsOutput) {
  GenerationRequest request;
  request.api = Api::kResponses;
  request.messages = {{.role = "assistant", .content = "4"}, {.role = "user", .content = ""}};
  const Json body = to_json(request);
  EXPECT_EQ(body["input"][0]["content"][0]["type"], "output_text");
  EXPECT_EQ(body["input"][1]["role"], "user");
}

TEST(ChatRequestTest, WritesCompletionsBodies) {
  GenerationRequest request;
  request.api = Api::kCompletions;
  request.model = "m";
  request.prompt = "Once";
  request.max_tokens = 8;
  request.ignore_eos = true;
  request.stream = false;
  EXPECT_EQ(to_body(request),
            R"({"ignore_eos":true,"max_tokens":8,"model":"m","prompt":"Once","stream":false})");
  request.prompt_tokens = {1, 2, 3};
  EXPECT_EQ(to_json(request)["prompt"], Json::parse("[1,2,3]"));
}

TEST(ChatRequestTest, MakesAPromptAUserMessageWhereMessagesAreNeeded) {
  GenerationRequest request;
  request.prompt = "Hi";
  EXPECT_EQ(to_json(request)["messages"], Json::parse(R"([{"role":"user","content":"Hi"}])"));
  request.api = Api::kResponses;
  EXPECT_EQ(to_json(request)["input"][0]["content"][0]["text"], "Hi");
}

TEST(ChatRequestTest, KeepsNamedSchemasAndPlainJsonMode) {
  GenerationRequest request;
  request.json_schema =
      Json::parse(R"({"name":"person","strict":false,"schema":{"type":"object"}})");
  EXPECT_EQ(to_json(request)["response_format"]["json_schema"], request.json_schema);
  request.json_schema = Json::parse(R"({"type":"json_object"})");
  EXPECT_EQ(to_json(request)["response_format"], request.json_schema);
  request.api = Api::kResponses;
  EXPECT_EQ(to_json(request)["text"]["format"], request.json_schema);
}

TEST(ChatRequestTest, LetsExtraWin) {
  GenerationRequest request;
  request.temperature = 1.0;
  request.extra = Json::parse(R"({"temperature":0,"chat_template_kwargs":{"a":1}})");
  const Json body = to_json(request);
  EXPECT_EQ(body["temperature"], 0);
  EXPECT_EQ(body["chat_template_kwargs"]["a"], 1);
}

TEST(ChatRequestTest, GivesEqualBytesForEqualRequests) {
  EXPECT_EQ(to_body(conversation(Api::kChat)), to_body(conversation(Api::kChat)));
  const std::string body = to_body(conversation(Api::kChat));
  EXPECT_LT(body.find("\"max_tokens\""), body.find("\"messages\""));
  EXPECT_LT(body.find("\"messages\""), body.find("\"model\""));
}

TEST(ChatRequestTest, LeavesAbsentValuesOut) {
  GenerationRequest request;
  request.messages = {{.role = "user", .content = "x"}};
  EXPECT_EQ(
      to_body(request),
      R"({"messages":[{"content":"x","role":"user"}],"model":"","stream":true,"stream_options":{"include_usage":true}})");
}

}  // namespace
}  // namespace anvil::wire
