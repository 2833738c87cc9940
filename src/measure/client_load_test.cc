#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "measure/client.h"
#include "net/http_call.h"
#include "net/test_server.h"
#include "net/test_tls.h"

namespace anvil::measure {
namespace {

using evidence::Outcome;
using evidence::RequestRow;
using net::TestServer;
using Peer = TestServer::Peer;

const std::string kEvent = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";
std::string answer(const std::string& body, const std::string& fields = {}) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
const std::string kWhole = answer(kEvent + "data: [DONE]\n\n");

TestServer::Handler always(std::string bytes) {
  return [bytes](Peer& peer) {
    while (!peer.read_request().empty())
      if (!peer.write(bytes)) return;
  };
}

std::vector<Attempt> attempts(int count) {
  std::vector<Attempt> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)].body = R"({"model":"m"})";
    out[static_cast<size_t>(i)].row.item = std::to_string(i);
  }
  return out;
}

struct Ran {
  std::vector<RequestRow> rows;
  LoadReport report;

  const RequestRow& item(int number) const {
    for (const RequestRow& row : rows)
      if (row.item == std::to_string(number)) return row;
    static const RequestRow none;
    ADD_FAILURE() << "no row " << number;
    return none;
  }
};
Ran load(const Endpoint& endpoint, std::vector<Attempt> list, const LoadOptions& options,
         const Limits& limits = {}) {
  const base::Cancel cancel;
  Ran ran;
  ran.rows = Client(endpoint, limits).run(std::move(list), options, cancel, {}, &ran.report);
  return ran;
}

void expect_all_ok(const Ran& ran, size_t count) {
  ASSERT_EQ(ran.rows.size(), count);
  for (const RequestRow& row : ran.rows) EXPECT_EQ(row.outcome, Outcome::kOk) << row.error_detail;
}

TEST(ClientLoad, StampsComeFromTheKernel) {
  TestServer server(always(kWhole));
  const Ran ran = load({server.url(), ""}, attempts(20), {.concurrency = 4});
  expect_all_ok(ran, 20);
  for (const RequestRow& row : ran.rows) {
    EXPECT_EQ(row.stamp_source, "kernel");
    EXPECT_EQ(row.late_in_batch, 0);
    EXPECT_LE(*row.stamps.sent, *row.stamps.first_byte);
  }
  EXPECT_EQ(ran.report.kernel_rows, 20u);
  EXPECT_EQ(ran.report.user_rows, 0u);
  EXPECT_EQ(ran.report.events, 40u);
  EXPECT_GE(ran.report.reads, 20u);
  EXPECT_GT(ran.report.cpu_ns, 0);
  EXPECT_GT(ran.report.receive_queue_max_bytes, 0u);
  EXPECT_EQ(ran.report.stamp_delay.count(), ran.report.reads);
  EXPECT_GT(ran.report.loop_lag.count(), 0u);
  EXPECT_EQ(ran.report.lateness.count(), 0u);
  EXPECT_TRUE(ran.item(0).stamps.resolved);
  EXPECT_FALSE(ran.item(1).stamps.resolved);
}

TEST(ClientLoad, EventsThatShareAReadAreCounted) {
  TestServer server(always(answer(kEvent + kEvent + kEvent + "data: [DONE]\n\n")));
  const Ran ran = load({server.url(), ""}, attempts(1), {});
  expect_all_ok(ran, 1);
  EXPECT_EQ(ran.rows[0].late_in_batch, 2);
  EXPECT_EQ(ran.report.late_in_batch, 2u);
  EXPECT_EQ(ran.report.multi_event_reads, 1u);
}

TEST(ClientLoad, UnixSocketsFallBackToOurClock) {
  char folder[] = "/tmp/anvil-load-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  {
    TestServer server(always(kWhole), TestServer::Family::kUnix, std::string(folder) + "/s");
    const Ran ran = load({server.url(), ""}, attempts(3), {});
    expect_all_ok(ran, 3);
    for (const RequestRow& row : ran.rows) EXPECT_EQ(row.stamp_source, "user");
    EXPECT_EQ(ran.report.user_rows, 3u);
    EXPECT_FALSE(ran.item(0).stamps.resolved);
  }
  rmdir(folder);
}

