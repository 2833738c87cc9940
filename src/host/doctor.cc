#include "host/doctor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "base/strings.h"
#include "host/snapshot.h"

namespace anvil::host {

namespace {

using Verdict = Finding::Verdict;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr Nanos kAllSockets = 600 * kMillisecond;

struct Engine {
  const char* program;
  const char* runs;
};
constexpr Engine kEngines[] = {
    {"llama-server", "llama.cpp"}, {"vllm", "vLLM"}, {"sglang", "SGLang"}};

// Collects findings; one function per subject.
class Doctor {
 public:
  explicit Doctor(const Examination& examination) : examination_(examination) {}

  std::vector<Finding> examine() {
    std::unique_ptr<GpuProbe> own;
    GpuProbe* probe = examination_.gpus;
    if (probe == nullptr) {
      own = open_nvml();
      probe = own.get();
    }
    const std::string state = either(examination_.state_folder, base::state_home());
    const std::string models = either(examination_.models_folder, base::models_home());
    const GpuInventory gpus = probe->inventory();
    SnapshotRequest request;
    request.folders = {{"state", state}, {"models", models}};
    request.gpus = probe;
    facts_ = snapshot(request);

    look_at_engines();
    look_at_containers();
    look_at_gpus(gpus);
    look_at_memory();
    look_at_shm(!gpus.gpus.empty());
    look_at_folder("state", state, kGiB, 10 * kGiB);
    look_at_folder("models", models, kGiB, 20 * kGiB);
    look_at_clock();
    look_at_limits(!gpus.gpus.empty());
    look_at_platform();
    look_at_orphans();
    return std::move(findings_);
  }

 private:
  static std::string either(const std::string& given, const std::string& otherwise) {
    return given.empty() ? otherwise : given;
  }

  void add(std::string id, Verdict verdict, std::string what, std::string remedy = {}) {
    findings_.push_back({std::move(id), verdict, std::move(what), std::move(remedy)});
  }

  std::string search_path() const {
    if (examination_.path) return *examination_.path;
    const char* path = std::getenv("PATH");
    return std::string(path == nullptr ? "" : path) + ":" + base::tools_home();
  }

  void look_at_engines() {
    const std::string path = search_path();
    bool any = false;
    for (const Engine& engine : kEngines) {
      const std::string file = find_program(path, engine.program);
      if (file.empty()) continue;
      any = true;
      add("engine." + std::string(engine.program), Verdict::kOk,
          std::string(engine.runs) + " can be started: " + file);
    }
    if (!any) {
      add("engine", Verdict::kWarn, "no llama-server, vllm or sglang on PATH",
          "run scripts/setup-engine, put an engine on PATH, use a container recipe, or point a "
          "recipe at an external engine");
    }
    const std::string python = find_program(path, "python3");
    if (python.empty()) {
      add("python", Verdict::kWarn, "no python3 on PATH",
          "install Python 3.10 or newer if an engine is to run from a Python environment");
    } else {
      add("python", Verdict::kOk, "Python is there: " + python);
    }
  }

  std::vector<std::string> container_sockets() const {
    if (!examination_.container_sockets.empty()) return examination_.container_sockets;
    std::vector<std::string> sockets;
    const auto add_once = [&](std::string path) {
      if (std::find(sockets.begin(), sockets.end(), path) == sockets.end()) {
        sockets.push_back(std::move(path));
      }
    };
    constexpr std::string_view kUnix = "unix://";
    const char* docker_host = std::getenv("DOCKER_HOST");
    if (docker_host != nullptr && std::string_view(docker_host).starts_with(kUnix)) {
      add_once(docker_host + kUnix.size());
    }
    add_once("/var/run/docker.sock");
    add_once("/run/podman/podman.sock");
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR")) {
      add_once(std::string(runtime) + "/docker.sock");
      add_once(std::string(runtime) + "/podman/podman.sock");
    }
    return sockets;
  }

