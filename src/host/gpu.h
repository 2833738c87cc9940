#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace anvil::host {

struct GpuProcess {
  int pid = 0;
  uint64_t bytes = 0;  // 0 when the driver does not say

  bool operator==(const GpuProcess&) const = default;
};

// One GPU as the driver shows it. `uuid` is private: it maps roles, and appears in no snapshot,
// sample or report (see uuid_tag).
struct Gpu {
  int index = 0;
  std::string uuid;
  std::string name;                                             // "NVIDIA H200"
  std::string arch;                                             // compute capability as "sm_90"
  uint64_t memory_total = 0, memory_used = 0, memory_free = 0;  // bytes
  std::optional<int64_t> power_mw;
  std::optional<int64_t> temperature_c;
  std::optional<int64_t> sm_clock_mhz;
  std::optional<bool> mig;  // partitioned
  std::vector<GpuProcess> processes;
};

struct GpuInventory {
  std::string driver;       // "580.95.05"; empty when there is none
  std::string cuda_driver;  // highest CUDA version of the driver, "13.0"
  std::vector<Gpu> gpus;
  std::string absent;  // why there is no GPU to report; empty when there is one
};

// Where GPU facts come from; faked in tests. Absence is a normal state, never an error.
class GpuProbe {
 public:
  virtual ~GpuProbe() = default;
  // Everything, processes included. Some milliseconds.
  virtual GpuInventory inventory() = 0;
  // Only what changes (memory, power, temperature, clock), without processes; cheap enough for 50
  // Hz.
  virtual std::vector<Gpu> sample() = 0;
};

// NVML, loaded at run time (libnvidia-ml.so.1). Always returns a probe; where the library or the
// driver is missing its inventory is empty and says why. Calls may come from any thread, one at a
// time.
std::unique_ptr<GpuProbe> open_nvml();

// A short public tag for a GPU: the first 8 hex digits of the SHA-256 of its UUID.
std::string uuid_tag(const std::string& uuid);

// {"index","name","arch","memory":{"total","used","free"},"power_mw","temp_c","sm_clock_mhz","mig","tag",
//  "processes":[{"pid","bytes"}]}; "role" instead of "index" where `roles` (uuid -> role) names
//  one. No UUID.
Json to_json(const Gpu& gpu, const std::map<std::string, std::string>& roles = {});
// {"role"|"index","mem_used","mem_free","power_mw","temp_c","sm_clock_mhz"}, absent values left
// out.
Json to_sample(const Gpu& gpu, const std::map<std::string, std::string>& roles = {});

}  // namespace anvil::host
