#include "engine/tokenizer.h"

#include <gtest/gtest.h>

#include "engine/test_recipe.h"
#include "engine/test_server.h"

namespace anvil::engine {
namespace {

using Ids = std::vector<int64_t>;

TEST(Tokenizer, Llama) {
  const RouteServer server({{"POST /tokenize", R"({"tokens":[2,{"id":9259,"piece":"Hello"}]})"},
                            {"POST /detokenize", R"({"content":"Hello"})"},
                            {"POST /apply-template", R"({"prompt":"<bos>user: hi"})"}});
  const Tokenizer tokenizer(shipped_table("llama.cpp"), server.url(), "gemma", "");
  EXPECT_TRUE(tokenizer.can_tokenize());
  EXPECT_TRUE(tokenizer.can_render());
  EXPECT_EQ(*tokenizer.tokenize("Hello", true), (Ids{2, 9259}));
  EXPECT_EQ(*tokenizer.count("Hello", false), 2);
  EXPECT_EQ(*tokenizer.detokenize({2, 9259}), "Hello");
  const Json request = {{"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})},
                        {"reasoning_effort", "high"}};
  const auto rendered = tokenizer.render(request);
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->text, "<bos>user: hi");
  EXPECT_EQ(rendered->tokens, (Ids{2, 9259}));
  const auto posted = server.posted();
  ASSERT_EQ(posted.size(), 5u);
  EXPECT_EQ(posted[0].second,
            Json::parse(R"({"content":"Hello","add_special":true,"parse_special":false})"));
  EXPECT_EQ(posted[3].second, request);
  EXPECT_EQ(posted[4].second["parse_special"], true);
}

TEST(Tokenizer, VllmHandsTheEffortToTheTemplate) {
  const RouteServer server({{"POST /tokenize", R"({"count":2,"tokens":[5,6],"token_strs":null})"},
                            {"POST /detokenize", R"({"prompt":"ab"})"}});
  const Tokenizer tokenizer(shipped_table("vllm-0.32"), server.url(), "gemma", "");
  EXPECT_EQ(*tokenizer.tokenize("ab", false), (Ids{5, 6}));
  EXPECT_EQ(*tokenizer.detokenize({5, 6}), "ab");
  const Json messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  ASSERT_TRUE(tokenizer.render({{"messages", messages},
                                {"max_tokens", 5},
                                {"stream", true},
                                {"reasoning_effort", "high"},
                                {"chat_template_kwargs", {{"x", 1}}}}));
  ASSERT_TRUE(tokenizer.render({{"messages", messages}}));
  const auto posted = server.posted();
  ASSERT_EQ(posted.size(), 4u);
  EXPECT_EQ(posted[0].second,
            Json::parse(R"({"model":"gemma","prompt":"ab","add_special_tokens":false})"));
  EXPECT_EQ(posted[2].second,
            (Json{{"model", "gemma"},
                  {"messages", messages},
                  {"chat_template_kwargs",
                   {{"x", 1}, {"enable_thinking", true}, {"reasoning_effort", "high"}}}}));
  EXPECT_EQ(posted[3].second, (Json{{"model", "gemma"}, {"messages", messages}}));
}

TEST(Tokenizer, WhatAnEngineLacksIsUnsupported) {
  const Tokenizer none(shipped_table("openai"), "http://127.0.0.1:1", "m", "");
  EXPECT_FALSE(none.can_tokenize());
  EXPECT_FALSE(none.can_render());
  EXPECT_EQ(none.tokenize("a", true).error().kind, Kind::kUnsupported);
  EXPECT_EQ(none.detokenize({1}).error().kind, Kind::kUnsupported);
  EXPECT_EQ(none.render(Json::object()).error().kind, Kind::kUnsupported);
}

TEST(Tokenizer, BadAnswersAreErrors) {
  for (const char* body : {"{}", "[]", "x", R"({"tokens":7})", R"({"tokens":["a"]})",
                           R"({"tokens":[{"piece":"a"}]})"}) {
    const RouteServer server({{"POST /tokenize", body}, {"POST /detokenize", body}});
    const Tokenizer tokenizer(shipped_table("llama.cpp"), server.url(), "m", "");
    EXPECT_FALSE(tokenizer.tokenize("a", true)) << body;
    EXPECT_FALSE(tokenizer.detokenize({1})) << body;
  }
  const RouteServer refusing{};
  const auto refused =
      Tokenizer(shipped_table("vllm-0.32"), refusing.url(), "m", "").tokenize("a", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::kHttpStatus);
  EXPECT_NE(refused.error().detail.find("no such route"), std::string::npos);
}

}  // namespace
}  // namespace anvil::engine
