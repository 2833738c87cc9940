#include "measure/client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/hash.h"
#include "net/http_call.h"
#include "net/test_server.h"

namespace anvil::measure {
namespace {

using evidence::Outcome;
using evidence::RequestRow;
using net::TestServer;
using Peer = TestServer::Peer;

std::string chunk(const std::string& body) {
  char size[20];
  snprintf(size, sizeof size, "%zx\r\n", body.size());
  return size + body + "\r\n";
}
std::string content(const std::string& text) {
  return R"(data: {"choices":[{"index":0,"delta":{"content":")" + text + "\"}}]}\n\n";
}
const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kDone = "data: [DONE]\n\n";
const std::string kEnd = "0\r\n\r\n";
const std::string kWhole = kHead + chunk(content("hi") + kDone) + kEnd;

std::vector<Attempt> attempts(int count, std::string body = R"({"model":"m"})") {
  std::vector<Attempt> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)].body = body;
    out[static_cast<size_t>(i)].row.item = std::to_string(i);
  }
  return out;
}

RequestRow one(const TestServer& server, Limits limits = {}) {
  const base::Cancel cancel;
  return Client({server.url(), ""}, limits).run_one(std::move(attempts(1)[0]), cancel);
}

// Answers every request of a connection with the same bytes until the client leaves.
TestServer::Handler always(std::string bytes) {
  return [bytes](Peer& peer) {
    while (!peer.read_request().empty())
      if (!peer.write(bytes)) return;
  };
}

// Blocks threads until a number of them has arrived.
class Gate {
 public:
  explicit Gate(int count) : missing_(count) {}
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (--missing_ <= 0) changed_.notify_all();
    changed_.wait(lock, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

void expect_ordered(const evidence::Stamps& s) {
  EXPECT_LE(s.intended, *s.sent);
  EXPECT_LE(*s.sent, *s.first_byte);
  EXPECT_LE(*s.first_byte, *s.first_event);
  EXPECT_LE(*s.first_event, *s.first_output);
  EXPECT_LE(*s.first_output, *s.first_visible);
  EXPECT_LE(*s.first_visible, *s.last_output);
  EXPECT_LE(*s.last_output, *s.done);
  EXPECT_LE(*s.done, *s.eof);
}

TEST(Client, StampsAWholeStream) {
  TestServer server(always(kWhole));
  const base::Cancel cancel;
  Attempt attempt = std::move(attempts(1)[0]);
  attempt.keep_body = true;
  const RequestRow row = Client({server.url(), "sesame"}, {}).run_one(std::move(attempt), cancel);
  ASSERT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(row.answer.content, "hi");
  EXPECT_EQ(row.status, 200);
  EXPECT_EQ(row.request_bytes, 13u);
  EXPECT_EQ(row.request_sha256, base::sha256(R"({"model":"m"})"));
  EXPECT_EQ(row.request_body, R"({"model":"m"})");
  EXPECT_FALSE(row.connection_reused);
  EXPECT_LE(*row.stamps.connect_begin, *row.stamps.connected);
  EXPECT_LE(*row.stamps.connected, *row.stamps.sent);
  expect_ordered(row.stamps);
  ASSERT_EQ(row.chunks.size(), 1u);
  EXPECT_EQ(row.chunks[0].since_sent, *row.stamps.first_output - *row.stamps.sent);
}

TEST(Client, SendsOneCleanRequest) {
  std::string request;
  TestServer server([&](Peer& peer) {
    request = peer.read_request();
    peer.write(kWhole);
  });
  const base::Cancel cancel;
  std::vector<Attempt> list = attempts(1);
  list[0].row.api = wire::Api::kCompletions;
  Client({server.url() + "/gw/v1/", "sesame"}, {}).run(std::move(list), 1, cancel);
  EXPECT_EQ(request.find("POST /gw/v1/completions HTTP/1.1\r\n"), 0u) << request;
  for (const char* part : {"Accept-Encoding: identity\r\n", "Accept: text/event-stream\r\n",
                           "Authorization: Bearer sesame\r\n", "Content-Length: 13\r\n"})
    EXPECT_NE(request.find(part), std::string::npos) << part << " is missing in " << request;
}

TEST(Client, ReusesConnectionsThatMayGoOn) {
  TestServer server(always(kWhole));
  const base::Cancel cancel;
  int finished = 0;
  const auto rows =
      Client({server.url(), ""}, {}).run(attempts(10), 2, cancel, [&](const RequestRow&) {
        ++finished;
      });
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(finished, 10);
  int reused = 0;
  for (const RequestRow& row : rows) {
    EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
    EXPECT_EQ(row.connection_reused, !row.stamps.connected);
    expect_ordered(row.stamps);
    reused += row.connection_reused;
  }
  EXPECT_EQ(reused, 8);
  EXPECT_EQ(server.accepted(), 2);
}

TEST(Client, OpensANewConnectionWhereTheOldOneEnds) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + content("hi") + kDone);
  });
  const base::Cancel cancel;
  for (const RequestRow& row : Client({server.url(), ""}, {}).run(attempts(3), 1, cancel)) {
    EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
    EXPECT_FALSE(row.connection_reused);
  }
  EXPECT_EQ(server.accepted(), 3);
}