TEST(ClientLoad, AnOpenLoopSendsByTheClockNotByTheAnswers) {
  // Nobody is answered before all have asked: a loop that waits for answers would never end.
  std::mutex mutex;
  std::condition_variable changed;
  int missing = 8;
  TestServer server([&](Peer& peer) {
    peer.read_request();
    std::unique_lock lock(mutex);
    if (--missing == 0) changed.notify_all();
    changed.wait(lock, [&] { return missing == 0; });
    lock.unlock();
    peer.write(kWhole);
  });
  for (const int threads : {1, 3}) {
    missing = 8;
    std::vector<Attempt> list = attempts(8);
    for (int i = 0; i < 8; ++i) list[static_cast<size_t>(i)].at = (7 - i) * kMillisecond;
    const Ran ran =
        load({server.url(), ""}, std::move(list), {.concurrency = 8, .threads = threads});
    expect_all_ok(ran, 8);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(ran.item(i).stamps.intended, ran.report.began + (7 - i) * kMillisecond);
      EXPECT_GE(*ran.item(i).stamps.sent, ran.item(i).stamps.intended);
    }
    EXPECT_EQ(ran.report.lateness.count(), 8u);
    EXPECT_EQ(ran.report.limit_hits, 0u);
    EXPECT_EQ(ran.report.in_flight.max, 8);
    EXPECT_EQ(ran.report.threads, threads);
  }
}

TEST(ClientLoad, TheLimitOfAnOpenLoopIsKeptAndCounted) {
  std::atomic<int> inside{0}, most{0};
  TestServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      const int now = ++inside;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      --inside;
      if (!peer.write(kWhole)) return;
    }
  });
  for (const int threads : {1, 2}) {
    std::vector<Attempt> list = attempts(40);
    for (Attempt& attempt : list) attempt.at = 0;
    const Ran ran =
        load({server.url(), ""}, std::move(list), {.concurrency = 2, .threads = threads});
    expect_all_ok(ran, 40);
    EXPECT_LE(most, 2);
    EXPECT_EQ(ran.report.in_flight.max, 2);
    EXPECT_GE(ran.report.limit_hits, 38u);
    EXPECT_LE(ran.report.lateness.count(), 2u);
    for (const RequestRow& row : ran.rows) EXPECT_EQ(row.stamps.intended, ran.report.began);
  }
}

TEST(ClientLoad, WhatOutlivesTheDeclaredDrainIsCut) {
  const TestServer server([](Peer& peer) {
    while (!peer.read_request().empty()) {
    }  // never answers
  });
  auto list = attempts(2);
  for (auto& attempt : list) attempt.at = 0;
  const Ran ran =
      load({server.url(), ""}, std::move(list), {.concurrency = 2, .drain = 5 * kMillisecond});
  ASSERT_EQ(ran.rows.size(), 2U);
  for (const RequestRow& row : ran.rows) {
    EXPECT_EQ(row.outcome, Outcome::kCancelled);
    EXPECT_TRUE(row.stamps.sent.has_value());
    EXPECT_NE(row.error_detail.find("drain of 5"), std::string::npos) << row.error_detail;
  }
}

TEST(ClientLoad, ATurnWaitsForTheOneBeforeAndItsThinkTime) {
  TestServer server(always(kWhole));
  std::vector<Attempt> list = attempts(6);
  for (const size_t turn : {2u, 3u, 4u, 5u}) {
    list[turn].after = static_cast<int64_t>(turn) - 2;
    list[turn].think = 3 * kMillisecond;
  }
  const Ran ran = load({server.url(), ""}, std::move(list), {.concurrency = 2, .threads = 2});
  expect_all_ok(ran, 6);
  for (int turn = 2; turn < 6; ++turn) {
    const RequestRow& before = ran.item(turn - 2);
    EXPECT_EQ(ran.item(turn).stamps.intended, *before.stamps.eof + 3 * kMillisecond);
    EXPECT_GE(*ran.item(turn).stamps.sent, ran.item(turn).stamps.intended);
  }
}

