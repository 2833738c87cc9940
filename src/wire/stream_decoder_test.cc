#include "wire/stream_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/chunked.h"
#include "wire/sse.h"

namespace anvil::wire {
namespace {

struct Event {
  std::string_view type;
  std::string_view data;
};

// Feeds events that must all be understood; what each added stands in `deltas`.
struct Feed {
  Feed(Api api, const std::vector<Event>& events) : decoder(api) {
    for (const Event& event : events) {
      Result<Delta> delta = decoder.on_event(event.type, event.data);
      if (!delta) ADD_FAILURE() << delta.error().detail;
      deltas.push_back(delta.value_or(Delta{}));
    }
  }
  const Answer& answer() const { return decoder.answer(); }

  StreamDecoder decoder;
  std::vector<Delta> deltas;
};

Feed chat(const std::vector<std::string_view>& datas) {
  std::vector<Event> events;
  for (std::string_view data : datas) events.push_back({"", data});
  return Feed(Api::kChat, events);
}

std::string delta_chunk(const std::string& delta) {
  return R"({"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":)" +
         delta + R"(,"finish_reason":null}]})";
}

TEST(StreamDecoderTest, RoleOnlyDeltaIsNoOutput) {
  for (const char* delta : {R"({"role":"assistant","content":""})", R"({"role":"assistant"})",
                            R"({"role":"assistant","content":null})", "{}", "null"}) {
    const std::string chunk = delta_chunk(delta);
    const Feed run = chat({chunk});
    EXPECT_FALSE(run.deltas[0].output()) << delta;
    EXPECT_EQ(run.answer().content, "");
  }
}

TEST(StreamDecoderTest, ReadsAPlainChat) {
  const std::string a = delta_chunk(R"({"content":"Hel"})");
  const std::string b = delta_chunk(R"({"content":"lo \u00e9\ud83d\ude00\n"})");
  const Feed run = chat(
      {a, b,
       R"({"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":null}]})",
       R"({"choices":[],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2,)"
       R"("prompt_tokens_details":null}})",
       " [DONE] "});
  EXPECT_EQ(run.answer().id, "c1");
  EXPECT_EQ(run.answer().model, "m");
  EXPECT_EQ(run.answer().content, "Hello \u00e9\U0001F600\n");
  EXPECT_EQ(run.answer().finish, "stop");
  EXPECT_EQ(run.answer().usage, (Usage{7, 2, std::nullopt, std::nullopt, 9}));
  EXPECT_EQ(run.deltas[0].content_bytes, 3u);
  EXPECT_TRUE(run.deltas[0].visible());
  EXPECT_TRUE(run.deltas[2].finish);
  EXPECT_FALSE(run.deltas[2].output());
  EXPECT_TRUE(run.deltas[3].usage);
  EXPECT_FALSE(run.deltas[3].output());
  EXPECT_TRUE(run.deltas[4].done);
  EXPECT_TRUE(run.decoder.done());
}

TEST(StreamDecoderTest, ReadsEverySpellingOfReasoning) {
  for (const char* key : {"reasoning", "reasoning_content", "thinking"}) {
    const std::string chunk =
        delta_chunk(R"({"content":null,")" + std::string(key) + R"(":"think"})");
    const Feed run = chat({chunk});
    EXPECT_EQ(run.answer().reasoning, "think") << key;
    EXPECT_EQ(run.deltas[0].reasoning_bytes, 5u);
    EXPECT_TRUE(run.deltas[0].output());
    EXPECT_FALSE(run.deltas[0].visible());
  }
}

TEST(StreamDecoderTest, CountsReasoningThatIsSentTwiceOnce) {
  const std::string both = delta_chunk(R"({"reasoning":"abc","reasoning_content":"abc"})");
  const std::string empty_first = delta_chunk(R"({"reasoning":null,"reasoning_content":"d"})");
  const Feed run = chat({both, empty_first});
  EXPECT_EQ(run.answer().reasoning, "abcd");
  EXPECT_EQ(run.deltas[0].reasoning_bytes, 3u);
}

TEST(StreamDecoderTest, ReassemblesToolCallsPerIndex) {
  const std::string a = delta_chunk(
      R"({"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"add","arguments":""}},)"
      R"({"index":1,"id":"call_b","type":"function","function":{"name":"sub","arguments":"{\"x\""}}]})");
  const std::string b = delta_chunk(R"({"tool_calls":[{"index":1,"function":{"arguments":":1}"}},)"
                                    R"({"index":0,"function":{"arguments":"{\"y\":"}}]})");
  const std::string c =
      delta_chunk(R"({"tool_calls":[{"function":{"arguments":"2}"},"index":0}]})");
  const Feed run = chat({a, b, c, R"({"choices":[{"delta":{},"finish_reason":"tool_calls"}]})"});
  EXPECT_EQ(run.answer().tool_calls, (std::vector<ToolCall>{{"call_a", "add", R"({"y":2})"},
                                                            {"call_b", "sub", R"({"x":1})"}}));
  EXPECT_EQ(run.deltas[0].tool_bytes, 3u + 3u + 4u);
  EXPECT_TRUE(run.deltas[0].visible());
  EXPECT_EQ(run.answer().finish, "tool_calls");
}

