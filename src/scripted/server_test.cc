#include "scripted/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/strings.h"
#include "net/http_call.h"
#include "wire/prometheus.h"
#include "wire/sse.h"
#include "wire/stream_decoder.h"

namespace anvil::scripted {
namespace {

constexpr const char* kChatBody =
    R"({"model":"scripted","stream":true,"stream_options":{"include_usage":true},)"
    R"("messages":[{"role":"user","content":"one two three"}]})";
constexpr const char* kUnaryBody =
    R"({"model":"scripted","messages":[{"role":"user","content":"one two three"}]})";

Schedule schedule_of(std::string_view rest) {
  auto loaded = parse("schema = \"anvil/schedule/v1\"\nname = \"t\"\n" + std::string(rest), "t");
  for (const auto& diagnostic : loaded.diagnostics) ADD_FAILURE() << recipe::to_string(diagnostic);
  return loaded.ok() ? std::move(*loaded.value) : Schedule{};
}

std::unique_ptr<Server> serve(std::string_view rest, const Options& options = {}) {
  auto server = Server::start(schedule_of(rest), options);
  if (!server) ADD_FAILURE() << base::to_string(server.error());
  return server ? std::move(*server) : nullptr;
}

Result<net::HttpReply> call(const Server& server, const std::string& method,
                            const std::string& path, const std::string& body = {},
                            const std::string& key = {}) {
  const auto url = net::parse_url(server.base_url());
  if (!url) return fail(url.error());
  return net::http_call(*url, {.method = method, .path = path, .body = body, .api_key = key});
}

std::string body_of(const Result<net::HttpReply>& reply, int status = 200) {
  if (!reply) {
    ADD_FAILURE() << base::to_string(reply.error());
    return {};
  }
  EXPECT_EQ(reply->status, status) << reply->body;
  return reply->body;
}

// The answer that a stream's bytes make up; `deltas` counts events with output.
wire::Answer decode(wire::Api api, const std::string& stream, int* deltas = nullptr) {
  wire::SseSplitter splitter;
  wire::StreamDecoder decoder(api);
  const auto fed = splitter.feed(stream, [&](const wire::SseEvent& event) -> Result<void> {
    const auto delta = decoder.on_event(event.event, event.data);
    if (!delta) return fail(delta.error());
    if (deltas && delta->output()) ++*deltas;
    return {};
  });
  EXPECT_TRUE(fed) << base::to_string(fed.error()) << "\n" << stream;
  EXPECT_TRUE(decoder.done()) << stream;
  return decoder.take_answer();
}

const char* const kPlain = "[[stream]]\nname = \"a\"\ncontent_tokens = 6\nchunk_tokens = [2]\n";

TEST(Server, StreamsWhatTheScheduleSays) {
  const auto server = serve(kPlain);
  int deltas = 0;
  const auto reply = call(*server, "POST", "/v1/chat/completions", kChatBody);
  const auto answer = decode(wire::Api::kChat, body_of(reply), &deltas);
  EXPECT_EQ(deltas, 3);
  EXPECT_EQ(answer.content, "scripted answer with a fixed order");
  EXPECT_EQ(answer.finish, "stop");
  EXPECT_EQ(answer.model, "scripted");
  EXPECT_EQ(answer.system_fingerprint, "scripted");
  EXPECT_EQ(answer.usage.prompt, 8 + 3);
  EXPECT_EQ(answer.usage.completion, 6);
  EXPECT_EQ(answer.usage.total, 17);
  EXPECT_EQ(answer.usage.cached, 0);
  EXPECT_EQ(reply->header("server"), "anvil-scripted-engine");
  EXPECT_TRUE(reply->header("content-type").starts_with("text/event-stream"));

  const Ledger ledger = server->ledger();
  ASSERT_EQ(ledger.entries.size(), 1u);
  const LedgerEntry& entry = ledger.entries[0];
  EXPECT_EQ(entry.ending, Ending::kDone);
  EXPECT_EQ(entry.prompt_tokens, 11);
  EXPECT_EQ(entry.completion_tokens, 6);
  ASSERT_EQ(entry.events.size(), 7u);  // role, three times text, finish, usage, done
  EXPECT_GT(entry.arrived, 0);
  EXPECT_LE(entry.arrived, entry.recv_last_byte);
  Nanos before = entry.recv_last_byte;
  for (const LedgerEvent& event : entry.events) {
    EXPECT_EQ(event.due, entry.recv_last_byte);
    EXPECT_GE(event.write_begin, before);
    EXPECT_GE(event.write_end, event.write_begin);
    before = event.write_end;
  }
  EXPECT_EQ(ledger.lateness.count(), 7);
}

TEST(Server, StampsAreTheLedgers) {
  const auto server = serve(kPlain);
  const std::string body = body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
  std::vector<std::pair<Nanos, Nanos>> stamps;
  wire::SseSplitter splitter;
  ASSERT_TRUE(splitter.feed(body, [&](const wire::SseEvent& event) -> Result<void> {
    if (event.data == "[DONE]") return {};
    const auto json = base::parse_json(event.data, "event");
    if (!json) return fail(json.error());
    stamps.emplace_back((*json)["anvil"]["due_ns"], (*json)["anvil"]["write_ns"]);
    return {};
  }));
  const auto entry = server->ledger().entries.at(0);
  ASSERT_EQ(stamps.size() + 1, entry.events.size());
  for (size_t i = 0; i < stamps.size(); ++i)
    EXPECT_EQ(stamps[i], std::pair(entry.events[i].due, entry.events[i].write_begin));

  const auto plain = serve(std::string("[engine]\nstamps = false\n") + kPlain);
  EXPECT_EQ(body_of(call(*plain, "POST", "/v1/chat/completions", kChatBody)).find("anvil\":"),
            std::string::npos);
}

const char* const kRich =
    "[[stream]]\nname = \"a\"\nreasoning_tokens = 3\ncontent_tokens = 4\ntool_calls = 2\n"
    "tool_pieces = 3\nusage = \"final\"\n";

void expect_rich(const wire::Answer& answer, const std::string& tool_name) {
  EXPECT_EQ(answer.reasoning, "scripted answer with");
  EXPECT_EQ(answer.content, "scripted answer with a");
  ASSERT_EQ(answer.tool_calls.size(), 2u);
  for (const auto& tool : answer.tool_calls) {
    EXPECT_EQ(tool.name, tool_name);
    EXPECT_EQ(tool.arguments, "{\"value\":1}");
  }
  EXPECT_NE(answer.tool_calls[0].id, answer.tool_calls[1].id);
  EXPECT_EQ(answer.usage.completion, 3 + 4 + 2 * 4);
  EXPECT_EQ(answer.usage.reasoning, 3);
}

TEST(Server, AllClassesOnChatAndResponses) {
  for (const char* flavour : {"vllm", "llama.cpp"}) {
    const auto server =
        serve("[engine]\nflavour = \"" + std::string(flavour) + "\"\n" + std::string(kRich));
    const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"look_up"}}]})";
    std::string unary = kUnaryBody, stream = kChatBody;
    unary.replace(unary.size() - 1, 1, tools);
    expect_rich(
        decode(wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", kChatBody))),
        "scripted_tool");
    const auto whole = wire::parse_answer(
        wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", unary)));
    ASSERT_TRUE(whole);
    expect_rich(*whole, "look_up");
    EXPECT_EQ(whole->finish, "tool_calls");
    EXPECT_EQ(whole->timings.has_value(), std::string(flavour) == "llama.cpp");

    const std::string responses = R"({"model":"scripted","input":"one two")";
    expect_rich(decode(wire::Api::kResponses, body_of(call(*server, "POST", "/v1/responses",
                                                           responses + R"(,"stream":true})"))),
                "scripted_tool");
    const auto response = wire::parse_answer(
        wire::Api::kResponses, body_of(call(*server, "POST", "/v1/responses", responses + "}")));
    ASSERT_TRUE(response);
    expect_rich(*response, "scripted_tool");
    EXPECT_EQ(response->finish, "completed");
  }
}

