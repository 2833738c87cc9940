#include "measure/agenda.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace anvil::measure {
namespace {

std::vector<Attempt> dated(std::initializer_list<Nanos> times) {
  std::vector<Attempt> out;
  for (const Nanos at : times) {
    out.emplace_back();
    out.back().at = at;
  }
  return out;
}

struct Fixture {
  explicit Fixture(std::vector<Attempt> list, int limit, size_t threads = 1)
      : attempts(std::move(list)),
        share(attempts, *AttemptLinks::build(attempts), {.concurrency = limit}, threads) {
    for (size_t i = 0; i < threads; ++i) {
      agendas.push_back(std::make_unique<Agenda>(share, i));
      agendas.back()->begin(kStart);
    }
  }
  Agenda& agenda() { return *agendas[0]; }

  static constexpr Nanos kStart = 1000;
  std::vector<Attempt> attempts;
  LoadShare share;
  std::vector<std::unique_ptr<Agenda>> agendas;
};

TEST(Agenda, StartsEachAttemptWhenItIsDue) {
  Fixture f(dated({30, 10, 20}), 8);
  EXPECT_FALSE(f.agenda().take(1009));
  EXPECT_EQ(f.agenda().next_due(1009), 1010);
  const auto first = f.agenda().take(1015);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->index, 1u);
  EXPECT_EQ(first->intended, 1010);
  EXPECT_TRUE(first->dated);
  EXPECT_FALSE(first->waited);
  // A client that was stopped starts what it missed, in order, each at its own intended moment.
  const auto second = f.agenda().take(5000), third = f.agenda().take(5000);
  ASSERT_TRUE(second && third);
  EXPECT_EQ(second->intended, 1020);
  EXPECT_EQ(third->intended, 1030);
  EXPECT_FALSE(f.agenda().idle());
  for (const uint32_t index : {0u, 1u, 2u}) f.agenda().ended(index, 6000);
  EXPECT_TRUE(f.agenda().idle());
  EXPECT_EQ(f.agenda().limit_hits(), 0u);
}

TEST(Agenda, CountsWhatIsDueWhileTheLimitIsReached) {
  Fixture f(dated({0, 1, 2, 3}), 1);
  ASSERT_TRUE(f.agenda().take(1000));
  EXPECT_FALSE(f.agenda().take(1002));
  EXPECT_FALSE(f.agenda().take(1002));
  EXPECT_EQ(f.agenda().limit_hits(), 2u);
  f.agenda().ended(0, 1002);
  const auto waited = f.agenda().take(1002);
  ASSERT_TRUE(waited);
  EXPECT_TRUE(waited->waited);
  EXPECT_EQ(waited->intended, 1001);
  EXPECT_FALSE(f.agenda().take(1003));
  EXPECT_EQ(f.agenda().limit_hits(), 3u);
}

TEST(Agenda, FollowersComeAfterTheirThinkTime) {
  std::vector<Attempt> list(4);
  list[1].after = 0;
  list[1].think = 500;
  list[2].after = 1;
  list[3].after = 0;
  list[3].at = 9000;  // not before its own time either
  Fixture f(std::move(list), 4);
  const auto first = f.agenda().take(1000);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->dated);
  EXPECT_FALSE(f.agenda().take(50'000));
  f.agenda().ended(0, 2000);
  EXPECT_EQ(f.agenda().next_due(2000), 2500);
  EXPECT_FALSE(f.agenda().take(2499));
  const auto second = f.agenda().take(2600);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->index, 1u);
  EXPECT_EQ(second->intended, 2500);
  f.agenda().ended(1, 2700);
  EXPECT_EQ(f.agenda().take(2700)->intended, 2700);
  const auto late = f.agenda().take(20'000);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->intended, 10'000);
}

TEST(Agenda, RefusesAPlanThatFollowsTheFuture) {
  std::vector<Attempt> list(2);
  list[0].after = 1;
  EXPECT_FALSE(AttemptLinks::build(list));
  list[0].after = 0;
  EXPECT_FALSE(AttemptLinks::build(list));
  list[0].after = -2;
  EXPECT_FALSE(AttemptLinks::build(list));
  list[0].after = -1;
  list[1].after = 0;
  EXPECT_TRUE(AttemptLinks::build(list));
}

TEST(Agenda, AClosedLoopIsSharedEvenlyByTheThreads) {
  Fixture f(std::vector<Attempt>(20), 5, 2);
  EXPECT_EQ(f.share.share_of(0), 3);
  EXPECT_EQ(f.share.share_of(1), 2);
  int taken[2] = {0, 0};
  for (const size_t thread : {0u, 1u})
    while (f.agendas[thread]->take(2000)) ++taken[thread];
  EXPECT_EQ(taken[0], 3);
  EXPECT_EQ(taken[1], 2);
  EXPECT_EQ(f.agenda().limit_hits(), 0u);
}

TEST(Agenda, AThreadThatWaitsForAPlaceIsWoken) {
  Fixture f(dated({0, 0}), 1, 2);
  ASSERT_TRUE(f.agendas[0]->take(1000));
  EXPECT_FALSE(f.agendas[1]->take(1000));
  pollfd waiting{f.share.wake_fd(1), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  f.agendas[0]->ended(0, 1100);
  EXPECT_EQ(poll(&waiting, 1, 0), 1);
  f.share.drain_wake(1);
  EXPECT_TRUE(f.agendas[1]->take(1100));
}

TEST(Agenda, NothingStartsDuringAHold) {
  Fixture f(dated({0, 10}), 4);
  f.share.hold(1000, 3000);
  f.share.hold(1000, 2000);
  EXPECT_FALSE(f.agenda().take(2500));
  EXPECT_EQ(f.agenda().next_due(2500), 3000);
  const auto first = f.agenda().take(3000);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->intended, 1000);
  EXPECT_TRUE(first->waited);
  EXPECT_EQ(f.agenda().limit_hits(), 0u);
  EXPECT_EQ(f.share.held_in_all(), 2000);
}

TEST(Agenda, TheFirstReasonToStopStays) {
  Fixture f(dated({0}), 1);
  EXPECT_FALSE(f.share.stopped());
  f.share.stop(Error(Kind::kCancelled, Side::kUpstream, "first"));
  f.share.stop(Error(Kind::kCancelled, Side::kUpstream, "second"));
  EXPECT_TRUE(f.share.stopped());
  EXPECT_EQ(f.share.stop_reason().detail, "first");
}

}  // namespace
}  // namespace anvil::measure
