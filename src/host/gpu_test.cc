#include "host/gpu.h"

#include <gtest/gtest.h>

#include "host/testing/fake_gpu_probe.h"

namespace anvil::host {
namespace {

TEST(GpuTest, NeverPublishesTheUuid) {
  FakeGpuProbe probe;
  Gpu gpu = probe.gpus[0];
  gpu.processes = {{42, 1000}};
  const Json json = to_json(gpu);
  EXPECT_EQ(json["processes"], Json::parse(R"([{"pid":42,"bytes":1000}])"));
  EXPECT_EQ(json["memory"]["total"], gpu.memory_total);
  EXPECT_EQ(json.dump().find(gpu.uuid), std::string::npos);
  EXPECT_EQ(to_sample(gpu).dump().find(gpu.uuid), std::string::npos);
  EXPECT_EQ(uuid_tag(gpu.uuid).size(), 8u);
  EXPECT_NE(uuid_tag(gpu.uuid), uuid_tag(probe.gpus[1].uuid));
  EXPECT_EQ(uuid_tag(""), "");
}

TEST(GpuTest, SamplesLeaveAbsentReadingsOut) {
  Gpu gpu;
  gpu.index = 3;
  gpu.memory_used = 5;
  EXPECT_EQ(to_sample(gpu), Json::parse(R"({"index":3,"mem_free":0,"mem_used":5})"));
  gpu.uuid = "GPU-x";
  gpu.power_mw = 7;
  gpu.sm_clock_mhz = 1980;
  EXPECT_EQ(
      to_sample(gpu, {{"GPU-x", "compute-a"}}),
      Json::parse(
          R"({"role":"compute-a","mem_free":0,"mem_used":5,"power_mw":7,"sm_clock_mhz":1980})"));
}

TEST(GpuTest, NvmlIsThereOrSaysWhyNot) {
  const auto probe = open_nvml();
  const GpuInventory inventory = probe->inventory();
  EXPECT_EQ(inventory.gpus.empty(), !inventory.absent.empty()) << inventory.absent;
  EXPECT_EQ(probe->sample().size(), inventory.gpus.size());
  for (const Gpu& gpu : inventory.gpus) {
    EXPECT_FALSE(gpu.uuid.empty());
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_TRUE(gpu.arch.starts_with("sm_"));
    EXPECT_GT(gpu.memory_total, 0u);
    EXPECT_LE(gpu.memory_free, gpu.memory_total);
    EXPECT_FALSE(inventory.driver.empty());
  }
}

}  // namespace
}  // namespace anvil::host
