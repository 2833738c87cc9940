#include "engine/orphans.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/process_tree.h"
#include "engine/spawn.h"
#include "engine/test_recipe.h"
#include "engine/test_server.h"

namespace anvil::engine {
namespace {

// A sleeping process that ends with the test.
class Sleeper {
 public:
  explicit Sleeper(std::vector<std::pair<std::string, std::string>> env) {
    const base::Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto spawned = spawn({{"sleep", "1000"}, std::move(env), null.get(), null.get()});
    EXPECT_TRUE(spawned);
    pid_ = spawned ? spawned->pid : -1;
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  int pid() const { return pid_; }
  uint64_t start() const { return host::read_process(pid_)->start_ticks; }

 private:
  int pid_;
};

std::string run_name(const char* what) {
  return std::string("orphan-test-") + what + "-" + std::to_string(getpid());
}

std::vector<Orphan> of_run(const std::string& run, const std::string& runs_dir,
                           const std::string& except = "") {
  std::vector<Orphan> result;
  for (const Orphan& orphan : find_orphans(runs_dir, except)) {
    if (orphan.run == run) result.push_back(orphan);
  }
  return result;
}

TEST(Orphans, AreFoundByTheirMarker) {
  const TempFolder runs;
  const std::string run = run_name("marker");
  const Sleeper engine({{"ANVIL_RUN_ID", run}, {"ANVIL_OWNER", "999999999:1"}});
  const auto found = of_run(run, runs.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, engine.pid());
  EXPECT_EQ(found[0].command, "sleep 1000");
  EXPECT_TRUE(found[0].root);
  EXPECT_EQ(to_json(found[0])["port"], Json());
  EXPECT_TRUE(of_run(run, runs.path(), run).empty());
}

TEST(Orphans, AnEngineWhoseOwnerLivesIsNone) {
  const TempFolder runs;
  const std::string run = run_name("owned");
  const auto self = host::read_process(getpid());
  const Sleeper engine(
      {{"ANVIL_RUN_ID", run},
       {"ANVIL_OWNER", std::to_string(getpid()) + ":" + std::to_string(self->start_ticks)}});
  EXPECT_TRUE(of_run(run, runs.path()).empty());
}

TEST(Orphans, AreFoundByTheirLaunch) {
  const TempFolder runs;
  const std::string run = run_name("launch");
  const Sleeper engine({});
  const auto write = [&](Json changes) {
    Json launch = {{"run", run},
                   {"pid", engine.pid()},
                   {"pid_start", engine.start()},
                   {"boot_id", host::boot_id()},
                   {"owner", "999999999:1"},
                   {"spec", {{"port", 18080}}}};
    launch.update(changes);
    ASSERT_TRUE(base::make_directories(runs.path() + "/" + run));
    runs.write(run + "/launch.json", launch.dump());
  };
  write(Json::object());
  const auto found = of_run(run, runs.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, engine.pid());
  EXPECT_EQ(found[0].port, 18080);
  write({{"pid_start", engine.start() + 1}});
  EXPECT_TRUE(of_run(run, runs.path()).empty()) << "a reused pid";
  write({{"boot_id", "another"}});
  EXPECT_TRUE(of_run(run, runs.path()).empty()) << "another boot";
  write({{"pid", "text"}});
  EXPECT_TRUE(of_run(run, runs.path()).empty()) << "a damaged file";
}

TEST(Ports, TheOwnerIsNamed) {
  const RouteServer server{};
  const auto owner = port_owner(server.port());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, getpid());
  EXPECT_NE(owner->command.find("engine_test"), std::string::npos);
  const auto ports = listening_ports(getpid());
  EXPECT_NE(std::find(ports.begin(), ports.end(), server.port()), ports.end());
}

}  // namespace
}  // namespace anvil::engine
