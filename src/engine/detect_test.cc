#include "engine/detect.h"

#include <gtest/gtest.h>

#include "engine/test_server.h"

namespace anvil::engine {
namespace {

TEST(Detect, TheOwnerOfTheModelsNamesTheEngine) {
  const auto vllm = detect_from_models(
      Json::parse(R"({"data":[{"id":"a","owned_by":"vllm"},{"id":"b","owned_by":"vllm"}]})"));
  EXPECT_EQ(vllm.interface, "vllm-0.32");
  EXPECT_EQ(vllm.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(
      detect_from_models(Json::parse(R"({"data":[{"id":"g","owned_by":"llamacpp"}]})")).engine,
      "llama.cpp");
  EXPECT_EQ(detect_from_models(Json::parse(R"({"data":[{"id":"g","owned_by":"sglang"}]})")).engine,
            "sglang");
}

TEST(Detect, WhatIsNotKnownIsExternal) {
  for (const char* text : {R"({"data":[{"id":"x","owned_by":"me"}]})", R"({"data":[{"id":"x"}]})",
                           R"({"data":[{"id":"x","owned_by":7}]})"}) {
    const auto found = detect_from_models(Json::parse(text));
    EXPECT_EQ(found.interface, "openai") << text;
    EXPECT_EQ(found.models, std::vector<std::string>{"x"}) << text;
  }
  for (const Json& odd : {Json(nullptr), Json(1), Json{{"data", 3}}, Json{{"data", {1, "x"}}}})
    EXPECT_TRUE(detect_from_models(odd).models.empty());
}

TEST(Detect, AnEndpointWithoutTheListHasNoModels) {
  const RouteServer server({});
  const auto found = detect_engine(server.url(), "");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->engine, "external");
  EXPECT_TRUE(found->models.empty());
}

TEST(Detect, NobodyThereSaysWhatToCheck) {
  const auto found = detect_engine("http://127.0.0.1:1", "");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, Kind::kConnect);
  EXPECT_NE(found.error().hint, "");
}

}  // namespace
}  // namespace anvil::engine
