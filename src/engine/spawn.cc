#include "engine/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/clock.h"
#include "base/strings.h"

extern char** environ;

namespace anvil::engine {

namespace {

constexpr unsigned kCloseRangeCloexec = 4;

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The PATH that the program will see, then the folder where set-up puts engines.
std::string search_path(const SpawnRequest& request) {
  for (const auto& [name, value] : request.env) {
    if (name == "PATH") return value + ":" + base::tools_home();
  }
  const char* inherited = std::getenv("PATH");
  return std::string(inherited == nullptr ? "/usr/local/bin:/usr/bin:/bin" : inherited) + ":" +
         base::tools_home();
}

Result<std::string> locate(const SpawnRequest& request) {
  const std::string& program = request.argv[0];
  if (program.find('/') != std::string::npos) return program;
  const std::string path = search_path(request);
  for (std::string_view folder : base::split(path, ':')) {
    const std::string candidate = base::join_path(folder.empty() ? "." : folder, program);
    if (is_executable_file(candidate)) return candidate;
  }
  return fail(Kind::kNotFound, Side::kHost,
              "there is no program \"" + program + "\" on PATH or in " + base::tools_home());
}

std::vector<std::string> environment(const SpawnRequest& request) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(request.env.begin(), request.env.end(),
                                      [&](const auto& one) { return one.first == name; });
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : request.env) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const char* program, char* const* argv, char* const* envp, int in_fd,
                         int out_fd, int error_fd, int report_fd) {
  setsid();
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) sigaction(number, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(in_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
      dup2(error_fd, STDERR_FILENO) >= 0) {
    // Every descriptor of ours is close-on-exec already; libraries may have forgotten theirs.
    syscall(SYS_close_range, 3U, ~0U, kCloseRangeCloexec);
    execve(program, argv, envp);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report_fd, &error, sizeof error);
  _exit(127);
}

}  // namespace

Result<Spawned> spawn(const SpawnRequest& request) {
  if (request.argv.empty()) {
    return fail(Kind::kInvalidInput, Side::kClient, "there is no program to start");
  }
  const std::string program = TRY(locate(request));
  std::vector<std::string> args = request.argv;
  std::vector<std::string> env = environment(request);
  const std::vector<char*> argv = pointers(args);
  const std::vector<char*> envp = pointers(env);

  const base::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail(base::from_errno(errno, "open /dev/null"));
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail(base::from_errno(errno, "pipe"));
  const base::Fd report_read(report[0]);
  base::Fd report_write(report[1]);

  const pid_t pid = fork();
  if (pid < 0) return fail(base::from_errno(errno, "fork"));
  if (pid == 0) {
    become(program.c_str(), argv.data(), envp.data(), null.get(), request.stdout_fd,
           request.stderr_fd, report_write.get());
  }
  report_write.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(report_read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    waitpid(pid, nullptr, 0);
    return fail(base::from_errno(error, "execute " + program));
  }
  Spawned spawned;
  spawned.pid = pid;
  spawned.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!spawned.pidfd) {
    const int reason = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return fail(base::from_errno(reason, "pidfd_open"));
  }
  return spawned;
}

std::string output_of(const std::vector<std::string>& argv,
                      const std::vector<std::pair<std::string, std::string>>& env, int64_t limit) {
  const base::Fd sink(memfd_create("output", MFD_CLOEXEC));
  if (!sink) return {};
  const auto spawned = spawn({argv, env, sink.get(), sink.get()});
  if (!spawned) return {};
  pollfd wait = {spawned->pidfd.get(), POLLIN, 0};
  const int64_t deadline = base::mono_now() + limit;
  while (poll(&wait, 1,
              static_cast<int>(std::max<int64_t>(0, (deadline - base::mono_now()) / 1'000'000))) <
             0 &&
         errno == EINTR) {
  }
  // It leads a session and group of its own: nothing else is in there.
  kill(-spawned->pid, SIGKILL);
  waitpid(spawned->pid, nullptr, 0);
  std::string text(64 << 10, '\0');
  const ssize_t got = pread(sink.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

}  // namespace anvil::engine