TEST(StreamDecoderTest, ToleratesUnusualToolCalls) {
  // No index; a repeated name and id; arguments as an object; a higher index first.
  const std::string a =
      delta_chunk(R"({"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\""}}]})");
  const std::string b =
      delta_chunk(R"({"tool_calls":[{"id":"x","function":{"name":"f","arguments":":1}"}}]})");
  EXPECT_EQ(chat({a, b}).answer().tool_calls, (std::vector<ToolCall>{{"x", "f", R"({"a":1})"}}));

  const std::string c = delta_chunk(
      R"({"tool_calls":[{"index":1,"function":{"name":"g","arguments":{"a": [1, 2]}}},)"
      R"({"index":0,"function":{"name":"f","arguments":null}},{"index":2,"function":null}]})");
  EXPECT_EQ(chat({c}).answer().tool_calls,
            (std::vector<ToolCall>{{"", "f", ""}, {"", "g", R"({"a": [1, 2]})"}, {"", "", ""}}));

  const std::string none = delta_chunk(R"({"tool_calls":null,"content":"x"})");
  EXPECT_TRUE(chat({none}).answer().tool_calls.empty());

  // Two whole calls without an index in one chunk are two calls.
  const std::string d =
      delta_chunk(R"({"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},)"
                  R"({"id":"2","function":{"name":"g","arguments":"{}"}}]})");
  EXPECT_EQ(chat({d}).answer().tool_calls,
            (std::vector<ToolCall>{{"1", "f", "{}"}, {"2", "g", "{}"}}));
}

TEST(StreamDecoderTest, RefusesImpossibleToolIndex) {
  for (const char* index : {"-1", "1024", "99999999999"}) {
    StreamDecoder decoder(Api::kChat);
    const auto delta = decoder.on_event(
        "", delta_chunk(R"({"tool_calls":[{"index":)" + std::string(index) + R"(,"id":"x"}]})"));
    ASSERT_FALSE(delta.has_value()) << index;
    EXPECT_EQ(delta.error().kind, Kind::kProtocol);
  }
}

TEST(StreamDecoderTest, TakesUsageFromAnyChunk) {
  const Feed run = chat(
      {R"({"usage":{"prompt_tokens":5,"completion_tokens":0},"choices":[{"index":0,"delta":{"role":"assistant"}}]})",
       R"({"usage":{"prompt_tokens":5,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},)"
       R"("completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0}},"choices":[{"index":0,"delta":{"content":"a"}}]})",
       R"({"usage":null,"choices":[{"index":0,"delta":{"content":"b"}}]})",
       R"({"usage":{"completion_tokens":9.0,"completion_tokens_details":null},"choices":[]})"});
  EXPECT_EQ(run.answer().usage, (Usage{5, 9, 3, 2, std::nullopt}));
  EXPECT_EQ(run.deltas[0].completion_tokens, 0);
  EXPECT_EQ(run.deltas[1].completion_tokens, 4);
  EXPECT_FALSE(run.deltas[2].usage);
  EXPECT_EQ(run.deltas[2].completion_tokens, std::nullopt);
  EXPECT_EQ(run.deltas[3].completion_tokens, 9);
}

