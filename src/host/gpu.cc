#include "host/gpu.h"

#include "base/hash.h"

namespace anvil::host {

namespace {

// "role" where one is bound to the GPU, else "index".
void name_gpu(Json& object, const Gpu& gpu, const std::map<std::string, std::string>& roles) {
  const auto role = roles.find(gpu.uuid);
  if (!gpu.uuid.empty() && role != roles.end()) {
    object["role"] = role->second;
  } else {
    object["index"] = gpu.index;
  }
}

void add_readings(Json& object, const Gpu& gpu) {
  if (gpu.power_mw) object["power_mw"] = *gpu.power_mw;
  if (gpu.temperature_c) object["temp_c"] = *gpu.temperature_c;
  if (gpu.sm_clock_mhz) object["sm_clock_mhz"] = *gpu.sm_clock_mhz;
}

}  // namespace

std::string uuid_tag(const std::string& uuid) {
  return uuid.empty() ? std::string() : base::sha256(uuid).substr(0, 8);
}

Json to_json(const Gpu& gpu, const std::map<std::string, std::string>& roles) {
  Json object = {
      {"name", gpu.name},
      {"arch", gpu.arch},
      {"tag", uuid_tag(gpu.uuid)},
      {"memory",
       {{"total", gpu.memory_total}, {"used", gpu.memory_used}, {"free", gpu.memory_free}}},
      {"processes", Json::array()}};
  name_gpu(object, gpu, roles);
  add_readings(object, gpu);
  if (gpu.mig) object["mig"] = *gpu.mig;
  for (const GpuProcess& process : gpu.processes) {
    object["processes"].push_back({{"pid", process.pid}, {"bytes", process.bytes}});
  }
  return object;
}

Json to_sample(const Gpu& gpu, const std::map<std::string, std::string>& roles) {
  Json object = {{"mem_used", gpu.memory_used}, {"mem_free", gpu.memory_free}};
  name_gpu(object, gpu, roles);
  add_readings(object, gpu);
  return object;
}

}  // namespace anvil::host
