#include "net/http_call.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <future>

#include "net/connection.h"
#include "net/test_server.h"

namespace anvil::net {
namespace {

using Peer = TestServer::Peer;

// A server that answers its first request with `bytes` and closes.
TestServer answering(std::string bytes) {
  return TestServer([bytes](Peer& peer) {
    peer.read_request();
    peer.write(bytes);
  });
}

Result<HttpReply> get(const TestServer& server, HttpCall call = {}) {
  if (call.path.empty()) call.path = "/health";
  return http_call(*parse_url(server.url()), call);
}

TEST(HttpCall, ReadsEveryFraming) {
  const struct {
    const char* bytes;
    const char* body;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
       "hello"},
      {"HTTP/1.1 200 OK\r\n\r\nhello", "hello"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
  };
  for (const auto& c : cases) {
    TestServer server = answering(c.bytes);
    const auto reply = get(server);
    ASSERT_TRUE(reply) << c.bytes << base::to_string(reply.error());
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, c.body);
  }
}

TEST(HttpCall, ReadsADribble) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write_bytewise(
        "HTTP/1.1 503 Loading\r\nRetry-After: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4\r\nwait\r\n0\r\n\r\n");
  });
  const auto reply = get(server);
  ASSERT_TRUE(reply) << base::to_string(reply.error());
  EXPECT_EQ(reply->status, 503);
  EXPECT_EQ(reply->body, "wait");
  EXPECT_EQ(reply->header("retry-after"), "3");
  EXPECT_EQ(reply->header("absent"), "");
}

TEST(HttpCall, SendsWhatWasAsked) {
  std::promise<std::string> seen;
  TestServer server([&](Peer& peer) {
    seen.set_value(peer.read_request());
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  HttpCall call;
  call.method = "POST";
  call.path = "/tokenize";
  call.body = R"({"content":"x"})";
  call.api_key = "sesame";
  ASSERT_TRUE(http_call(*parse_url(server.url() + "/prefix/v1"), call));
  const std::string request = seen.get_future().get();
  EXPECT_EQ(request.find("POST /prefix/tokenize HTTP/1.1\r\n"), 0u) << request;
  for (const char* part :
       {"\r\nHost: 127.0.0.1:", "\r\nAccept-Encoding: identity\r\n", "\r\nContent-Length: 15\r\n",
        "\r\nAuthorization: Bearer sesame\r\n", "\r\nConnection: close\r\n",
        "\r\nContent-Type: application/json\r\n", "\r\n\r\n{\"content\":\"x\"}"})
    EXPECT_NE(request.find(part), std::string::npos) << part << " is missing in " << request;
}

TEST(HttpCall, RefusesToSmuggle) {
  const Url url = *parse_url("http://127.0.0.1:1");
  HttpCall call;
  call.path = "/x HTTP/1.1\r\nX: y";
  EXPECT_FALSE(http_call(url, call));
  call.path = "/x";
  call.api_key = "se\r\nsame";
  const auto reply = http_call(url, call);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Kind::kInvalidInput);
  EXPECT_EQ(base::to_string(reply.error()).find("same\""), std::string::npos);
}

TEST(HttpCall, NamesAnEarlyClose) {
  const struct {
    const char* bytes;
    const char* says;
  } cases[] = {
      {"", "before any byte"},
      {"HTTP/1.1 200 OK\r\nContent-", "inside the head"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "6 bytes before the declared end"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "before the last chunk"},
  };
  for (const auto& c : cases) {
    TestServer server = answering(c.bytes);
    const auto reply = get(server);
    ASSERT_FALSE(reply) << c.bytes;
    EXPECT_EQ(reply.error().kind, Kind::kReset);
    EXPECT_NE(reply.error().detail.find(c.says), std::string::npos) << reply.error().detail;
  }
}

TEST(HttpCall, NamesAReset) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    peer.reset();
  });
  const auto reply = get(server);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Kind::kReset);
}

TEST(HttpCall, RefusesGarbageAndEncodings) {
  for (const char* bytes :
       {"\x16\x03\x01 garbage \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"}) {
    TestServer server = answering(bytes);
    const auto reply = get(server);
    ASSERT_FALSE(reply) << bytes;
    EXPECT_EQ(reply.error().kind, Kind::kProtocol) << base::to_string(reply.error());
  }
}

TEST(HttpCall, BoundsTheBody) {
  HttpCall call;
  call.max_body = 1000;
  TestServer declared = answering("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(get(declared, call).error().kind, Kind::kTooLarge);

  TestServer endless([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.write(std::string(4096, 'x'))) {
    }
  });
  EXPECT_EQ(get(endless, call).error().kind, Kind::kTooLarge);
}