// Counts that no engine can mean are unknown, not numbers to calculate with.
TEST(StreamDecoderTest, BelievesNoImpossibleCount) {
  for (const char* count : {"-8", "8.7", "-0.5", "9223372036854775807", "1e300", "1000000000001"}) {
    const Feed run = chat({std::string(R"({"choices":[],"usage":{"prompt_tokens":)") + count +
                           R"(,"completion_tokens":)" + count + "}}"});
    EXPECT_EQ(run.answer().usage, (Usage{})) << count;
  }
}

TEST(StreamDecoderTest, CountsTheTokenIdsOfEachEvent) {
  const Feed run = chat(
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"token_ids":null}]})",
       R"({"choices":[{"index":0,"delta":{"content":"ab"},"token_ids":[5,6]},{"index":1,"token_ids":[7]}]})",
       R"({"choices":[{"index":0,"delta":{},"token_ids":[8]}]})",
       R"({"choices":[{"index":0,"delta":{"content":"c"},"token_ids":[]}]})",
       R"({"choices":[],"usage":{"completion_tokens":3}})"});
  EXPECT_EQ(run.deltas[0].completion_tokens, std::nullopt);
  EXPECT_EQ(run.deltas[1].completion_tokens, 2);
  EXPECT_EQ(run.deltas[2].completion_tokens, 3);
  EXPECT_EQ(run.deltas[3].completion_tokens, 3);
  EXPECT_EQ(run.deltas[4].completion_tokens, 3);
}

TEST(StreamDecoderTest, ReadsTimingsOfLlamaCpp) {
  const Feed run = chat(
      {R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],"system_fingerprint":"b1-x",)"
       R"("timings":{"cache_n":2,"prompt_n":5,"prompt_ms":10.5,"predicted_n":1,"predicted_ms":0.1}})",
       R"({"choices":[],"timings":{"cache_n":2,"prompt_n":5,"prompt_ms":10.5,"prompt_per_second":476.1,)"
       R"("predicted_n":8,"predicted_ms":100,"draft_n":6,"draft_n_accepted":4},)"
       R"("usage":{"prompt_tokens":7,"completion_tokens":8}})"});
  ASSERT_TRUE(run.answer().timings.has_value());
  EXPECT_EQ(run.answer().timings->cache_n, 2);
  EXPECT_EQ(run.answer().timings->prompt_n, 5);
  EXPECT_EQ(run.answer().timings->prompt_ms, 10.5);
  EXPECT_EQ(run.answer().timings->predicted_n, 8);
  EXPECT_EQ(run.answer().timings->predicted_ms, 100);
  EXPECT_EQ(run.answer().timings->draft_n_accepted, 4);
  EXPECT_EQ(run.answer().system_fingerprint, "b1-x");
  EXPECT_EQ(run.deltas[0].completion_tokens, 1);
  EXPECT_EQ(run.deltas[1].completion_tokens, 8);
}