TEST(Client, SendsAgainWhenAReusedConnectionWasDead) {
  for (const bool reset : {false, true}) {
    // The first connection answers once and dies as the second request arrives.
    TestServer server([reset](Peer& peer) {
      if (peer.number() == 0) {
        peer.read_request();
        peer.write(kWhole);
        peer.read_request();
        if (reset) peer.reset();
        return;
      }
      always(kWhole)(peer);
    });
    const base::Cancel cancel;
    const auto rows = Client({server.url(), ""}, {}).run(attempts(3), 1, cancel);
    ASSERT_EQ(rows.size(), 3u);
    for (const RequestRow& row : rows) EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
    EXPECT_FALSE(rows[1].connection_reused);
    EXPECT_TRUE(rows[1].stamps.connected);
    EXPECT_EQ(rows[1].error_kind, "");
    EXPECT_NE(rows[1].error_detail.find("sent again"), std::string::npos) << rows[1].error_detail;
    EXPECT_TRUE(rows[2].connection_reused);
    EXPECT_EQ(rows[2].error_detail, "");
    EXPECT_EQ(server.accepted(), 2);
  }
}

TEST(Client, NeverSendsTwiceOnceAnAnswerBegan) {
  std::atomic<int> requests{0};
  TestServer server([&](Peer& peer) {
    peer.read_request();
    ++requests;
    peer.write(kWhole);
    peer.read_request();
    ++requests;
    peer.write("HTTP/1.1 2");
  });
  const base::Cancel cancel;
  const auto rows = Client({server.url(), ""}, {}).run(attempts(2), 1, cancel);
  EXPECT_EQ(rows[1].outcome, Outcome::kTruncated);
  EXPECT_TRUE(rows[1].connection_reused);
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Client, NeverSendsTwiceOnAFreshConnection) {
  TestServer server([](Peer& peer) { peer.read_request(); });
  const RequestRow row = one(server);
  EXPECT_EQ(row.outcome, Outcome::kTruncated);
  EXPECT_NE(row.error_detail.find("before any byte"), std::string::npos) << row.error_detail;
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Client, SixtyFourInFlightAreSixtyFourAtTheServer) {
  constexpr int kConcurrency = 64;
  Gate gate(kConcurrency);
  TestServer server([&](Peer& peer) {
    for (bool first = true; !peer.read_request().empty(); first = false) {
      // Nobody is answered before all of them have asked.
      if (first) gate.arrive_and_wait();
      if (!peer.write(kWhole)) return;
    }
  });
  const base::Cancel cancel;
  const auto rows =
      Client({server.url(), ""}, {}).run(attempts(3 * kConcurrency), kConcurrency, cancel);
  ASSERT_EQ(rows.size(), 3u * kConcurrency);
  for (const RequestRow& row : rows) EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(server.accepted(), kConcurrency);
}

