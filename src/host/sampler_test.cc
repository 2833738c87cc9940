#include "host/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "host/testing/fake_gpu_probe.h"

namespace anvil::host {
namespace {

TEST(SamplerTest, KeepsAnAbsoluteSchedule) {
  const auto tick = [](Nanos previous, Nanos now) { return next_tick(1000, 10, previous, now); };
  EXPECT_EQ(tick(1000, 1003).at, 1010);
  EXPECT_EQ(tick(1000, 1003).missed, 0u);
  EXPECT_EQ(tick(1000, 1009).at, 1010) << "the time taken does not move the schedule";
  EXPECT_EQ(tick(1000, 1010).at, 1020) << "an instant that is reached has passed";
  EXPECT_EQ(tick(1000, 1010).missed, 1u);
  EXPECT_EQ(tick(1010, 1045).at, 1050);
  EXPECT_EQ(tick(1010, 1045).missed, 3u);
  EXPECT_EQ(tick(1010, 1005).at, 1020) << "never the same instant twice";
  EXPECT_EQ(tick(1010, 1005).missed, 0u);
}

// Collects samples and wakes the test when there are enough.
struct Collector {
  explicit Collector(size_t enough) : wanted(enough) {}
  void operator()(const Json& sample) {
    samples.push_back(sample);
    if (samples.size() == wanted) done.set_value();
  }
  size_t wanted;
  std::vector<Json> samples;
  std::promise<void> done;
};

TEST(SamplerTest, SamplesHostEngineAndGpus) {
  FakeGpuProbe probe;
  Collector collector(3);
  Sampler::Options options;
  options.period = kMillisecond;
  options.gpus = &probe;
  options.roles = {{probe.gpus[0].uuid, "compute-a"}};
  Sampler sampler(options, [&](const Json& sample) { collector(sample); });
  sampler.set_roots({getpid()});
  sampler.start();
  collector.done.get_future().wait();
  sampler.stop();

  Nanos before = 0, cpu = 0;
  for (const Json& sample : collector.samples) {
    EXPECT_GT(sample["mono_ns"].get<Nanos>(), before);
    before = sample["mono_ns"].get<Nanos>();
    EXPECT_GT(sample["host"]["mem_available"].get<uint64_t>(), 0u);
    EXPECT_TRUE(sample["host"].contains("load1"));
    EXPECT_GT(sample["engine"]["rss"].get<uint64_t>(), 0u);
    EXPECT_GE(sample["engine"]["pids"].get<int>(), 1);
    EXPECT_GE(sample["engine"]["cpu_ns"].get<Nanos>(), cpu);
    cpu = sample["engine"]["cpu_ns"].get<Nanos>();
    ASSERT_EQ(sample["gpus"].size(), 2u);
    EXPECT_EQ(sample["gpus"][0]["role"], "compute-a");
    EXPECT_EQ(sample["gpus"][1]["index"], 1);
  }
}

TEST(SamplerTest, HasNoEngineWithoutRoots) {
  Collector collector(1);
  Sampler::Options options;
  options.period = kSecond;
  Sampler sampler(options, [&](const Json& sample) { collector(sample); });
  sampler.start();
  collector.done.get_future().wait();
  sampler.stop();
  EXPECT_EQ(collector.samples.front()["engine"], Json::parse(R"({"cpu_ns":0,"pids":0,"rss":0})"));
  EXPECT_TRUE(collector.samples.front()["gpus"].empty());
}

TEST(SamplerTest, StopsAtOnceAndIsSilentAfterwards) {
  Collector collector(1);
  Sampler::Options options;
  options.period = 3600 * kSecond;
  Sampler sampler(options, [&](const Json& sample) { collector(sample); });
  sampler.start();
  collector.done.get_future().wait();
  sampler.stop();
  EXPECT_EQ(collector.samples.size(), 1u);
  sampler.stop();
}

TEST(SamplerTest, CountsInstantsThatASlowSinkMisses) {
  std::promise<void> done;
  Sampler* running = nullptr;
  int calls = 0;
  Sampler::Options options;
  options.period = kMillisecond;
  Sampler sampler(options, [&](const Json& sample) {
    // Holds the sampling thread until at least two instants have passed.
    while (calls == 0 && mono_now() < sample["mono_ns"].get<Nanos>() + 3 * kMillisecond) {
    }
    if (++calls == 2) {
      EXPECT_GE(running->missed(), 2u);
      done.set_value();
    }
  });
  running = &sampler;
  sampler.start();
  done.get_future().wait();
  sampler.stop();
}

TEST(SamplerTest, EndsWithItsObject) {
  Collector collector(1);
  {
    Sampler sampler({}, [&](const Json& sample) { collector(sample); });
    sampler.start();
    collector.done.get_future().wait();
  }
  EXPECT_EQ(collector.samples.size(), 1u);
  Sampler never_started({}, [](const Json&) {});
}

}  // namespace
}  // namespace anvil::host
