#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/strings.h"
#include "engine/process_tree.h"
#include "engine/runner.h"
#include "engine/spawn.h"
#include "engine/test_recipe.h"
#include "engine/test_server.h"
#include "net/http_call.h"

namespace anvil::engine {
namespace {

constexpr const char* kTable = R"(
schema = "anvil/interface/v1"
name = "fake"
engine = "llama.cpp"
extends = "llama.cpp"
program_hint = "how to get the fake"
[readiness]
path = "/health"
ready = 200
loading = [503]
)";

// A server with the engine's readiness endpoint. argv: port, then words:
//   deaf     ignores TERM
//   daemon   leaves a process behind that has its own session and ignores TERM
//   bare     the same without any environment
//   loading  answers 503 twice before it is ready
constexpr const char* kServer = R"(
import http.server, os, signal, sys
port, words, folder = int(sys.argv[1]), sys.argv[2:], os.path.dirname(os.path.abspath(__file__))
if "deaf" in words: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "daemon" in words or "bare" in words:
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(w, b"x")
            env = {} if "bare" in words else dict(os.environ)
            os.execve("/bin/sleep", ["sleep", "1000"], env)
        open(folder + "/daemon.pid", "w").write(str(pid))
        if "bare" in words: signal.pause()
        os._exit(0)
    os.read(r, 1)
    if "daemon" in words: os.wait()
left = [2 if "loading" in words else 0]
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(503 if left[0] > 0 else 200)
        left[0] -= 1
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print("load_model: loading model", flush=True)
print("n_slots = 2, n_ctx_slot = 4096", file=sys.stderr, flush=True)
server.serve_forever()
)";

bool alive(int pid) {
  const auto process = host::read_process(pid);
  return process && process->state != 'Z';
}