TEST(Client, RefusedConnectionsYieldARowEach) {
  const int port = *net::pick_free_port();
  const base::Cancel cancel;
  for (const std::string& url :
       {"http://127.0.0.1:" + std::to_string(port), "http://localhost:" + std::to_string(port),
        std::string("unix:/nonexistent/engine.sock"), std::string("http://no-such.invalid:1"),
        std::string("https://127.0.0.1"), std::string("nonsense")}) {
    const auto rows = Client({url, ""}, {}).run(attempts(500), 4, cancel);
    ASSERT_EQ(rows.size(), 500u) << url;
    for (const RequestRow& row : rows) {
      EXPECT_EQ(row.outcome, Outcome::kConnectFailed) << url;
      EXPECT_NE(row.error_kind, "") << url;
      EXPECT_FALSE(row.stamps.sent) << url;
      EXPECT_NE(row.request_sha256, "") << url;
    }
  }
}

TEST(Client, NamesTheLimitThatRanOut) {
  struct {
    std::string bytes;
    Limits limits;
    const char* says;
  } cases[] = {
      {"", {.first_byte = 30 * kMillisecond}, "limit first_byte"},
      {kHead, {.idle = 30 * kMillisecond}, "limit idle"},
      {kHead + chunk(content("hi")), {.idle = 30 * kMillisecond}, "limit idle"},
      {kHead + chunk(content("hi")), {.total = 50 * kMillisecond}, "limit total"},
      {"", {.first_byte = 0, .total = 50 * kMillisecond}, "limit total"},
  };
  for (const auto& c : cases) {
    TestServer server([&](Peer& peer) {
      peer.read_request();
      peer.write(c.bytes);
      peer.wait_closed();
    });
    const RequestRow row = one(server, c.limits);
    EXPECT_EQ(row.outcome, Outcome::kTimeout) << c.says;
    EXPECT_EQ(row.error_kind, "timeout");
    EXPECT_NE(row.error_detail.find(c.says), std::string::npos) << row.error_detail;
    EXPECT_EQ(row.chunks.size(), row.stamps.first_output ? 1u : 0u);
  }
}

TEST(Client, NamesTheConnectLimit) {
  // A listener that never accepts, with a full backlog, neither takes nor refuses.
  char folder[] = "/tmp/anvil-client-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s";
  const base::Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  const base::Fd first(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);

  Limits limits;
  limits.connect = 20 * kMillisecond;
  const base::Cancel cancel;
  const RequestRow row =
      Client({"unix:" + path, ""}, limits).run_one(std::move(attempts(1)[0]), cancel);
  EXPECT_EQ(row.outcome, Outcome::kTimeout);
  EXPECT_NE(row.error_detail.find("limit connect"), std::string::npos) << row.error_detail;
  unlink(path.c_str());
  rmdir(folder);
}

TEST(Client, HeadersOnlyThenACloseIsTruncated) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kHead);
  });
  const RequestRow row = one(server);
  EXPECT_EQ(row.outcome, Outcome::kTruncated);
  EXPECT_EQ(row.status, 200);
  EXPECT_TRUE(row.stamps.first_byte);
  EXPECT_FALSE(row.stamps.first_event);
}

TEST(Client, AResetMidStreamKeepsWhatCame) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kHead);
    for (int i = 0; i < 10; ++i) peer.write(chunk(content("x")));
    peer.reset();
  });
  const RequestRow row = one(server);
  EXPECT_EQ(row.outcome, Outcome::kTruncated);
  EXPECT_EQ(row.chunks.size(), 10u);
  EXPECT_EQ(row.answer.content, "xxxxxxxxxx");
}

TEST(Client, AnEventOfTwentyMegabytesIsTooLarge) {
  std::atomic<bool> cut{false};
  TestServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    cut = !peer.write(content(std::string(20u << 20, 'x')));
    peer.wait_closed();
  });
  const RequestRow row = one(server);
  EXPECT_EQ(row.outcome, Outcome::kTooLarge);
  EXPECT_EQ(row.error_kind, "too_large");
  EXPECT_FALSE(row.stamps.first_output);

  Limits wide;
  wide.event_bytes = 32u << 20;
  TestServer again([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    peer.write(content(std::string(20u << 20, 'x')) + kDone);
  });
  const RequestRow fits = one(again, wide);
  EXPECT_EQ(fits.outcome, Outcome::kOk) << fits.error_detail;
  EXPECT_EQ(fits.answer.content.size(), 20u << 20);
}

