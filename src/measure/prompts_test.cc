#include "measure/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/strings.h"

namespace anvil::measure {
namespace {

// A tokenizer of its own kind: 3 digits a token, words of up to 5 letters one token and one more
// per 4 letters, every other byte but a space one token; `fixed` template tokens.
int64_t tokens_of(const std::string& text, int64_t fixed) {
  int64_t tokens = fixed;
  for (size_t at = 0; at < text.size();) {
    const auto run = [&](auto accepts) {
      const size_t begin = at;
      while (at < text.size() && accepts(static_cast<unsigned char>(text[at]))) ++at;
      return static_cast<int64_t>(at - begin);
    };
    if (const int64_t digits = run([](int c) { return std::isdigit(c) != 0; }); digits > 0)
      tokens += (digits + 2) / 3;
    else if (const int64_t letters = run([](int c) { return std::isalpha(c) != 0; }); letters > 0)
      tokens += letters <= 5 ? 1 : 1 + (letters - 5 + 3) / 4;
    else
      tokens += text[at++] == ' ' ? 0 : 1;
  }
  return tokens;
}

TokenCounter counting(int64_t fixed, int* calls = nullptr) {
  return [fixed, calls](const std::string& text) -> Result<int64_t> {
    if (calls != nullptr) ++*calls;
    return tokens_of(text, fixed);
  };
}

PromptSpec spec_of(int64_t target, std::string stream = "lane/0") {
  PromptSpec spec;
  spec.target_tokens = target;
  spec.seed = 7;
  spec.stream = std::move(stream);
  return spec;
}

TEST(ExactPrompt, HitsTheTargetInFewCalls) {
  for (const int64_t fixed : {0, 12, 200}) {
    int calls = 0;
    PromptBuilder builder(counting(fixed, &calls));
    for (const int64_t target : {230, 256, 512, 1024, 4096, 4097, 8191, 32768, 131072}) {
      const PromptSpec spec = spec_of(target);
      calls = 0;
      const auto prompt = builder.build(spec);
      ASSERT_TRUE(prompt) << target << ": " << base::to_string(prompt.error());
      EXPECT_LE(std::abs(tokens_of(prompt->text, fixed) - target), tolerance(spec)) << target;
      EXPECT_EQ(prompt->deviation, prompt->tokens - target);
      EXPECT_EQ(prompt->counter_calls, calls);
      EXPECT_LE(calls, 12) << target;
    }
  }
}

TEST(ExactPrompt, ToleranceIsTheLargerAllowance) {
  EXPECT_EQ(tolerance(spec_of(100)), 2);
  EXPECT_EQ(tolerance(spec_of(2000)), 2);
  EXPECT_EQ(tolerance(spec_of(131072)), 131);
  PromptSpec exact = spec_of(1000);
  exact.tolerance_tokens = 0;
  exact.tolerance_percent = 0;
  EXPECT_EQ(tolerance(exact), 0);
  PromptBuilder builder(counting(9));
  const auto prompt = builder.build(exact);
  ASSERT_TRUE(prompt) << base::to_string(prompt.error());
  EXPECT_EQ(tokens_of(prompt->text, 9), 1000);
}

TEST(ExactPrompt, IsTheSameForTheSameSpecAndOnlyThen) {
  const auto text = [](PromptSpec spec) { return PromptBuilder(counting(5)).build(spec)->text; };
  const PromptSpec spec = spec_of(600);
  EXPECT_EQ(text(spec), text(spec));
  PromptSpec salted = spec;
  salted.salt = "run-2";
  EXPECT_NE(text(spec).substr(0, 12), text(salted).substr(0, 12));
  EXPECT_EQ(text(spec).substr(12), text(salted).substr(12)) << "a salt changes the nonce only";
  PromptSpec seeded = spec;
  seeded.seed = 8;
  EXPECT_NE(text(spec).substr(12), text(seeded).substr(12));
  EXPECT_NE(text(spec).substr(12), text(spec_of(600, "lane/1")).substr(12));
}

TEST(ExactPrompt, BeginsWithANonceThatTheCounterNeverSaw) {
  std::vector<std::string> seen;
  PromptBuilder builder([&](const std::string& text) -> Result<int64_t> {
    seen.push_back(text);
    return tokens_of(text, 4);
  });
  const auto prompt = builder.build(spec_of(300));
  ASSERT_TRUE(prompt);
  const std::string own = prompt->text.substr(0, 12);
  EXPECT_TRUE(std::all_of(own.begin(), own.end(), [](char c) { return c >= '0' && c <= '9'; }));
  EXPECT_EQ(prompt->text.substr(12, 2), "\n\n");
  for (const std::string& text : seen) EXPECT_NE(text.substr(0, 12), own);
  EXPECT_EQ(seen.front().substr(0, 12), seen.back().substr(0, 12));

  std::set<std::string> nonces;
  for (int i = 0; i < 10'000; ++i) nonces.insert(nonce(1, "lane/" + std::to_string(i), ""));
  EXPECT_EQ(nonces.size(), 10'000u);
}

TEST(ExactPrompt, PlacesNeedlesAtTheirDepths) {
  PromptSpec spec = spec_of(4000);
  spec.needles = {{0.9, "The code of the tower is NINETY."},
                  {0.0, "The code of the gate is ZERO."},
                  {0.5, "The code of the cellar is FIFTY."},
                  {1.0, "The code of the roof is HUNDRED."}};
  spec.question = "Which code belongs to the cellar?";
  const auto prompt = PromptBuilder(counting(10)).build(spec);
  ASSERT_TRUE(prompt) << base::to_string(prompt.error());
  const std::string& text = prompt->text;
  const auto share = [&](const char* word) {
    EXPECT_EQ(text.find(word), text.rfind(word)) << word;
    return static_cast<double>(text.find(word)) / static_cast<double>(text.size());
  };
  EXPECT_NEAR(share("ZERO"), 0.0, 0.02);
  EXPECT_NEAR(share("FIFTY"), 0.5, 0.03);
  EXPECT_NEAR(share("NINETY"), 0.9, 0.03);
  EXPECT_NEAR(share("HUNDRED"), 1.0, 0.03);
  EXPECT_TRUE(text.ends_with("Which code belongs to the cellar?"));
  // A needle stands between sentences, never inside one.
  for (const Needle& needle : spec.needles) {
    const size_t at = text.find(needle.sentence);
    ASSERT_GE(at, 2u);
    EXPECT_TRUE(text[at - 1] == '\n' || text.substr(at - 2, 2) == ". ") << needle.sentence;
  }
}

TEST(ExactPrompt, ASharedPrefixStandsFirstVerbatim) {
  PromptBuilder builder(counting(3));
  PromptSpec spec = spec_of(900, "lane/shared");
  const std::string shared = builder.build(spec)->text;
  spec.shared_prefix = shared;
  spec.target_tokens = 1000;
  std::set<std::string> rest;
  for (int i = 0; i < 8; ++i) {
    spec.stream = "lane/" + std::to_string(i);
    const auto prompt = builder.build(spec);
    ASSERT_TRUE(prompt);
    ASSERT_EQ(prompt->text.substr(0, shared.size()), shared);
    EXPECT_NEAR(static_cast<double>(tokens_of(prompt->text, 3)), 1000, 2);
    rest.insert(prompt->text.substr(shared.size() + 1, 12));
  }
  EXPECT_EQ(rest.size(), 8u) << "each has its own nonce behind the prefix";
}

TEST(ExactPrompt, RefusesATargetBelowItsFixedParts) {
  PromptSpec spec = spec_of(40);
  spec.question = "word word word word word word word word word word";
  const auto prompt = PromptBuilder(counting(60)).build(spec);
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().kind, Kind::kInvalidInput);
  EXPECT_NE(prompt.error().detail.find("too small"), std::string::npos);
}

TEST(ExactPrompt, PassesOnTheErrorOfTheCounter) {
  PromptBuilder builder([](const std::string&) -> Result<int64_t> {
    return fail(Kind::kHttpStatus, Side::kEngine, "no tokenizer");
  });
  const auto prompt = builder.build(spec_of(100));
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().detail, "no tokenizer");
}

TEST(ExactPrompt, GivesUpOnACounterThatDoesNotFollow) {
  for (const int64_t always : {50, 5000}) {
    int calls = 0;
    PromptBuilder builder([&](const std::string&) -> Result<int64_t> {
      ++calls;
      return always;
    });
    const auto prompt = builder.build(spec_of(1000));
    ASSERT_FALSE(prompt);
    EXPECT_LE(calls, 24);
  }
}

TEST(ExactPrompt, ToleratesACounterThatIsNotMonotone) {
  for (int noise = 1; noise <= 6; ++noise) {
    PromptBuilder builder([&](const std::string& text) -> Result<int64_t> {
      // Merges across boundaries: the same text always counts the same, but not smoothly.
      return tokens_of(text, 20) + static_cast<int64_t>(text.size() * 2654435761u % 97) % noise;
    });
    for (const int64_t target : {300, 1000, 5000}) {
      const auto prompt = builder.build(spec_of(target, std::to_string(noise)));
      ASSERT_TRUE(prompt) << base::to_string(prompt.error());
      EXPECT_LE(std::abs(prompt->deviation), tolerance(spec_of(target)));
    }
  }
}

TEST(ExactPrompt, CoarseCountersAreMetWithinTheTolerance) {
  // Every word costs three tokens: single tokens cannot be added, the tolerance must do.
  PromptBuilder builder([](const std::string& text) -> Result<int64_t> {
    return 3 * std::count(text.begin(), text.end(), ' ');
  });
  const auto prompt = builder.build(spec_of(1000));
  ASSERT_TRUE(prompt) << base::to_string(prompt.error());
  EXPECT_LE(std::abs(prompt->deviation), 2);
}

TEST(FillerText, VariesAndNeverLoops) {
  Filler filler(3);
  std::map<std::string, int> seen;
  for (int i = 0; i < 5000; ++i) {
    const std::string sentence = filler.sentence();
    ASSERT_GE(sentence.size(), 20u);
    ASSERT_TRUE(std::isupper(static_cast<unsigned char>(sentence[0]))) << sentence;
    ASSERT_EQ(sentence.back(), '.');
    ++seen[sentence];
  }
  EXPECT_GT(seen.size(), 4950u);
  EXPECT_EQ(Filler(3).sentence(), Filler(3).sentence());
  EXPECT_NE(Filler(3).sentence(), Filler(4).sentence());
}

}  // namespace
}  // namespace anvil::measure