// Bounded; what it waits for is an event of another process.
bool eventually(const std::function<bool()>& condition) {
  const Nanos end = mono_now() + 60 * kSecond;
  while (!condition()) {
    if (mono_now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

class Watcher : public StartObserver {
 public:
  void spawned(const Json& description) override {
    first = description;
    if (on_spawned) on_spawned();
  }
  void phase(const Phase& phase) override { phases.push_back(phase.name); }
  void progress(Nanos, std::string_view line) override {
    last = line;
    if (on_progress) on_progress();
  }
  Json first;
  std::vector<std::string> phases;
  std::string last;
  std::function<void()> on_spawned, on_progress;
};

class ProcessRunnerTest : public testing::Test {
 protected:
  LaunchSpec spec(std::vector<std::string> argv) {
    LaunchSpec result;
    result.argv = std::move(argv);
    result.port = *net::pick_free_port();
    result.base_url = "http://127.0.0.1:" + std::to_string(result.port);
    result.log_path = base::join_path(folder_.path(), "engine.log");
    result.start_ceiling = 120 * kSecond;
    result.progress_limit = 60 * kSecond;
    result.stop_grace = 10 * kSecond;
    return result;
  }
  LaunchSpec shell(const std::string& script) { return spec({"/bin/sh", "-c", script}); }
  LaunchSpec server(const std::vector<std::string>& words = {}) {
    const std::string path = folder_.write("server.py", kServer);
    LaunchSpec result = spec({"python3", path});
    result.argv.push_back(std::to_string(result.port));
    result.argv.insert(result.argv.end(), words.begin(), words.end());
    return result;
  }
  std::unique_ptr<Runner> runner(LaunchSpec launch) {
    return make_process_runner(std::move(launch), table_, "run-" + std::to_string(getpid()));
  }
  // Starts what must fail; returns the error and keeps the failure.
  Error failing(LaunchSpec launch) {
    auto one = runner(std::move(launch));
    const auto started = one->start(watcher_, cancel_);
    EXPECT_FALSE(started);
    failure_ = one->failure().value_or(Failure{});
    description_ = one->describe();
    EXPECT_TRUE(one->pids().empty());
    const Json pid = description_["pid"];
    EXPECT_FALSE(pid.is_number() && alive(pid));
    return started ? Error{} : started.error();
  }
  std::string log() {
    return base::read_file(base::join_path(folder_.path(), "engine.log")).value_or("");
  }

  TempFolder folder_;
  InterfaceTable table_ = *InterfaceTable::parse(kTable, "fake.toml");
  Watcher watcher_;
  base::Cancel cancel_;
  Failure failure_;
  Json description_;
};

TEST_F(ProcessRunnerTest, StartsAndStops) {
  LaunchSpec launch = server({"loading"});
  const int port = launch.port;
  auto one = runner(launch);
  const auto started = one->start(watcher_, cancel_);
  ASSERT_TRUE(started) << to_string(started.error());
  EXPECT_EQ(watcher_.phases.back(), "ready");
  EXPECT_EQ(one->phases().front().name, "start");
  EXPECT_FALSE(one->ended());
  EXPECT_FALSE(one->failure());
  EXPECT_FALSE(one->pids().empty());
  EXPECT_EQ(watcher_.first["pid"], one->describe()["pid"]);
  EXPECT_EQ(watcher_.first["ready_ns"], Json());
  EXPECT_TRUE(one->describe()["ready_ns"].is_number());
  const int pid = one->describe()["pid"];
  EXPECT_EQ(getpgid(pid), pid);
  EXPECT_EQ(getsid(pid), pid);
  EXPECT_EQ(host::environment_value(pid, "ANVIL_RUN_ID"), "run-" + std::to_string(getpid()));

  const auto stopped = one->stop(cancel_);
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)["how"], "signal 15");
  EXPECT_EQ((*stopped)["port_free"], true);
  EXPECT_EQ((*stopped)["left"], Json::array());
  EXPECT_TRUE(net::port_is_free("127.0.0.1", port));
  EXPECT_FALSE(alive(pid));
  EXPECT_EQ(one->ended(), "killed by signal 15 (SIGTERM)");
  EXPECT_FALSE(one->failure());
  EXPECT_EQ(one->describe()["stop"], *stopped);
  EXPECT_EQ(*one->stop(cancel_), *stopped);
  EXPECT_NE(log().find(" o load_model: loading model\n"), std::string::npos) << log();
  EXPECT_NE(log().find(" e n_slots = 2, n_ctx_slot = 4096\n"), std::string::npos) << log();
  EXPECT_FALSE(base::exists(folder_.path() + "/engine.log.stdout"));
  EXPECT_FALSE(one->start(watcher_, cancel_));
}

TEST_F(ProcessRunnerTest, ExitsAtOnce) {
  const Error error = failing(shell("echo boom >&2; exit 3"));
  EXPECT_EQ(error.kind, Kind::kEngineExited);
  EXPECT_EQ(failure_.klass, "unclassified");
  EXPECT_EQ(failure_.line, "boom");
  EXPECT_EQ(failure_.phase, "start");
  EXPECT_NE(error.detail.find("exited with code 3"), std::string::npos);
  EXPECT_EQ(description_["failure"]["class"], "unclassified");
  EXPECT_NE(log().find(" e boom\n"), std::string::npos);
}

TEST_F(ProcessRunnerTest, ExitsDuringLoadWithACause) {
  const Error error = failing(
      shell("echo 'load_model: loading model'; echo 'cudaMalloc failed: out of memory'; exit 1"));
  EXPECT_EQ(error.kind, Kind::kEngineExited);
  EXPECT_EQ(failure_.klass, "oom_device");
  EXPECT_EQ(failure_.phase, "weights");
  EXPECT_NE(error.detail.find("oom_device: cudaMalloc failed"), std::string::npos) << error.detail;
  EXPECT_FALSE(error.hint.empty());
}

TEST_F(ProcessRunnerTest, HangsSilently) {
  LaunchSpec launch = shell("echo 'load_model: loading model'; exec sleep 1000");
  launch.progress_limit = 300 * kMillisecond;
  const Error error = failing(std::move(launch));
  EXPECT_EQ(error.kind, Kind::kEngineStuck);
  EXPECT_EQ(failure_.klass, "stuck");
  EXPECT_EQ(failure_.phase, "weights");
}

TEST_F(ProcessRunnerTest, ComputingIsProgressAndTheCeilingStillHolds) {
  LaunchSpec launch = shell("while :; do :; done");
  launch.progress_limit = 2 * kSecond;
  launch.start_ceiling = 5 * kSecond;
  EXPECT_EQ(failing(std::move(launch)).kind, Kind::kTimeout);
  EXPECT_EQ(failure_.klass, "start_ceiling");
}

TEST_F(ProcessRunnerTest, WritingIsProgressAndTheCeilingStillHolds) {
  LaunchSpec launch = shell("while :; do echo tick; sleep 0.05; done");
  launch.progress_limit = 10 * kSecond;
  launch.start_ceiling = 500 * kMillisecond;
  EXPECT_EQ(failing(std::move(launch)).kind, Kind::kTimeout);
  EXPECT_FALSE(watcher_.last.empty());
}

TEST_F(ProcessRunnerTest, KillsWhatIgnoresTerm) {
  LaunchSpec launch = server({"deaf"});
  launch.stop_grace = 50 * kMillisecond;
  auto one = runner(launch);
  ASSERT_TRUE(one->start(watcher_, cancel_));
  const auto stopped = one->stop(cancel_);
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)["how"], "killed");
  EXPECT_EQ((*stopped)["left"], Json::array());
  EXPECT_EQ((*stopped)["port_free"], true);
}

