#include "host/snapshot.h"

#include <gtest/gtest.h>

#include "host/cgroup.h"
#include "host/testing/fake_gpu_probe.h"

namespace anvil::host {
namespace {

TEST(SnapshotTest, ParsesMeminfo) {
  const MemoryInfo info = parse_meminfo(
      "MemTotal:       24684092 kB\nMemFree:        100 kB\nMemAvailable:   24000000 kB\n"
      "Cached:          1024 kB\nSwapCached:           7 kB\nSwapTotal:        10 kB\n"
      "SwapFree:          5 kB\nHugePages_Total:       0\nbroken\nMemTotal: x kB\n");
  EXPECT_EQ(info.available, 24000000ull * 1024);
  EXPECT_EQ(info.page_cache, 1024ull * 1024);
  EXPECT_EQ(info.swap_total, 10ull * 1024);
  EXPECT_EQ(info.swap_free, 5ull * 1024);
  EXPECT_EQ(parse_meminfo("MemTotal: 3 kB").total, 3072u);
  EXPECT_EQ(parse_meminfo("").total, 0u);
  EXPECT_EQ(parse_meminfo("MemTotal: -3 kB").total, 0u);
}

TEST(SnapshotTest, ParsesTheCpuModel) {
  EXPECT_EQ(parse_cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nprocessor\t: 1\n"),
            "Some CPU @ 2.0GHz");
  EXPECT_EQ(parse_cpu_model("processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"),
            "ARM implementer 0x41 part 0xd4f");
  EXPECT_EQ(parse_cpu_model(""), "");
}

TEST(SnapshotTest, ParsesCgroupLimits) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("-1 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("1 0"), std::nullopt);
  EXPECT_EQ(parse_memory_max("1073741824\n"), 1073741824u);
  EXPECT_EQ(parse_memory_max("max\n"), std::nullopt);
  EXPECT_EQ(parse_memory_max("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(parse_memory_max(""), std::nullopt);
}

TEST(SnapshotTest, WalksCgroupsOutwards) {
  EXPECT_EQ(cgroup_folders("0::/user.slice/a.scope\n", "cpu"),
            (std::vector<std::string>{"/sys/fs/cgroup/user.slice/a.scope",
                                      "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}));
  EXPECT_EQ(cgroup_folders("5:cpu,cpuacct:/docker/x\n4:memory:/m\n0::/\n", "cpu"),
            (std::vector<std::string>{"/sys/fs/cgroup/cpu/docker/x", "/sys/fs/cgroup/cpu/docker",
                                      "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}));
  EXPECT_TRUE(cgroup_folders("nonsense\n", "cpu").empty());
}

TEST(SnapshotTest, TellsPlatformsApart) {
  PlatformHints hints;
  hints.proc_version = "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)";
  hints.init_cgroup = "0::/init.scope";
  EXPECT_EQ(platform_of(hints), "bare");
  PlatformHints docker = hints;
  docker.dockerenv = true;
  EXPECT_EQ(platform_of(docker), "container");
  PlatformHints podman = hints;
  podman.container_env = "podman";
  EXPECT_EQ(platform_of(podman), "container");
  PlatformHints pod = hints;
  pod.init_cgroup = "11:memory:/kubepods/burstable/pod1/2";
  EXPECT_EQ(platform_of(pod), "container");
  PlatformHints overlay = hints;
  overlay.overlay_root = true;
  EXPECT_EQ(platform_of(overlay), "container");
  PlatformHints wsl = hints;
  wsl.proc_version = "Linux version 5.15.90.1-microsoft-standard-WSL2";
  EXPECT_EQ(platform_of(wsl), "wsl2");
  wsl.dockerenv = true;
  EXPECT_EQ(platform_of(wsl), "wsl2") << "the limits of WSL2 hold in its containers too";
}

TEST(SnapshotTest, DescribesThisHostAndItsGpus) {
  FakeGpuProbe probe;
  SnapshotRequest request;
  request.gpus = &probe;
  request.folders = {{"state", "/nowhere/to/be/found"}};
  request.roles = {{probe.gpus[1].uuid, "compute-a"}};
  const Json facts = snapshot(request);
  EXPECT_GE(facts["cpu"]["cores"].get<int>(), 1);
  EXPECT_LE(facts["cpu"]["cores"], facts["cpu"]["online"]);
  EXPECT_GT(facts["memory"]["total"].get<uint64_t>(), 0u);
  EXPECT_LE(facts["memory"]["available"], facts["memory"]["total"]);
  EXPECT_GT(facts["disk"]["state"]["total"].get<uint64_t>(), 0u) << "of the nearest parent";
  EXPECT_TRUE(facts["kernel"].is_string());
  EXPECT_EQ(facts["load"].size(), 3u);
  EXPECT_TRUE(facts["clock"].contains("source"));
  EXPECT_TRUE(facts["limits"]["nofile"].contains("soft"));
  EXPECT_TRUE(facts["anvil_orphans"].is_array());
  EXPECT_EQ(facts["gpu_driver"], "580.95.05");
  EXPECT_TRUE(facts["gpu_absent"].is_null());
  ASSERT_EQ(facts["gpus"].size(), 2u);
  EXPECT_EQ(facts["gpus"][0]["index"], 0);
  EXPECT_FALSE(facts["gpus"][1].contains("index"));
  EXPECT_EQ(facts["gpus"][1]["role"], "compute-a");
  EXPECT_EQ(facts["gpus"][0]["tag"].get<std::string>().size(), 8u);
  EXPECT_EQ(facts.dump().find("GPU-"), std::string::npos) << "a UUID is never published";
}

TEST(SnapshotTest, SaysWhyThereIsNoGpu) {
  FakeGpuProbe probe;
  probe.gpus.clear();
  probe.absent = "no driver";
  SnapshotRequest request;
  request.gpus = &probe;
  const Json facts = snapshot(request);
  EXPECT_TRUE(facts["gpus"].empty());
  EXPECT_EQ(facts["gpu_absent"], "no driver");
}

}  // namespace
}  // namespace anvil::host
