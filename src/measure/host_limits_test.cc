#include "measure/host_limits.h"

#include <gtest/gtest.h>

#include "measure/retry_after.h"

namespace anvil::measure {
namespace {

std::vector<Attempt> every(Nanos gap, int count) {
  std::vector<Attempt> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) out[static_cast<size_t>(i)].at = gap * i;
  return out;
}

TEST(HostLimits, CountsWhatIsOpenAtOnce) {
  const LoadOptions level{.concurrency = 500};
  const HostNeed few = host_need(std::vector<Attempt>(10), level, true, true);
  EXPECT_EQ(few.ports, 10u);
  const HostNeed many = host_need(std::vector<Attempt>(10'000), level, true, true);
  EXPECT_EQ(many.ports, 500u);
  EXPECT_EQ(many.descriptors - few.descriptors, 490u);
  LoadOptions pool = level;
  pool.connections = Connections::kPool;
  EXPECT_EQ(host_need(std::vector<Attempt>(10), pool, true, true).ports, 500u);
  EXPECT_EQ(host_need(std::vector<Attempt>(10), level, false, true).ports, 0u);
}

TEST(HostLimits, FreshConnectionsKeepTheirPortsForAMinute) {
  const LoadOptions fresh{.concurrency = 8, .connections = Connections::kFresh};
  const auto plan = every(10 * kMillisecond, 30'000);  // 100/s for 5 minutes
  EXPECT_EQ(host_need(plan, fresh, true, false).ports, 6000u);
  EXPECT_EQ(host_need(plan, fresh, true, true).ports, 8u);
}

TEST(HostLimits, NamesTheCommandThatRaisesTheLimit) {
  const HostHas has{1024, 4096, 28'232};
  EXPECT_TRUE(judge_need({4096, 28'232}, has));
  const auto descriptors = judge_need({5000, 1}, has);
  ASSERT_FALSE(descriptors);
  EXPECT_EQ(descriptors.error().side, Side::kHost);
  EXPECT_NE(descriptors.error().hint.find("--nofile=5000"), std::string::npos)
      << descriptors.error().hint;
  const auto ports = judge_need({100, 30'000}, has);
  ASSERT_FALSE(ports);
  EXPECT_NE(ports.error().hint.find("sysctl -w net.ipv4.ip_local_port_range"), std::string::npos);
  EXPECT_TRUE(judge_need({5000, 30'000}, {}));
}

TEST(HostLimits, ReadsWhatThisHostHas) {
  const HostHas has = host_has();
  EXPECT_GT(has.soft_descriptors, 0u);
  EXPECT_GE(has.hard_descriptors, has.soft_descriptors);
  EXPECT_GT(has.ports, 0u);
}

TEST(RetryAfter, ReadsSecondsAndDates) {
  EXPECT_EQ(parse_retry_after("3"), 3 * kSecond);
  EXPECT_EQ(parse_retry_after(" 0 "), 0);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), 0);
  EXPECT_GT(parse_retry_after("Fri, 01 Jan 2123 00:00:00 GMT"), kSecond);
  for (const char* field : {"", "soon", "-1", "3.5", "Sun, 06 Nov 1994", "3 s"})
    EXPECT_FALSE(parse_retry_after(field)) << field;
}

}  // namespace
}  // namespace anvil::measure
