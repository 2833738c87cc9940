#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/strings.h"
#include "net/test_server.h"

namespace anvil::qualify {

// In which ways the engine below is bad.
struct FakeFaults {
  int status = 200;           // of every generation request
  bool no_responses = false;  // 404 for /v1/responses
  bool answers_any_model = false;
  bool truncates = false;         // accepts prompts above its context
  bool drops_done = false;        // streams end without their marker
  bool stuck = false;             // the running gauge never falls
  bool forgets = false;           // answers without reading the prompt
  int64_t fails_above = 1 << 30;  // prompt tokens above which it closes the connection
};

// An engine for tests that does what a good engine with a good model does: it knows the answers to
// the checks' prompts, keeps the protocol, counts a token per word, and has a prefix cache.
class FakeEngine {
 public:
  using Faults = FakeFaults;

  explicit FakeEngine(Faults faults = {})
      : faults_(faults), server_([this](net::TestServer::Peer& peer) { serve(peer); }) {}

  std::string url() const { return server_.url(); }
  int64_t requests() const { return requests_; }

  static constexpr int64_t kContext = 3000;
  static std::string model() { return "fake-model"; }

 private:
  struct Reply {
    std::string text;
    Json calls = Json::array();
    std::string finish = "stop";
    int64_t prompt = 0, completion = 0, cached = 0;
  };

  static std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
  }

  static void answer(net::TestServer::Peer& peer, int status, const std::string& body,
                     const std::string& type = "application/json") {
    peer.write("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + type +
               "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  void serve(net::TestServer::Peer& peer) {
    for (std::string request; !(request = peer.read_request()).empty();) {
      const std::string path = request.substr(
          request.find(' ') + 1, request.find(' ', request.find(' ') + 1) - request.find(' ') - 1);
      if (path == "/metrics") {
        answer(peer, 200,
               std::string("llamacpp:requests_processing ") + (faults_.stuck ? "1" : "0") + "\n",
               "text/plain");
        continue;
      }
      ++requests_;
      const auto body = base::parse_json(
          std::string_view(request).substr(request.find("\r\n\r\n") + 4), "request");
      if (!body || path.substr(0, 4) != "/v1/") {
        answer(peer, 404, R"({"error":{"message":"File Not Found","code":404}})");
      } else if (!generate(peer, path, *body)) {
        return;
      }
    }
  }

  // False when the connection is to be closed.
  bool generate(net::TestServer::Peer& peer, const std::string& path, const Json& body) {
    if (faults_.status != 200) {
      answer(peer, faults_.status, R"({"error":{"message":"out of order"}})");
      return true;
    }
    if (path == "/v1/responses" && faults_.no_responses) {
      answer(peer, 404, R"({"detail":"Not Found"})");
      return true;
    }
    if (body["model"] != model() && !faults_.answers_any_model) {
      answer(peer, 404, R"({"error":{"message":"The model does not exist."}})");
      return true;
    }
    const std::vector<std::string> turns = user_turns(body);
    std::string prompt;
    for (const std::string& turn : turns) prompt += turn + "\n";
    Reply reply;
    reply.prompt = static_cast<int64_t>(words(prompt).size()) + 3;
    if (reply.prompt > faults_.fails_above) return false;
    if (reply.prompt > kContext) {
      if (!faults_.truncates) {
        answer(peer, 400, R"({"error":{"message":"the request exceeds the context"}})");
        return true;
      }
      reply.prompt = kContext;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!seen_.insert(prompt).second) reply.cached = reply.prompt - 1;
    }
    think(body, turns, prompt, reply);
    shorten(body, reply);
    if (path == "/v1/responses") return respond(peer, body, reply);
    const bool chat = path == "/v1/chat/completions";
    if (!body.value("stream", false)) {
      Json choice = {{"index", 0}, {"finish_reason", reply.finish}};
      if (chat)
        choice["message"] = {
            {"role", "assistant"}, {"content", reply.text}, {"tool_calls", reply.calls}};
      else
        choice["text"] = reply.text;
      answer(peer, 200,
             Json{{"model", model()}, {"choices", Json::array({choice})}, {"usage", usage(reply)}}
                 .dump());
      return true;
    }
    return stream(peer, chat, body, reply);
  }

