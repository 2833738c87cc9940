#include "qualify/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/files.h"
#include "base/strings.h"
#include "qualify/sandbox_filter.h"

namespace anvil::qualify {

namespace {

constexpr unsigned kNobody = 65534;
constexpr int kFilterFd = 3;  // where bwrap finds the system-call filter

// What the child did before it became the program; one byte on a pipe that execve closes.
enum Part : uint8_t { kNetworkNamespace = 1, kLandlock = 2, kSeccomp = 4 };

std::string first_executable(std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (access(path, X_OK) == 0) return path;
  return {};
}

Result<base::Fd> memory_file(const char* name, std::string_view bytes) {
  base::Fd fd(memfd_create(name, 0));
  if (!fd) return fail(base::from_errno(errno, std::string("memfd_create ") + name));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0) return fail(base::from_errno(errno, std::string("write to ") + name));
    done += static_cast<size_t>(n);
  }
  if (lseek(fd.get(), 0, SEEK_SET) != 0)
    return fail(base::from_errno(errno, std::string("rewind ") + name));
  return fd;
}

struct Pipe {
  base::Fd read, write;
};
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(base::from_errno(errno, "pipe"));
  return Pipe{base::Fd(ends[0]), base::Fd(ends[1])};
}

// Everything the child needs, made before the fork: between fork and execve nothing may allocate.
struct Launch {
  Isolation isolation = Isolation::kNone;
  std::vector<std::string> words;
  std::vector<char*> argv;
  std::array<char*, 4> env{const_cast<char*>("PATH=/usr/bin"), const_cast<char*>("LANG=C.UTF-8"),
                           const_cast<char*>("PYTHONHASHSEED=0"), nullptr};
  std::vector<sock_filter> filter;
  base::Fd program, filter_file;
  Pipe out, err, parts;
  SandboxLimits limits;
  bool root = false;
};

void limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// Moves `from` to descriptor `to` without the close-on-exec flag.
bool place(int from, int to) {
  if (from == to) return fcntl(to, F_SETFD, 0) == 0;
  return dup2(from, to) == to;
}

[[noreturn]] void become(const Launch& launch) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Away from the low numbers first, so that placing one does not close another.
  const int program = fcntl(launch.program.get(), F_DUPFD_CLOEXEC, 32);
  const int out = fcntl(launch.out.write.get(), F_DUPFD_CLOEXEC, 32);
  const int err = fcntl(launch.err.write.get(), F_DUPFD_CLOEXEC, 32);
  const int parts_pipe = fcntl(launch.parts.write.get(), F_DUPFD_CLOEXEC, 32);
  const int filter = launch.filter_file ? fcntl(launch.filter_file.get(), F_DUPFD_CLOEXEC, 32) : -1;
  if (!place(program, 0) || !place(out, 1) || !place(err, 2)) _exit(126);
  if (launch.isolation == Isolation::kBubblewrap && !place(filter, kFilterFd)) _exit(126);
  const unsigned first = launch.isolation == Isolation::kBubblewrap ? kFilterFd + 1 : 3;
  syscall(SYS_close_range, first, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  if (chdir("/") != 0) _exit(126);

  uint8_t parts = 0;
  if (launch.isolation == Isolation::kKernelFilter) {
    const int spaces = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    if (unshare(spaces) == 0 || unshare(CLONE_NEWUSER | spaces) == 0) parts |= kNetworkNamespace;
    if (launch.root && (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
                        setresuid(kNobody, kNobody, kNobody) != 0))
      _exit(126);
    if (restrict_files()) parts |= kLandlock;
  }
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_FSIZE, 0, 0);
  limit(RLIMIT_NOFILE, 64, 64);
  limit(RLIMIT_CPU, static_cast<rlim_t>(launch.limits.cpu_seconds),
        static_cast<rlim_t>(launch.limits.cpu_seconds + 1));
  limit(RLIMIT_AS, launch.limits.memory_bytes, launch.limits.memory_bytes);
  // bwrap needs the calls that the filter refuses and loads it itself, last.
  if (launch.isolation == Isolation::kKernelFilter && !load_filter(launch.filter)) _exit(126);
  parts |= kSeccomp;
  if (write(parts_pipe, &parts, 1) != 1) _exit(126);
  execve(launch.argv[0], launch.argv.data(), launch.env.data());
  _exit(127);
}

