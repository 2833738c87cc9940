#include "evidence/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/hash.h"
#include "base/strings.h"
#include "evidence/derive.h"
#include "evidence/testing/synthetic_run.h"
#include "evidence/testing/temp_folder.h"

namespace anvil::evidence {
namespace {

using testing::overwrite;
using testing::TempFolder;

std::string read(const std::string& path) {
  auto bytes = base::read_file(path);
  EXPECT_TRUE(bytes) << path;
  return bytes.value_or("");
}

std::string places(const Verification& outcome) {
  std::string out;
  for (const Mismatch& one : outcome.mismatches)
    out += one.where + ": " + one.recorded + " | " + one.recomputed + "\n";
  return out;
}

// One sealed run for all tests of this file; each works on a copy.
class Verify : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    original_ = new TempFolder;
    testing::SyntheticOptions options;
    options.lane_requests = 12;
    options.chunks = 8;
    options.samples = 20;
    auto written = testing::write_synthetic_run(original_->path(), options);
    ASSERT_TRUE(written) << base::to_string(written.error());
    run_ = *written;
  }
  static void TearDownTestSuite() { delete original_; }

  void SetUp() override {
    directory_ = folder_ / base::base_name(run_);
    std::filesystem::copy(run_, directory_);
  }

  std::string path(std::string_view name) const { return base::join_path(directory_, name); }
  Verification check() const {
    auto outcome = verify(directory_, testing::render_plain);
    EXPECT_TRUE(outcome) << base::to_string(outcome.error());
    return outcome.value_or(Verification{});
  }
  // The mismatch at a place, or nothing.
  static const Mismatch* find(const Verification& outcome, std::string_view where) {
    for (const Mismatch& one : outcome.mismatches)
      if (one.where == where) return &one;
    return nullptr;
  }
  // Corrects the manifest's size and hash of a file, as a forger who knows the manifest would.
  void relist(const std::string& file) {
    Json manifest = *base::parse_json(read(path("manifest.json")), "manifest");
    for (Json& artifact : manifest["artifacts"])
      if (artifact["name"] == file) {
        artifact["bytes"] = *base::file_size(path(file));
        artifact["sha256"] = *base::sha256_file(path(file));
      }
    overwrite(path("manifest.json"), base::pretty(manifest));
  }
  void edit(const std::string& file, const std::string& from, const std::string& to) {
    std::string bytes = read(path(file));
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    overwrite(path(file), bytes.replace(at, from.size(), to));
  }

  static TempFolder* original_;
  static std::string run_;
  TempFolder folder_;
  std::string directory_;
};
TempFolder* Verify::original_ = nullptr;
std::string Verify::run_;

TEST_F(Verify, AnUntouchedRunIsCompleteAndOk) {
  const Verification outcome = check();
  EXPECT_TRUE(outcome.ok) << places(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.artifacts, 20);
  EXPECT_GT(outcome.numbers, 300);
  EXPECT_EQ(outcome.rows, 2 + 3 + 3 * 13 + 9);
}

TEST_F(Verify, AFlippedByteInEachArtifactNamesIt) {
  for (const std::string& file : RunReader::open(directory_)->files()) {
    const std::string before = read(path(file));
    std::mt19937 random(static_cast<unsigned>(before.size()));
    for (int i = 0; i < 4; ++i) {
      std::string damaged = before;
      const size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 7)));
      overwrite(path(file), damaged);
      const auto outcome = verify(directory_, testing::render_plain);
      ASSERT_TRUE(outcome) << file;
      EXPECT_FALSE(outcome->ok) << file << " byte " << at;
      bool named = false;
      for (const Mismatch& one : outcome->mismatches) named = named || one.where.starts_with(file);
      EXPECT_TRUE(named) << file << " byte " << at << "\n" << places(*outcome);
    }
    overwrite(path(file), before);
  }
  EXPECT_TRUE(check().ok);
}

TEST_F(Verify, EveryByteOfTheManifestCounts) {
  const std::string before = read(path("manifest.json"));
  for (size_t at = 0; at < before.size(); at += 17) {
    std::string damaged = before;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    overwrite(path("manifest.json"), damaged);
    const auto outcome = verify(directory_, nullptr);
    ASSERT_TRUE(outcome);
    EXPECT_FALSE(outcome->ok) << "byte " << at << ": " << before.substr(at, 20);
  }
}