TEST(StreamDecoderTest, ReadsErrorsInsideASuccessfulStream) {
  struct Case {
    std::string_view type, data, message, error_type, code;
  };
  const Case kCases[] = {
      {"", R"({"error":{"message":"out of memory","type":"server_error","code":500}})",
       "out of memory", "server_error", "500"},
      {"", R"({"error":{"message":"m","code":"ctx","type":null}})", "m", "", "ctx"},
      {"", R"({"error":"boom"})", "boom", "", ""},
      {"", R"({"object":"error","message":"old form","type":"BadRequest","code":400})", "old form",
       "BadRequest", "400"},
      {"error", R"({"error":{"message":"named"}})", "named", "", ""},
      {"error", "plain words", "plain words", "error", ""},
      {"error", R"({"reason":"other shape"})", R"({"reason":"other shape"})", "error", ""},
      {"", R"({"choices":[{"index":0,"delta":{},"finish_reason":"error"}]})",
       "the engine ended the answer with finish_reason error", "finish_reason", ""},
  };
  for (const Case& c : kCases) {
    const Feed run(Api::kChat, {{c.type, c.data}, {"", "[DONE]"}});
    EXPECT_TRUE(run.deltas[0].error) << c.data;
    EXPECT_FALSE(run.deltas[0].output());
    ASSERT_TRUE(run.answer().error.has_value());
    EXPECT_EQ(run.answer().error->message, c.message);
    EXPECT_EQ(run.answer().error->type, c.error_type);
    EXPECT_EQ(run.answer().error->code, c.code);
  }
  EXPECT_FALSE(chat({R"({"error":null,"choices":[]})"}).answer().error.has_value());
}

TEST(StreamDecoderTest, ReadsOnlyTheFirstChoice) {
  const Feed run = chat(
      {R"({"choices":[{"delta":{"content":"b"},"index":1},{"delta":{"content":"a"},"index":0}]})"});
  EXPECT_EQ(run.answer().content, "a");
}

TEST(StreamDecoderTest, ReadsContentParts) {
  const std::string chunk = delta_chunk(
      R"({"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b","type":"text"},null]})");
  EXPECT_EQ(chat({chunk}).answer().content, "ab");
}

TEST(StreamDecoderTest, ReadsRefusals) {
  const std::string chunk = delta_chunk(R"({"refusal":"no","content":null})");
  const Feed run = chat({chunk});
  EXPECT_EQ(run.answer().refusal, "no");
  EXPECT_FALSE(run.deltas[0].output());
}

TEST(StreamDecoderTest, ReadsCompletions) {
  const Feed run(
      Api::kCompletions,
      {{"",
        R"({"id":"cmpl","choices":[{"text":"1 2","index":0,"logprobs":null,"finish_reason":null}]})"},
       {"",
        R"({"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":3}})"},
       {"", "[DONE]"}});
  EXPECT_EQ(run.answer().content, "1 2");
  EXPECT_EQ(run.deltas[0].content_bytes, 3u);
  EXPECT_FALSE(run.deltas[1].output());
  EXPECT_EQ(run.answer().finish, "length");
  EXPECT_TRUE(run.decoder.done());
}

TEST(StreamDecoderTest, ReadsResponses) {
  const Feed run(
      Api::kResponses,
      {{"response.created",
        R"({"type":"response.created","response":{"id":"r1","model":"m","status":"in_progress","output":[],"usage":null,"error":null}})"},
       {"response.output_item.added",
        R"({"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}})"},
       {"response.reasoning_text.delta",
        R"({"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"})"},
       {"", R"({"type":"response.reasoning_summary_text.delta","delta":"!"})"},
       {"response.output_text.delta", R"({"delta":"Hi","content_index":0})"},
       {"", R"({"type":"response.output_text.done","text":"Hi"})"},
       {"",
        R"({"item":{"arguments":"","call_id":"call_1","id":"fc","name":"add","type":"function_call"},"type":"response.output_item.added","output_index":2})"},
       {"",
        R"({"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc","delta":"{\"a\""})"},
       {"",
        R"({"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc","delta":":1}"})"},
       {"",
        R"({"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"a\":1}"})"},
       {"",
        R"({"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"call_1","name":"add","arguments":"{\"a\":1}"}})"},
       {"", R"({"type":"response.refusal.delta","delta":"no"})"},
       {"response.completed",
        R"({"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],)"
        R"("usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":1},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2}}}})"}});
  const Answer& answer = run.answer();
  EXPECT_EQ(answer.id, "r1");
  EXPECT_EQ(answer.model, "m");
  EXPECT_EQ(answer.reasoning, "hm!");
  EXPECT_EQ(answer.content, "Hi");
  EXPECT_EQ(answer.refusal, "no");
  EXPECT_EQ(answer.tool_calls, (std::vector<ToolCall>{{"call_1", "add", R"({"a":1})"}}));
  EXPECT_EQ(answer.usage, (Usage{5, 6, 1, 2, std::nullopt}));
  EXPECT_EQ(answer.finish, "completed");
  EXPECT_FALSE(answer.error.has_value());
  EXPECT_FALSE(run.deltas[0].finish);
  EXPECT_EQ(run.deltas[2].reasoning_bytes, 2u);
  EXPECT_EQ(run.deltas[6].tool_bytes, 3u);
  EXPECT_EQ(run.deltas[9].tool_bytes, 0u) << "the whole arguments repeat the pieces";
  EXPECT_TRUE(run.deltas[12].done);
  EXPECT_EQ(run.deltas[12].content_bytes, 0u) << "the final output repeats the pieces";
}

