#include "scripted/plan.h"

#include <gtest/gtest.h>

#include "scripted/prefix_cache.h"
#include "scripted/tokens.h"

namespace anvil::scripted {
namespace {

constexpr Nanos kMs = kMillisecond;

Request chat(std::optional<int64_t> max_tokens = {}) {
  Request request;
  request.stream = true;
  request.prompt.assign(20, 5);
  request.max_tokens = max_tokens;
  return request;
}

Plan plan_of(const Stream& stream, const Request& request, const EngineSpec& engine = {},
             int64_t cached = 0, bool fault = true, uint64_t seed = 1) {
  stats::Random random(seed);
  return make_plan(engine, stream, request, TokenText(stream).text_tokens(), cached,
                   fault && stream.fault.kind != FaultKind::kNone, random);
}

// "content 4@100" for every step, times in whole milliseconds.
std::vector<std::string> shown(const Plan& plan) {
  std::vector<std::string> out;
  for (const Step& step : plan.steps)
    out.push_back(std::string(name(step.kind)) +
                  (step.tokens ? " " + std::to_string(step.tokens) : "") + "@" +
                  std::to_string(step.at / kMs) + (step.finish ? "!" : ""));
  return out;
}

using Lines = std::vector<std::string>;

TEST(Plan, SdOne) {
  Stream stream;
  stream.role_at = 5 * kMs;
  stream.times = {100 * kMs, 140 * kMs, 180 * kMs, 220 * kMs, 260 * kMs};
  stream.content_tokens = 20;
  stream.chunk_tokens = {4};
  stream.finish_after = 2 * kMs;
  stream.usage_after = 4 * kMs;
  stream.done_after = 5 * kMs;
  stream.usage = UsageMode::kFinal;
  const Plan plan = plan_of(stream, chat());
  EXPECT_EQ(shown(plan),
            (Lines{"head@0", "role@5", "content 4@100", "content 4@140", "content 4@180",
                   "content 4@220", "content 4@260", "finish@262", "usage@264", "done@265"}));
  EXPECT_EQ(plan.finish, "stop");
  EXPECT_EQ(plan.completion_tokens(), 20);
}

TEST(Plan, ClassesDoNotShareAnEvent) {
  Stream stream;
  stream.role = Role::kNone;
  stream.reasoning_tokens = 3;
  stream.content_tokens = 3;
  stream.tool_calls = 1;
  stream.chunk_tokens = {2};
  stream.gap = 10 * kMs;
  stream.finish_own = false;
  const Plan plan = plan_of(stream, chat());
  EXPECT_EQ(shown(plan),
            (Lines{"head@0", "reasoning 2@0", "reasoning 1@10", "content 2@20", "content 1@30",
                   "tool 1@40", "tool 1@50", "tool 1@60!", "done@60"}));
  EXPECT_EQ(plan.finish, "tool_calls");
}

TEST(Plan, LengthsAreHonouredOrNot) {
  Stream stream;
  stream.content_tokens = 10;
  EXPECT_EQ(plan_of(stream, chat(4)).completion_tokens(), 4);
  EXPECT_EQ(plan_of(stream, chat(4)).finish, "length");
  EXPECT_EQ(plan_of(stream, chat(64)).completion_tokens(), 10);
  EXPECT_EQ(plan_of(stream, chat(64)).finish, "stop");
  Request exact = chat(64);
  exact.ignore_eos = true;
  EXPECT_EQ(plan_of(stream, exact).completion_tokens(), 64);
  EXPECT_EQ(plan_of(stream, exact).finish, "length");
  Request least = chat(64);
  least.min_tokens = 12;
  EXPECT_EQ(plan_of(stream, least).completion_tokens(), 12);

  stream.honours_ignore_eos = false;
  EXPECT_EQ(plan_of(stream, exact).completion_tokens(), 10);
  stream.honours_max_tokens = false;
  EXPECT_EQ(plan_of(stream, chat(4)).completion_tokens(), 10);

  EngineSpec small;
  small.context_tokens = 26;  // 20 of them are the prompt
  EXPECT_EQ(plan_of(stream, chat(), small).completion_tokens(), 6);
}

TEST(Plan, PrefillDelaysOutputOnly) {
  Stream stream;
  stream.content_tokens = 2;
  stream.first_at = 10 * kMs;
  stream.gap = 5 * kMs;
  EngineSpec engine;
  engine.prefill_tok_s = 1000;
  EXPECT_EQ(shown(plan_of(stream, chat(), engine)),
            (Lines{"head@0", "role@0", "content 1@30", "content 1@35", "finish@35", "done@35"}));
  EXPECT_EQ(shown(plan_of(stream, chat(), engine, 16))[2], "content 1@14");
}

TEST(Plan, GapsFollowTheirKind) {
  Stream stream;
  stream.role = Role::kNone;
  stream.content_tokens = 4001;
  stream.gap = 10 * kMs;
  stream.gaps = Gaps::kGamma;
  stream.gap_shape = 4;
  const Plan plan = plan_of(stream, chat());
  const Plan again = plan_of(stream, chat());
  const Plan other = plan_of(stream, chat(), {}, 0, false, 2);
  double sum = 0, squares = 0;
  for (size_t i = 2; i <= 4001; ++i) {
    const double gap = static_cast<double>(plan.steps[i].at - plan.steps[i - 1].at) / 1e6;
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / 4000;
  const double variance = squares / 4000 - mean * mean;
  EXPECT_NEAR(mean, 10, 0.3);  // 5 / sqrt(4000) = 0.08
  EXPECT_NEAR(variance, 25, 3);
  EXPECT_EQ(plan.steps.back().at, again.steps.back().at);
  EXPECT_NE(plan.steps.back().at, other.steps.back().at);

  stream.content_tokens = 5;
  stream.gaps = Gaps::kBurst;
  stream.burst_events = 2;
  EXPECT_EQ(shown(plan_of(stream, chat())),
            (Lines{"head@0", "content 1@0", "content 1@0", "content 1@20", "content 1@20",
                   "content 1@40", "finish@40", "done@40"}));
}

TEST(Plan, PingsFillTheWait) {
  Stream stream;
  stream.role = Role::kNone;
  stream.content_tokens = 1;
  stream.first_at = 35 * kMs;
  stream.ping = 10 * kMs;
  EXPECT_EQ(shown(plan_of(stream, chat())), (Lines{"head@0", "ping@10", "ping@20", "ping@30",
                                                   "content 1@35", "finish@35", "done@35"}));
}

TEST(Plan, FaultsTakeTheirPlace) {
  Stream stream;
  stream.role = Role::kNone;
  stream.content_tokens = 3;
  stream.gap = 10 * kMs;
  stream.fault.after_events = 1;
  stream.fault.kind = FaultKind::kReset;
  EXPECT_EQ(shown(plan_of(stream, chat())), (Lines{"head@0", "content 1@0", "fault@10"}));
  stream.fault.kind = FaultKind::kEvent;
  EXPECT_EQ(shown(plan_of(stream, chat())),
            (Lines{"head@0", "content 1@0", "fault@10", "done@10"}));
  stream.fault.kind = FaultKind::kGarbage;
  EXPECT_EQ(shown(plan_of(stream, chat())),
            (Lines{"head@0", "content 1@0", "fault@10", "content 1@10", "content 1@20", "finish@20",
                   "done@20"}));
  stream.fault.kind = FaultKind::kStatus;
  EXPECT_EQ(shown(plan_of(stream, chat())), (Lines{"fault@0"}));
  stream.fault.kind = FaultKind::kEnd;
  stream.fault.after_events = 99;  // instead of the terminal marker
  EXPECT_EQ(shown(plan_of(stream, chat())), (Lines{"head@0", "content 1@0", "content 1@10",
                                                   "content 1@20", "finish@20", "fault@20"}));
  EXPECT_EQ(shown(plan_of(stream, chat(), {}, 0, false)).back(), "done@20");
}

TEST(Plan, SpeculationHasTheAcceptanceItIsGiven) {
  EngineSpec engine;
  engine.draft_tokens = 3;
  engine.acceptance = {0.8, 0.5, 0.2};
  Stream stream;
  stream.content_tokens = 50000;
  const Plan plan = plan_of(stream, chat(), engine);
  double steps = 0, accepted[3] = {0, 0, 0};
  int64_t tokens = 0;
  for (const Step& step : plan.steps) {
    if (!is_output(step.kind)) continue;
    tokens += step.tokens;
    EXPECT_EQ(step.tokens, 1u + step.accepted);
    if (step.drafted == 0) continue;
    EXPECT_EQ(step.drafted, 3);
    ++steps;
    for (int i = 0; i < step.accepted; ++i) ++accepted[i];
  }
  EXPECT_EQ(tokens, 50000);
  // 20,000 steps: 0.003 is one standard deviation.
  EXPECT_NEAR(accepted[0] / steps, 0.8, 0.02);
  EXPECT_NEAR(accepted[1] / steps, 0.5, 0.02);
  EXPECT_NEAR(accepted[2] / steps, 0.2, 0.02);
}

TEST(PrefixCache, KnowsTheLongestSharedBeginning) {
  PrefixCache cache(4, 1000);
  std::vector<int64_t> prompt(18);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int64_t>(i);
  EXPECT_EQ(cache.visit(prompt), 0);
  EXPECT_EQ(cache.visit(prompt), 16);
  auto other = prompt;
  other[9] = 99;  // in the third block; the fourth is equal but stands behind a difference
  EXPECT_EQ(cache.visit(other), 8);
  EXPECT_EQ(cache.visit(std::span(prompt).first(16)), 12);  // the last token is always computed
  cache.clear();
  EXPECT_EQ(cache.visit(prompt), 0);
}

TEST(PrefixCache, ForgetsTheOldest) {
  PrefixCache cache(1, 4);
  const std::vector<int64_t> a = {1, 2, 3}, b = {7, 8, 9};
  EXPECT_EQ(cache.visit(a), 0);
  EXPECT_EQ(cache.visit(b), 0);
  EXPECT_EQ(cache.tokens(), 4);
  EXPECT_EQ(cache.visit(a), 0);  // its first block left
}

TEST(Tokens, AreWords) {
  EXPECT_EQ(tokenize("  a few\nwords\t").size(), 3u);
  EXPECT_EQ(tokenize(std::string(100, ' ')).size(), 0u);
  EXPECT_EQ(tokenize("same other same")[0], tokenize("same")[0]);
  EXPECT_EQ(prompt_tokens("a b"), (std::vector<int64_t>{kBosToken, token_of("a"), token_of("b")}));
}

TEST(Tokens, TextComesBackWordForWord) {
  Stream stream;
  std::string out;
  TokenText(stream).append(0, 40, out);
  EXPECT_EQ(tokenize(out).size(), 40u);
  stream.text = "Two \"quoted\"\n words, \xc3\xa9. ";
  const TokenText text(stream);
  EXPECT_EQ(text.text_tokens(), 4);
  out.clear();
  text.append(0, 4, out);
  EXPECT_EQ(base::parse_json("\"" + out + "\"", "t")->get<std::string>(), *stream.text);
  out.clear();
  text.append(0, 8, out);
  EXPECT_EQ(tokenize(base::parse_json("\"" + out + "\"", "t")->get<std::string>()).size(), 8u);
}

TEST(Tokens, PiecesAreCutBetweenCharacters) {
  const std::string text =
      "a\xc3\xa9\xe2\x82\xac"
      "b";
  std::string joined;
  for (int64_t i = 0; i < 4; ++i) {
    const auto piece = piece_of(text, 4, i);
    EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xC0) != 0x80);
    joined += piece;
  }
  EXPECT_EQ(joined, text);
}

}  // namespace
}  // namespace anvil::scripted