  static Json usage(const Reply& reply) {
    return {{"prompt_tokens", reply.prompt},
            {"completion_tokens", reply.completion},
            {"total_tokens", reply.prompt + reply.completion},
            {"prompt_tokens_details", {{"cached_tokens", reply.cached}}}};
  }

  static std::vector<std::string> user_turns(const Json& body) {
    std::vector<std::string> turns;
    if (body.contains("prompt")) turns.push_back(body["prompt"]);
    const Json& list = body.contains("messages") ? body["messages"]
                       : body.contains("input")  ? body["input"]
                                                 : Json::array();
    for (const Json& message : list) {
      const Json& content = message.contains("content") ? message["content"] : Json(nullptr);
      if (content.is_string()) turns.push_back(content);
      if (content.is_array())
        for (const Json& part : content) turns.push_back(part.value("text", ""));
    }
    return turns;
  }

  void think(const Json& body, const std::vector<std::string>& turns, const std::string& prompt,
             Reply& reply) const {
    const std::string& last = turns.back();
    const auto has = [&last](std::string_view text) {
      return last.find(text) != std::string::npos;
    };
    std::smatch match;
    if (faults_.forgets && body.contains("response_format")) {
      // A grammar forces the shape, whatever the model knows.
      reply.text = R"({"item":"x","quantity":0,"price":0.5,"express":false,"city":"x"})";
    } else if (faults_.forgets) {
      reply.text = "I do not know.";
    } else if (has("sum_even")) {
      reply.text =
          "```python\ndef sum_even(numbers):\n"
          "    return sum(n for n in numbers if n % 2 == 0)\n```";
    } else if (has("blue tiles")) {
      reply.text =
          R"({"item":"blue tiles","quantity":3,"price":41.5,"express":true,"city":"Oslo"})";
    } else if (std::regex_search(
                   last, match,
                   std::regex("in the (\\w+) building for (\\d+) guests with a budget "
                              "of ([0-9.]+) euro"))) {
      call(reply, "book_room",
           R"({"building":")" + match[1].str() + R"(","guests":)" + match[2].str() +
               R"(,"budget":)" + match[3].str() +
               R"(,"projector":true,"attendees":["Ada","Grace"]})");
    } else if (has("get_station_report")) {
      call(reply, "get_station_report", R"({"station":"Skagen"})");
    } else if (has("report_code")) {
      reply.text = "At Skagen: " + last;
    } else if (has("READY")) {
      reply.text = "READY";
    } else if (has("planets")) {
      reply.text = "Mercury\nVenus\nEarth\nMars\nJupiter\nSaturn\nUranus\nNeptune";
    } else if (has("Count from 1")) {
      for (int i = 1; i <= 300; ++i) reply.text += (i > 1 ? " " : "") + std::to_string(i);
    } else if (has("17 boxes")) {
      reply.text = "There are 51 lamps.";
    } else if (std::regex_search(prompt, match, std::regex("locker 7 is (\\S+)\\. ")) &&
               has("What is the access code")) {
      reply.text = match[1].str();
    } else if (has("access codes of")) {
      const std::regex code("vault is (\\S+)\\.");
      for (auto it = std::sregex_iterator(prompt.begin(), prompt.end(), code);
           it != std::sregex_iterator(); ++it)
        reply.text += (*it)[1].str() + " ";
    } else {
      reply.text = "Hello there, how can I help?";
    }
  }

  static void call(Reply& reply, const std::string& name, const std::string& arguments) {
    reply.calls.push_back({{"index", 0},
                           {"id", "call_1"},
                           {"type", "function"},
                           {"function", {{"name", name}, {"arguments", arguments}}}});
    reply.finish = "tool_calls";
  }