TEST(Server, CompletionsTakeTextAndTokens) {
  const auto server = serve(kPlain);
  const auto text = decode(
      wire::Api::kCompletions,
      body_of(call(*server, "POST", "/v1/completions",
                   R"({"prompt":"a b c","stream":true,"stream_options":{"include_usage":true}})")));
  EXPECT_EQ(text.content, "scripted answer with a fixed order");
  EXPECT_EQ(text.usage.prompt, 4);
  const auto ids = wire::parse_answer(
      wire::Api::kCompletions,
      body_of(call(*server, "POST", "/v1/completions", R"({"prompt":[1,2,3],"max_tokens":2})")));
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->content, "scripted answer");
  EXPECT_EQ(ids->finish, "length");
  EXPECT_EQ(ids->usage.prompt, 3);
}

TEST(Server, MessagesStreamInTheirOrder) {
  const auto server = serve(kRich);
  const std::string request =
      R"({"model":"scripted","max_tokens":100,"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}])";
  const std::string body =
      body_of(call(*server, "POST", "/v1/messages", request + R"(,"stream":true})"));
  std::string text, thinking, arguments;
  std::vector<std::string> types;
  wire::SseSplitter splitter;
  ASSERT_TRUE(splitter.feed(body, [&](const wire::SseEvent& event) -> Result<void> {
    const auto json = base::parse_json(event.data, "event");
    if (!json) return fail(json.error());
    EXPECT_EQ((*json)["type"], event.event);
    types.emplace_back(event.event);
    if (event.event != "content_block_delta") return {};
    const Json& delta = (*json)["delta"];
    text += delta.value("text", "");
    thinking += delta.value("thinking", "");
    arguments += delta.value("partial_json", "");
    return {};
  }));
  EXPECT_EQ(types.front(), "message_start");
  EXPECT_EQ(types.back(), "message_stop");
  EXPECT_EQ(std::count(types.begin(), types.end(), "content_block_start"), 4);
  EXPECT_EQ(std::count(types.begin(), types.end(), "content_block_stop"), 4);
  EXPECT_EQ(thinking, "scripted answer with");
  EXPECT_EQ(text, "scripted answer with a");
  EXPECT_EQ(arguments, "{\"value\":1}{\"value\":1}");

  const auto whole =
      base::parse_json(body_of(call(*server, "POST", "/v1/messages", request + "}")), "message");
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)["stop_reason"], "tool_use");
  EXPECT_EQ((*whole)["content"].size(), 4u);
  EXPECT_EQ((*whole)["content"][2]["input"]["value"], 1);
  EXPECT_EQ((*whole)["usage"]["input_tokens"], 8 + 3);
  EXPECT_EQ((*whole)["usage"]["output_tokens"], 15);
}

