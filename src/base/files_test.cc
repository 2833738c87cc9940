#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/version.h"

namespace anvil::base {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/anvil-files-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(std::string_view name) const { return join_path(folder_, name); }
  std::string folder_;
};

TEST_F(FilesTest, AtomicWriteReplacesTheWholeAndLeavesNothingBeside) {
  ASSERT_TRUE(write_file_atomic(path("a"), "first, longer"));
  ASSERT_TRUE(write_file_atomic(path("a"), "second"));
  EXPECT_EQ(read_file(path("a")).value(), "second");
  EXPECT_EQ(list_directory(folder_).value(), std::vector<std::string>{"a"});
}

TEST_F(FilesTest, AtomicWriteIntoNowhereSaysWhereAndLeavesNothing) {
  const auto done = write_file_atomic(path("missing/a"), "x");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::kNotFound);
  EXPECT_NE(done.error().detail.find("missing/a"), std::string::npos);
}

TEST_F(FilesTest, ReadRefusesFoldersDevicesAndTooMuch) {
  EXPECT_EQ(read_file(folder_).error().kind, Kind::kInvalidInput);
  EXPECT_EQ(read_file("/dev/zero").error().kind, Kind::kInvalidInput);
  ASSERT_TRUE(write_file_atomic(path("big"), std::string(101, 'x')));
  EXPECT_EQ(read_file(path("big"), 100).error().kind, Kind::kTooLarge);
  EXPECT_EQ(read_file(path("big"), 101).value().size(), 101u);
  EXPECT_EQ(read_file(path("absent")).error().kind, Kind::kNotFound);
}

TEST_F(FilesTest, ReadsFilesThatClaimNoSize) {
  EXPECT_FALSE(read_file("/proc/self/stat").value().empty());
}

TEST_F(FilesTest, AppendContinuesAnExistingFile) {
  ASSERT_TRUE(AppendFile::open(path("log")).value().append("one\n"));
  auto file = AppendFile::open(path("log")).value();
  EXPECT_EQ(file.size(), 4u);
  ASSERT_TRUE(file.append("two\n"));
  ASSERT_TRUE(file.sync());
  EXPECT_EQ(read_file(path("log")).value(), "one\ntwo\n");
}

TEST_F(FilesTest, ProveWritableLeavesNothing) {
  ASSERT_TRUE(prove_writable(folder_));
  EXPECT_TRUE(list_directory(folder_).value().empty());
  EXPECT_FALSE(prove_writable(path("absent")));
}

TEST_F(FilesTest, AFullDeviceIsNamedAsSuch) {
  auto full = AppendFile::open("/dev/full");
  ASSERT_TRUE(full);
  const auto done = full->append("x");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::kDiskFull);
}

TEST(Paths, JoinAndSplit) {
  EXPECT_EQ(join_path("/a/", "b"), "/a/b");
  EXPECT_EQ(join_path("/a", "/b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(base_name("/a/b/"), "b");
}

TEST(Hash, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(is_hex_digest(sha256("abc")));
  EXPECT_FALSE(is_hex_digest("ABC", 3));
  EXPECT_NE(random_hex(8), random_hex(8));
}

TEST(Clock, FormatsUtc) {
  EXPECT_EQ(utc(1'796'059'247ll * kSecond), "2026-11-30T17:20:47Z");
  EXPECT_EQ(utc_compact(1'796'059'247ll * kSecond), "20261130T172047Z");
  EXPECT_GT(wall_anchor().wall, wall_anchor().mono);
}

TEST(CancelTest, WakesASleeperAndCountsRequests) {
  Cancel cancel;
  EXPECT_TRUE(sleep_unless_cancelled(cancel, kMillisecond));
  cancel.request();
  EXPECT_FALSE(sleep_unless_cancelled(cancel, 3600 * kSecond));
  cancel.request();
  EXPECT_EQ(cancel.level(), 2);
}

TEST(Version, TheProgramKnowsItsOwnBuild) {
  EXPECT_TRUE(is_hex_digest(build_id(), 40)) << build_id();
  EXPECT_FALSE(version().empty());
}

TEST(ResultTest, ErrorsSayWhereAndWhatNext) {
  Error error(Kind::kInvalidInput, Side::kClient, "is 0", "use a value from 1 to 65535");
  error.with_position({"r.toml", 3, 8, "launch.port"});
  EXPECT_EQ(to_string(error), "r.toml:3:8: launch.port: is 0; use a value from 1 to 65535");
  EXPECT_EQ(describe(Kind::kInvalidInput).exit_code, 2);
  EXPECT_EQ(describe(Kind::kInternal).name, "internal");
}

Result<int> half(int value) {
  if (value % 2) return fail(Kind::kInvalidInput, Side::kClient, "odd");
  return value / 2;
}
Result<int> quarter(int value) {
  const int first = TRY(half(value));
  return half(first);
}
TEST(ResultTest, TryReturnsTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().detail, "odd");
}

}  // namespace
}  // namespace anvil::base