  // Applies stop and max_tokens: a token is a word.
  static void shorten(const Json& body, Reply& reply) {
    for (const Json& stop : body.value("stop", Json::array()))
      reply.text = reply.text.substr(0, reply.text.find(stop.get<std::string>()));
    auto tokens = words(reply.text);
    const int64_t limit = body.contains("max_tokens") ? body["max_tokens"].get<int64_t>()
                                                      : body.value("max_output_tokens", 1 << 20);
    if (static_cast<int64_t>(tokens.size()) > limit && reply.calls.empty()) {
      tokens.resize(static_cast<size_t>(limit));
      reply.text = base::join(tokens, " ");
      reply.finish = "length";
    }
    reply.completion = std::max<int64_t>(1, static_cast<int64_t>(tokens.size()));
  }

  bool respond(net::TestServer::Peer& peer, const Json& body, const Reply& reply) {
    const Json done = {
        {"id", "resp_1"},
        {"status", "completed"},
        {"model", model()},
        {"output",
         Json::array(
             {{{"type", "message"},
               {"content", Json::array({{{"type", "output_text"}, {"text", reply.text}}})}}})},
        {"usage",
         {{"input_tokens", reply.prompt},
          {"output_tokens", reply.completion},
          {"total_tokens", reply.prompt + reply.completion}}}};
    if (!body.value("stream", false)) {
      answer(peer, 200, done.dump());
      return true;
    }
    const auto event = [](const std::string& type, Json data) {
      data["type"] = type;
      return "event: " + type + "\ndata: " + data.dump() + "\n\n";
    };
    answer(peer, 200,
           event("response.output_text.delta", {{"delta", reply.text}}) +
               (faults_.drops_done ? "" : event("response.completed", {{"response", done}})),
           "text/event-stream");
    return true;
  }

  static std::string chunk(const std::string& data) {
    std::ostringstream size;
    size << std::hex << data.size() + 8;
    return size.str() + "\r\ndata: " + data + "\n\n\r\n";
  }

  bool stream(net::TestServer::Peer& peer, bool chat, const Json& body, const Reply& reply) {
    const auto event = [chat](const Json& delta, const Json& finish) {
      Json choice = {{"index", 0}, {"finish_reason", finish}};
      if (chat)
        choice["delta"] = delta;
      else
        choice["text"] = delta.value("content", "");
      return chunk(Json{{"model", model()}, {"choices", Json::array({choice})}}.dump());
    };
    std::string out = event({{"role", "assistant"}, {"content", ""}}, nullptr);
    // Pieces of three bytes: they cut words, and tool arguments anywhere.
    for (size_t i = 0; i < reply.text.size(); i += 3)
      out += event({{"content", reply.text.substr(i, 3)}}, nullptr);
    for (const Json& made : reply.calls) {
      Json first = made;
      const std::string arguments = made["function"]["arguments"];
      first["function"]["arguments"] = "";
      out += event({{"tool_calls", Json::array({first})}}, nullptr);
      for (size_t i = 0; i < arguments.size(); i += 3)
        out += event({{"tool_calls",
                       Json::array({{{"index", 0},
                                     {"function", {{"arguments", arguments.substr(i, 3)}}}}})}},
                     nullptr);
    }
    if (!peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n" +
                    out))
      return false;
    // A very long answer goes on until its client leaves.
    if (body.value("max_tokens", 0) > 1000 && body.value("ignore_eos", false)) {
      peer.wait_closed();
      return false;
    }
    out = event(Json::object(), reply.finish);
    out +=
        chunk(Json{{"model", model()}, {"choices", Json::array()}, {"usage", usage(reply)}}.dump());
    if (!faults_.drops_done) out += "e\r\ndata: [DONE]\n\n\r\n";
    return peer.write(out + "0\r\n\r\n");
  }

  Faults faults_;
  std::mutex mutex_;
  std::set<std::string> seen_;
  std::atomic<int64_t> requests_{0};
  net::TestServer server_;  // last: its threads use the members above
};

}  // namespace anvil::qualify
