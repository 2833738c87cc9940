#pragma once

#include <cstdint>

#include "base/result.h"
#include "measure/client.h"

namespace anvil::measure {

// What a run needs from the host and what the host has. Numbers that the system does not tell are
// 0 and judge nothing.
struct HostNeed {
  uint64_t descriptors = 0;  // at most open at once by this process, those open now included
  uint64_t ports = 0;        // local ports in use at once towards one destination
};
struct HostHas {
  uint64_t soft_descriptors = 0, hard_descriptors = 0;
  uint64_t ports = 0;
};

// Ports stay in use for a minute after a connection was closed: with Connections::kFresh the plan's
// densest minute counts. `loopback`, where the kernel lends them again at once, counts only what is
// open.
HostNeed host_need(const std::vector<Attempt>& attempts, const LoadOptions& options, bool tcp,
                   bool loopback);
HostHas host_has();

// kUnsupported, side host, with the command that raises the limit, when the host has too little.
Result<void> judge_need(const HostNeed& need, const HostHas& has);
// Raises the soft limit of open descriptors to what is needed.
Result<void> raise_descriptors(const HostNeed& need, const HostHas& has);

}  // namespace anvil::measure