  void look_at_containers() {
    using State = DaemonPing::State;
    const Nanos end = mono_now() + kAllSockets;
    bool answered = false, complained = false;
    for (const std::string& socket : container_sockets()) {
      const Nanos left = std::clamp<Nanos>(end - mono_now(), kMillisecond, kAllSockets);
      const DaemonPing ping = ping_daemon(socket, std::min(examination_.socket_deadline, left));
      switch (ping.state) {
        case State::kNoSocket:
          continue;
        case State::kOk:
          answered = true;
          add("container", Verdict::kOk,
              (ping.server.empty() ? "a container daemon" : ping.server) + " answers at " + socket +
                  (ping.api_version.empty() ? "" : ", API " + ping.api_version));
          continue;
        case State::kDenied:
          add("container", Verdict::kWarn, "no permission to use the container daemon at " + socket,
              "add this user to the group that owns the socket, or use a rootless daemon");
          break;
        case State::kRefused:
          add("container", Verdict::kWarn, "nothing listens at " + socket + " any more",
              "start the container daemon, or remove the stale socket");
          break;
        case State::kSilent:
          add("container", Verdict::kWarn, "the container daemon at " + socket + " does not answer",
              "look at the daemon's log and restart it");
          break;
        case State::kNotDaemon:
          add("container", Verdict::kWarn, "what listens at " + socket + " is no container daemon",
              "set DOCKER_HOST to the daemon's socket");
          break;
      }
      complained = true;
    }
    if (answered || complained) return;
    const std::string path = search_path();
    for (const char* cli : {"docker", "podman"}) {
      if (find_program(path, cli).empty()) continue;
      add("container", Verdict::kWarn,
          std::string(cli) + " is installed and its API socket is not there",
          std::string(cli) == "docker" ? "start the daemon: systemctl start docker"
                                       : "start the API: systemctl --user start podman.socket");
      return;
    }
    add("container", Verdict::kOk,
        "no container daemon: recipes with the docker runner do not run here");
  }

  void look_at_gpus(const GpuInventory& inventory) {
    if (inventory.gpus.empty()) {
      const bool device_files =
          base::exists("/dev/nvidiactl") || base::exists("/proc/driver/nvidia");
      if (device_files) {
        add("gpu", Verdict::kFail, "the kernel has an NVIDIA driver and " + inventory.absent,
            "make the driver's library and its kernel module the same version, and give this "
            "process access to /dev/nvidia*");
      } else {
        add("gpu", Verdict::kOk, "no GPU: " + inventory.absent + "; engines run on the CPU");
      }
      return;
    }
    for (const Gpu& gpu : inventory.gpus) {
      const std::string id = "gpu." + std::to_string(gpu.index);
      const std::string label =
          gpu.name + " (" + gpu.arch + "), " + base::format_bytes(gpu.memory_free) + " of " +
          base::format_bytes(gpu.memory_total) + " free, driver " + inventory.driver;
      if (gpu.mig.value_or(false)) {
        add(id, Verdict::kWarn, label + ", partitioned (MIG)",
            "memory and power of a partition cannot be told apart: turn MIG off for measurements");
      } else if (!gpu.processes.empty()) {
        add(id, Verdict::kWarn,
            label + ", used by " + std::to_string(gpu.processes.size()) + " process(es)",
            "stop what uses the GPU before a qualification, or its memory gates will fail");
      } else {
        add(id, Verdict::kOk, label);
      }
    }
  }

  void look_at_memory() {
    const Json& memory = facts_["memory"];
    uint64_t total = memory["total"].get<uint64_t>();
    uint64_t available = memory["available"].get<uint64_t>();
    std::string note;
    if (!memory["cgroup_limit"].is_null()) {
      const auto limit = memory["cgroup_limit"].get<uint64_t>();
      if (limit < total) note = ", limited to " + base::format_bytes(limit) + " by the cgroup";
      total = std::min(total, limit);
      available = std::min(available, limit);
    }
    const std::string what = base::format_bytes(available) + " of " +
                             base::format_bytes(memory["total"].get<uint64_t>()) +
                             " of memory available" + note;
    if (available < kGiB) {
      add("memory", Verdict::kFail, what, "free memory: even a small model needs about 1 GiB");
    } else if (available < total / 4) {
      add("memory", Verdict::kWarn, what, "stop what fills the memory before measuring");
    } else {
      add("memory", Verdict::kOk, what);
    }
  }

  void look_at_shm(bool gpus) {
    if (facts_["shm"].is_null()) {
      add("shm", Verdict::kWarn, "/dev/shm is not there", "mount a tmpfs at /dev/shm");
      return;
    }
    const auto free = facts_["shm"]["free"].get<uint64_t>();
    const std::string what = "/dev/shm has " + base::format_bytes(free) + " free";
    if (free < 64 * kMiB || (gpus && free < kGiB)) {
      add("shm", Verdict::kWarn, what,
          "engines that use several processes need more: mount -o remount,size=16g /dev/shm, or "
          "docker run --shm-size");
    } else {
      add("shm", Verdict::kOk, what);
    }
  }

  // `path` may not exist yet: then its nearest parent must be writable.
  void look_at_folder(const char* name, const std::string& path, uint64_t fail_below,
                      uint64_t warn_below) {
    const std::string id = "disk." + std::string(name);
    std::string existing = path;
    while (!base::exists(existing) && existing != base::parent_path(existing)) {
      existing = base::parent_path(existing);
    }
    if (!base::is_directory(existing) || access(existing.c_str(), W_OK | X_OK) != 0) {
      add(id, Verdict::kFail, "the " + std::string(name) + " folder " + path + " cannot be written",
          "set ANVIL_HOME to a folder that this user owns");
      return;
    }
    const Json& disk = facts_["disk"][name];
    if (disk.is_null()) {
      add(id, Verdict::kWarn, "the free space of " + path + " cannot be read", "check the mount");
      return;
    }
    const auto free = disk["free"].get<uint64_t>();
    const std::string what = "the " + std::string(name) + " folder " + path + " has " +
                             base::format_bytes(free) + " free";
    const Verdict verdict = free < fail_below   ? Verdict::kFail
                            : free < warn_below ? Verdict::kWarn
                                                : Verdict::kOk;
    add(id, verdict, what,
        verdict == Verdict::kOk ? "" : "free space there, or set ANVIL_HOME to a larger disk");
  }

