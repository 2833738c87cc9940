#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"

namespace anvil::qualify {

// What keeps foreign code in. Strongest first.
enum class Isolation {
  kBubblewrap,    // bwrap: all namespaces new, only /usr visible and read-only, system-call filter
  kKernelFilter,  // no bwrap: system-call filter, Landlock where the kernel has it, new namespaces
                  // where permitted
  kNone,          // nothing may be executed here
};
std::string_view name(Isolation isolation);  // "bubblewrap", "kernel-filter", "none"

struct SandboxLimits {
  Nanos wall = 10 * kSecond;
  int64_t cpu_seconds = 2;
  uint64_t memory_bytes = 256u << 20;
  uint64_t output_bytes = 64u << 10;  // of stdout and of stderr each; more ends the program
};

// How one program ended.
struct SandboxRun {
  bool started = false;
  int exit_code = -1;  // -1 if killed
  int signal = 0;      // the signal that ended it, 0 if none
  std::string killed;  // why we ended it: "wall", "output", "cancelled"; "" if we did not
  std::string out, err;
  Nanos wall = 0;

  bool ok() const { return started && exit_code == 0 && killed.empty(); }
};

// Runs Python text in a confined process: no network, no new processes, no file written, memory,
// CPU and output bounded, an empty environment, /usr/bin/python3 in isolated mode. Lifecycle:
// detect() once per run (it tries the kinds, strongest first, with a trivial program); run() any
// number of times. Immutable; run() blocks its thread.
class Sandbox {
 public:
  static Sandbox detect();
  // Only this kind; isolation() says kNone if the host does not permit it.
  static Sandbox of_kind(Isolation wanted);

  Isolation isolation() const { return isolation_; }
  // {"isolation","python","parts":["namespaces","read-only
  // /usr","seccomp",...],"why_not":{"bubblewrap":"..."}}
  Json describe() const;

  // kUnsupported when isolation() is kNone. A program that fails, loops or is killed is a value.
  Result<SandboxRun> run(std::string_view program, const SandboxLimits& limits,
                         const base::Cancel& cancel) const;

 private:
  // `parts` receives what the confinement consists of, if given.
  Result<SandboxRun> execute(std::string_view program, const SandboxLimits& limits,
                             const base::Cancel& cancel, std::vector<std::string>* parts) const;

  Isolation isolation_ = Isolation::kNone;
  std::string python_, bwrap_;
  std::vector<std::string> parts_;
  Json why_not_ = Json::object();
};

}  // namespace anvil::qualify
