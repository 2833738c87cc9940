#include <dlfcn.h>

#include <algorithm>

#include "host/gpu.h"

namespace anvil::host {

namespace {

// The part of NVML's C interface that is used, as the NVML reference manual declares it. Versioned
// structures carry their size and version in the first member.
using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kTemperatureGpu = 0;  // nvmlTemperatureSensors_t
constexpr int kClockSm = 1;         // nvmlClockType_t
constexpr unsigned long long kNotAvailable = ~0ull;

struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned int kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

struct MemoryV1 {
  unsigned long long total, free, used;
};

struct ProcessInfo {  // nvmlProcessInfo_v2_t, what the _v3 functions fill
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance, compute_instance;
};

struct Functions {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*driver_version)(char*, unsigned int);
  int (*cuda_version)(int*);
  int (*count)(unsigned int*);
  int (*handle)(unsigned int, Device*);
  int (*uuid)(Device, char*, unsigned int);
  int (*name)(Device, char*, unsigned int);
  int (*capability)(Device, int*, int*);
  int (*memory_v2)(Device, MemoryV2*);
  int (*memory)(Device, MemoryV1*);
  int (*power)(Device, unsigned int*);
  int (*temperature)(Device, int, unsigned int*);
  int (*clock)(Device, int, unsigned int*);
  int (*mig_mode)(Device, unsigned int*, unsigned int*);
  int (*compute_processes)(Device, unsigned int*, ProcessInfo*);
  int (*graphics_processes)(Device, unsigned int*, ProcessInfo*);
};

template <class F>
void bind(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
}

// Calls a function that an old driver may lack.
template <class F, class... Args>
bool call(F function, Args... args) {
  return function != nullptr && function(args...) == kSuccess;
}

class Nvml final : public GpuProbe {
 public:
  Nvml() {
    // WSL2 keeps the library outside the loader's path.
    for (const char* file : {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}) {
      library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) break;
    }
    if (library_ == nullptr) {
      absent_ = "the NVIDIA driver library libnvidia-ml.so.1 is not installed";
      return;
    }
    bind_all();
    if (f_.init == nullptr || f_.count == nullptr || f_.handle == nullptr) {
      absent_ = "libnvidia-ml.so.1 lacks the functions of NVML 2";
      return;
    }
    if (const int code = f_.init(); code != kSuccess) {
      absent_ = "NVML does not start: " + error_text(code);
      return;
    }
    started_ = true;
    find_devices();
  }

