#include "measure/host_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::measure {

namespace {
// Files, pipes and logs that the program opens while a run goes on.
constexpr uint64_t kSpareDescriptors = 64;
// How long the kernel keeps a closed connection's port (TIME_WAIT).
constexpr Nanos kPortRest = 60 * kSecond;

// Attempts that start within any `span`.
uint64_t densest(std::vector<Nanos> starts, Nanos span) {
  std::sort(starts.begin(), starts.end());
  uint64_t most = 0;
  for (size_t first = 0, next = 0; next < starts.size(); ++next) {
    while (starts[next] - starts[first] >= span) ++first;
    most = std::max<uint64_t>(most, next - first + 1);
  }
  return most;
}
}  // namespace

HostNeed host_need(const std::vector<Attempt>& attempts, const LoadOptions& options, bool tcp,
                   bool loopback) {
  const auto level = static_cast<uint64_t>(std::max(options.concurrency, 1));
  // A pool is opened whole, whatever the plan needs.
  const uint64_t open = options.connections == Connections::kPool
                            ? level
                            : std::min<uint64_t>(level, attempts.size());
  HostNeed need;
  const auto now_open = base::list_directory("/proc/self/fd");
  need.descriptors = open + kSpareDescriptors + (now_open ? now_open->size() : 0) +
                     2 * static_cast<uint64_t>(std::max(options.threads, 1));
  if (!tcp) return need;
  need.ports = open;
  if (options.connections != Connections::kFresh || loopback) return need;
  std::vector<Nanos> starts;
  for (const Attempt& attempt : attempts)
    if (attempt.at) starts.push_back(*attempt.at);
  need.ports = std::max(need.ports, densest(std::move(starts), kPortRest));
  return need;
}

HostHas host_has() {
  HostHas has;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    has.soft_descriptors = limit.rlim_cur;
    has.hard_descriptors = limit.rlim_max;
  }
  const auto range = base::read_file("/proc/sys/net/ipv4/ip_local_port_range");
  if (!range) return has;
  const std::string_view text = base::trim(*range);
  const size_t gap = std::min(text.find_first_of(" \t"), text.size());
  const auto first = base::parse_int(text.substr(0, gap));
  const auto last = base::parse_int(base::trim(text.substr(gap)));
  if (first && last && *last >= *first) has.ports = static_cast<uint64_t>(*last - *first + 1);
  return has;
}

Result<void> judge_need(const HostNeed& need, const HostHas& has) {
  if (has.hard_descriptors > 0 && need.descriptors > has.hard_descriptors)
    return fail(
        Kind::kUnsupported, Side::kHost,
        "the plan needs " + std::to_string(need.descriptors) +
            " open descriptors, and the hard limit is " + std::to_string(has.hard_descriptors),
        "raise it with `sudo prlimit --pid $$ --nofile=" + std::to_string(need.descriptors) + ":" +
            std::to_string(need.descriptors) + "` in this shell, or lower the concurrency");
  if (has.ports > 0 && need.ports > has.ports)
    return fail(Kind::kUnsupported, Side::kHost,
                "the plan needs " + std::to_string(need.ports) +
                    " local ports towards one destination at once, and the host has " +
                    std::to_string(has.ports),
                "raise it with `sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, "
                "reuse connections, or lower the concurrency or the rate");
  return {};
}

Result<void> raise_descriptors(const HostNeed& need, const HostHas& has) {
  if (has.soft_descriptors == 0 || need.descriptors <= has.soft_descriptors) return {};
  const rlimit limit{need.descriptors, has.hard_descriptors};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return fail(base::from_errno(
        errno, "raise the limit of open descriptors to " + std::to_string(need.descriptors)));
  return {};
}

}  // namespace anvil::measure
