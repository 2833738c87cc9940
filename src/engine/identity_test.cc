#include "engine/identity.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "engine/python_literal.h"
#include "engine/test_recipe.h"
#include "engine/test_server.h"

namespace anvil::engine {
namespace {

// As llama.cpp answers, shortened.
constexpr const char* kProps =
    R"({"default_generation_settings":{"params":{"seed":4294967295,"temperature":0.800000011920929,
    "top_k":40,"top_p":0.949999988079071},"n_ctx":4096},"total_slots":2,"model_alias":"gemma",
    "model_path":"/models/gemma.gguf","chat_template":"{{ x }}","build_info":"b11549-3f2a9c1"})";
constexpr const char* kLlamaModels =
    R"({"object":"list","data":[{"id":"gemma","aliases":["gemma","g"],"owned_by":"llamacpp","meta":{"n_ctx":4096}}]})";
constexpr const char* kVllmModels =
    R"({"object":"list","data":[{"id":"gemma","owned_by":"vllm","root":"/m/gemma-hf","max_model_len":4096}]})";

const IdentityField* field(const Identity& identity, std::string_view name) {
  for (const IdentityField& one : identity.fields) {
    if (one.field == name) return &one;
  }
  return nullptr;
}

std::string verdict(const Identity& identity, const char* name) {
  const Json json = to_json(identity);
  for (const Json& one : json["fields"]) {
    if (one["field"] == name) return one["verdict"];
  }
  return "absent";
}

Identity observe(const recipe::Recipe& recipe, const RouteServer& server,
                 const Json& phases = Json::array(), const Json& artifacts = Json::array()) {
  const auto table = InterfaceTable::for_recipe(recipe);
  auto identity = observe_identity(recipe, *table, server.url(), phases, "", artifacts);
  EXPECT_TRUE(identity) << to_string(identity.error());
  return identity ? *identity : Identity{};
}

recipe::Recipe llama_recipe(const std::string& serving, const std::string& engine = "",
                            const std::string& more = "") {
  return test_recipe("llama.cpp", serving, "model_path = \"/models/gemma.gguf\"\n" + more, engine);
}

TEST(Identity, LlamaMatches) {
  const RouteServer server({{"GET /props", kProps}, {"GET /v1/models", kLlamaModels}});
  const recipe::Recipe recipe = llama_recipe(
      "context_tokens = 4096\nmax_sequences = 2\nkv_dtype = \"fp16\"\nefforts = [\"low\"]",
      "build = \"b11549\"\nversion = \"b11549\"",
      "[sampling]\ntemperature = 0.8\ntop_p = 0.95\ntop_k = 40\n");
  const Identity identity = observe(recipe, server);
  EXPECT_EQ(identity.served_model, "gemma");
  for (const char* name :
       {"serving.context_tokens", "serving.max_sequences", "engine.build", "engine.version",
        "launch.model_path", "sampling.temperature", "sampling.top_p", "sampling.top_k"}) {
    EXPECT_EQ(verdict(identity, name), "match") << name;
  }
  EXPECT_EQ(verdict(identity, "serving.kv_dtype"), "not observable");
  EXPECT_EQ(verdict(identity, "model.repo"), "not observable");
  EXPECT_EQ(verdict(identity, "serving.efforts"), "absent");
  EXPECT_EQ(verdict(identity, "engine.kind"), "match");
  EXPECT_EQ(field(identity, "serving.context_tokens")->source,
            "GET /props /default_generation_settings/n_ctx");
  EXPECT_EQ(identity.raw["/props"]["total_slots"], 2);
  // The served name of the test recipe is another one, and the engine's only model counts.
  EXPECT_EQ(verdict(identity, "model.served_name"), "mismatch");
}

TEST(Identity, LlamaMismatches) {
  const RouteServer server({{"GET /props", kProps}, {"GET /v1/models", kLlamaModels}});
  const Identity identity = observe(
      llama_recipe("context_tokens = 8192\nmax_sequences = 1", "build = \"b11434\""), server);
  EXPECT_EQ(verdict(identity, "serving.context_tokens"), "mismatch");
  EXPECT_EQ(field(identity, "serving.context_tokens")->observed, 4096);
  EXPECT_EQ(field(identity, "serving.context_tokens")->declared, 8192);
  EXPECT_EQ(verdict(identity, "serving.max_sequences"), "mismatch");
  EXPECT_EQ(verdict(identity, "engine.build"), "mismatch");
}