TEST_F(Verify, AChangedNumberInTheResults) {
  Json results = *base::parse_json(read(path("results.json")), "results");
  const Json before = results["lanes"][1]["ttfo_ms"]["p50"];
  results["lanes"][1]["ttfo_ms"]["p50"] = 1.5;
  overwrite(path("results.json"), base::pretty(results));
  relist("results.json");
  const Verification outcome = check();
  EXPECT_FALSE(outcome.ok);
  const Mismatch* found = find(outcome, "results.json#/lanes/1/ttfo_ms/p50");
  ASSERT_TRUE(found) << places(outcome);
  EXPECT_EQ(found->recorded, "1.5");
  EXPECT_EQ(found->recomputed, base::canonical(before));
}

TEST_F(Verify, AChangedVerdictInTheDecision) {
  Json decision = *base::parse_json(read(path("decision.json")), "decision");
  decision["gates"][4]["verdict"] = "pass";
  decision["gates"][4]["value"] = 0;
  overwrite(path("decision.json"), base::pretty(decision));
  relist("decision.json");
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "decision.json#/gates/4/verdict")) << places(outcome);
  EXPECT_TRUE(find(outcome, "decision.json#/gates/4/value"));
}

TEST_F(Verify, ARemovedRow) {
  auto lines = read(path("requests.jsonl"));
  const size_t first = lines.find('\n') + 1;
  lines.erase(first, lines.find('\n', first) + 1 - first);
  overwrite(path("requests.jsonl"), lines);
  relist("requests.jsonl");
  const Verification outcome = check();
  const Mismatch* found = find(outcome, "requests.jsonl#/1/seq");
  ASSERT_TRUE(found) << places(outcome);
  EXPECT_EQ(found->recorded, "2");
  EXPECT_EQ(found->recomputed, "1");
  EXPECT_TRUE(find(outcome, "requests.jsonl#"));
  // Only the place of the gap is named, not every row after it.
  EXPECT_FALSE(find(outcome, "requests.jsonl#/2/seq"));
}

TEST_F(Verify, TheLastRowRemoved) {
  auto lines = read(path("requests.jsonl"));
  lines.erase(lines.find_last_of('\n', lines.size() - 2) + 1);
  overwrite(path("requests.jsonl"), lines);
  relist("requests.jsonl");
  const Verification outcome = check();
  EXPECT_NE(places(outcome).find("requests.jsonl#: 53 rows | 52 rows"), std::string::npos)
      << places(outcome);
  EXPECT_TRUE(find(outcome, "results.json#/requests/total"));
}

TEST_F(Verify, ARowEditedWithoutItsSeal) {
  edit("requests.jsonl", "\"first_output\":", "\"first_visible\":");
  relist("requests.jsonl");
  const Verification outcome = check();
  const Mismatch* found = find(outcome, "requests.jsonl#/0");
  ASSERT_TRUE(found) << places(outcome);
  EXPECT_NE(found->recomputed.find("row_sha"), std::string::npos);
}

TEST_F(Verify, AReorderedJournal) {
  const std::string bytes = read(path("journal.jsonl"));
  auto lines = base::split(std::string_view(bytes).substr(0, bytes.size() - 1), '\n');
  std::swap(lines[4], lines[5]);
  std::string swapped;
  for (const auto line : lines) swapped += std::string(line) + "\n";
  overwrite(path("journal.jsonl"), swapped);
  relist("journal.jsonl");
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "journal.jsonl#/4/seq")) << places(outcome);
  EXPECT_TRUE(find(outcome, "journal.jsonl#/4/prev"));
  EXPECT_TRUE(find(outcome, "journal.jsonl#/5/seq"));
}

TEST_F(Verify, AnEditedJournalLineBreaksTheChainAfterIt) {
  edit("journal.jsonl", "\"step\":\"lanes\"", "\"step\":\"Lanes\"");
  relist("journal.jsonl");
  const Verification outcome = check();
  EXPECT_FALSE(outcome.ok);
  EXPECT_TRUE(find(outcome, "journal.jsonl#/15/prev")) << places(outcome);
}

TEST_F(Verify, TheLastJournalLineRemoved) {
  auto lines = read(path("journal.jsonl"));
  lines.erase(lines.find_last_of('\n', lines.size() - 2) + 1);
  overwrite(path("journal.jsonl"), lines);
  relist("journal.jsonl");
  EXPECT_TRUE(find(check(), "manifest.json#/journal_head"));
}

// The weaker policy is put in place with every hash of the manifest corrected.
TEST_F(Verify, ASwappedPolicy) {
  Json policy = *base::parse_json(read(path("policy.json")), "policy");
  policy["gates"][4]["threshold"] = 99;
  const std::string digest = base::sha256(base::canonical(policy));
  overwrite(path("policy.json"), base::pretty(policy));
  relist("policy.json");
  Json manifest = *base::parse_json(read(path("manifest.json")), "manifest");
  manifest["policy"]["digest"] = digest;
  overwrite(path("manifest.json"), base::pretty(manifest));
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "policy.json#")) << places(outcome);
  EXPECT_TRUE(find(outcome, "manifest.json#/policy/digest"));
  EXPECT_TRUE(find(outcome, "decision.json#/policy_digest"));
  EXPECT_TRUE(find(outcome, "decision.json#/gates/4/threshold"));

  overwrite(path("policy.toml"), "weaker");
  relist("policy.toml");
  EXPECT_TRUE(find(check(), "policy.toml#"));
}

