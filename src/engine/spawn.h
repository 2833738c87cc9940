#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace anvil::engine {

struct SpawnRequest {
  std::vector<std::string> argv;  // argv[0] is looked for in PATH unless it has a slash
  std::vector<std::pair<std::string, std::string>> env;  // added to the inherited environment
  int stdout_fd = -1;
  int stderr_fd = -1;
};

struct Spawned {
  int pid = 0;
  base::Fd pidfd;  // readable once the process ended
};

// Starts a program in a session of its own: standard input is /dev/null, nothing but the two given
// descriptors is inherited, every signal is at its default. kNotFound or kPermission when it cannot
// be executed, known at once. The caller reaps it.
Result<Spawned> spawn(const SpawnRequest& request);

// What a program prints within `limit` when it is run for it (both streams, at most 64 KiB); empty
// when it cannot be run. It is killed when the limit passes.
std::string output_of(const std::vector<std::string>& argv,
                      const std::vector<std::pair<std::string, std::string>>& env, int64_t limit);

}  // namespace anvil::engine
