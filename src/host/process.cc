#include "host/process.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::host {

namespace {

uint64_t page_size() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

uint64_t ticks_per_second() {
  static const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks;
}

std::string proc_path(int pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

template <class T>
bool to_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<int> all_pids() {
  std::vector<int> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  if (!folder) return pids;
  while (const dirent* entry = readdir(folder.get())) {
    int pid = 0;
    if (to_number(std::string_view(entry->d_name), pid)) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// Calls take(entry) for every NUL-terminated entry until it returns true.
template <class Take>
void each_entry(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    if (take(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<Process> parse_stat(std::string_view text, uint64_t page_bytes, uint64_t ticks) {
  // The name stands in parentheses and may hold spaces and parentheses itself.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 > text.size() || ticks == 0) {
    return std::nullopt;
  }
  Process process;
  if (!to_number(base::trim(text.substr(0, open)), process.pid)) return std::nullopt;
  process.comm.assign(text.substr(open + 1, close - open - 1));
  // What follows begins with field 3 of proc(5).
  const std::vector<std::string_view> rest = base::split(base::trim(text.substr(close + 2)), ' ');
  const auto field = [&](size_t number) { return rest[number - 3]; };
  if (rest.size() < 24 - 3 + 1 || field(3).size() != 1) return std::nullopt;
  process.state = field(3)[0];
  uint64_t user = 0, system = 0;
  int64_t pages = 0;
  if (!to_number(field(4), process.ppid) || !to_number(field(5), process.pgid) ||
      !to_number(field(6), process.session) || !to_number(field(14), user) ||
      !to_number(field(15), system) || !to_number(field(22), process.start_ticks) ||
      !to_number(field(24), pages)) {
    return std::nullopt;
  }
  process.rss_bytes = pages > 0 ? static_cast<uint64_t>(pages) * page_bytes : 0;
  process.cpu = static_cast<Nanos>((user + system) * (uint64_t{1'000'000'000} / ticks));
  return process;
}

std::optional<Process> read_process(int pid) {
  const Result<std::string> text = base::read_file(proc_path(pid, "stat"));
  if (!text) return std::nullopt;
  return parse_stat(*text, page_size(), ticks_per_second());
}

std::vector<std::string> command_line(int pid) {
  std::vector<std::string> words;
  const Result<std::string> text = base::read_file(proc_path(pid, "cmdline"));
  if (!text) return words;
  each_entry(*text, [&](std::string_view entry) {
    words.emplace_back(entry);
    return false;
  });
  return words;
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  for (int pid : all_pids()) {
    if (std::optional<Process> process = read_process(pid)) {
      processes.push_back(std::move(*process));
    }
  }
  return processes;
}

std::vector<Process> tree_of(const std::vector<Process>& all, const std::vector<int>& roots) {
  std::unordered_multimap<int, const Process*> children;
  std::unordered_map<int, const Process*> by_pid;
  for (const Process& process : all) {
    children.emplace(process.ppid, &process);
    by_pid.emplace(process.pid, &process);
  }
  std::vector<Process> tree;
  std::set<int> seen;
  std::vector<int> open(roots.rbegin(), roots.rend());
  while (!open.empty()) {
    const int pid = open.back();
    open.pop_back();
    const auto process = by_pid.find(pid);
    if (process == by_pid.end() || !seen.insert(pid).second) continue;
    tree.push_back(*process->second);
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) open.push_back(child->second->pid);
  }
  return tree;
}

std::vector<int> find_marked(std::string_view marker) {
  std::vector<int> marked;
  if (marker.empty()) return marked;
  const bool any_value = marker.ends_with('=');
  for (int pid : all_pids()) {
    if (pid == getpid()) continue;
    const Result<std::string> environment = base::read_file(proc_path(pid, "environ"));
    if (!environment) continue;
    each_entry(*environment, [&](std::string_view entry) {
      const bool found = any_value ? entry.starts_with(marker) : entry == marker;
      if (found) marked.push_back(pid);
      return found;
    });
  }
  return marked;
}

std::optional<std::string> environment_value(int pid, std::string_view name) {
  const Result<std::string> environment = base::read_file(proc_path(pid, "environ"));
  if (!environment) return std::nullopt;
  std::optional<std::string> value;
  each_entry(*environment, [&](std::string_view entry) {
    if (entry.size() <= name.size() || !entry.starts_with(name) || entry[name.size()] != '=') {
      return false;
    }
    value.emplace(entry.substr(name.size() + 1));
    return true;
  });
  return value;
}

std::vector<Process> serve_tree(const std::vector<int>& roots, std::string_view marker) {
  std::vector<int> all_roots = roots;
  for (int pid : find_marked(marker)) all_roots.push_back(pid);
  if (all_roots.empty()) return {};
  return tree_of(all_processes(), all_roots);
}

std::string boot_id() {
  const Result<std::string> text = base::read_file("/proc/sys/kernel/random/boot_id");
  return text ? std::string(base::trim(*text)) : std::string();
}

}  // namespace anvil::host