TEST(Client, GarbageAndDribble) {
  TestServer garbage(always("\x16\x03\x01\x02 not http\r\n\r\n"));
  const RequestRow bad = one(garbage);
  EXPECT_EQ(bad.outcome, Outcome::kProtocolError);
  EXPECT_NE(bad.error_detail.find("not http"), std::string::npos) << bad.error_detail;

  TestServer slow([](Peer& peer) {
    peer.read_request();
    peer.write_bytewise(kWhole);
    peer.wait_closed();
  });
  const RequestRow row = one(slow);
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_EQ(row.answer.content, "hi");
}

TEST(Client, ALargeRequestIsSentWhole) {
  const std::string body(24u << 20, 'x');
  size_t got = 0;
  TestServer server([&](Peer& peer) {
    got = peer.read_request().size();
    peer.write(kWhole);
  });
  const base::Cancel cancel;
  const auto rows = Client({server.url(), ""}, {}).run(attempts(1, body), 1, cancel);
  EXPECT_EQ(rows[0].outcome, Outcome::kOk) << rows[0].error_detail;
  EXPECT_GT(got, body.size());
  expect_ordered(rows[0].stamps);
}

TEST(Client, AnAnswerBeforeTheRequestWasSentCounts) {
  TestServer server([](Peer& peer) {
    peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
    peer.wait_closed();
  });
  const base::Cancel cancel;
  const auto rows =
      Client({server.url(), ""}, {}).run(attempts(2, std::string(24u << 20, 'x')), 1, cancel);
  for (const RequestRow& row : rows) {
    EXPECT_EQ(row.outcome, Outcome::kHttpError) << row.error_detail;
    EXPECT_EQ(row.status, 413);
    EXPECT_FALSE(row.connection_reused);
  }
}

TEST(Client, AMarkerWithoutAnEndDoesNotHoldTheSlotForever) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kHead + chunk(content("hi") + kDone));
    peer.wait_closed();
  });
  const RequestRow row = one(server);
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  EXPECT_FALSE(row.stamps.eof);
}

TEST(Client, CancelMidStreamYieldsEveryRow) {
  base::Cancel cancel;
  Gate gate(4);
  TestServer server([&](Peer& peer) {
    peer.read_request();
    peer.write(kHead + chunk(content("hi")));
    gate.arrive_and_wait();
    cancel.request();
    peer.wait_closed();
  });
  const auto rows = Client({server.url(), ""}, {}).run(attempts(20), 4, cancel);
  ASSERT_EQ(rows.size(), 20u);
  int sent = 0;
  for (const RequestRow& row : rows) {
    EXPECT_EQ(row.outcome, Outcome::kCancelled);
    EXPECT_EQ(row.error_kind, "cancelled");
    sent += row.stamps.sent.has_value();
  }
  EXPECT_EQ(sent, 4);
}

TEST(Client, NothingIsSentWhenCancelledBefore) {
  base::Cancel cancel;
  cancel.request();
  TestServer server(always(kWhole));
  const auto rows = Client({server.url(), ""}, {}).run(attempts(3), 2, cancel);
  ASSERT_EQ(rows.size(), 3u);
  for (const RequestRow& row : rows) EXPECT_EQ(row.outcome, Outcome::kCancelled);
  EXPECT_EQ(server.accepted(), 0);
}

TEST(Client, SpeaksUnixSocketsAndIpv6) {
  char folder[] = "/tmp/anvil-client-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  {
    TestServer local(always(kWhole), TestServer::Family::kUnix, std::string(folder) + "/s");
    const base::Cancel cancel;
    for (const RequestRow& row : Client({local.url(), ""}, {}).run(attempts(8), 4, cancel))
      EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
  }
  rmdir(folder);
  TestServer v6(always(kWhole), TestServer::Family::kV6);
  if (!v6.ok()) GTEST_SKIP() << "this host has no IPv6 loopback";
  EXPECT_EQ(one(v6).outcome, Outcome::kOk);
  const base::Cancel cancel;
  const std::string by_name = "http://localhost:" + std::to_string(v6.port());
  const RequestRow row = Client({by_name, ""}, {}).run_one(std::move(attempts(1)[0]), cancel);
  EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
}

TEST(Client, NoAttemptsNoRows) {
  const base::Cancel cancel;
  EXPECT_TRUE(Client({"http://127.0.0.1:1", ""}, {}).run({}, 4, cancel).empty());
}

}  // namespace
}  // namespace anvil::measure
