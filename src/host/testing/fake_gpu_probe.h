#pragma once

#include <string>
#include <vector>

#include "host/gpu.h"

namespace anvil::host {

// Two idle GPUs; tests change what they need.
class FakeGpuProbe final : public GpuProbe {
 public:
  FakeGpuProbe() {
    for (int index = 0; index < 2; ++index) {
      Gpu gpu;
      gpu.index = index;
      gpu.uuid = "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(index);
      gpu.name = "NVIDIA H200";
      gpu.arch = "sm_90";
      gpu.memory_total = 150'754'820'096;
      gpu.memory_used = 1'000'000;
      gpu.memory_free = gpu.memory_total - gpu.memory_used;
      gpu.power_mw = 76'000;
      gpu.temperature_c = 31;
      gpus.push_back(gpu);
    }
  }
  GpuInventory inventory() override {
    GpuInventory out;
    out.gpus = gpus;
    out.absent = absent;
    if (!gpus.empty()) out.driver = "580.95.05";
    return out;
  }
  std::vector<Gpu> sample() override { return gpus; }

  std::vector<Gpu> gpus;
  std::string absent;
};

}  // namespace anvil::host