std::vector<std::string> python_words(const std::string& python) {
  // Isolated: no environment, no site packages, no byte code written; the program comes on stdin.
  return {python, "-I", "-S", "-B", "-"};
}

std::vector<std::string> bwrap_words(const std::string& bwrap, const std::string& python) {
  std::vector<std::string> words{bwrap,
                                 "--unshare-all",
                                 "--die-with-parent",
                                 "--new-session",
                                 "--ro-bind",
                                 "/usr",
                                 "/usr",
                                 "--symlink",
                                 "usr/lib",
                                 "/lib",
                                 "--symlink",
                                 "usr/bin",
                                 "/bin",
                                 "--proc",
                                 "/proc",
                                 "--dev",
                                 "/dev",
                                 "--chdir",
                                 "/"};
  if (base::exists("/lib64")) words.insert(words.end(), {"--symlink", "usr/lib64", "/lib64"});
  words.insert(words.end(), {"--seccomp", std::to_string(kFilterFd), "--"});
  for (std::string& word : python_words(python)) words.push_back(std::move(word));
  return words;
}

// Appends what can be read. False at the end of the stream or when there is more than `limit`.
enum class ReadState { kOpen, kEnd, kTooMuch };
ReadState drain(int fd, std::string& into, uint64_t limit_bytes) {
  char buffer[4096];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN ? ReadState::kOpen : ReadState::kEnd;
  if (n == 0) return ReadState::kEnd;
  into.append(buffer, static_cast<size_t>(n));
  if (into.size() <= limit_bytes) return ReadState::kOpen;
  into.resize(limit_bytes);
  return ReadState::kTooMuch;
}

// Follows a started child to its end, kills it when a limit or the caller says so.
void follow(pid_t pid, const Launch& launch, const base::Cancel& cancel, SandboxRun& run) {
  const Nanos deadline = mono_now() + launch.limits.wall;
  std::array<pollfd, 3> watched{pollfd{launch.out.read.get(), POLLIN, 0},
                                pollfd{launch.err.read.get(), POLLIN, 0},
                                pollfd{cancel.fd(), POLLIN, 0}};
  std::array<std::string*, 2> texts{&run.out, &run.err};
  int status = 0;
  bool ended = false;
  while (!ended && run.killed.empty()) {
    const bool open = watched[0].fd >= 0 || watched[1].fd >= 0;
    // A program that closed its output is not seen to end by poll; look at it every 10 ms.
    poll(watched.data(), watched.size(), open ? 50 : 10);
    for (size_t i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      const ReadState state = drain(watched[i].fd, *texts[i], launch.limits.output_bytes);
      if (state == ReadState::kEnd) watched[i].fd = -1;
      if (state == ReadState::kTooMuch) run.killed = "output";
    }
    if (cancel.requested()) run.killed = "cancelled";
    if (mono_now() >= deadline) run.killed = "wall";
    ended = watched[0].fd < 0 && watched[1].fd < 0 && waitpid(pid, &status, WNOHANG) == pid;
  }
  if (!ended) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  // bwrap reports the end of the program inside in the way of a shell.
  if (launch.isolation == Isolation::kBubblewrap && run.exit_code > 128 && run.exit_code < 160) {
    run.signal = run.exit_code - 128;
    run.exit_code = -1;
  }
}

}  // namespace

std::string_view name(Isolation isolation) {
  switch (isolation) {
    case Isolation::kBubblewrap:
      return "bubblewrap";
    case Isolation::kKernelFilter:
      return "kernel-filter";
    case Isolation::kNone:
      break;
  }
  return "none";
}

Sandbox Sandbox::detect() {
  Sandbox best = of_kind(Isolation::kBubblewrap);
  if (best.isolation_ != Isolation::kNone) return best;
  Sandbox second = of_kind(Isolation::kKernelFilter);
  second.why_not_.update(best.why_not_);
  return second;
}