TEST_F(Verify, AMissingAndAnExtraFile) {
  std::filesystem::remove(path("samples.jsonl"));
  overwrite(path("notes.txt"), "hello");
  const Verification outcome = check();
  const Mismatch* missing = find(outcome, "samples.jsonl");
  ASSERT_TRUE(missing) << places(outcome);
  EXPECT_EQ(missing->recomputed, "missing");
  const Mismatch* extra = find(outcome, "notes.txt");
  ASSERT_TRUE(extra);
  EXPECT_EQ(extra->recorded, "not in the manifest");
}

TEST_F(Verify, AManifestThatListsOddFiles) {
  Json manifest = *base::parse_json(read(path("manifest.json")), "manifest");
  manifest["artifacts"].push_back(manifest["artifacts"][0]);
  manifest["artifacts"].push_back(Json{{"name", "../x"}});
  manifest["artifacts"].push_back(7);
  overwrite(path("manifest.json"), base::pretty(manifest));
  EXPECT_FALSE(check().ok);
}

// The journal knows the hashes too, so a manifest that was corrected to fit a changed file is not
// believed, and a manifest that was changed alone is named itself.
TEST_F(Verify, TheJournalTellsFileFromManifest) {
  edit("engine.log", "block 7", "block 9");
  relist("engine.log");
  EXPECT_TRUE(find(check(), "engine.log#"));

  std::filesystem::remove(path("samples.jsonl"));
  Json manifest = *base::parse_json(read(path("manifest.json")), "manifest");
  Json& artifacts = manifest["artifacts"];
  for (size_t i = 0; i < artifacts.size(); ++i)
    if (artifacts[i]["name"] == "samples.jsonl") artifacts.erase(i--);
  artifacts[0]["sha256"] = std::string(64, '0');
  artifacts[1]["bytes"] = 1;
  overwrite(path("manifest.json"), base::pretty(manifest));
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "manifest.json#/artifacts")) << places(outcome);
  EXPECT_TRUE(find(outcome, "manifest.json#/artifacts/0/sha256"));
  EXPECT_TRUE(find(outcome, "manifest.json#/artifacts/1/bytes"));
  EXPECT_TRUE(find(outcome, "samples.jsonl#"));
}

TEST_F(Verify, AnotherOutcomeInTheManifest) {
  edit("manifest.json", "\"decision\": \"watch\"", "\"decision\": \"promote-eligible\"");
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "manifest.json#/outcome/decision")) << places(outcome);
}

TEST_F(Verify, AnotherReport) {
  edit("report.html", "<title>run", "<title>Run");
  relist("report.html");
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "report.html#byte=22")) << places(outcome);
}

TEST_F(Verify, AnotherFormOfResultsIsOneDifference) {
  edit("results.json", "anvil/results/v", "anvil/results/v9");
  const Verification outcome = check();
  EXPECT_TRUE(find(outcome, "results.json#/schema")) << places(outcome);
  EXPECT_FALSE(outcome.ok);
}

// What another build wrote may look different without being wrong; nobody is told that it agrees.
TEST(VerifyOtherBuild, ItsReportIsNotCompared) {
  const TempFolder folder;
  const auto directory = testing::write_synthetic_run(folder.path(), {.build = "0123456789abcdef"});
  ASSERT_TRUE(directory);
  const auto same = verify(*directory, testing::render_plain);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->ok);
  EXPECT_TRUE(same->not_compared.empty());
  const auto other = verify(*directory, [](const RunReader&) -> Result<std::string> {
    return std::string("<title>drawn in another way</title>");
  });
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->ok);
  ASSERT_EQ(other->not_compared.size(), 1U);
  EXPECT_NE(other->not_compared[0].find("0123456789abcdef"), std::string::npos);
}

TEST_F(Verify, AReportThatCannotBeRendered) {
  const auto outcome = verify(directory_, [](const RunReader&) -> Result<std::string> {
    return fail(Kind::kInternal, Side::kInternal, "no");
  });
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(find(*outcome, "report.html#"));
}