  void look_at_clock() {
    const Json& source = facts_["clock"]["source"];
    const std::string name = source.is_string() ? source.get<std::string>() : "unknown";
    const bool slow =
        name == "hpet" || name == "acpi_pm" || name == "jiffies" || name == "refined-jiffies";
    if (slow) {
      add("clock.source", Verdict::kWarn,
          "the clock source is " + name + ": reading it is slow enough to disturb measurements",
          "boot with tsc=reliable if the processor's TSC is stable");
    } else {
      add("clock.source", Verdict::kOk, "the clock source is " + name);
    }
    const Json& synchronised = facts_["clock"]["synchronised"];
    if (synchronised.is_boolean() && synchronised.get<bool>()) {
      add("clock.sync", Verdict::kOk, "the wall clock is synchronised");
    } else {
      add("clock.sync", Verdict::kWarn,
          "the wall clock is not synchronised: dates of runs may be wrong (durations are not "
          "affected)",
          "timedatectl set-ntp true");
    }
  }

  void look_at_limits(bool gpus) {
    const Json& files = facts_["limits"]["nofile"];
    const Json soft = files.is_object() ? files["soft"] : Json();
    if (soft.is_number() && soft.get<uint64_t>() < 1024) {
      add("limit.nofile", Verdict::kFail,
          "only " + std::to_string(soft.get<uint64_t>()) + " files may be open", "ulimit -n 65536");
    } else if (soft.is_number() && soft.get<uint64_t>() < 4096) {
      add("limit.nofile", Verdict::kWarn,
          "only " + std::to_string(soft.get<uint64_t>()) +
              " files may be open: lanes with many connections may run out",
          "ulimit -n 65536");
    } else {
      add("limit.nofile", Verdict::kOk,
          soft.is_number() ? std::to_string(soft.get<uint64_t>()) + " files may be open"
                           : "any number of files may be open");
    }
    const Json& locked = facts_["limits"]["memlock"];
    const Json lockable = locked.is_object() ? locked["soft"] : Json();
    if (gpus && lockable.is_number() && lockable.get<uint64_t>() < 64 * kMiB) {
      add("limit.memlock", Verdict::kWarn,
          "only " + base::format_bytes(lockable.get<uint64_t>()) + " may be locked in memory",
          "ulimit -l unlimited: pinned buffers and RDMA need it");
    }
  }

  void look_at_platform() {
    const std::string kind = examination_.platform.value_or(facts_["platform"].get<std::string>());
    if (kind == "wsl2") {
      add("platform", Verdict::kWarn,
          "this is WSL2: NCCL peer-to-peer, cuMem allocation and expandable segments do not work",
          "keep NCCL_P2P_DISABLE=1, NCCL_CUMEM_ENABLE=0 and expandable_segments:False in the "
          "recipe's [platform.wsl2]; give the VM memory in .wslconfig");
    } else if (kind == "container") {
      add("platform", Verdict::kOk,
          "this is a container: limits are its own, and processes outside are not seen");
    } else {
      add("platform", Verdict::kOk, "this is a machine of its own");
    }
  }

  void look_at_orphans() {
    const Json& orphans = facts_["anvil_orphans"];
    if (orphans.empty()) return;
    std::string list;
    for (const Json& orphan : orphans) {
      list += (list.empty() ? "" : ", ") + std::to_string(orphan["pid"].get<int>()) + " (" +
              orphan["command"].get<std::string>() + ")";
    }
    add("orphans", Verdict::kWarn, "processes of a run of Anvil are alive: " + list,
        "if no run is going on, end them: their memory and ports are taken");
  }

  const Examination& examination_;
  Json facts_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name(Finding::Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    case Verdict::kFail:
      return "FAIL";
  }
  return "FAIL";
}

Json to_json(const Finding& finding) {
  return {{"id", finding.id},
          {"verdict", name(finding.verdict)},
          {"what", finding.what},
          {"remedy", finding.remedy}};
}

std::string find_program(std::string_view path, std::string_view program) {
  for (std::string_view folder : base::split(path, ':')) {
    if (folder.empty()) continue;
    const std::string file = base::join_path(folder, program);
    struct stat info = {};
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

std::vector<Finding> examine(const Examination& examination) {
  return Doctor(examination).examine();
}

}  // namespace anvil::host