TEST(HttpCall, SendsALargeBodyWhileThePeerAnswersEarly) {
  TestServer server([](Peer& peer) {
    peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    peer.wait_closed();
  });
  HttpCall call;
  call.method = "POST";
  call.path = "/x";
  call.body = std::string(32u << 20, 'x');
  const auto reply = get(server, call);
  ASSERT_TRUE(reply) << base::to_string(reply.error());
  EXPECT_EQ(reply->status, 413);
  EXPECT_EQ(reply->body, "big");
}

TEST(HttpCall, EndsAtTheDeadline) {
  for (const char* bytes : {"", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"}) {
    TestServer server([bytes](Peer& peer) {
      peer.read_request();
      peer.write(bytes);
      peer.wait_closed();
    });
    HttpCall call;
    call.limit = 50 * kMillisecond;
    const auto reply = get(server, call);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind, Kind::kTimeout);
    EXPECT_NE(reply.error().detail.find("GET /health"), std::string::npos) << reply.error().detail;
  }
}

TEST(HttpCall, EndsWhenCancelled) {
  base::Cancel cancel;
  TestServer server([&](Peer& peer) {
    peer.read_request();
    cancel.request();
    peer.wait_closed();
  });
  HttpCall call;
  call.path = "/";
  call.limit = 600 * kSecond;
  const auto reply = http_call(*parse_url(server.url()), call, &cancel);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Kind::kCancelled);
}

TEST(HttpCall, SpeaksIpv6AndUnixSockets) {
  const auto handler = [](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  TestServer v6(handler, TestServer::Family::kV6);
  if (v6.ok()) {
    const auto reply = get(v6);
    ASSERT_TRUE(reply) << base::to_string(reply.error());
    EXPECT_EQ(reply->body, "ok");
    Url localhost = *parse_url("http://localhost:" + std::to_string(v6.port()));
    const auto by_name = http_call(localhost, HttpCall{});
    ASSERT_TRUE(by_name) << base::to_string(by_name.error());
    EXPECT_FALSE(port_is_free("localhost", v6.port()));
  }
  char folder[] = "/tmp/anvil-net-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  {
    TestServer local(handler, TestServer::Family::kUnix, std::string(folder) + "/s");
    ASSERT_TRUE(local.ok());
    const auto reply = get(local);
    ASSERT_TRUE(reply) << base::to_string(reply.error());
    EXPECT_EQ(reply->body, "ok");
  }
  rmdir(folder);
}

TEST(HttpCall, ExplainsWhyNobodyAnswers) {
  const int port = *pick_free_port();
  const auto refused = http_call(*parse_url("http://127.0.0.1:" + std::to_string(port)), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::kConnect);
  EXPECT_EQ(refused.error().retry, Retry::kYes);
  EXPECT_NE(refused.error().hint.find("is the engine running"), std::string::npos);

  const auto both = http_call(*parse_url("http://localhost:" + std::to_string(port)), {});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().kind, Kind::kConnect);

  const auto missing = http_call(*parse_url("unix:/nonexistent/engine.sock"), {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Kind::kConnect);
  EXPECT_NE(missing.error().hint.find("socket file"), std::string::npos);

  const auto nameless = http_call(*parse_url("http://no-such-host.invalid:1"), {});
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().kind, Kind::kConnect);
  EXPECT_NE(nameless.error().detail.find("no-such-host.invalid"), std::string::npos);
}

TEST(Ports, FreeUntilSomebodyListens) {
  const int port = *pick_free_port();
  EXPECT_TRUE(port_is_free("127.0.0.1", port));
  TestServer server([](Peer& peer) { peer.wait_closed(); });
  EXPECT_FALSE(port_is_free("127.0.0.1", server.port()));
}

TEST(Socket, MapsEveryConnectErrorToItsSide) {
  EXPECT_EQ(connect_error(ECONNREFUSED, "a").kind, Kind::kConnect);
  EXPECT_EQ(connect_error(EACCES, "a").kind, Kind::kPermission);
  EXPECT_EQ(connect_error(EMFILE, "a").side, Side::kHost);
  EXPECT_EQ(connect_error(ETIMEDOUT, "a").kind, Kind::kConnect);
  EXPECT_NE(connect_error(EADDRNOTAVAIL, "a").hint, "");
  EXPECT_NE(connect_error(ENETUNREACH, "a").hint, "");
}

TEST(Socket, WaitsOutAFullUnixBacklog) {
  char folder[] = "/tmp/anvil-net-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s";
  const base::Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  const Url url = *parse_url("unix:" + path);
  const auto destination = *find_destination(url, {});
  Connection first, second, third;
  ASSERT_TRUE(open_now(first, destination, 0));

  const auto late = open_now(second, destination, mono_now() + 20 * kMillisecond);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Kind::kTimeout);
  auto waiting =
      std::async(std::launch::async, [&] { return open_now(third, destination, 0).has_value(); });
  const base::Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(waiting.get());
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace anvil::net