// Where somebody else keeps the files of an engine is compared only if the recipe says where.
TEST(Identity, AnExternalEngineMayServeFromAnyFolder) {
  const RouteServer server({{"GET /v1/models", kVllmModels}});
  const auto external = [](const std::string& more) {
    auto loaded = recipe::parse_recipe(
        "schema = \"anvil/recipe/v1\"\nname = \"t\"\n[model]\nrepo = \"o/n\"\n"
        "served_name = \"gemma\"\n[engine]\nkind = \"vllm\"\n[launch]\nrunner = \"external\"\n"
        "url = \"http://127.0.0.1:1\"\n" +
            more,
        "t.toml");
    EXPECT_TRUE(loaded.ok());
    return *loaded.value;
  };
  EXPECT_NE(verdict(observe(external(""), server), "launch.model_path"), "mismatch");
  EXPECT_EQ(
      verdict(observe(external("model_path = \"/other/folder\"\n"), server), "launch.model_path"),
      "mismatch");
}

TEST(Identity, AWheelIsKnownByWhatItsProgramSays) {
  std::string props = kProps;
  props.replace(props.find("b11549-3f2a9c1"), 14, "b0-unknown");
  const RouteServer server({{"GET /props", props}, {"GET /v1/models", kLlamaModels}});
  const recipe::Recipe recipe =
      llama_recipe("context_tokens = 4096\nmax_sequences = 2",
                   "build = \"b11549\"\npackage = \"xllamacpp==2026.10.11549\"");
  EXPECT_EQ(verdict(observe(recipe, server), "engine.build"), "not observable");
  const Json phases = Json::parse(
      R"([{"name":"start","at_ns":1,"values":{"program_build":11549,"program_package":"xllamacpp",
          "program_package_version":"2026.10.11549"}}])");
  const Identity identity = observe(recipe, server, phases);
  EXPECT_EQ(verdict(identity, "engine.build"), "match");
  EXPECT_EQ(field(identity, "engine.build")->source, "log");
  EXPECT_EQ(verdict(identity, "engine.package"), "match");
}

TEST(Identity, DigestsHoldForTheFileThatIsServed) {
  const RouteServer server({{"GET /props", kProps}, {"GET /v1/models", kLlamaModels}});
  const std::string digest(64, 'a');
  const std::string text =
      "schema = \"anvil/recipe/v1\"\nname = \"t\"\n[model]\nrepo = \"o/n\"\n"
      "chat_template = \"t.jinja\"\nchat_template_sha256 = "
      "\"" +
      base::sha256("{{ x }}") +
      "\"\n"
      "[[model.artifact]]\nfile = \"gemma.gguf\"\nsha256 = \"" +
      digest +
      "\"\n[engine]\nkind = \"llama.cpp\"\n[serving]\ncontext_tokens = 4096\nmax_sequences = 2\n"
      "[launch]\nrunner = \"process\"\n";
  const auto loaded = recipe::parse_recipe(text, "t.toml");
  ASSERT_TRUE(loaded.ok());
  const auto artifacts = [&](const char* path) {
    return Json::array({{{"file", "gemma.gguf"}, {"path", path}, {"sha256", digest}}});
  };
  const char* name = "model.artifact[0].sha256";
  EXPECT_EQ(
      verdict(observe(*loaded.value, server, Json::array(), artifacts("/models/gemma.gguf")), name),
      "match");
  const Identity other =
      observe(*loaded.value, server, Json::array(), artifacts("/elsewhere/gemma.gguf"));
  EXPECT_EQ(verdict(other, name), "not observable");
  EXPECT_EQ(verdict(other, "model.chat_template_sha256"), "match");
  EXPECT_EQ(verdict(other, "model.chat_template"), "absent");
  EXPECT_EQ(verdict(other, "model.artifact[0].file"), "absent");
}

