#include "evidence/run_writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "base/hash.h"
#include "base/strings.h"
#include "evidence/artifact.h"
#include "evidence/run_reader.h"
#include "evidence/testing/synthetic_run.h"
#include "evidence/testing/temp_folder.h"
#include "evidence/verify.h"

namespace anvil::evidence {
namespace {

using testing::synthetic_frozen;
using testing::synthetic_row;
using testing::TempFolder;

const Json kOutcome{{"decision", nullptr}, {"failed_step", nullptr}};

std::vector<std::string> names(const std::string& folder) {
  return base::list_directory(folder).value_or(std::vector<std::string>());
}

TEST(RunWriter, FreezesBeforeAnythingElse) {
  TempFolder folder;
  const auto writer = RunWriter::create(folder / "runs", synthetic_frozen());
  ASSERT_TRUE(writer) << base::to_string(writer.error());
  const std::string id = (*writer)->run_id();
  EXPECT_EQ((*writer)->directory(), folder / "runs/" + id);
  EXPECT_EQ(id.substr(8, 1), "T");
  EXPECT_EQ(id.substr(15, 12), "Z-synthetic-");
  EXPECT_TRUE(base::is_hex_digest(id.substr(27), 6));
  EXPECT_EQ(names((*writer)->directory()),
            (std::vector<std::string>{"journal.jsonl", "manifest.json", "plan.json", "policy.json",
                                      "policy.toml", "recipe.json", "recipe.toml", "reserve",
                                      "suite.json", "suite.toml"}));
  EXPECT_EQ(names(folder / "runs").size(), 1u);
  const auto run = RunReader::open((*writer)->directory());
  ASSERT_TRUE(run);
  EXPECT_EQ(run->state().steps, std::vector<std::string>{"freeze"});
  EXPECT_EQ(run->manifest()["status"], "open");
  EXPECT_EQ(run->manifest()["recipe"]["role"], "candidate");
  EXPECT_EQ(run->manifest()["policy"]["digest"], synthetic_frozen().policy_digest);
  const auto journal = run->journal();
  ASSERT_TRUE(journal);
  EXPECT_EQ((*journal)[1]["data"]["fixed"]["anchor"], run->manifest()["anchor"]);
  EXPECT_EQ((*journal)[1]["data"]["files"]["policy.toml"],
            base::sha256(synthetic_frozen().policy_source));
}

TEST(RunWriter, RecipeNamesBecomeFileNames) {
  TempFolder folder;
  Frozen frozen = synthetic_frozen();
  frozen.recipe_name = "a/b ../\xc3\xa9";
  const auto writer = RunWriter::create(folder.path(), frozen);
  ASSERT_TRUE(writer);
  EXPECT_NE((*writer)->run_id().find("-a-b-..---"), std::string::npos);
  frozen.recipe_name = "";
  EXPECT_NE((*RunWriter::create(folder.path(), frozen))->run_id().find("-unnamed-"),
            std::string::npos);
}

TEST(RunWriter, RefusesAFolderThatCannotHoldEvidence) {
  TempFolder folder;
  EXPECT_FALSE(RunWriter::create("/proc/anvil-runs", synthetic_frozen()));
  ASSERT_TRUE(base::write_file_atomic(folder / "file", "x"));
  EXPECT_FALSE(RunWriter::create(folder / "file", synthetic_frozen()));
  EXPECT_EQ(names(folder.path()), std::vector<std::string>{"file"});
}

TEST(RunWriter, RefusesDigestsThatDoNotFit) {
  TempFolder folder;
  Frozen frozen = synthetic_frozen();
  frozen.policy_digest = std::string(64, '0');
  const auto writer = RunWriter::create(folder.path(), frozen);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, Kind::kInternal);
  EXPECT_TRUE(names(folder.path()).empty());
}

TEST(RunWriter, StepsMustPair) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  EXPECT_FALSE(writer->end_step("launch"));
  ASSERT_TRUE(writer->begin_step("launch"));
  EXPECT_FALSE(writer->begin_step("lanes"));
  EXPECT_FALSE(writer->end_step("lanes"));
  EXPECT_FALSE(writer->seal(kOutcome));
  ASSERT_TRUE(writer->note("pid", 7));
  ASSERT_TRUE(writer->end_step("launch", Json{{"port", 1}}));
  const Error error(Kind::kCancelled, Side::kClient, "stopped", "again");
  ASSERT_TRUE(writer->fail_step("lanes", error));  // a step may fail before it began
  const auto run = RunReader::open(writer->directory());
  const auto journal = *run->journal();
  EXPECT_EQ(journal[3]["event"], "note");
  EXPECT_EQ(journal[3]["step"], "launch");
  EXPECT_EQ(journal[3]["data"], (Json{{"what", "pid"}, {"value", 7}}));
  EXPECT_EQ(journal[5]["data"]["kind"], "cancelled");
  EXPECT_EQ(run->state().failure, "stopped (again)");
}

