#include "evidence/index.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evidence/testing/synthetic_run.h"
#include "evidence/testing/temp_folder.h"

namespace anvil::evidence {
namespace {

using testing::TempFolder;

IndexedRun run(const std::string& id, const std::string& started = "2026-11-30T17:00:00Z") {
  return {id, "/runs/" + id, "recipe", "digest", "policy", started, "sealed", "watch", ""};
}

TEST(RunIndex, PutListFind) {
  TempFolder folder;
  auto index = RunIndex::open(folder / "state/index.db", {});
  ASSERT_TRUE(index) << base::to_string(index.error());
  ASSERT_TRUE(index->put(run("20261130T170000Z-a-111111")));
  ASSERT_TRUE(index->put(run("20261130T180000Z-a-222222", "2026-11-30T18:00:00Z")));
  IndexedRun changed = run("20261130T170000Z-a-111111");
  changed.decision = "rejected";
  changed.failed_step = "launch";
  ASSERT_TRUE(index->put(changed));
  const auto all = index->list();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].run, "20261130T180000Z-a-222222");
  EXPECT_EQ((*all)[1], changed);
  EXPECT_EQ(index->find("20261130T17")->decision, "rejected");
  EXPECT_EQ(index->find("20261130T170000Z-a-111111")->run, "20261130T170000Z-a-111111");
  EXPECT_EQ(index->find("2026").error().kind, Kind::kInvalidInput);
  const auto none = index->find("20261130T170000Z-a-111112");
  EXPECT_EQ(none.error().kind, Kind::kNotFound);
  EXPECT_NE(none.error().hint.find("111111"), std::string::npos);
}

TEST(RunIndex, IsRebuiltFromTheRunDirectories) {
  TempFolder folder;
  const std::string runs = folder / "runs";
  const auto sealed = testing::write_synthetic_run(runs, {.lane_requests = 3});
  const auto cut = testing::write_synthetic_run(runs, {.lane_requests = 3, .stop_after = "checks"});
  ASSERT_TRUE(sealed && cut);
  ASSERT_TRUE(base::make_directories(runs + "/not-a-run"));
  const std::string path = folder / "index.db";
  {
    auto index = RunIndex::open(path, {runs, folder / "absent"});
    ASSERT_TRUE(index);
    ASSERT_EQ(index->list()->size(), 2u);
    EXPECT_EQ(index->find(base::base_name(*sealed))->status, "sealed");
    EXPECT_EQ(index->find(base::base_name(*sealed))->decision, "no-promotion");
    EXPECT_EQ(index->find(base::base_name(*sealed))->directory, *sealed);
    EXPECT_EQ(index->find(base::base_name(*cut))->status, "incomplete");
    ASSERT_TRUE(index->put(run("stale")));
    EXPECT_EQ(*index->reindex({runs}), 2);
    EXPECT_FALSE(index->find("stale"));
  }
  // Bytes that are no database, and a database that is damaged inside.
  testing::overwrite(path, "this is not a database, and it is long enough to be read as one");
  auto index = RunIndex::open(path, {runs});
  ASSERT_TRUE(index) << base::to_string(index.error());
  EXPECT_EQ(index->list()->size(), 2u);
  EXPECT_TRUE(base::exists(path + ".damaged"));
}

TEST(RunIndex, ADatabaseWithAnotherShapeIsRebuilt) {
  TempFolder folder;
  const std::string path = folder / "index.db";
  ASSERT_TRUE(RunIndex::open(path, {}));
  std::string bytes = *base::read_file(path);
  for (size_t i = 100; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  testing::overwrite(path, bytes);
  auto index = RunIndex::open(path, {});
  ASSERT_TRUE(index) << base::to_string(index.error());
  EXPECT_TRUE(index->list()->empty());
}

TEST(RunIndex, AFolderThatCannotBeWritten) {
  EXPECT_FALSE(RunIndex::open("/proc/anvil/index.db", {}));
}

TEST(RunIndex, SeveralProcessesAtOnce) {
  TempFolder folder;
  const std::string path = folder / "index.db";
  ASSERT_TRUE(RunIndex::open(path, {}));
  constexpr int kProcesses = 4, kRuns = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto index = RunIndex::open(path, {});
      bool good = index.has_value();
      for (int i = 0; good && i < kRuns; ++i)
        good = index->put(run(std::to_string(p) + "-" + std::to_string(i))).has_value();
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(RunIndex::open(path, {})->list()->size(), static_cast<size_t>(kProcesses * kRuns));
}

}  // namespace
}  // namespace anvil::evidence