TEST(Identity, VllmShowsItsArguments) {
  const RouteServer server(
      {{"GET /v1/models", kVllmModels}, {"GET /version", R"({"version":"0.32.0+cpu"})"}});
  const recipe::Recipe recipe = test_recipe(
      "vllm",
      "context_tokens = 4096\nmax_sequences = 8\nkv_dtype = \"fp8-e4m3\"\nbatched_tokens = 2048\n"
      "tool_parser = \"hermes\"",
      "model_path = \"/m/gemma-hf\"\n[speculation]\nmethod = \"draft-model\"\ndepth = 3\n"
      "[speculation.draft]\npath = \"/d\"\n",
      "version = \"0.32.0\"");
  const Json phases = Json::array(
      {{{"name", "start"},
        {"at_ns", 1},
        {"values",
         {{"effective_args",
           "{'model_tag': '/m/gemma-hf', 'max_num_seqs': 8, 'kv_cache_dtype': 'fp8_e4m3', "
           "'speculative_config': {'method': 'draft_model', 'num_speculative_tokens': 4}, "
           "'served_model_name': ['gemma']}"},
          {"effective_batched_tokens", 2048}}}}});
  const Identity identity = observe(recipe, server, phases);
  EXPECT_EQ(verdict(identity, "engine.kind"), "match");
  EXPECT_EQ(verdict(identity, "engine.version"), "match");
  EXPECT_EQ(verdict(identity, "serving.context_tokens"), "match");
  EXPECT_EQ(verdict(identity, "serving.max_sequences"), "match");
  EXPECT_EQ(verdict(identity, "serving.batched_tokens"), "match");
  EXPECT_EQ(verdict(identity, "serving.kv_dtype"), "match");
  EXPECT_EQ(verdict(identity, "speculation.method"), "match");
  EXPECT_EQ(verdict(identity, "speculation.depth"), "mismatch");
  EXPECT_EQ(verdict(identity, "serving.tool_parser"), "not observable");
  EXPECT_EQ(verdict(identity, "launch.model_path"), "match");
}

TEST(Identity, TheDeclaredModelIsChosenAmongSeveral) {
  const RouteServer server(
      {{"GET /v1/models",
        R"({"data":[{"id":"other","max_model_len":1},{"id":"served","max_model_len":4096}]})"},
       {"GET /version", R"({"version":"1"})"}});
  const recipe::Recipe recipe = test_recipe("vllm", "context_tokens = 4096\nmax_sequences = 1");
  const Identity identity = observe(recipe, server);
  EXPECT_EQ(identity.served_model, "served");
  EXPECT_EQ(verdict(identity, "serving.context_tokens"), "match");
  EXPECT_EQ(verdict(identity, "model.served_name"), "match");

  const RouteServer wrong({{"GET /v1/models", R"({"data":[{"id":"a"},{"id":"b"}]})"}});
  const auto refused =
      observe_identity(recipe, *InterfaceTable::for_recipe(recipe), wrong.url(), Json::array(), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::kMismatch);
}

TEST(Identity, GarbageIsAnErrorAndMissingAnswersAreNot) {
  const recipe::Recipe recipe = test_recipe("vllm", "context_tokens = 4096\nmax_sequences = 1");
  const auto table = InterfaceTable::for_recipe(recipe);
  for (const char* body : {"not json", "[]", "{}", R"({"data":[{"id":3}]})", R"({"data":7})"}) {
    const RouteServer server({{"GET /v1/models", body}});
    EXPECT_FALSE(observe_identity(recipe, *table, server.url(), Json::array(), "")) << body;
  }
  const RouteServer server({{"GET /v1/models", kVllmModels}});
  const Identity identity = observe(recipe, server, Json::parse(R"([1, {"name":"x"}])"));
  EXPECT_TRUE(identity.raw["/version"].contains("error"));
}

TEST(PythonValue, ReadsWhatEnginesPrint) {
  const char* text =
      "{'a': 1, 'b': -0.5, 'c': True, 'd': None, 'e': ['x', \"y's\"], 'f': {'g': {'h': 'deep'}}, "
      "'i': torch.bfloat16, 'j': CompilationConfig(level=3, x=[1, 2]), 'k': <Mode.A: 1>, 'l': (), "
      "'m': 'it\\'s'}";
  const std::pair<const char*, Json> cases[] = {
      {"a", 1},
      {"b", -0.5},
      {"c", true},
      {"d", nullptr},
      {"e", Json::array({"x", "y's"})},
      {"f.g.h", "deep"},
      {"f.g.x", nullptr},
      {"a.b", nullptr},
      {"i", "torch.bfloat16"},
      {"j", "CompilationConfig(level=3, x=[1, 2])"},
      {"k", "<Mode.A: 1>"},
      {"l", Json::array()},
      {"m", "it's"},
      {"z", nullptr},
  };
  for (const auto& [key, value] : cases) EXPECT_EQ(python_value(text, key), value) << key;
  for (const char* bad : {"", "{", "{'a'", "{'a': ", "{'a': 1", "{'a': 'x", "{,}", "17", "[[[["}) {
    EXPECT_EQ(python_value(bad, "a"), Json()) << bad;
  }
  EXPECT_EQ(python_value(std::string(100'000, '['), "a"), Json());
}

}  // namespace
}  // namespace anvil::engine