TEST(RunWriter, JournalLinesAreChained) {
  TempFolder folder;
  const auto directory = testing::write_synthetic_run(folder.path());
  ASSERT_TRUE(directory);
  const std::string bytes = *base::read_file(*directory + "/journal.jsonl");
  std::string prev(64, '0');
  for (const auto line : base::split(std::string_view(bytes).substr(0, bytes.size() - 1), '\n')) {
    EXPECT_EQ((*base::parse_json(line, "line"))["prev"], prev);
    prev = base::sha256(std::string(line) + "\n");
  }
  EXPECT_EQ(RunReader::open(*directory)->manifest()["journal_head"], prev);
}

TEST(RunWriter, RowsAreNumberedAcrossThreads) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(writer->append(synthetic_row({.chunks = 2})));
        ASSERT_TRUE(writer->append_sample(Json{{"mono_ns", i}}));
      }
    });
  for (auto& thread : threads) thread.join();
  int64_t next = 0;
  const auto run = RunReader::open(writer->directory());
  ASSERT_TRUE(run->for_each_row([&](const RequestRow& row) -> Result<void> {
    EXPECT_EQ(row.seq, next++);
    return {};
  }));
  EXPECT_EQ(next, 200);
}

TEST(RunWriter, DocumentsAreReplacedAsAWhole) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  ASSERT_TRUE(writer->write_document("checks.json", Json{{"a", 1}}));
  ASSERT_TRUE(writer->write_document("checks.json", Json{{"a", 2}}));
  EXPECT_EQ(*RunReader::open(writer->directory())->document("checks.json"), (Json{{"a", 2}}));
  for (const char* name : {"", "a/b", ".hidden", "manifest.json", "journal.jsonl", "reserve"})
    EXPECT_FALSE(writer->write_text(name, "x")) << name;
}

TEST(RunWriter, SealedMeansReadOnlyAndFinished) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  ASSERT_TRUE(writer->append(synthetic_row()));
  ASSERT_TRUE(writer->seal(kOutcome));
  for (const std::string& name : names(writer->directory())) {
    struct stat status {};
    ASSERT_EQ(stat((writer->directory() + "/" + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0444u) << name;
  }
  EXPECT_FALSE(base::exists(writer->directory() + "/reserve"));
  EXPECT_FALSE(writer->append(synthetic_row()));
  EXPECT_FALSE(writer->append_sample(Json::object()));
  EXPECT_FALSE(writer->write_text("x.txt", "x"));
  EXPECT_FALSE(writer->begin_step("lanes"));
  EXPECT_FALSE(writer->seal(kOutcome));
}

TEST(RunWriter, LargeFilesAreCompressedAndSplit) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  std::mt19937_64 random(1);
  const auto noise = [&](size_t size) {
    std::string out;
    while (out.size() < size) out += std::to_string(random());
    return out;
  };
  for (int i = 0; i < 60; ++i) {
    RequestRow row = synthetic_row({.chunks = 4});
    row.answer.content = noise(100'000);
    ASSERT_TRUE(writer->append(std::move(row)));
  }
  const std::string log = noise(3'000'000);  // one line without an end
  ASSERT_TRUE(writer->write_text("engine.log", log));
  ASSERT_TRUE(writer->write_text("checks.json", "\"" + std::string(2'000'000, 'a') + "\""));
  const std::string report = std::string(1'500'000, 'r');
  ASSERT_TRUE(writer->write_text("report.html", report));
  ASSERT_TRUE(writer->seal(kOutcome));

  for (const std::string& name : names(writer->directory()))
    if (name != "report.html") {
      EXPECT_LE(*base::file_size(writer->directory() + "/" + name), kLargestFile) << name;
    }
  EXPECT_FALSE(base::exists(writer->directory() + "/requests.jsonl"));
  EXPECT_TRUE(base::exists(writer->directory() + "/requests.jsonl.001.zst"));
  EXPECT_TRUE(base::exists(writer->directory() + "/checks.json.zst"));
  const auto run = RunReader::open(writer->directory());
  EXPECT_TRUE(run->has("requests.jsonl"));
  EXPECT_EQ(*run->text("engine.log"), log);
  EXPECT_EQ(*run->text("report.html"), report);
  EXPECT_EQ(run->document("checks.json")->get<std::string>().size(), 2'000'000u);
  int64_t rows = 0;
  ASSERT_TRUE(run->for_each_row([&](const RequestRow& row) -> Result<void> {
    EXPECT_EQ(row.seq, rows++);
    return {};
  }));
  EXPECT_EQ(rows, 60);

  // A part that is damaged or gone is an error, not a shorter file.
  const std::string part = writer->directory() + "/engine.log.001.zst";
  const std::string bytes = *base::read_file(part);
  testing::overwrite(part, bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(run->text("engine.log").error().kind, Kind::kTampered);
  testing::overwrite(part, "not zstd");
  EXPECT_FALSE(run->text("engine.log"));
  const auto outcome = verify(writer->directory(), nullptr);
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->ok);
}

// Order, positions and early stops.
TEST(RunReader, ManyRowsComeInOrder) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(writer->append(synthetic_row({.chunks = 1})));
  const auto run = RunReader::open(writer->directory());
  int64_t next = 0;
  ASSERT_TRUE(run->for_each_row([&](const RequestRow& row) -> Result<void> {
    EXPECT_EQ(row.seq, next++);
    return {};
  }));
  EXPECT_EQ(next, 3000);
  const auto stopped = run->for_each_row([&](const RequestRow& row) -> Result<void> {
    if (row.seq == 700) return fail(Kind::kCancelled, Side::kClient, "enough");
    return {};
  });
  EXPECT_EQ(stopped.error().detail, "enough");

  std::string bytes = *base::read_file(writer->directory() + "/requests.jsonl");
  bytes[bytes.find("{\"seq\":2000,") + 2] ^= 1;
  testing::overwrite(writer->directory() + "/requests.jsonl", bytes);
  const auto damaged = run->for_each_row([](const RequestRow&) -> Result<void> { return {}; });
  EXPECT_EQ(damaged.error().kind, Kind::kTampered);
  EXPECT_NE(damaged.error().detail.find("row 2000"), std::string::npos);
}