TEST(ClientLoad, APlanThatFollowsTheFutureIsRefused) {
  std::vector<Attempt> list = attempts(2);
  list[0].after = 1;
  const Ran ran = load({"http://127.0.0.1:1", ""}, std::move(list), {});
  ASSERT_EQ(ran.rows.size(), 2u);
  EXPECT_EQ(ran.rows[0].error_kind, "invalid_input");
}

TEST(ClientLoad, APoolIsOpenBeforeTheStart) {
  TestServer server(always(kWhole));
  const Ran ran = load({server.url(), ""}, attempts(30),
                       {.concurrency = 5, .threads = 2, .connections = Connections::kPool});
  expect_all_ok(ran, 30);
  EXPECT_EQ(server.accepted(), 5);
  EXPECT_EQ(ran.report.opened, 5u);
  for (const RequestRow& row : ran.rows) {
    EXPECT_TRUE(row.connection_reused);
    EXPECT_FALSE(row.stamps.connect_begin);
  }
  EXPECT_EQ(ran.report.to_json()["connections"], (Json{{"policy", "pool"}, {"opened", 5}}));
}

TEST(ClientLoad, APoolThatCannotBeOpenedStartsNothing) {
  const std::string url = "http://127.0.0.1:" + std::to_string(*net::pick_free_port());
  const Ran ran =
      load({url, ""}, attempts(9), {.concurrency = 3, .connections = Connections::kPool});
  ASSERT_EQ(ran.rows.size(), 9u);
  for (const RequestRow& row : ran.rows) {
    EXPECT_EQ(row.outcome, Outcome::kConnectFailed);
    EXPECT_NE(row.error_detail.find("of the 3 connections of the pool"), std::string::npos)
        << row.error_detail;
  }
}

TEST(ClientLoad, AFreshConnectionForEachRequest) {
  std::atomic<int> asked_to_close{0};
  TestServer server([&](Peer& peer) {
    for (std::string request; !(request = peer.read_request()).empty();) {
      asked_to_close += request.find("Connection: close\r\n") != std::string::npos;
      if (!peer.write(kWhole)) return;
    }
  });
  const Ran ran = load({server.url(), ""}, attempts(12),
                       {.concurrency = 3, .connections = Connections::kFresh});
  expect_all_ok(ran, 12);
  EXPECT_EQ(server.accepted(), 12);
  EXPECT_EQ(asked_to_close, 12);
  for (const RequestRow& row : ran.rows) {
    EXPECT_FALSE(row.connection_reused);
    EXPECT_TRUE(row.stamps.connected);
  }
}

TEST(ClientLoad, ManyThreadsYieldEveryRowOnceAndNeverConcurrently) {
  std::mutex mutex;
  std::condition_variable changed;
  int missing = 16;
  TestServer server([&](Peer& peer) {
    for (bool first = true; !peer.read_request().empty(); first = false) {
      // Nobody is answered before all places are taken.
      if (first) {
        std::unique_lock lock(mutex);
        if (--missing == 0) changed.notify_all();
        changed.wait(lock, [&] { return missing <= 0; });
      }
      if (!peer.write(kWhole)) return;
    }
  });
  const base::Cancel cancel;
  const auto caller = std::this_thread::get_id();
  std::vector<int> seen(300);
  LoadReport report;
  const auto rows = Client({server.url(), ""}, {})
                        .run(
                            attempts(300), {.concurrency = 16, .threads = 4}, cancel,
                            [&](const RequestRow& row) {
                              EXPECT_EQ(std::this_thread::get_id(), caller);
                              ++seen[static_cast<size_t>(std::stoi(row.item))];
                            },
                            &report);
  ASSERT_EQ(rows.size(), 300u);
  for (const int count : seen) EXPECT_EQ(count, 1);
  EXPECT_EQ(server.accepted(), 16);
  EXPECT_EQ(report.threads, 4);
  EXPECT_EQ(report.in_flight.max, 16);
}