TEST(StreamDecoderTest, TakesWholeResponsesItemsWhenNothingWasStreamed) {
  const Feed done(
      Api::kResponses,
      {{"",
        R"({"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","name":"f","arguments":"{}"}})"}});
  EXPECT_EQ(done.answer().tool_calls, (std::vector<ToolCall>{{"fc", "f", "{}"}}));
  const Feed last(
      Api::kResponses,
      {{"",
        R"({"type":"response.completed","response":{"output":[{"content":[{"text":"all","type":"output_text"}],"type":"message"}]}})"}});
  EXPECT_EQ(last.answer().content, "all");
  EXPECT_EQ(last.deltas[0].content_bytes, 3u);
  EXPECT_EQ(last.answer().finish, "completed");
}

TEST(StreamDecoderTest, ReadsFailedAndIncompleteResponses) {
  const Feed failed(
      Api::kResponses,
      {{"response.failed",
        R"({"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"died"}}})"}});
  EXPECT_TRUE(failed.deltas[0].error);
  EXPECT_TRUE(failed.deltas[0].done);
  EXPECT_EQ(failed.answer().error->message, "died");
  const Feed bare(Api::kResponses, {{"response.failed", R"({"response":null})"}});
  EXPECT_TRUE(bare.answer().error.has_value());
  const Feed error(Api::kResponses,
                   {{"error", R"({"type":"error","code":"x","message":"bad","param":null})"}});
  EXPECT_EQ(error.answer().error->message, "bad");
  EXPECT_EQ(error.answer().error->code, "x");
  const Feed incomplete(
      Api::kResponses,
      {{"",
        R"({"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"output_tokens":4}}})"}});
  EXPECT_EQ(incomplete.answer().finish, "incomplete");
  EXPECT_TRUE(incomplete.decoder.done());
}

TEST(StreamDecoderTest, QuotesMalformedJson) {
  for (Api api : {Api::kChat, Api::kCompletions, Api::kResponses}) {
    for (const char* data :
         {"", "not json", "{", R"({"choices":[{"delta":{"content":"a)", "[]", "null", "1",
          R"({"choices":{}})", R"({"choices":[]} trailing)", R"({"id":"a" "b"})",
          "{\"id\":\"\xff\"}", R"({"id":"\x"})", R"({"id":"\ud83d"})"}) {
      StreamDecoder decoder(api);
      const auto delta = decoder.on_event("", data);
      if (delta && api == Api::kResponses) continue;  // fields of other surfaces are not read
      ASSERT_FALSE(delta.has_value()) << data;
      EXPECT_EQ(delta.error().kind, Kind::kProtocol);
      EXPECT_EQ(delta.error().side, Side::kUpstream);
    }
  }
  StreamDecoder decoder(Api::kChat);
  const std::string longer = "{" + std::string(200, 'x');
  const auto delta = decoder.on_event("", longer);
  EXPECT_NE(delta.error().detail.find("'" + longer.substr(0, 80) + "'"), std::string::npos);
}

