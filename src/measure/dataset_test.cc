#include "measure/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"

namespace anvil::measure {
namespace {

TEST(Dataset, ShareGptGivesFirstQuestions) {
  const std::string text = R"([
    {"id": "a", "conversations": [{"from": "human", "value": "Hi \"there\"\n\u00fc"},
                                  {"from": "gpt", "value": "yes"},
                                  {"from": "human", "value": "more"}]},
    {"conversations": [{"from": "gpt", "value": "cut off"}, {"from": "human", "value": "q2"}]},
    {"conversations": []},
    {"conversations": [{"from": "human", "value": " "}]},
    {"conversations": [{"value": "be brief", "from": "system"}, {"from": "user", "value": "q3"}]}
  ])";
  const auto set = parse_dataset(text, DatasetForm::kShareGpt, "s.json");
  ASSERT_TRUE(set) << base::to_string(set.error());
  EXPECT_EQ(set->sha256, base::sha256(text));
  ASSERT_EQ(set->items.size(), 3u);
  EXPECT_EQ(set->left_out, 2);
  EXPECT_EQ(set->items[0].id, "element-0");
  ASSERT_EQ(set->items[0].messages.size(), 1u);
  EXPECT_EQ(set->items[0].messages[0].content, "Hi \"there\"\n\xc3\xbc");
  EXPECT_EQ(set->items[1].messages[0].content, "q2") << "the first question, wherever it stands";
  ASSERT_EQ(set->items[2].messages.size(), 2u);
  EXPECT_EQ(set->items[2].messages[0].role, "system");
  EXPECT_EQ(set->items[2].messages[1].content, "q3");
}

TEST(Dataset, MessagesEndWithTheLastQuestion) {
  const auto set = parse_dataset(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u1"},
 )"
      R"({"role": "assistant", "content": "a"}]})"
      "\n",
      DatasetForm::kMessages, "m.jsonl");
  EXPECT_FALSE(set) << "an object may not span lines";
  const auto good = parse_dataset(
      "\n"
      R"({"messages": [{"role": "user", "content": "u1"}, {"role": "assistant", "content": "a"},)"
      R"( {"role": "user", "content": "u2"}, {"role": "assistant", "content": "b"}]})",
      DatasetForm::kMessages, "m.jsonl");
  ASSERT_TRUE(good) << base::to_string(good.error());
  ASSERT_EQ(good->items.size(), 1u);
  EXPECT_EQ(good->items[0].id, "line-2");
  ASSERT_EQ(good->items[0].messages.size(), 3u);
  EXPECT_EQ(good->items[0].messages.back().content, "u2");
}

TEST(Dataset, TextHasOnePromptALine) {
  const auto set = parse_dataset("one\r\n\n  two words \n", DatasetForm::kText, "t.txt");
  ASSERT_TRUE(set);
  ASSERT_EQ(set->items.size(), 2u);
  EXPECT_EQ(set->items[0].messages[0].content, "one");
  EXPECT_EQ(set->items[1].messages[0].content, "two words");
  EXPECT_EQ(set->items[1].id, "line-3");
}

TEST(Dataset, RefusesWithThePlace) {
  using enum DatasetForm;
  const struct {
    DatasetForm form;
    std::string text, words;
  } cases[] = {
      {kShareGpt, "{}", "is not a JSON list"},
      {kShareGpt, "", "s: "},
      {kShareGpt, "[]", "holds no prompts"},
      {kShareGpt, R"([{"conversations": []}])", "none of its 1 conversations"},
      {kShareGpt, R"([{"conversations": [{"from": "human", "value": "q"}]}, 5])",
       "element 1: is no object"},
      {kShareGpt, R"([{"conversation": []}])", "element 0: has no list"},
      {kShareGpt, R"([{"conversations": [5]}])", "element 0: a turn is no object"},
      {kShareGpt, R"([{"conversations": [{"from": "human"}]}])", "no text \"value\""},
      {kShareGpt, R"([{"conversations": [{"from": "human", "value": 5}]}])", "no text \"value\""},
      {kShareGpt, R"([{"conversations": [{"value": "q"}]}])", "no text \"from\""},
      {kShareGpt, R"([{"conversations": [{"from": "human", "value": "q"}]})", "s: "},
      {kShareGpt, R"([{"conversations": [{"from": "human", "value": "q"}]}] [])",
       "follows the list"},
      {kMessages, "{\"messages\": [\n", "s:1: the line"},
      {kMessages, "\n[]\n", "s:2: has no list"},
      {kMessages, "{\"messages\": 5}\n", "s:1: has no list"},
      {kMessages, R"({"messages": []})", "no message is the user's"},
      {kMessages, R"({"messages": [{"role": "user"}]})", "messages[0] has no text \"content\""},
      {kMessages, R"({"messages": [{"content": "x"}]})", "messages[0] has no text \"role\""},
      {kMessages, R"({"messages": [{"role": "tool", "content": "x"}]})", "role \"tool\""},
      {kText, "\n\n", "holds no prompts"},
      {kText, "a\nb\xff\n", "s:2: holds bytes that are not UTF-8"},
      {kText, std::string("a\nb\0c\n", 6), "s:2: holds a NUL"},
  };
  for (const auto& c : cases) {
    const auto set = parse_dataset(c.text, c.form, "s");
    ASSERT_FALSE(set) << c.text;
    const std::string said = base::to_string(set.error());
    EXPECT_NE(said.find(c.words), std::string::npos) << c.text << ": " << said;
    EXPECT_EQ(set.error().kind, Kind::kInvalidInput);
  }
}

TEST(Dataset, SamplesAreSeededAndNeverRepeat) {
  const auto sample = sample_without_replacement(1000, 400, 5);
  ASSERT_TRUE(sample);
  EXPECT_EQ(std::set<size_t>(sample->begin(), sample->end()).size(), 400u);
  for (const size_t index : *sample) EXPECT_LT(index, 1000u);
  EXPECT_EQ(*sample, *sample_without_replacement(1000, 400, 5));
  EXPECT_NE(*sample, *sample_without_replacement(1000, 400, 6));
  const auto fewer = sample_without_replacement(1000, 10, 5);
  EXPECT_TRUE(std::equal(fewer->begin(), fewer->end(), sample->begin()));
  EXPECT_EQ(sample_without_replacement(3, 3, 1)->size(), 3u);
  const auto none = sample_without_replacement(3, 4, 1);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().detail.find("4 prompts are wanted, but there are 3"), std::string::npos);
}

}  // namespace
}  // namespace anvil::measure
