#pragma once

#include <linux/filter.h>

#include <vector>

namespace anvil::qualify {

// The system-call filter of the sandbox, as a seccomp program: refuses sockets, new processes,
// opening anything for writing, every change of the file system, of other processes, of limits and
// of namespaces. The program that is confined is loaded under it, so execve stays allowed; without
// new processes it can only replace itself. Empty on a processor architecture that it does not
// know.
std::vector<sock_filter> system_call_filter();

// Called in a forked child, async-signal-safe. Loads the filter for this process for good, with
// no_new_privs. False (errno) when the kernel refuses.
bool load_filter(const std::vector<sock_filter>& filter);

// Called in a forked child, async-signal-safe. From now on only reading and executing below /usr
// is possible (Landlock). False when the kernel does not offer it.
bool restrict_files();

}  // namespace anvil::qualify