  ~Nvml() override {
    if (started_ && f_.shutdown != nullptr) f_.shutdown();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  GpuInventory inventory() override {
    GpuInventory out;
    out.absent = absent_;
    if (!started_) return out;
    char text[96] = {};
    if (call(f_.driver_version, text, static_cast<unsigned int>(sizeof text))) out.driver = text;
    int cuda = 0;
    if (call(f_.cuda_version, &cuda)) {
      out.cuda_driver = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
    }
    for (size_t i = 0; i < devices_.size(); ++i) {
      Gpu gpu = fixed_[i];
      read_changing(devices_[i], gpu);
      unsigned int mig = 0, pending = 0;
      if (call(f_.mig_mode, devices_[i], &mig, &pending)) gpu.mig = mig != 0;
      add_processes(f_.compute_processes, devices_[i], gpu);
      add_processes(f_.graphics_processes, devices_[i], gpu);
      out.gpus.push_back(std::move(gpu));
    }
    return out;
  }

  std::vector<Gpu> sample() override {
    std::vector<Gpu> out;
    out.reserve(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      Gpu gpu;
      gpu.index = fixed_[i].index;
      gpu.uuid = fixed_[i].uuid;
      read_changing(devices_[i], gpu);
      out.push_back(std::move(gpu));
    }
    return out;
  }

 private:
  void bind_all() {
    bind(library_, "nvmlInit_v2", f_.init);
    bind(library_, "nvmlShutdown", f_.shutdown);
    bind(library_, "nvmlErrorString", f_.error_string);
    bind(library_, "nvmlSystemGetDriverVersion", f_.driver_version);
    bind(library_, "nvmlSystemGetCudaDriverVersion_v2", f_.cuda_version);
    bind(library_, "nvmlDeviceGetCount_v2", f_.count);
    bind(library_, "nvmlDeviceGetHandleByIndex_v2", f_.handle);
    bind(library_, "nvmlDeviceGetUUID", f_.uuid);
    bind(library_, "nvmlDeviceGetName", f_.name);
    bind(library_, "nvmlDeviceGetCudaComputeCapability", f_.capability);
    bind(library_, "nvmlDeviceGetMemoryInfo_v2", f_.memory_v2);
    bind(library_, "nvmlDeviceGetMemoryInfo", f_.memory);
    bind(library_, "nvmlDeviceGetPowerUsage", f_.power);
    bind(library_, "nvmlDeviceGetTemperature", f_.temperature);
    bind(library_, "nvmlDeviceGetClockInfo", f_.clock);
    bind(library_, "nvmlDeviceGetMigMode", f_.mig_mode);
    bind(library_, "nvmlDeviceGetComputeRunningProcesses_v3", f_.compute_processes);
    bind(library_, "nvmlDeviceGetGraphicsRunningProcesses_v3", f_.graphics_processes);
  }

  std::string error_text(int code) const {
    const char* text = f_.error_string == nullptr ? nullptr : f_.error_string(code);
    return text == nullptr ? "NVML error " + std::to_string(code) : std::string(text);
  }

  // Handles and what never changes.
  void find_devices() {
    unsigned int count = 0;
    if (const int code = f_.count(&count); code != kSuccess) {
      absent_ = "NVML cannot count the GPUs: " + error_text(code);
      return;
    }
    for (unsigned int i = 0; i < count; ++i) {
      Device device = nullptr;
      if (const int code = f_.handle(i, &device); code != kSuccess) {
        absent_ = "NVML cannot open GPU " + std::to_string(i) + ": " + error_text(code);
        continue;
      }
      Gpu gpu;
      gpu.index = static_cast<int>(i);
      char text[96] = {};
      if (call(f_.uuid, device, text, static_cast<unsigned int>(sizeof text))) gpu.uuid = text;
      if (call(f_.name, device, text, static_cast<unsigned int>(sizeof text))) gpu.name = text;
      int major = 0, minor = 0;
      if (call(f_.capability, device, &major, &minor)) {
        gpu.arch = "sm_" + std::to_string(major) + std::to_string(minor);
      }
      devices_.push_back(device);
      fixed_.push_back(std::move(gpu));
    }
    if (!devices_.empty()) {
      absent_.clear();
    } else if (absent_.empty()) {
      absent_ = "the driver is loaded and shows no GPU";
    }
  }

  void read_changing(Device device, Gpu& gpu) const {
    MemoryV2 v2 = {kMemoryV2, 0, 0, 0, 0};
    MemoryV1 v1 = {};
    if (call(f_.memory_v2, device, &v2)) {
      gpu.memory_total = v2.total;
      gpu.memory_used = v2.used;
      gpu.memory_free = v2.free;
    } else if (call(f_.memory, device, &v1)) {
      gpu.memory_total = v1.total;
      gpu.memory_used = v1.used;
      gpu.memory_free = v1.free;
    }
    unsigned int value = 0;
    if (call(f_.power, device, &value)) gpu.power_mw = value;
    if (call(f_.temperature, device, kTemperatureGpu, &value)) gpu.temperature_c = value;
    if (call(f_.clock, device, kClockSm, &value)) gpu.sm_clock_mhz = value;
  }

  // The number of processes can grow between the two calls: some room, then a second try.
  static void add_processes(int (*list)(Device, unsigned int*, ProcessInfo*), Device device,
                            Gpu& gpu) {
    if (list == nullptr) return;
    std::vector<ProcessInfo> infos(32);
    for (int attempt = 0; attempt < 3; ++attempt) {
      auto count = static_cast<unsigned int>(infos.size());
      const int code = list(device, &count, infos.data());
      if (code == kInsufficientSize) {
        infos.resize(static_cast<size_t>(count) + 32);
        continue;
      }
      if (code != kSuccess) return;
      infos.resize(std::min<size_t>(count, infos.size()));
      for (const ProcessInfo& info : infos) {
        const uint64_t bytes = info.used_memory == kNotAvailable ? 0 : info.used_memory;
        const auto same = [&](const GpuProcess& p) { return p.pid == static_cast<int>(info.pid); };
        if (std::none_of(gpu.processes.begin(), gpu.processes.end(), same)) {
          gpu.processes.push_back({static_cast<int>(info.pid), bytes});
        }
      }
      return;
    }
  }

  void* library_ = nullptr;
  Functions f_ = {};
  bool started_ = false;
  std::string absent_;
  std::vector<Device> devices_;
  std::vector<Gpu> fixed_;
};

}  // namespace

std::unique_ptr<GpuProbe> open_nvml() {
  return std::make_unique<Nvml>();
}

}  // namespace anvil::host