Sandbox Sandbox::of_kind(Isolation wanted) {
  Sandbox sandbox;
  if (wanted == Isolation::kNone) return sandbox;
  const auto refuse = [&sandbox, wanted](std::string why) {
    sandbox.why_not_[std::string(qualify::name(wanted))] = std::move(why);
    sandbox.isolation_ = Isolation::kNone;
    sandbox.parts_.clear();
    return sandbox;
  };
  // Only system paths: what lies in a home folder is not visible from inside.
  sandbox.python_ = first_executable({"/usr/bin/python3", "/usr/local/bin/python3"});
  if (sandbox.python_.empty()) return refuse("there is no /usr/bin/python3");
  if (system_call_filter().empty())
    return refuse("no system-call filter for this processor architecture");
  if (wanted == Isolation::kBubblewrap) {
    sandbox.bwrap_ = first_executable({"/usr/bin/bwrap", "/usr/local/bin/bwrap"});
    if (sandbox.bwrap_.empty()) return refuse("bwrap is not installed");
  }
  sandbox.isolation_ = wanted;
  const base::Cancel never;
  const auto run = sandbox.execute("print(6 * 7)", SandboxLimits{}, never, &sandbox.parts_);
  if (!run) return refuse(run.error().detail);
  if (!run->ok() || run->out != "42\n") {
    const std::string_view said = base::trim(run->err);
    return refuse(said.empty() ? "a trivial program does not run in it"
                               : "a trivial program does not run in it: " +
                                     base::to_valid_utf8(said.substr(0, 200)));
  }
  return sandbox;
}

Json Sandbox::describe() const {
  return {{"isolation", name(isolation_)},
          {"python", isolation_ == Isolation::kNone ? Json(nullptr) : Json(python_)},
          {"parts", parts_},
          {"why_not", why_not_}};
}

Result<SandboxRun> Sandbox::run(std::string_view program, const SandboxLimits& limits,
                                const base::Cancel& cancel) const {
  return execute(program, limits, cancel, nullptr);
}

Result<SandboxRun> Sandbox::execute(std::string_view program, const SandboxLimits& limits,
                                    const base::Cancel& cancel,
                                    std::vector<std::string>* parts) const {
  if (isolation_ == Isolation::kNone)
    return fail(Kind::kUnsupported, Side::kHost, "foreign code may not be executed on this host",
                "install bubblewrap and python3");
  Launch launch;
  launch.isolation = isolation_;
  launch.limits = limits;
  launch.root = geteuid() == 0;
  launch.filter = system_call_filter();
  launch.program = TRY(memory_file("program", program));
  if (isolation_ == Isolation::kBubblewrap) {
    launch.words = bwrap_words(bwrap_, python_);
    launch.filter_file =
        TRY(memory_file("filter", {reinterpret_cast<const char*>(launch.filter.data()),
                                   launch.filter.size() * sizeof(sock_filter)}));
  } else {
    launch.words = python_words(python_);
  }
  for (std::string& word : launch.words) launch.argv.push_back(word.data());
  launch.argv.push_back(nullptr);
  launch.out = TRY(make_pipe());
  launch.err = TRY(make_pipe());
  launch.parts = TRY(make_pipe());

  SandboxRun run;
  const Nanos began = mono_now();
  const pid_t pid = fork();
  if (pid < 0) return fail(base::from_errno(errno, "fork"));
  if (pid == 0) become(launch);
  launch.out.write.reset();
  launch.err.write.reset();
  launch.parts.write.reset();
  follow(pid, launch, cancel, run);
  run.wall = mono_now() - began;

  uint8_t done = 0;
  run.started = read(launch.parts.read.get(), &done, 1) == 1 && run.exit_code != 127;
  if (parts != nullptr) {
    if (isolation_ == Isolation::kBubblewrap) *parts = {"all namespaces", "read-only /usr"};
    if (done & kNetworkNamespace) parts->push_back("network namespace");
    if (done & kLandlock) parts->push_back("landlock");
    if (done & kSeccomp) parts->push_back("seccomp");
    parts->push_back("rlimits");
  }
  return run;
}

}  // namespace anvil::qualify