TEST_F(ProcessRunnerTest, ASecondInterruptSkipsTheGrace) {
  LaunchSpec launch = server({"deaf"});
  launch.stop_grace = 600 * kSecond;
  auto one = runner(launch);
  ASSERT_TRUE(one->start(watcher_, cancel_));
  cancel_.request();
  cancel_.request();
  EXPECT_EQ((*one->stop(cancel_))["how"], "killed");
}

class LostChildren : public ProcessRunnerTest, public testing::WithParamInterface<const char*> {};

TEST_P(LostChildren, AreFoundAndEnded) {
  LaunchSpec launch = server({GetParam()});
  launch.stop_grace = 200 * kMillisecond;
  auto one = runner(launch);
  const auto started = one->start(watcher_, cancel_);
  ASSERT_TRUE(started) << to_string(started.error());
  const auto text = base::read_file(folder_.path() + "/daemon.pid");
  ASSERT_TRUE(text);
  const int lost = static_cast<int>(*base::parse_int(*text));
  ASSERT_TRUE(alive(lost));
  EXPECT_NE(getsid(lost), getsid(one->describe()["pid"].get<int>()));
  const std::vector<int> pids = one->pids();
  EXPECT_NE(std::find(pids.begin(), pids.end(), lost), pids.end());
  const auto stopped = one->stop(cancel_);
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)["left"], Json::array());
  EXPECT_FALSE(alive(lost));
  EXPECT_FALSE(host::read_process(lost)) << "not reaped";
}
INSTANTIATE_TEST_SUITE_P(Kinds, LostChildren, testing::Values("daemon", "bare"));

TEST_F(ProcessRunnerTest, GarbageIsKeptAsItIs) {
  failing(shell("printf '\\377\\376\\001no end'; head -c 200000 /dev/zero | tr '\\0' 'x'; exit 1"));
  const std::string text = log();
  EXPECT_NE(text.find("\xff\xfe\x01no endxxx"), std::string::npos);
  EXPECT_NE(text.find(" [cut]\n"), std::string::npos);
  EXPECT_NO_THROW(description_.dump());
}