TEST(StreamDecoderTest, CanBeUsedAgain) {
  StreamDecoder decoder(Api::kChat);
  ASSERT_TRUE(decoder.on_event("", delta_chunk(R"({"content":"a","tool_calls":[{"id":"t"}]})")));
  ASSERT_TRUE(decoder.on_event("", "[DONE]"));
  EXPECT_EQ(decoder.take_answer().content, "a");
  decoder.reset(Api::kResponses);
  EXPECT_FALSE(decoder.done());
  ASSERT_TRUE(decoder.on_event("", R"({"type":"response.output_text.delta","delta":"b"})"));
  EXPECT_EQ(decoder.answer().content, "b");
  EXPECT_TRUE(decoder.answer().tool_calls.empty());
}

TEST(StreamDecoderTest, GrowsWithLargeEvents) {
  StreamDecoder decoder(Api::kChat);
  size_t total = 0;
  for (size_t size : {10u, 5000u, 100u, 300'000u, 3u}) {
    ASSERT_TRUE(
        decoder.on_event("", delta_chunk(R"({"content":")" + std::string(size, 'a') + R"("})")));
    total += size;
  }
  EXPECT_EQ(decoder.answer().content.size(), total);
}

// The whole path from raw body bytes to an answer, in every split.
std::string through_all_layers(const std::vector<std::string_view>& pieces) {
  ChunkedDecoder chunked;
  SseSplitter sse;
  StreamDecoder decoder(Api::kChat);
  std::string deltas;
  for (std::string_view piece : pieces) {
    const std::string buffer(piece);
    std::string_view input(buffer);
    while (!input.empty()) {
      const auto step = chunked.next(input);
      if (!step) return step.error().detail;
      input.remove_prefix(step->consumed);
      const auto fed = sse.feed(step->payload, [&](const SseEvent& event) -> Result<void> {
        const Delta delta = TRY(decoder.on_event(event.event, event.data));
        deltas += std::to_string(delta.reasoning_bytes) + "," +
                  std::to_string(delta.content_bytes) + "," + std::to_string(delta.tool_bytes) +
                  (delta.done ? "!" : ";");
        return {};
      });
      if (!fed) return fed.error().detail;
    }
  }
  const Answer& answer = decoder.answer();
  return deltas + answer.reasoning + "|" + answer.content + "|" +
         (answer.tool_calls.empty() ? "" : answer.tool_calls[0].arguments) +
         (chunked.done() && decoder.done() ? "|done" : "|open");
}

TEST(StreamDecoderTest, GivesTheSameAnswerAtEverySplit) {
  const std::string body =
      ": ping\r\n\r\ndata: " + delta_chunk(R"({"role":"assistant","content":null})") +
      "\r\n\r\ndata:" + delta_chunk(R"({"reasoning_content":"a \" b"})") +
      "\n\ndata: " + delta_chunk(R"({"content":"\u00e9 x"})") + "\n\ndata: " +
      delta_chunk(R"({"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]})") +
      "\n\ndata: [DONE]\n\n";
  std::string wire;
  for (size_t at = 0; at < body.size(); at += 100) {
    const std::string piece = body.substr(at, 100);
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    wire += size + piece + "\r\n";
  }
  wire += "0\r\n\r\n";
  const std::string whole = through_all_layers({wire});
  EXPECT_EQ(whole, "0,0,0;5,0,0;0,4,0;0,0,3;0,0,0!a \" b|\u00e9 x|{}|done");
  std::vector<std::string_view> bytes;
  for (size_t cut = 0; cut < wire.size(); ++cut) {
    const std::string_view view(wire);
    EXPECT_EQ(through_all_layers({view.substr(0, cut), view.substr(cut)}), whole) << cut;
    bytes.push_back(view.substr(cut, 1));
  }
  EXPECT_EQ(through_all_layers(bytes), whole);
}

