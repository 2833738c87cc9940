#include "engine/process_tree.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::engine {

namespace {

constexpr size_t kCommandLimit = 300;

std::string proc_path(int pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

// Files in /proc have no size: read to the end.
std::string read_proc(const std::string& path) {
  std::string text;
  const base::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char buffer[16 << 10];
  for (;;) {
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

bool is_zombie(const host::Process& process) {
  return process.state == 'Z' || process.state == 'X';
}

// Inodes of listening TCP sockets by port, from /proc/net/tcp and tcp6.
std::multimap<int, uint64_t> listening_sockets() {
  std::multimap<int, uint64_t> result;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = read_proc(path);
    bool head = true;
    for (std::string_view line : base::split(text, '\n')) {
      if (std::exchange(head, false)) continue;
      std::vector<std::string_view> words;
      for (std::string_view word : base::split(line, ' ')) {
        if (!word.empty()) words.push_back(word);
      }
      constexpr std::string_view kListening = "0A";
      if (words.size() < 10 || words[3] != kListening) continue;
      const size_t colon = words[1].rfind(':');
      if (colon == std::string_view::npos) continue;
      const int port = static_cast<int>(
          std::strtol(std::string(words[1].substr(colon + 1)).c_str(), nullptr, 16));
      const auto inode = base::parse_int(words[9]);
      if (inode && *inode > 0) result.emplace(port, static_cast<uint64_t>(*inode));
    }
  }
  return result;
}

std::set<uint64_t> socket_inodes(int pid) {
  std::set<uint64_t> inodes;
  const std::string folder = proc_path(pid, "fd");
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return inodes;
  while (const dirent* entry = readdir(directory)) {
    char target[64];
    const std::string path = folder + "/" + entry->d_name;
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    constexpr std::string_view kSocket = "socket:[";
    if (length <= 0) continue;
    const std::string_view text(target, static_cast<size_t>(length));
    if (!text.starts_with(kSocket) || !text.ends_with(']')) continue;
    const auto inode =
        base::parse_int(text.substr(kSocket.size(), text.size() - kSocket.size() - 1));
    if (inode) inodes.insert(static_cast<uint64_t>(*inode));
  }
  closedir(directory);
  return inodes;
}

}  // namespace

ProcessTree::ProcessTree(int root_pid, std::string marker)
    : root_pid_(root_pid), marker_(std::move(marker)) {
  if (const auto root = host::read_process(root_pid)) root_start_ = root->start_ticks;
}

const std::vector<host::Process>& ProcessTree::scan() {
  const std::vector<host::Process> all = host::all_processes();
  std::map<int, const host::Process*> by_pid;
  for (const host::Process& process : all) by_pid[process.pid] = &process;

  // Every process found earlier is a root of its own from now on: it may have lost its parent.
  std::set<int> ours;
  const auto root = by_pid.find(root_pid_);
  const bool root_lives = root != by_pid.end() && root->second->start_ticks == root_start_;
  std::vector<int> roots;
  if (root_lives) roots.push_back(root_pid_);
  for (const host::Process& known : live_) {
    const auto now = by_pid.find(known.pid);
    if (now != by_pid.end() && now->second->start_ticks == known.start_ticks) {
      roots.push_back(known.pid);
    }
  }
  for (const host::Process& process : all) {
    if (process.session == root_pid_ && root_start_ && process.start_ticks >= *root_start_) {
      roots.push_back(process.pid);
    }
  }
  for (const int pid : host::find_marked(marker_)) {
    if (pid != getpid()) roots.push_back(pid);
  }
  for (const host::Process& process : host::tree_of(all, roots)) ours.insert(process.pid);

  live_.clear();
  for (const int pid : ours) {
    const auto found = by_pid.find(pid);
    if (found == by_pid.end()) continue;
    const host::Process& process = *found->second;
    if (!is_zombie(process)) {
      live_.push_back(process);
    } else if (process.ppid == getpid() && pid != root_pid_) {
      waitpid(pid, nullptr, WNOHANG);
    }
  }
  return live_;
}

int ProcessTree::signal(int number) const {
  int reached = 0;
  for (const host::Process& process : live_) {
    // The descriptor pins the process, so that the check and the signal are about the same one.
    const base::Fd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    const auto now = host::read_process(process.pid);
    if (!now || now->start_ticks != process.start_ticks) continue;
    if (fd) {
      reached += syscall(SYS_pidfd_send_signal, fd.get(), number, nullptr, 0) == 0;
    } else if (errno == ENOSYS) {
      reached += kill(process.pid, number) == 0;
    }
  }
  return reached;
}

uint64_t bytes_read_by(int pid) {
  const std::string text = read_proc(proc_path(pid, "io"));
  constexpr std::string_view kName = "rchar: ";
  const size_t at = text.find(kName);
  if (at == std::string::npos) return 0;
  const std::string_view rest = std::string_view(text).substr(at + kName.size());
  return static_cast<uint64_t>(base::parse_int(rest.substr(0, rest.find('\n'))).value_or(0));
}

std::string command_of(int pid) {
  std::string text = read_proc(proc_path(pid, "cmdline"));
  if (text.empty()) {
    const auto process = host::read_process(pid);
    return process ? "[" + process->comm + "]" : "";
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  if (text.size() > kCommandLimit) text.resize(kCommandLimit);
  return base::to_valid_utf8(text);
}

std::optional<PortOwner> port_owner(int port) {
  const auto sockets = listening_sockets();
  const auto [begin, end] = sockets.equal_range(port);
  if (begin == end) return std::nullopt;
  for (const host::Process& process : host::all_processes()) {
    const std::set<uint64_t> inodes = socket_inodes(process.pid);
    for (auto socket = begin; socket != end; ++socket) {
      if (inodes.contains(socket->second)) return PortOwner{process.pid, command_of(process.pid)};
    }
  }
  return PortOwner{};
}

std::vector<int> listening_ports(int pid) {
  const std::set<uint64_t> inodes = socket_inodes(pid);
  std::set<int> ports;
  for (const auto& [port, inode] : listening_sockets()) {
    if (inodes.contains(inode)) ports.insert(port);
  }
  return {ports.begin(), ports.end()};
}

}  // namespace anvil::engine