TEST_F(ProcessRunnerTest, RefusesATakenPortAndNamesItsOwner) {
  const RouteServer other{};
  LaunchSpec launch = shell("touch started");
  launch.port = other.port();
  const Error error = failing(std::move(launch));
  EXPECT_EQ(error.kind, Kind::kPortInUse);
  EXPECT_EQ(failure_.klass, "port_in_use");
  EXPECT_NE(error.detail.find(std::to_string(getpid())), std::string::npos) << error.detail;
  EXPECT_EQ(description_["pid"], Json());
}

// Answers 200 to everybody on a given port, until destroyed.
class Usurper {
 public:
  explicit Usurper(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
    thread_ = std::thread([this] {
      for (;;) {
        const base::Fd peer(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) return;
        constexpr std::string_view kReply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        char buffer[1024];
        if (recv(peer.get(), buffer, sizeof buffer, 0) > 0) {
          send(peer.get(), kReply.data(), kReply.size(), MSG_NOSIGNAL);
        }
      }
    });
  }
  ~Usurper() {
    shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  base::Fd fd_;
  std::thread thread_;
};

TEST_F(ProcessRunnerTest, AnotherServerOnThePortIsNotTheEngine) {
  LaunchSpec launch = shell("exec sleep 1000");
  std::optional<Usurper> usurper;
  watcher_.on_spawned = [&] { usurper.emplace(launch.port); };
  const Error error = failing(launch);
  EXPECT_EQ(error.kind, Kind::kPortInUse);
  EXPECT_EQ(failure_.klass, "port_foreign");
}

TEST_F(ProcessRunnerTest, KilledBySignal) {
  EXPECT_EQ(failing(shell("kill -9 $$")).kind, Kind::kEngineExited);
  EXPECT_EQ(failure_.klass, "killed");
  EXPECT_EQ(failure_.line, "killed by signal 9 (SIGKILL)");
}

TEST_F(ProcessRunnerTest, AMissingProgramSaysHowToGetIt) {
  const Error error = failing(spec({"no-such-engine-program"}));
  EXPECT_EQ(error.kind, Kind::kNotFound);
  EXPECT_EQ(error.hint, "how to get the fake");
  EXPECT_EQ(failure_.klass, "missing_program");
  EXPECT_FALSE(base::exists(folder_.path() + "/engine.log.stdout"));
}

TEST_F(ProcessRunnerTest, AFileThatCannotBeExecuted) {
  const Error error = failing(spec({folder_.write("data", "text")}));
  EXPECT_EQ(error.kind, Kind::kPermission);
  EXPECT_EQ(failure_.klass, "missing_program");
}

TEST_F(ProcessRunnerTest, CancelledDuringStart) {
  watcher_.on_progress = [&] { cancel_.request(); };
  EXPECT_EQ(failing(shell("exec sleep 1000")).kind, Kind::kCancelled);
  EXPECT_EQ(failure_.klass, "cancelled");
}

TEST_F(ProcessRunnerTest, TheDestructorLeavesNothing) {
  auto one = runner(server({"daemon", "deaf"}));
  ASSERT_TRUE(one->start(watcher_, cancel_));
  const std::vector<int> pids = one->pids();
  EXPECT_GE(pids.size(), 2u);
  one.reset();
  for (const int pid : pids) EXPECT_FALSE(alive(pid));
}

TEST_F(ProcessRunnerTest, ADeathAfterTheStartIsNoticed) {
  auto one = runner(server());
  ASSERT_TRUE(one->start(watcher_, cancel_));
  ASSERT_EQ(kill(one->describe()["pid"].get<int>(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return one->ended().has_value(); }));
  ASSERT_TRUE(one->failure());
  EXPECT_EQ(one->failure()->klass, "killed");
  EXPECT_EQ(one->failure()->phase, "ready");
  const auto stopped = one->stop(cancel_);
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)["how"], "signal 9, before it was stopped");
  EXPECT_EQ(one->describe()["failure"]["class"], "killed");
}

