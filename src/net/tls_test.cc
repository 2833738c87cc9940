#include "net/tls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "net/connection.h"
#include "net/test_tls.h"

namespace anvil::net {
namespace {

using Peer = TestServer::Peer;

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/anvil-tls-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    certificate_.write_to(ca());
  }
  void TearDown() override {
    unlink(ca().c_str());
    rmdir(folder_.c_str());
  }
  std::string ca() const { return folder_ + "/ca.pem"; }

  Result<HttpReply> get(const std::string& url, TlsOptions tls) {
    HttpCall call;
    call.path = "/health";
    call.tls = std::move(tls);
    return http_call(*parse_url(url), call);
  }

  std::string folder_;
  const TestCertificate certificate_{"DNS:localhost,IP:127.0.0.1"};
  TestServer server_{[](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'));
  }};
};

TEST_F(Tls, ReadsAnAnswerFromATrustedServer) {
  for (const size_t piece : {size_t{0}, size_t{1000}}) {
    const TestTlsFront front(server_, certificate_, piece);
    for (const char* host : {"localhost", "127.0.0.1"}) {
      const auto reply = get(front.url(host), {.ca_file = ca()});
      ASSERT_TRUE(reply) << base::to_string(reply.error());
      EXPECT_EQ(reply->status, 200);
      EXPECT_EQ(reply->body, std::string(200'000, 'x'));
    }
  }
}

TEST_F(Tls, RefusesWhatItCannotTrust) {
  const TestTlsFront front(server_, certificate_);
  const TestCertificate elsewhere("DNS:elsewhere.example");
  const TestTlsFront other_name(server_, elsewhere);
  const TestCertificate old("DNS:localhost,IP:127.0.0.1", -3, -2);
  const TestTlsFront expired(server_, old);
  const std::string other_ca = folder_ + "/other.pem", old_ca = folder_ + "/old.pem";
  elsewhere.write_to(other_ca);
  old.write_to(old_ca);
  const struct {
    std::string url;
    TlsOptions tls;
    const char* says;
    const char* hints;
  } cases[] = {
      {front.url(), {}, "self-signed", "CA file"},
      {front.url(), {.ca_file = other_ca}, "self-signed", "insecure"},
      {other_name.url(), {.ca_file = other_ca}, "IP address mismatch", "a name that the cert"},
      {other_name.url("localhost"), {.ca_file = other_ca}, "hostname mismatch", "a name that"},
      {expired.url(), {.ca_file = old_ca}, "expired", "clock"},
  };
  for (const auto& c : cases) {
    const auto reply = get(c.url, c.tls);
    ASSERT_FALSE(reply) << c.says;
    EXPECT_EQ(reply.error().kind, Kind::kConnect);
    EXPECT_NE(reply.error().detail.find(c.says), std::string::npos) << reply.error().detail;
    EXPECT_NE(reply.error().hint.find(c.hints), std::string::npos) << reply.error().hint;
  }
  EXPECT_TRUE(get(expired.url(), {.insecure = true}));
  EXPECT_TRUE(get(other_name.url(), {.insecure = true}));
  unlink(other_ca.c_str());
  unlink(old_ca.c_str());
}

TEST_F(Tls, SaysWhenTheSchemeIsTheOther) {
  TestServer plain([](Peer& peer) {
    char buffer[64];
    if (recv(peer.fd(), buffer, sizeof buffer, 0) > 0)
      peer.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  });
  const auto to_plain = get("https://127.0.0.1:" + std::to_string(plain.port()), {});
  ASSERT_FALSE(to_plain);
  EXPECT_NE(to_plain.error().hint.find("write http://"), std::string::npos)
      << base::to_string(to_plain.error());

  TestServer silent([](Peer& peer) {
    char buffer[64];
    [[maybe_unused]] const ssize_t got = recv(peer.fd(), buffer, sizeof buffer, 0);
  });
  const auto closed = get("https://127.0.0.1:" + std::to_string(silent.port()), {});
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().hint.find("write http://"), std::string::npos)
      << base::to_string(closed.error());

  const TestTlsFront front(server_, certificate_);
  const auto to_tls = get("http://127.0.0.1:" + std::to_string(front.port()), {});
  ASSERT_FALSE(to_tls);
  EXPECT_NE(base::to_string(to_tls.error()).find("https://"), std::string::npos)
      << base::to_string(to_tls.error());
}

TEST_F(Tls, ABadCaFileIsNamed) {
  const auto missing = TlsContext::create({.ca_file = folder_ + "/none.pem"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Kind::kInvalidInput);
  EXPECT_NE(missing.error().detail.find("none.pem"), std::string::npos);
  const std::string path = folder_ + "/text.pem";
  std::ofstream(path) << "no certificate\n";
  const auto text = TlsContext::create({.ca_file = path});
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().hint.find("PEM"), std::string::npos);
  unlink(path.c_str());
}

TEST_F(Tls, EndsAtTheDeadlineInsideTheHandshake) {
  TestServer mute([](Peer& peer) { peer.wait_closed(); });
  HttpCall call;
  call.path = "/";
  call.limit = 100 * kMillisecond;
  call.tls.insecure = true;  // reads no certificates first
  const auto reply =
      http_call(*parse_url("https://127.0.0.1:" + std::to_string(mute.port())), call);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Kind::kTimeout);
  EXPECT_NE(reply.error().detail.find("TLS handshake"), std::string::npos) << reply.error().detail;
}

