#include "host/process.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files.h"

namespace anvil::host {
namespace {

constexpr const char* kStat =
    "4242 (a (b) c) S 17 4242 4200 0 -1 4194304 100 0 0 0 250 50 7 8 20 0 3 0 987654 123456789 "
    "1000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";

TEST(ProcessTest, ParsesStat) {
  const auto process = parse_stat(kStat, 4096, 100);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->pid, 4242);
  EXPECT_EQ(process->comm, "a (b) c");
  EXPECT_EQ(process->state, 'S');
  EXPECT_EQ(process->ppid, 17);
  EXPECT_EQ(process->pgid, 4242);
  EXPECT_EQ(process->session, 4200);
  EXPECT_EQ(process->cpu, 3 * kSecond) << "250 + 50 ticks, without those of children";
  EXPECT_EQ(process->start_ticks, 987654u);
  EXPECT_EQ(process->rss_bytes, 1000u * 4096);
}

TEST(ProcessTest, RefusesTextThatIsNoStat) {
  EXPECT_FALSE(parse_stat("", 4096, 100).has_value());
  EXPECT_FALSE(parse_stat("1 (x", 4096, 100).has_value());
  EXPECT_FALSE(parse_stat("1 (x)", 4096, 100).has_value());
  EXPECT_FALSE(parse_stat(")(", 4096, 100).has_value());
  EXPECT_FALSE(parse_stat("1 (x) S 1 2 3", 4096, 100).has_value());
  EXPECT_FALSE(parse_stat("x (x)" + std::string(kStat).substr(14), 4096, 100).has_value());
  std::string text = kStat;
  text.replace(text.find("987654"), 6, "98x654");
  EXPECT_FALSE(parse_stat(text, 4096, 100).has_value());
}

TEST(ProcessTest, FindsTreesByParent) {
  const auto process = [](int pid, int ppid) {
    Process p;
    p.pid = pid;
    p.ppid = ppid;
    return p;
  };
  // 10 -> 11 -> 12, 10 -> 13; 20 -> 21; 30 and 31 are each other's parents.
  const std::vector<Process> all = {process(10, 1),  process(11, 10), process(12, 11),
                                    process(13, 10), process(20, 1),  process(21, 20),
                                    process(30, 31), process(31, 30)};
  const auto pids = [&](const std::vector<int>& roots) {
    std::vector<int> out;
    for (const Process& p : tree_of(all, roots)) out.push_back(p.pid);
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(pids({10}), (std::vector<int>{10, 11, 12, 13}));
  EXPECT_EQ(pids({11, 10, 12}), (std::vector<int>{10, 11, 12, 13})) << "each process once";
  EXPECT_EQ(pids({99}), std::vector<int>{});
  EXPECT_EQ(pids({30}), (std::vector<int>{30, 31}));
  EXPECT_EQ(pids({}), std::vector<int>{});
}

TEST(ProcessTest, ReadsThisProcess) {
  const auto self = read_process(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(self->ppid, getppid());
  EXPECT_GT(self->rss_bytes, 0u);
  EXPECT_GT(self->start_ticks, 0u);
  EXPECT_FALSE(command_line(getpid()).empty());
  EXPECT_EQ(boot_id().size(), 36u);
  EXPECT_FALSE(read_process(-1).has_value());
}

// A shell that starts `cat` in a session of its own and ends: cat lives until the pipe is closed.
class OrphanTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(hold_), 0);
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, hold_[0], 3);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (int fd : {hold_[0], hold_[1], out[0], out[1]}) {
      if (fd > 3) posix_spawn_file_actions_addclose(&actions, fd);
    }
    const std::array<const char*, 4> argv = {"sh", "-c", "setsid cat <&3 >/dev/null & echo $!",
                                             nullptr};
    const std::array<const char*, 3> envp = {"PATH=/usr/bin:/bin", kMarker, nullptr};
    pid_t shell = 0;
    ASSERT_EQ(posix_spawn(&shell, "/bin/sh", &actions, nullptr, const_cast<char**>(argv.data()),
                          const_cast<char**>(envp.data())),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    char text[32] = {};
    ASSERT_GT(read(out[0], text, sizeof text - 1), 0);
    orphan_ = std::atoi(text);
    close(out[0]);
    int status = 0;
    waitpid(shell, &status, 0);
  }
  void TearDown() override {
    close(hold_[0]);
    close(hold_[1]);
  }

  static constexpr const char* kMarker = "ANVIL_RUN_ID=process-test-7f3a";
  int hold_[2] = {-1, -1};
  int orphan_ = 0;
};

TEST_F(OrphanTest, IsFoundByItsMarker) {
  EXPECT_EQ(find_marked(kMarker), std::vector<int>{orphan_});
  EXPECT_TRUE(find_marked("ANVIL_RUN_ID=process-test").empty()) << "only whole values match";
  const std::vector<int> any = find_marked("ANVIL_RUN_ID=");
  EXPECT_NE(std::find(any.begin(), any.end(), orphan_), any.end());
  EXPECT_TRUE(find_marked("").empty());
  EXPECT_EQ(environment_value(orphan_, "ANVIL_RUN_ID"), "process-test-7f3a");
  EXPECT_EQ(environment_value(orphan_, "ANVIL_RUN"), std::nullopt);

  const std::vector<Process> tree = serve_tree({}, kMarker);
  ASSERT_EQ(tree.size(), 1u);
  EXPECT_EQ(tree[0].pid, orphan_);
  EXPECT_EQ(serve_tree({orphan_}, kMarker).size(), 1u) << "not twice";
  EXPECT_TRUE(serve_tree({}, "").empty());
}

}  // namespace
}  // namespace anvil::host