TEST(Artifact, Names) {
  EXPECT_EQ(artifact_name("requests.jsonl"), "requests.jsonl");
  EXPECT_EQ(artifact_name("requests.jsonl.zst"), "requests.jsonl");
  EXPECT_EQ(artifact_name("requests.jsonl.012.zst"), "requests.jsonl");
  EXPECT_EQ(artifact_name("requests.jsonl.abc.zst"), "requests.jsonl.abc");
}

TEST(RunReader, SurvivesALostOrDamagedManifest) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  const std::string manifest = writer->directory() + "/manifest.json";
  for (const char* bytes : {"", "{", "[]", "7"}) {
    testing::overwrite(manifest, bytes);
    const auto run = RunReader::open(writer->directory());
    ASSERT_TRUE(run);
    EXPECT_EQ(run->manifest()["run"], writer->run_id());
    EXPECT_EQ(run->manifest()["recipe"]["name"], "synthetic");
    EXPECT_NE(explain(run->state()).find("manifest.json cannot be read"), std::string::npos);
  }
  std::filesystem::remove(manifest);
  const auto run = RunReader::open(writer->directory());
  ASSERT_TRUE(run);
  EXPECT_NE(explain(run->state()).find("manifest.json is missing"), std::string::npos);
  testing::overwrite(writer->directory() + "/journal.jsonl", "garbage\nmore\n");
  const auto worse = RunReader::open(writer->directory());
  ASSERT_TRUE(worse);
  EXPECT_TRUE(worse->manifest()["recipe"].is_object());
  EXPECT_NE(explain(worse->state()).find("does not say how far it got"), std::string::npos);
  EXPECT_NE(explain(worse->state()).find("line 1 of journal.jsonl cannot be read"),
            std::string::npos);
}

TEST(RunReader, SaysWhatTheStateMeans) {
  TempFolder folder;
  const auto writer = *RunWriter::create(folder.path(), synthetic_frozen());
  ASSERT_TRUE(writer->begin_step("launch"));
  EXPECT_NE(explain(RunReader::open(writer->directory())->state()).find("during the step launch"),
            std::string::npos);
  ASSERT_TRUE(writer->end_step("launch"));
  ASSERT_TRUE(writer->seal(kOutcome));
  EXPECT_EQ(explain(RunReader::open(writer->directory())->state()),
            "The run is sealed: its evidence is complete.");
  Json open = RunReader::open(writer->directory())->manifest();
  open["status"] = "open";
  testing::overwrite(writer->directory() + "/manifest.json", base::pretty(open));
  EXPECT_NE(explain(RunReader::open(writer->directory())->state())
                .find("the final manifest was not written"),
            std::string::npos);
}

TEST(RunReader, LeavesAloneWhatWasNeverFrozen) {
  TempFolder folder;
  std::filesystem::create_directory(folder / ".creating-x");
  ASSERT_TRUE(base::write_file_atomic(folder / ".creating-x/manifest.json", "{}"));
  EXPECT_EQ(RunReader::open(folder / ".creating-x").error().kind, Kind::kNotFound);
  EXPECT_EQ(RunReader::open(folder.path()).error().kind, Kind::kNotFound);
  EXPECT_EQ(RunReader::open(folder / "none").error().kind, Kind::kNotFound);
}