TEST_F(ProcessRunnerTest, SecretsReachTheEngineAndNothingElse) {
  setenv("ENGINE_TEST_SECRET", "s3cr3t", 1);
  LaunchSpec launch = shell("[ ${#TOKEN} = 6 ] && [ \"$PLAIN\" = 1 ] && echo both; exit 1");
  launch.secret_env = {{"TOKEN", "env:ENGINE_TEST_SECRET"}};
  launch.env = {{"PLAIN", "1"}};
  failing(launch);
  EXPECT_EQ(failure_.line, "both");
  EXPECT_EQ(description_.dump().find("s3cr3t"), std::string::npos);
  launch.secret_env = {{"TOKEN", "env:ENGINE_TEST_NOT_THERE"}};
  EXPECT_FALSE(runner(launch)->start(watcher_, cancel_));
  unsetenv("ENGINE_TEST_SECRET");
}

TEST_F(ProcessRunnerTest, TheVersionIsAFactOfTheStart) {
  LaunchSpec launch = shell("exit 1");
  launch.version_command = {"/bin/sh", "-c", "echo 'version: 11549 (xllamacpp 2026.10.11549)' >&2"};
  failing(launch);
  EXPECT_EQ(description_["phases"][0]["values"],
            Json::parse(R"({"program_build":11549,"program_package":"xllamacpp",
                            "program_package_version":"2026.10.11549"})"));
}

TEST_F(ProcessRunnerTest, OtherProcessesAreNeverTouched) {
  const base::Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const auto other = spawn({{"sleep", "1000"}, {}, null.get(), null.get()});
  ASSERT_TRUE(other);
  auto one = runner(server({"daemon"}));
  ASSERT_TRUE(one->start(watcher_, cancel_));
  EXPECT_TRUE(one->stop(cancel_));
  EXPECT_TRUE(alive(other->pid));
  kill(other->pid, SIGKILL);
  waitpid(other->pid, nullptr, 0);
}

TEST_F(ProcessRunnerTest, ALogThatCannotBeWrittenIsRefused) {
  LaunchSpec launch = shell("exit 0");
  launch.log_path = "/nowhere/engine.log";
  EXPECT_FALSE(runner(launch)->start(watcher_, cancel_));
}

TEST(Spawn, StandardInputIsEmptyAndSignalsAreDefault) {
  signal(SIGPIPE, SIG_IGN);
  const std::string said =
      output_of({"/bin/sh", "-c", "cat; grep SigIgn /proc/self/status"}, {}, 60 * kSecond);
  EXPECT_EQ(said, "SigIgn:\t0000000000000000\n");
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(output_of({"sleep", "1000"}, {}, 10 * kMillisecond), "");
  EXPECT_EQ(output_of({"no-such-program-at-all"}, {}, kSecond), "");
  EXPECT_EQ(output_of({"/bin/sh", "-c", "echo $A"}, {{"A", "b"}}, 60 * kSecond), "b\n");
}

TEST(ExternalRunner, WaitsForReadinessAndTouchesNothing) {
  const RouteServer server({{"GET /health", "{}"}});
  auto table = InterfaceTable::parse(kTable, "fake.toml");
  const auto one = make_external_runner(server.url(), *table);
  Watcher watcher;
  const base::Cancel cancel;
  ASSERT_TRUE(one->start(watcher, cancel));
  EXPECT_EQ(watcher.phases, std::vector<std::string>{"ready"});
  EXPECT_EQ((*one->stop(cancel))["how"], "left running");
  EXPECT_TRUE(one->pids().empty());
  EXPECT_EQ(one->describe()["runner"], "external");
  EXPECT_FALSE(one->ended());
}

TEST(ExternalRunner, NobodyThere) {
  auto table = InterfaceTable::parse(kTable, "fake.toml");
  const auto one =
      make_external_runner("http://127.0.0.1:" + std::to_string(*net::pick_free_port()), *table, 0);
  Watcher watcher;
  const base::Cancel cancel;
  const auto started = one->start(watcher, cancel);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, Kind::kConnect);
  EXPECT_EQ(one->failure()->klass, "unreachable");
}

}  // namespace
}  // namespace anvil::engine
