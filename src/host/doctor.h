#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "host/gpu.h"

namespace anvil::host {

struct Finding {
  enum class Verdict { kOk, kWarn, kFail };
  std::string id;  // "engine.llama-server", "container.docker", "gpu", "memory", ...
  Verdict verdict = Verdict::kOk;
  std::string what;    // what was seen, one sentence
  std::string remedy;  // what to do; empty when OK
};
std::string_view name(Finding::Verdict verdict);  // "OK", "WARN", "FAIL"
Json to_json(const Finding& finding);             // {"id","verdict","what","remedy"}

// Where to look. Defaults describe this host; tests point elsewhere.
struct Examination {
  std::optional<std::string> path;             // instead of $PATH
  std::vector<std::string> container_sockets;  // instead of the well-known ones
  std::string state_folder, models_folder;     // default: base::state_home(), base::models_home()
  GpuProbe* gpus = nullptr;                    // null: open NVML
  std::optional<std::string> platform;         // instead of detection
  Nanos socket_deadline = 200 * kMillisecond;  // for each container socket
};

// Looks at everything that a qualification needs from this host, needs no privilege, changes
// nothing and ends within a second.
std::vector<Finding> examine(const Examination& examination = {});

// Asks a container daemon on a unix socket for GET /_ping.
struct DaemonPing {
  enum class State { kNoSocket, kRefused, kDenied, kSilent, kNotDaemon, kOk };
  State state = State::kNoSocket;
  std::string api_version;  // of the Api-Version header
  std::string server;       // "Docker", "Libpod"
};
DaemonPing ping_daemon(const std::string& socket_path, Nanos deadline);

// First executable file of that name in a PATH-like list; "" if none.
std::string find_program(std::string_view path, std::string_view program);

}  // namespace anvil::host