TEST(ParseAnswerTest, ReadsUnaryBodies) {
  const auto chat_answer = parse_answer(
      Api::kChat,
      R"({"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"Hi","reasoning":"hm","refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},)"
      R"({"id":"b","type":"function","function":{"name":"g","arguments":"[]"}}]},"finish_reason":"tool_calls"}],)"
      R"("usage":{"prompt_tokens":1,"completion_tokens":2},"timings":{"prompt_n":1}})"
      "\n");
  ASSERT_TRUE(chat_answer.has_value()) << chat_answer.error().detail;
  EXPECT_EQ(chat_answer->content, "Hi");
  EXPECT_EQ(chat_answer->reasoning, "hm");
  EXPECT_EQ(chat_answer->tool_calls, (std::vector<ToolCall>{{"a", "f", "{}"}, {"b", "g", "[]"}}));
  EXPECT_EQ(chat_answer->finish, "tool_calls");
  EXPECT_EQ(chat_answer->usage.completion, 2);

  const auto completion = parse_answer(
      Api::kCompletions, R"({"choices":[{"text":"x","index":0,"finish_reason":"stop"}]})");
  EXPECT_EQ(completion->content, "x");

  const auto response = parse_answer(
      Api::kResponses,
      R"({"id":"r","status":"completed","output":[{"summary":[{"type":"summary_text","text":"s"}],"type":"reasoning","content":null},)"
      R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"},{"type":"refusal","refusal":"no"}]},)"
      R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":{"input_tokens":3,"output_tokens":4},"error":null})");
  ASSERT_TRUE(response.has_value()) << response.error().detail;
  EXPECT_EQ(response->reasoning, "s");
  EXPECT_EQ(response->content, "Hi");
  EXPECT_EQ(response->refusal, "no");
  EXPECT_EQ(response->tool_calls, (std::vector<ToolCall>{{"c", "f", "{}"}}));
  EXPECT_EQ(response->finish, "completed");
  EXPECT_EQ(response->usage, (Usage{3, 4, std::nullopt, std::nullopt, std::nullopt}));
}

TEST(ParseAnswerTest, ReportsErrorsAndBrokenBodies) {
  EXPECT_EQ(parse_answer(Api::kChat, R"({"error":{"message":"m"}})")->error->message, "m");
  for (const char* body : {"", "<html>", "[]", R"({"choices":[)"}) {
    const auto answer = parse_answer(Api::kChat, body);
    ASSERT_FALSE(answer.has_value()) << body;
    EXPECT_EQ(answer.error().kind, Kind::kProtocol);
  }
}

TEST(ParseErrorBodyTest, UnderstandsEveryForm) {
  struct Case {
    std::string_view body, message, type, code;
  };
  const Case kCases[] = {
      {R"({"error":{"message":"m","type":"t","code":404,"param":null}})", "m", "t", "404"},
      {R"({"error":{"message":"m","code":null}})", "m", "", ""},
      {R"({"error":"text"})", "text", "", ""},
      {R"({"object":"error","message":"m","type":"NotFoundError","code":404})", "m",
       "NotFoundError", "404"},
      {R"({"detail":"Not Found"})", "Not Found", "", ""},
      {R"({"detail":[{"loc":["body","messages",0],"msg":"field required","type":"missing"},{"msg":"second"}]})",
       "body.messages.0: field required; second", "", ""},
      {R"("just text")", "just text", "", ""},
      {" Service Unavailable\n", "Service Unavailable", "", ""},
      {"<html>502</html>", "<html>502</html>", "", ""},
      {R"({"status":"loading"})", R"({"status":"loading"})", "", ""},
      {R"({"error":{}})", R"({"error":{}})", "", ""},
      {"", "", "", ""},
      {"\xff", "\uFFFD", "", ""},
  };
  for (const Case& c : kCases) {
    const ReportedError error = parse_error_body(c.body);
    EXPECT_EQ(error.message, c.message) << c.body;
    EXPECT_EQ(error.type, c.type) << c.body;
    EXPECT_EQ(error.code, c.code) << c.body;
  }
  EXPECT_EQ(parse_error_body(std::string(2000, 'x')).message.size(), 500u);
}

}  // namespace
}  // namespace anvil::wire