// kill -9 at any moment: the directory is a run that explains itself, or there is none.
TEST(RunWriter, AKillLeavesARunThatExplainsItself) {
  TempFolder folder;
  for (int round = 0; round < 12; ++round) {
    const std::string runs = folder / std::to_string(round);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) (void)testing::write_synthetic_run(runs, {.lane_requests = 20, .samples = 10});
    }
    // Waits for something to be on disk, then lets the child run for a different while each round.
    while (names(runs).empty()) std::this_thread::yield();
    for (int i = 0; i < round * 4000; ++i) std::this_thread::yield();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const std::string& name : names(runs)) {
      if (name.starts_with(".")) continue;
      const auto outcome = verify(base::join_path(runs, name), testing::render_plain);
      ASSERT_TRUE(outcome);
      std::string where;
      for (const auto& one : outcome->mismatches) where += one.where + " ";
      EXPECT_TRUE(outcome->ok) << name << " " << where;
      EXPECT_FALSE(explain(RunReader::open(base::join_path(runs, name))->state()).empty());
    }
  }
}

// A tmpfs of the given size; mounting needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options)
      : mounted_(mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options) == 0) {}
  ~SmallDisk() {
    if (mounted_) umount(folder_.path().c_str());
  }
  explicit operator bool() const { return mounted_; }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
  bool mounted_;
};

TEST(RunWriter, ADiskThatFillsUpIsItselfRecorded) {
  const SmallDisk disk("size=1m");
  if (!disk) GTEST_SKIP() << "mounting a small tmpfs needs root";
  const auto writer = RunWriter::create(disk.path(), synthetic_frozen());
  ASSERT_TRUE(writer) << base::to_string(writer.error());
  ASSERT_TRUE((*writer)->begin_step("lanes"));
  Result<int64_t> appended = 0;
  int64_t rows = 0;
  while ((appended = (*writer)->append(synthetic_row({.chunks = 200})))) ++rows;
  EXPECT_EQ(appended.error().kind, Kind::kDiskFull);
  EXPECT_GT(rows, 10);
  EXPECT_EQ((*writer)->append(synthetic_row()).error().kind, Kind::kDiskFull);
  EXPECT_EQ((*writer)->append_sample(Json::object()).error().kind, Kind::kDiskFull);
  ASSERT_TRUE((*writer)->fail_step("lanes", appended.error()));
  ASSERT_TRUE((*writer)->write_document("results.json", Json::object()));

  const auto run = RunReader::open((*writer)->directory());
  EXPECT_EQ(run->state().failed_step, "lanes");
  EXPECT_TRUE(run->state().damage.empty());
  int64_t read = 0;
  EXPECT_TRUE(run->for_each_row([&](const RequestRow&) -> Result<void> {
    ++read;
    return {};
  }));
  EXPECT_EQ(read, rows);
}

TEST(RunWriter, ADocumentThatDoesNotFitTakesTheReserve) {
  const SmallDisk disk("size=1m");
  if (!disk) GTEST_SKIP() << "mounting a small tmpfs needs root";
  const auto writer = *RunWriter::create(disk.path(), synthetic_frozen());
  ASSERT_TRUE(writer->write_text("engine.log", std::string(560 << 10, 'x')));
  EXPECT_TRUE(writer->write_text("report.html", std::string(180 << 10, 'x')));
  EXPECT_FALSE(base::exists(writer->directory() + "/reserve"));
  EXPECT_EQ(writer->write_text("more.txt", std::string(500 << 10, 'x')).error().kind,
            Kind::kDiskFull);
  EXPECT_FALSE(base::exists(writer->directory() + "/more.txt"));
}

TEST(RunWriter, NoRoomForTheReserveMeansNoRun) {
  const SmallDisk disk("size=200k");
  if (!disk) GTEST_SKIP() << "mounting a small tmpfs needs root";
  const auto writer = RunWriter::create(disk.path(), synthetic_frozen());
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, Kind::kDiskFull);
  EXPECT_TRUE(names(disk.path()).empty());
}

TEST(RunWriter, AReadOnlyFolderIsRefusedBeforeAnythingIsCreated) {
  const SmallDisk disk("ro");
  if (!disk) GTEST_SKIP() << "mounting a read-only tmpfs needs root";
  const auto writer = RunWriter::create(disk.path(), synthetic_frozen());
  ASSERT_FALSE(writer);
  EXPECT_TRUE(names(disk.path()).empty());
}

}  // namespace
}  // namespace anvil::evidence