TEST(KernelStamp, LiesBetweenTheSendAndTheRead) {
  TestServer server([](Peer& peer) {
    peer.read_request();
    peer.write("x");
    peer.wait_closed();
  });
  Connection connection;
  const auto destination = *find_destination(*parse_url(server.url()), {});
  ASSERT_TRUE(open_now(connection, destination, 0));
  const Nanos before = mono_now();
  ASSERT_TRUE(connection.put("GET / HTTP/1.1\r\n\r\n"));
  ASSERT_EQ(connection.flush(), Connection::Sent::kAll);
  ASSERT_TRUE(wait_ready(connection.fd(), POLLIN, 0, nullptr, ""));
  const Nanos arrived = mono_now();
  const KernelClock clock;
  char byte = 0;
  const Received got = connection.receive(&byte, 1, clock);
  ASSERT_EQ(got.bytes, 1);
  EXPECT_TRUE(got.kernel);
  // The two clocks are compared to within a few microseconds.
  EXPECT_GE(got.at, before - 20 * kMicrosecond);
  EXPECT_LE(got.at, arrived + 20 * kMicrosecond);
  EXPECT_LE(got.at, got.returned);
  EXPECT_EQ(receive_queue_bytes(connection.fd()), 0u);
}

TEST(KernelStamp, FallsBackToOurClockOnUnixSockets) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const base::Fd left(pair[0]), right(pair[1]);
  enable_receive_stamps(left.get());
  ASSERT_EQ(send(right.get(), "abc", 3, 0), 3);
  const KernelClock clock;
  char buffer[2];
  const Received got = receive(left.get(), buffer, sizeof buffer, clock);
  EXPECT_EQ(got.bytes, 2);
  EXPECT_FALSE(got.kernel);
  EXPECT_EQ(got.at, got.returned);
  EXPECT_EQ(receive_queue_bytes(left.get()), 1u);
  EXPECT_EQ(transport_trouble(left.get()).retransmits, 0u);
  ASSERT_EQ(receive(left.get(), buffer, sizeof buffer, clock).bytes, 1);
  const Received none = receive(left.get(), buffer, sizeof buffer, clock);
  EXPECT_EQ(none.bytes, -1);
  EXPECT_EQ(none.error, EAGAIN);
}

}  // namespace
}  // namespace anvil::net