TEST(Server, CountsInEveryEventWhereAsked) {
  const auto server = serve(kPlain);
  std::string body = kChatBody;
  body.replace(body.find("\"include_usage\":true"), 20,
               "\"include_usage\":true,\"continuous_usage_stats\":true");
  body.replace(body.size() - 1, 1, ",\"return_token_ids\":true}");
  const std::string stream = body_of(call(*server, "POST", "/v1/chat/completions", body));
  for (const char* count : {"\"completion_tokens\":2", "\"completion_tokens\":4"})
    EXPECT_NE(stream.find(count), std::string::npos);
  EXPECT_NE(stream.find("\"token_ids\":["), std::string::npos);
  EXPECT_EQ(decode(wire::Api::kChat, stream).usage.completion, 6);
}

TEST(Server, WrongUsageIsWrongOnPurpose) {
  const auto server = serve(
      "[engine]\ntokenizer_surplus = 2\n[[stream]]\nname = \"a\"\ncontent_tokens = 6\n"
      "usage_completion_off = 3\nusage_prompt_off = -1\n");
  const auto answer =
      decode(wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", kChatBody)));
  EXPECT_EQ(answer.usage.completion, 9);
  EXPECT_EQ(answer.usage.prompt, 10);
  EXPECT_EQ(server->ledger().entries.at(0).completion_tokens, 6);
  const auto tokens = base::parse_json(
      body_of(call(*server, "POST", "/tokenize", R"({"prompt":"a b"})")), "tokens");
  EXPECT_EQ((*tokens)["count"], 1 + 2 + 2);
}

TEST(Server, FramingChangesBytesNotMeaning) {
  for (const char* framing :
       {"line_end = \"crlf\"\n", "line_end = \"cr\"\ndata_space = false\n", "coalesce = 3\n",
        "coalesce = 1000\n", "split_every = 1\n", "split_at = [1, 7, 40]\n",
        "split_every = 100\nsplit_gap_us = 50\n", "buffer_bytes = 100\n",
        "buffer_bytes = 1000000\n", "transfer = \"close\"\n",
        "transfer = \"close\"\nbuffer_bytes = 64\n", "ping_ms = 1\nfirst_ms = 4\n"}) {
    const auto server = serve(std::string(kPlain) + framing);
    const auto answer =
        decode(wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", kChatBody)));
    EXPECT_EQ(answer.content, "scripted answer with a fixed order") << framing;
    EXPECT_EQ(answer.usage.completion, 6) << framing;
    const auto entry = server->ledger().entries.at(0);
    for (const LedgerEvent& event : entry.events) EXPECT_GT(event.write_begin, 0) << framing;
  }
}

TEST(Server, GatheredEventsShareTheirWrite) {
  const auto server =
      serve("[[stream]]\nname = \"a\"\nrole = \"none\"\ncontent_tokens = 6\ncoalesce = 3\n");
  decode(wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", kChatBody)));
  const auto events = server->ledger().entries.at(0).events;
  ASSERT_EQ(events.size(), 9u);
  for (size_t i = 0; i < 9; i += 3) {
    EXPECT_EQ(events[i].write_begin, events[i + 2].write_begin);
    if (i > 0) {
      EXPECT_GT(events[i].write_begin, events[i - 1].write_begin);
    }
  }
}

TEST(Server, FaultsAreVisible) {
  const auto fault = [](const std::string& rest) {
    return serve("[[stream]]\nname = \"a\"\ncontent_tokens = 6\n[stream.fault]\n" + rest);
  };
  {
    const auto server =
        fault("kind = \"status\"\nstatus = 429\nretry_after_s = 7\nfirst_requests = 1\n");
    const auto reply = call(*server, "POST", "/v1/chat/completions", kChatBody);
    EXPECT_NE(body_of(reply, 429).find("scripted failure"), std::string::npos);
    EXPECT_EQ(reply->header("retry-after"), "7");
    body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
    const auto entries = server->ledger().entries;
    EXPECT_EQ(entries.at(0).ending, Ending::kFault);
    EXPECT_EQ(entries.at(0).status, 429);
    EXPECT_EQ(entries.at(1).ending, Ending::kDone);
  }
  {
    const auto server = fault("kind = \"event\"\nafter_events = 2\nmessage = \"lost\"\n");
    const std::string body = body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
    EXPECT_NE(body.find("\"error\":{\"code\":500,\"message\":\"lost\""), std::string::npos);
    EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
    EXPECT_NE(body_of(call(*server, "POST", "/v1/chat/completions", kUnaryBody)).find("\"lost\""),
              std::string::npos);
  }
  for (const char* kind : {"reset", "close"}) {
    const auto server = fault("kind = \"" + std::string(kind) + "\"\nafter_events = 2\n");
    EXPECT_FALSE(call(*server, "POST", "/v1/chat/completions", kChatBody)) << kind;
    const auto entry = server->ledger().entries.at(0);
    EXPECT_EQ(entry.ending, Ending::kFault);
    EXPECT_EQ(entry.completion_tokens, 2);
  }
  {
    const auto server = fault("kind = \"end\"\nafter_events = 100\n");
    const std::string body = body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
    EXPECT_NE(body.find("\"finish_reason\":\"stop\""), std::string::npos);
    EXPECT_EQ(body.find("[DONE]"), std::string::npos);
  }
  {
    const auto server = fault("kind = \"garbage\"\nafter_events = 2\n");
    const std::string body = body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
    EXPECT_NE(body.find("torn"), std::string::npos);
    EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
  }
}

TEST(Server, RefusesWhatItCannotAnswer) {
  const auto server =
      serve("[engine]\ncontext_tokens = 20\napi_key = \"k\"\n" + std::string(kPlain));
  const std::string path = "/v1/chat/completions";
  EXPECT_NE(body_of(call(*server, "POST", path, kChatBody), 401).find("key"), std::string::npos);
  EXPECT_EQ(call(*server, "POST", path, "{", "k")->status, 400);
  EXPECT_EQ(call(*server, "POST", path, R"({"messages":[]})", "k")->status, 400);
  EXPECT_EQ(
      call(*server, "POST", path, R"({"model":"x","messages":[{"content":"a"}]})", "k")->status,
      404);
  const std::string words = "a b c d e f g h i j k l m n o";
  const auto long_prompt =
      call(*server, "POST", path, R"({"messages":[{"content":")" + words + R"("}]})", "k");
  EXPECT_NE(body_of(long_prompt, 400).find("maximum context length is 20"), std::string::npos);
  EXPECT_EQ(call(*server, "GET", path, "", "k")->status, 405);
  EXPECT_EQ(call(*server, "GET", "/v1/nothing", "", "k")->status, 404);
  EXPECT_EQ(call(*server, "GET", "/health")->status, 200);  // open without a key
  body_of(call(*server, "POST", path, kChatBody, "k"));
  int refused = 0;
  for (const auto& entry : server->ledger().entries) refused += entry.ending == Ending::kRefused;
  EXPECT_EQ(refused, 4);
}

TEST(Server, StreamsAreChosenAsDeclared) {
  const std::string two =
      "[[stream]]\nname = \"a\"\nweight = 3\ncontent_tokens = 1\n[[stream]]\nname = \"b\"\n";
  const auto streams = [&](const std::string& choose, int requests, const std::string& model) {
    const auto server = serve("choose = \"" + choose + "\"\n" + two);
    std::string body = kUnaryBody;
    body.replace(body.find("scripted"), 8, model);
    for (int i = 0; i < requests; ++i) body_of(call(*server, "POST", "/v1/chat/completions", body));
    std::vector<int> out;
    for (const auto& entry : server->ledger().entries) out.push_back(entry.stream);
    return out;
  };
  EXPECT_EQ(streams("round-robin", 4, "scripted"), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(streams("index", 4, "scripted"), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(streams("model", 2, "b"), (std::vector<int>{1, 1}));
  const auto mix = streams("mix", 64, "scripted");
  const auto first = std::count(mix.begin(), mix.end(), 0);
  EXPECT_GT(first, 32);
  EXPECT_LT(first, 60);
  EXPECT_EQ(streams("mix", 64, "scripted"), mix);
}

TEST(Server, CountsUnderTheNamesOfItsFlavour) {
  const std::string speculating =
      "draft_tokens = 2\nacceptance = [1.0, 0.0]\nprefix_cache = true\ncache_block_tokens = 1\n";
  const auto vllm = serve("[engine]\n" + speculating + kPlain);
  body_of(call(*vllm, "POST", "/v1/chat/completions", kChatBody));
  const auto second =
      decode(wire::Api::kChat, body_of(call(*vllm, "POST", "/v1/chat/completions", kChatBody)));
  EXPECT_EQ(second.usage.cached, 10);
  auto samples = wire::parse_prometheus(body_of(call(*vllm, "GET", "/metrics")));
  ASSERT_TRUE(samples);
  EXPECT_EQ(wire::sum(*samples, "vllm:prompt_tokens_total"), 22);
  EXPECT_EQ(wire::sum(*samples, "vllm:prompt_tokens_cached_total"), 10);
  EXPECT_EQ(wire::sum(*samples, "vllm:generation_tokens_total"), 12);
  // Six tokens: one from the prompt, then steps of 2, 2 and what is left, 1.
  EXPECT_EQ(wire::sum(*samples, "vllm:spec_decode_num_drafts_total"), 6);
  EXPECT_EQ(wire::sum(*samples, "vllm:spec_decode_num_draft_tokens_total"), 12);
  EXPECT_EQ(wire::sum(*samples, "vllm:spec_decode_num_accepted_tokens_total"), 4);
  EXPECT_EQ(
      wire::sum(*samples, "vllm:spec_decode_num_accepted_tokens_per_pos_total", "position", "0"),
      4);
  EXPECT_EQ(wire::sum(*samples, "vllm:request_success_total", "finished_reason", "stop"), 2);
  EXPECT_EQ(body_of(call(*vllm, "POST", "/reset_prefix_cache")), "");
  EXPECT_EQ(
      decode(wire::Api::kChat, body_of(call(*vllm, "POST", "/v1/chat/completions", kChatBody)))
          .usage.cached,
      0);

  const auto llama = serve("[engine]\nflavour = \"llama.cpp\"\n" + speculating + kPlain);
  const auto answer =
      decode(wire::Api::kChat, body_of(call(*llama, "POST", "/v1/chat/completions", kChatBody)));
  ASSERT_TRUE(answer.timings);
  EXPECT_EQ(answer.timings->predicted_n, 6);
  EXPECT_EQ(answer.timings->prompt_n, 11);
  EXPECT_EQ(answer.timings->draft_n, 6);
  EXPECT_EQ(answer.timings->draft_n_accepted, 2);
  samples = wire::parse_prometheus(body_of(call(*llama, "GET", "/metrics")));
  ASSERT_TRUE(samples);
  EXPECT_EQ(wire::sum(*samples, "llamacpp:tokens_predicted_total"), 6);
  EXPECT_EQ(wire::sum(*samples, "llamacpp:spec_decode_num_drafts_total"), 3);
}

TEST(Server, TokenizerAgreesWithUsage) {
  const std::string messages = R"("messages":[{"role":"user","content":"one two three"}])";
  const auto vllm = serve(kPlain);
  const auto count = [&](const Server& server, const std::string& body) {
    const auto json = base::parse_json(body_of(call(server, "POST", "/tokenize", body)), "tokens");
    return (*json)["tokens"].size();
  };
  EXPECT_EQ(count(*vllm, "{" + messages + "}"), 11u);
  EXPECT_EQ(count(*vllm, R"({"prompt":"a b"})"), 3u);
  EXPECT_EQ(count(*vllm, R"({"prompt":"a b","add_special_tokens":false})"), 2u);
  EXPECT_EQ(call(*vllm, "POST", "/tokenize", "{}")->status, 400);

  const auto llama = serve("[engine]\nflavour = \"llama.cpp\"\n" + std::string(kPlain));
  const auto rendered = base::parse_json(
      body_of(call(*llama, "POST", "/apply-template", "{" + messages + "}")), "prompt");
  const Json body = {{"content", (*rendered)["prompt"]}, {"add_special", true}};
  EXPECT_EQ(count(*llama, body.dump()), 11u);
  EXPECT_EQ(count(*llama, R"({"content":"a b"})"), 2u);
  EXPECT_NE(body_of(call(*llama, "GET", "/props")).find("anvil-scripted-engine"),
            std::string::npos);
  EXPECT_EQ(call(*llama, "GET", "/version")->status, 404);
}

TEST(Server, NeverPretends) {
  const auto server = serve(kPlain);
  const auto models = base::parse_json(body_of(call(*server, "GET", "/v1/models")), "models");
  EXPECT_EQ((*models)["data"][0]["id"], "scripted");
  EXPECT_EQ((*models)["data"][0]["owned_by"], "anvil-scripted-engine");
  const auto late = serve("[engine]\nhealth_after_ms = 3600000\n" + std::string(kPlain));
  EXPECT_EQ(call(*late, "GET", "/health")->status, 503);
}

// A connection held open by hand.
class RawClient {
 public:
  explicit RawClient(const Server& server) {
    const auto url = net::parse_url(server.base_url());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(url->port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Reads until the text holds `mark` so many times, or the peer closes.
  std::string read_until(std::string_view mark, int times = 1) {
    for (;;) {
      int seen = 0;
      for (size_t at = text_.find(mark); at != std::string::npos; at = text_.find(mark, at + 1))
        ++seen;
      if (seen >= times) return text_;
      char buffer[4096];
      const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (got < 0) {
        EXPECT_NE(errno, EAGAIN) << "no " << mark << " in " << text_;
      }
      if (got <= 0) return text_;
      text_.append(buffer, static_cast<size_t>(got));
    }
  }
  void close() { fd_.reset(); }

 private:
  base::Fd fd_;
  std::string text_;
};

std::string request_text(const std::string& body, const std::string& more = {}) {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Server, ConnectionsCarryManyRequestsAtAnySplit) {
  const auto server = serve(kPlain);
  RawClient client(*server);
  const std::string one = request_text(kChatBody, "X-Request-Id: mine\r\n");
  const std::string chunked =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" +
      std::string(kChatBody).substr(0, 5) + "\r\n" +
      [] {
        char size[16];
        std::snprintf(size, sizeof size, "%zx", std::string(kChatBody).size() - 5);
        return std::string(size);
      }() +
      "\r\n" + std::string(kChatBody).substr(5) + "\r\n0\r\n\r\n";
  const std::string all = one + chunked + one;  // pipelined
  for (const char c : all.substr(0, one.size() + 40)) client.send(std::string_view(&c, 1));
  client.send(std::string_view(all).substr(one.size() + 40));
  const std::string text = client.read_until("data: [DONE]", 3);
  EXPECT_EQ(text.find("HTTP/1.1 4"), std::string::npos) << text;
  const auto ledger = server->ledger();
  ASSERT_EQ(ledger.entries.size(), 3u);
  EXPECT_EQ(ledger.entries[0].id, "mine");
  EXPECT_NE(text.find("X-Request-Id: mine"), std::string::npos);
  EXPECT_EQ(ledger.connections, 1);
  EXPECT_EQ(ledger.in_flight_max, 1);
}

TEST(Server, BrokenHeadsAreRefusedAndClosed) {
  const auto server = serve(kPlain);
  for (const char* head : {"GET / HTTP/1.1\n\n", "nonsense\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n"}) {
    RawClient client(*server);
    client.send(head);
    EXPECT_TRUE(client.read_until("never").starts_with("HTTP/1.1 400 ")) << head;
  }
}

TEST(Server, WaitsForASlotInOrder) {
  const auto server = serve(
      "choose = \"index\"\n[engine]\nslots = 1\n"
      "[[stream]]\nname = \"holds\"\n[stream.fault]\nkind = \"stall\"\nafter_events = 1\n"
      "[[stream]]\nname = \"next\"\ncontent_tokens = 1\n");
  RawClient holder(*server), first(*server), gone(*server), second(*server);
  const auto waiting = [&](double wanted) {
    for (;;) {
      const auto samples = wire::parse_prometheus(body_of(call(*server, "GET", "/metrics")));
      if (wire::sum(*samples, "vllm:num_requests_waiting") == wanted) return;
      std::this_thread::yield();
    }
  };
  holder.send(request_text(kChatBody));
  holder.read_until("scripted\"}", 1);  // its one output event: the slot is taken
  first.send(request_text(kChatBody, "X-Request-Id: first\r\n"));
  waiting(1);
  gone.send(request_text(kChatBody));
  waiting(2);
  second.send(request_text(kChatBody, "X-Request-Id: second\r\n"));
  waiting(3);
  gone.close();
  waiting(2);
  holder.close();
  first.read_until("[DONE]");
  second.read_until("[DONE]");
  const auto ledger = server->ledger();
  ASSERT_EQ(ledger.entries.size(), 4u);
  EXPECT_EQ(ledger.entries[0].ending, Ending::kClient);  // the one that gave up
  EXPECT_EQ(ledger.entries[1].ending, Ending::kClient);  // the holder
  EXPECT_EQ(ledger.entries[2].id, "first");
  EXPECT_EQ(ledger.entries[3].id, "second");
  EXPECT_GT(ledger.entries[2].start, ledger.entries[2].recv_last_byte);
  EXPECT_GE(ledger.entries[3].start, ledger.entries[2].events.back().write_begin);
  EXPECT_EQ(ledger.in_flight_max, 4);
}

TEST(Server, StopsInMidAnswer) {
  const auto server = serve("[[stream]]\nname = \"a\"\ngap_ms = 3600000\n");
  RawClient client(*server);
  client.send(request_text(kChatBody));
  client.read_until("scripted\"}");
  server->stop();
  client.read_until("never");
  const auto entry = server->ledger().entries.at(0);
  EXPECT_EQ(entry.ending, Ending::kStopped);
  EXPECT_EQ(entry.completion_tokens, 1);
}

TEST(Server, UnixSocketsAndManyThreads) {
  const std::string path = "/tmp/anvil-scripted-" + std::to_string(getpid()) + ".sock";
  {
    const auto server = serve(kPlain, {.listen = "unix:" + path, .threads = 3});
    ASSERT_TRUE(server);
    EXPECT_EQ(server->base_url(), "unix:" + path);
    for (int i = 0; i < 6; ++i)
      decode(wire::Api::kChat, body_of(call(*server, "POST", "/v1/chat/completions", kChatBody)));
    EXPECT_EQ(server->ledger().entries.size(), 6u);
    EXPECT_EQ(server->ledger().events, 6 * 7);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Server, SaysWhyItCannotListen) {
  const auto server = serve(kPlain);
  const std::string address = server->base_url().substr(7);
  const auto start = [](const Options& options) {
    return Server::start(schedule_of(kPlain), options).error();
  };
  EXPECT_EQ(start({.listen = address}).kind, Kind::kPortInUse);
  EXPECT_EQ(start({.listen = "localhost:80"}).kind, Kind::kUsage);
  EXPECT_EQ(start({.listen = "127.0.0.1:99999"}).kind, Kind::kUsage);
  EXPECT_EQ(start({.tls_certificate = "x"}).kind, Kind::kUsage);
  const Error bad = start({.tls_certificate = "/nonexistent.pem", .tls_key = "/nonexistent.key"});
  EXPECT_EQ(bad.kind, Kind::kInvalidInput);
  EXPECT_NE(bad.detail.find("/nonexistent.pem"), std::string::npos);
}

TEST(Server, FullLedgerSaysSo) {
  const auto server = serve(kPlain, {.ledger_events = 20});
  for (int i = 0; i < 3; ++i) body_of(call(*server, "POST", "/v1/chat/completions", kChatBody));
  const auto ledger = server->ledger();
  EXPECT_EQ(ledger.requests, 3);
  EXPECT_EQ(ledger.entries.size(), 1u);
  EXPECT_EQ(ledger.cut_requests, 2);
  EXPECT_EQ(ledger.events, 21);
  EXPECT_EQ(ledger.lateness.count(), 21);
}

}  // namespace
}  // namespace anvil::scripted