TEST_F(Verify, AnUnsealedManifestIsIncompleteNeverComplete) {
  edit("manifest.json", "\"status\": \"sealed\"", "\"status\": \"open\"");
  const Verification outcome = check();
  EXPECT_FALSE(outcome.complete);
  EXPECT_FALSE(outcome.ok);
}

TEST_F(Verify, NotARunAtAll) {
  TempFolder empty;
  EXPECT_EQ(verify(empty.path(), nullptr).error().kind, Kind::kNotFound);
  EXPECT_EQ(verify(empty / "absent", nullptr).error().kind, Kind::kNotFound);
}

// Whatever is cut off anywhere, nothing throws, and the run is never complete and ok.
TEST_F(Verify, AnyTruncationIsNoticed) {
  std::mt19937 random(7);
  const std::vector<std::string> files = RunReader::open(directory_)->files();
  for (int round = 0; round < 60; ++round) {
    const std::string& file = files[random() % files.size()];
    const std::string before = read(path(file));
    const size_t keep = random() % before.size();
    overwrite(path(file), before.substr(0, keep));
    const auto outcome = verify(directory_, testing::render_plain);
    if (outcome) {
      EXPECT_FALSE(outcome->ok && outcome->complete) << file << " cut to " << keep;
    }
    const auto run = RunReader::open(directory_);
    ASSERT_TRUE(run);
    EXPECT_FALSE(explain(run->state()).empty());
    overwrite(path(file), before);
  }
  EXPECT_TRUE(check().ok);
}

// A crash after each step: what is there is consistent, and the run says how far it came.
TEST(VerifyIncomplete, AfterEachStep) {
  for (const char* step : {"freeze", "preflight", "snapshot", "launch", "identity", "fingerprint",
                           "checks", "lanes", "ladder", "stop", "derive", "decide", "report"}) {
    TempFolder folder;
    testing::SyntheticOptions options;
    options.lane_requests = 3;
    options.chunks = 4;
    options.samples = 3;
    options.stop_after = step;
    const auto directory = testing::write_synthetic_run(folder.path(), options);
    ASSERT_TRUE(directory) << step;
    const auto run = RunReader::open(*directory);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->state().last_step, step);
    EXPECT_TRUE(run->state().last_step_ended);
    EXPECT_EQ(run->state().status, RunState::Status::kIncomplete);
    EXPECT_NE(explain(run->state()).find(std::string("after the step ") + step), std::string::npos);
    const auto outcome = verify(*directory, testing::render_plain);
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->ok) << step << "\n" << places(*outcome);
    EXPECT_FALSE(outcome->complete);
  }
}

// A crash in the middle of a write leaves a torn last line.
TEST(VerifyIncomplete, TornLastLines) {
  TempFolder folder;
  testing::SyntheticOptions options;
  options.lane_requests = 3;
  options.stop_after = "stop";
  const auto directory = testing::write_synthetic_run(folder.path(), options);
  ASSERT_TRUE(directory);
  for (const char* file : {"requests.jsonl", "samples.jsonl", "journal.jsonl"}) {
    const std::string path = base::join_path(*directory, file);
    const std::string before = read(path);
    for (const size_t cut : {size_t{1}, size_t{20}, size_t{60}}) {
      overwrite(path, before.substr(0, before.size() - cut));
      const auto run = RunReader::open(*directory);
      ASSERT_TRUE(run);
      EXPECT_NE(explain(run->state()).find(std::string("the last line of ") + file),
                std::string::npos);
      const auto outcome = verify(*directory, nullptr);
      ASSERT_TRUE(outcome);
      EXPECT_TRUE(outcome->ok) << file << places(*outcome);
      EXPECT_FALSE(outcome->complete);
    }
    overwrite(path, before);
  }
}

TEST(VerifyIncomplete, AFailedStartIsCompleteEvidenceOfARejection) {
  TempFolder folder;
  testing::SyntheticOptions options;
  options.fail_step = "launch";
  const auto directory = testing::write_synthetic_run(folder.path(), options);
  ASSERT_TRUE(directory) << base::to_string(directory.error());
  const auto outcome = verify(*directory, testing::render_plain);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->ok) << places(*outcome);
  EXPECT_TRUE(outcome->complete);
  const auto run = RunReader::open(*directory);
  const Json decision = *run->document("decision.json");
  EXPECT_EQ(decision["decision"], "rejected");
  EXPECT_EQ(decision["failed_step"], (Json{{"step", "launch"},
                                           {"kind", "engine_exited"},
                                           {"class", "port_in_use"},
                                           {"detail", "the engine exited with status 1"}}));
  EXPECT_EQ(run->state().failed_step, "launch");
  EXPECT_NE(explain(run->state()).find("The step launch failed"), std::string::npos);
}

}  // namespace
}  // namespace anvil::evidence
