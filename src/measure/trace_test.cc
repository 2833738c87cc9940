#include "measure/trace.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace anvil::measure {
namespace {

const std::string kMooncake =
    R"({"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]})"
    "\n\n"
    R"({"timestamp": 3052, "input_length": 900, "output_length": 26, "hash_ids": [0, 9]})"
    "\r\n"
    R"({"timestamp": 27.5, "input_length": 1, "output_length": 1, "extra": {"a": 1}})";

TEST(Trace, ReadsMooncakeLines) {
  const auto trace = parse_trace(kMooncake, "t.jsonl");
  ASSERT_TRUE(trace) << base::to_string(trace.error());
  ASSERT_EQ(trace->entries.size(), 3u);
  EXPECT_EQ(trace->sha256, base::sha256(kMooncake));
  EXPECT_EQ(trace->unordered, 1);
  EXPECT_EQ(trace->entries[0].blocks, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(trace->entries[1].at, 27'500'000);
  EXPECT_EQ(trace->entries[1].line, 4);
  EXPECT_TRUE(trace->entries[1].blocks.empty());
  EXPECT_EQ(trace->entries[2].at, 3'052'000'000);
  EXPECT_EQ(trace->entries[2].prompt_tokens, 900);
  EXPECT_EQ(trace->entries[2].output_tokens, 26);
}

TEST(Trace, ReadsCsvWithColumnsInAnyOrder) {
  const auto trace = parse_trace(
      "Output_Tokens, session,prompt_tokens,other,timestamp_s\n5,a,10,x,100.5\n6,b, 11 ,,100.25\n",
      "t.csv");
  ASSERT_TRUE(trace) << base::to_string(trace.error());
  ASSERT_EQ(trace->entries.size(), 2u);
  EXPECT_EQ(trace->entries[0].at, 0) << "times count from the first request";
  EXPECT_EQ(trace->entries[0].session, "b");
  EXPECT_EQ(trace->entries[0].prompt_tokens, 11);
  EXPECT_EQ(trace->entries[1].at, 250'000'000);
  EXPECT_EQ(trace->entries[1].output_tokens, 5);
}

TEST(Trace, EqualTimesKeepTheOrderOfTheFile) {
  std::string text = "timestamp_s,prompt_tokens,output_tokens\n";
  for (int i = 1; i <= 50; ++i) text += "1," + std::to_string(i) + ",1\n";
  const auto trace = parse_trace(text, "t");
  ASSERT_TRUE(trace);
  for (size_t i = 0; i < 50; ++i)
    EXPECT_EQ(trace->entries[i].prompt_tokens, static_cast<int64_t>(i) + 1);
}

TEST(Trace, RefusesWithTheLine) {
  const std::string good = R"({"timestamp": 0, "input_length": 5, "output_length": 5})"
                           "\n";
  const std::string csv = "timestamp_s,prompt_tokens,output_tokens\n";
  const struct {
    std::string text;
    int line;
    std::string words;
  } cases[] = {
      {good + "{\"timestamp\": 1,", 2, "the line"},
      {good + "[1]\n", 2, "is not an object"},
      {good + "{}\n", 2, "timestamp is missing"},
      {good + R"({"timestamp": "1", "input_length": 5, "output_length": 5})", 2, "no number"},
      {good + R"({"timestamp": 1, "input_length": 5.5, "output_length": 5})", 2, "input_length"},
      {good + R"({"timestamp": 1, "input_length": 5})", 2, "output_length is missing"},
      {good + R"({"timestamp": -1, "input_length": 5, "output_length": 5})", 2, "negative"},
      {good + R"({"timestamp": 1e300, "input_length": 5, "output_length": 5})", 2, "30 days"},
      {good + R"({"timestamp": 1, "input_length": 0, "output_length": 5})", 2, "0 tokens"},
      {good + R"({"timestamp": 1, "input_length": 5, "output_length": 99999999})", 2,
       "99999999 tokens"},
      {good + R"({"timestamp": 1, "input_length": 18446744073709551615, "output_length": 5})", 2,
       "input_length"},
      {good + R"({"timestamp": 1, "input_length": 513, "output_length": 5, "hash_ids": [1,2,3]})",
       2, "513 tokens have 2 blocks"},
      {good + R"({"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": ["a"]})", 2,
       "no integer"},
      {good + R"({"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": 3})", 2,
       "no list"},
      {"a,b\n1,2\n", 1, "lacks a column"},
      {csv + "1,2\n", 2, "output_tokens is \"\""},
      {csv + "\n1,2,3\nx,2,3\n", 4, "timestamp_s is \"x\""},
      {csv + "nan,2,3\n", 2, "not finite"},
      {csv + "1,2 3,3\n", 2, "prompt_tokens is \"2 3\""},
      {csv + "0,2,3\n99999999,2,3\n", 3, "30 days"},
  };
  for (const auto& c : cases) {
    const auto trace = parse_trace(c.text, "t.file");
    ASSERT_FALSE(trace) << c.text;
    const std::string said = base::to_string(trace.error());
    EXPECT_NE(said.find(c.words), std::string::npos) << c.text << said;
    ASSERT_TRUE(trace.error().at) << said;
    EXPECT_EQ(trace.error().at->file, "t.file");
    EXPECT_EQ(trace.error().at->line, c.line) << said;
  }
  for (const std::string& text : {std::string(), std::string("\n \n"), csv}) {
    const auto trace = parse_trace(text, "t.file");
    ASSERT_FALSE(trace);
    EXPECT_NE(trace.error().detail.find("holds no requests"), std::string::npos);
  }
}

TEST(Trace, AMissingFileSaysWhatWasRead) {
  const auto trace = load_trace("/nonexistent/t.jsonl");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().detail.find("reading the trace"), std::string::npos);
}

}  // namespace
}  // namespace anvil::measure
