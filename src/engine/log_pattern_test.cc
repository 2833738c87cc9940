#include "engine/log_pattern.h"

#include <gtest/gtest.h>

namespace anvil::engine {
namespace {

LogPattern pattern(std::string_view text) {
  auto parsed = LogPattern::parse(text);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  return parsed ? *parsed : LogPattern{};
}

struct MatchCase {
  const char* pattern;
  const char* line;
  const char* values;  // JSON, or nullptr when it must not match
};

class LogPatternTable : public testing::TestWithParam<MatchCase> {};

TEST_P(LogPatternTable, Matches) {
  const MatchCase& c = GetParam();
  const LogPattern parsed = pattern(c.pattern);
  const auto values = parsed.match(c.line);
  EXPECT_EQ(parsed.matches(c.line), values.has_value());
  if (c.values == nullptr) {
    EXPECT_FALSE(values) << values->dump();
  } else {
    ASSERT_TRUE(values);
    EXPECT_EQ(*values, Json::parse(c.values)) << values->dump();
  }
}

const MatchCase kCases[] = {
    {"Model loading took {gib} GiB memory and {seconds} seconds",
     "(EngineCore pid=357) INFO 07-29 14:43:33 [gpu_model_runner.py:5167] Model loading took 35.31 "
     "GiB memory and 28.2 seconds",
     R"({"gib":35.31,"seconds":28.2})"},
    {"KV cache size: {tokens} tokens",
     "(EngineCore pid=357) INFO 07-29 14:43:33 [kv_cache_utils.py:2181] GPU KV cache size: "
     "5,277,426 tokens",
     R"({"tokens":5277426})"},
    {"KV cache size: {tokens} tokens, Maximum concurrency for {context} tokens per request: "
     "{concurrency}x",
     "INFO CPU KV cache size: 163,271 tokens, Maximum concurrency for 4,096 tokens per request: "
     "39.86x",
     R"({"tokens":163271,"context":4096,"concurrency":39.86})"},
    {"Free memory on device*({free}/{total} GiB) on startup*Desired GPU memory utilization is "
     "({ratio}, {want} GiB)",
     "Free memory on device (93.87/95.59 GiB) on startup. Desired GPU memory utilization is (0.88, "
     "84.12 GiB). Actual usage is 66.17 GiB for weight",
     R"({"free":93.87,"total":95.59,"ratio":0.88,"want":84.12})"},
    {"version {version:word}", "INFO vLLM API server version 0.25.0", R"({"version":"0.25.0"})"},
    {"non-default args: {args:rest}", "INFO non-default args: {'port': 1, 'model': 'x y'}  ",
     R"({"args":"{'port': 1, 'model': 'x y'}"})"},
    {"#tokens: {tokens}", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 406540, K size",
     R"({"tokens":406540})"},
    {"took {gib} GiB", "it took 0.73, GiB, then took -1e3 GiB", R"({"gib":-1000})"},
    {"a*b*c", "a c b a b b c", "{}"},
    {"a*b*c", "a c b", nullptr},
    {"{n} things", "12,34 things", R"({"n":34})"},
    {"{n} things", "x1234 things", R"({"n":1234})"},
    {"{n} things", "1.5 things", R"({"n":1.5})"},
    {"{n} things", "no things", nullptr},
    {"x={n}", "x=999999999999999999999", R"({"n":1e21})"},
    {"{{x}} {*}", "a {x} *", "{}"},
    {"key={v:word},", "key=a,b, key=c", R"({"v":"a"})"},
    {"key={v:word}!", "key= b!", nullptr},
    {"end {v:rest}", "the end", nullptr},
    {"end{v:rest}", "the end", R"({"v":""})"},
    {"longer than the line", "longer", nullptr},
    {"text", "", nullptr},
};
INSTANTIATE_TEST_SUITE_P(Lines, LogPatternTable, testing::ValuesIn(kCases));

TEST(LogPattern, RefusesWhatMeansNothing) {
  for (const char* bad : {"", "*", " * ", "{n}", "{n} ", "a {", "a }", "{A} x", "{n:number} x",
                          "{:word} x", "{r:rest} x"}) {
    EXPECT_FALSE(LogPattern::parse(bad)) << bad;
  }
}

TEST(LogPattern, InvalidBytesBecomeText) {
  const auto values = pattern("alias {a:word}").match("alias \xff\xfe.");
  ASSERT_TRUE(values);
  EXPECT_NO_THROW(values->dump());
}

TEST(LogPattern, ManyStarsOnALongLineEnd) {
  const std::string line(1 << 16, 'a');
  EXPECT_FALSE(pattern("a*a*a*a*a*a*a*a*b").matches(line));
  EXPECT_TRUE(pattern("a*a*a*a*a*a*a*a").matches(line));
}

}  // namespace
}  // namespace anvil::engine
