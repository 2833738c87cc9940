#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/process.h"

namespace anvil::engine {

// The processes of one serve. scan() finds, from the root process on: everything that descends from
// it, everything in its session, everything that carries the marker in its environment, and
// everything found earlier that still lives. So a child that called setsid, cleared its environment
// and lost its parent is not lost, as long as one scan saw it before. A process is named by pid and
// start time; a reused pid is never taken for it. Not thread-safe.
class ProcessTree {
 public:
  // `marker` is "NAME=value" in the environment of the serve.
  ProcessTree(int root_pid, std::string marker);

  // The processes that live now, zombies left out. Zombies of the serve that have this process as
  // their parent (it must be a child subreaper for that) are reaped, but for the root, whose exit
  // status belongs to its owner.
  const std::vector<host::Process>& scan();
  // Sends a signal to each process of the last scan; each is checked by start time first. Returns
  // how many it reached.
  int signal(int number) const;

 private:
  int root_pid_;
  std::optional<uint64_t> root_start_;
  std::string marker_;
  std::vector<host::Process> live_;
};

// Bytes that the process has read, from files or the page cache; 0 when hidden.
uint64_t bytes_read_by(int pid);
// argv joined by blanks, cut at 300 bytes; the kernel's name in brackets where there is no argv.
std::string command_of(int pid);

// Who listens on a TCP port of this host, as far as /proc shows it to this user.
struct PortOwner {
  int pid = 0;  // 0: somebody listens, but whose it is cannot be seen
  std::string command;
};
std::optional<PortOwner> port_owner(int port);
// Ports on which the process listens, smallest first.
std::vector<int> listening_ports(int pid);

}  // namespace anvil::engine
