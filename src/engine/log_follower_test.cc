#include "engine/log_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& piece : pieces) splitter.feed(piece, sink);
  splitter.finish(sink);
  return lines;
}

TEST(LineSplitter, CutsAtEveryEndOfLine) {
  const std::string text = "one\ntwo\r\n\n\rbar 1%\rbar 2%\r\xff\xfe\nrest";
  const std::vector<std::string> expected = {"one",    "two",      "",    "bar 1%",
                                             "bar 2%", "\xff\xfe", "rest"};
  EXPECT_EQ(lines_of({text}), expected);
  for (size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(lines_of({text.substr(0, at), text.substr(at)}), expected) << at;
  }
}

TEST(LineSplitter, CutsLongLinesOnce) {
  const std::string line(3 * kLogLineLimit, 'x');
  const auto lines = lines_of({line.substr(0, 100), line.substr(100), "\nshort\n"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], std::string(kLogLineLimit, 'x') + " [cut]");
  EXPECT_EQ(lines[1], "short");
  EXPECT_EQ(lines_of({std::string(kLogLineLimit, 'y') + "\n"})[0], std::string(kLogLineLimit, 'y'));
}

class Following : public testing::Test {
 protected:
  void SetUp() override {
    out_ = folder_.write("out", "");
    err_ = folder_.write("err", "");
    log_ = base::join_path(folder_.path(), "engine.log");
    ASSERT_TRUE(follower_.start(
        out_, err_, log_, [this](std::string_view line, Nanos) { seen_.emplace_back(line); }));
  }
  void append(const std::string& path, std::string_view bytes) {
    auto file = base::AppendFile::open(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(bytes));
  }

  TempFolder folder_;
  std::string out_, err_, log_;
  std::vector<std::string> seen_;  // follower's thread until stop()
  LogFollower follower_;
};

TEST_F(Following, StampsEveryLineOfBothStreams) {
  const Nanos before = mono_now();
  append(out_, "hello\nhalf");
  append(err_, "warned\n\xff\xfe bytes\n");
  append(out_, " a line\nunfinished");
  follower_.stop();
  EXPECT_EQ(seen_.size(), 5u);
  EXPECT_EQ(follower_.bytes(), 10u + 16u + 18u);
  EXPECT_FALSE(follower_.error());
  const auto text = base::read_file(log_);
  ASSERT_TRUE(text);
  std::vector<std::string> rest;
  for (std::string_view line : base::split(base::trim(*text), '\n')) {
    const size_t blank = line.find(' ');
    const auto stamp = base::parse_int(line.substr(0, blank));
    ASSERT_TRUE(stamp) << line;
    EXPECT_GE(*stamp, before);
    EXPECT_LE(*stamp, mono_now());
    rest.emplace_back(line.substr(blank + 1));
  }
  std::sort(rest.begin(), rest.end());
  EXPECT_EQ(rest, (std::vector<std::string>{"e warned", "e \xff\xfe bytes", "o half a line",
                                            "o hello", "o unfinished"}));
}

TEST_F(Following, CopiesMuchAndLosesNothing) {
  std::string block;
  for (int i = 0; i < 5000; ++i) block += "line " + std::to_string(i) + " of some length\n";
  for (int i = 0; i < 30; ++i) append(out_, block);
  follower_.stop();
  EXPECT_EQ(seen_.size(), 150'000u);
  EXPECT_EQ(follower_.bytes(), block.size() * 30);
  const auto text = base::read_file(log_);
  ASSERT_TRUE(text);
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 150'000);
}

TEST(LogFollowing, FilesMustExist) {
  const TempFolder folder;
  LogFollower follower;
  EXPECT_FALSE(follower.start(folder.path() + "/a", folder.path() + "/b", folder.path() + "/c",
                              [](std::string_view, Nanos) {}));
}

}  // namespace
}  // namespace anvil::engine