TEST(ClientLoad, ARefusedKeyStopsTheRunAtOnce) {
  std::atomic<int> requests{0};
  TestServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      ++requests;
      const std::string body = R"({"error":{"message":"wrong key"}})";
      peer.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: " + std::to_string(body.size()) +
                 "\r\n\r\n" + body);
    }
  });
  const Ran ran = load({server.url(), "sesame"}, attempts(1000), {.concurrency = 1});
  ASSERT_EQ(ran.rows.size(), 1000u);
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(ran.item(0).outcome, Outcome::kHttpError);
  for (int i = 1; i < 1000; ++i) {
    ASSERT_EQ(ran.item(i).outcome, Outcome::kCancelled);
    EXPECT_NE(ran.item(i).error_detail.find("401: wrong key"), std::string::npos)
        << ran.item(i).error_detail;
    EXPECT_EQ(ran.item(i).error_detail.find("sesame"), std::string::npos);
  }
  const Ran all =
      load({server.url(), "sesame"}, attempts(5), {.concurrency = 1, .stop_on_auth = false});
  for (const RequestRow& row : all.rows) EXPECT_EQ(row.outcome, Outcome::kHttpError);
}

TEST(ClientLoad, AForbiddenRequestAmongAnsweredOnesStopsNothing) {
  TestServer server([&](Peer& peer) {
    for (int number = 0; !peer.read_request().empty(); ++number)
      peer.write(number == 1 ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" : kWhole);
  });
  const Ran ran = load({server.url(), ""}, attempts(3), {.concurrency = 1});
  EXPECT_EQ(ran.item(0).outcome, Outcome::kOk);
  EXPECT_EQ(ran.item(1).status, 403);
  EXPECT_EQ(ran.item(2).outcome, Outcome::kOk);
  TestServer closed(always("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
  const Ran none = load({closed.url(), ""}, attempts(3), {.concurrency = 1});
  EXPECT_EQ(none.item(2).outcome, Outcome::kCancelled);
}

TEST(ClientLoad, RetryAfterIsCountedAndRespectedOnlyWhenDeclared) {
  std::atomic<int> number{0};
  TestServer server([&](Peer& peer) {
    while (!peer.read_request().empty())
      peer.write(number++ == 0
                     ? "HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
                     : kWhole);
  });
  const Ran rude = load({server.url(), ""}, attempts(3), {.concurrency = 1});
  EXPECT_EQ(rude.report.rate_limited, 1u);
  EXPECT_EQ(rude.report.held_ns, 0);
  EXPECT_EQ(rude.item(0).status, 429);

  number = 0;
  const Ran polite =
      load({server.url(), ""}, attempts(3), {.concurrency = 1, .respect_retry_after = true});
  EXPECT_EQ(polite.item(0).outcome, Outcome::kHttpError);
  EXPECT_EQ(polite.report.rate_limited, 1u);
  EXPECT_EQ(polite.report.held_ns, kSecond);
  EXPECT_GE(*polite.item(1).stamps.sent, *polite.item(0).stamps.eof + kSecond);
  EXPECT_EQ(polite.item(2).outcome, Outcome::kOk);
}

TEST(ClientLoad, ReadsWhatIsLargerThanOneRead) {
  std::string body;
  while (body.size() < (3u << 20)) body += kEvent;
  TestServer server(always(answer(body + "data: [DONE]\n\n")));
  const Ran ran = load({server.url(), ""}, attempts(2), {});
  expect_all_ok(ran, 2);
  EXPECT_EQ(ran.rows[0].chunks.size(), body.size() / kEvent.size());
}

class ClientTls : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/anvil-load-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    certificate_.write_to(ca());
  }
  void TearDown() override {
    unlink(ca().c_str());
    rmdir(folder_.c_str());
  }
  std::string ca() const { return folder_ + "/ca.pem"; }
  Endpoint trusted(const net::TestTlsFront& front) const {
    return {front.url("localhost"), "sesame", {.ca_file = ca()}};
  }

  std::string folder_;
  const net::TestCertificate certificate_{"DNS:localhost"};
  TestServer server_{always(kWhole)};
};

TEST_F(ClientTls, StampsTheHandshakeApartAndKeepsTheKernelsStamps) {
  for (const size_t piece : {size_t{0}, size_t{7}}) {
    const net::TestTlsFront front(server_, certificate_, piece);
    const Ran ran = load(trusted(front), attempts(12), {.concurrency = 3, .threads = 2});
    expect_all_ok(ran, 12);
    int handshakes = 0;
    for (const RequestRow& row : ran.rows) {
      EXPECT_EQ(row.stamp_source, "kernel");
      EXPECT_EQ(row.answer.content, "hi");
      EXPECT_EQ(row.stamps.tls_done.has_value(), !row.connection_reused);
      if (!row.stamps.tls_done) continue;
      ++handshakes;
      EXPECT_LE(*row.stamps.connected, *row.stamps.tls_begin);
      EXPECT_LT(*row.stamps.tls_begin, *row.stamps.tls_done);
      EXPECT_LE(*row.stamps.tls_done, *row.stamps.sent);
      EXPECT_LE(*row.stamps.sent, *row.stamps.first_byte);
    }
    EXPECT_GE(handshakes, 1);
    EXPECT_LE(handshakes, 3);
  }
}

TEST_F(ClientTls, EveryConnectionPolicyWorks) {
  const net::TestTlsFront front(server_, certificate_);
  for (const auto policy : {Connections::kReuse, Connections::kFresh, Connections::kPool}) {
    const Ran ran = load(trusted(front), attempts(8), {.concurrency = 2, .connections = policy});
    expect_all_ok(ran, 8);
    EXPECT_EQ(ran.report.opened, policy == Connections::kFresh ? 8u : 2u);
  }
}

TEST_F(ClientTls, ALargeRequestIsSentWhole) {
  size_t got = 0;
  TestServer server([&](Peer& peer) {
    got = peer.read_request().size();
    peer.write(kWhole);
  });
  const net::TestTlsFront front(server, certificate_);
  std::vector<Attempt> list = attempts(1);
  list[0].body = std::string(8u << 20, 'x');
  const Ran ran = load(trusted(front), std::move(list), {});
  expect_all_ok(ran, 1);
  EXPECT_GT(got, size_t{8} << 20);
}

TEST_F(ClientTls, ABadCertificateFailsEveryAttemptWithItsReason) {
  const net::TestTlsFront front(server_, certificate_);
  const Ran ran = load({front.url("localhost"), ""}, attempts(3), {.concurrency = 2});
  ASSERT_EQ(ran.rows.size(), 3u);
  for (const RequestRow& row : ran.rows) {
    EXPECT_EQ(row.outcome, Outcome::kConnectFailed);
    EXPECT_NE(row.error_detail.find("self-signed"), std::string::npos) << row.error_detail;
    EXPECT_FALSE(row.stamps.sent);
  }
  const Ran declared = load({front.url(), "", {.insecure = true}}, attempts(3), {});
  expect_all_ok(declared, 3);
}

TEST_F(ClientTls, TheWrongSchemeIsNamed) {
  const net::TestTlsFront front(server_, certificate_);
  const Ran plain = load({"http://127.0.0.1:" + std::to_string(front.port()), ""}, attempts(1), {});
  EXPECT_NE(plain.rows[0].error_detail.find("https://"), std::string::npos)
      << plain.rows[0].error_detail;

  TestServer http([](Peer& peer) {
    char buffer[64];
    if (recv(peer.fd(), buffer, sizeof buffer, 0) > 0)
      peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const Ran tls = load({"https://127.0.0.1:" + std::to_string(http.port()), ""}, attempts(1), {});
  EXPECT_NE(tls.rows[0].error_detail.find("write http://"), std::string::npos)
      << tls.rows[0].error_detail;
}

}  // namespace
}  // namespace anvil::measure
