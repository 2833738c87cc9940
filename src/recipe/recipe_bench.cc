#include <benchmark/benchmark.h>

#include <string>

#include "base/files.h"
#include "recipe/diff.h"
#include "recipe/recipe.h"

namespace anvil::recipe {
namespace {

std::string path(const char* name) {
  return std::string(ANVIL_SOURCE_DIR) + "/recipes/" + name + ".toml";
}

// Read, check, canonical form and digest of the largest shipped recipe.
void load(benchmark::State& state) {
  const std::string file = path("deepseek-v4-flash-r16-dspark5-128k");
  for (auto _ : state) benchmark::DoNotOptimize(load_recipe(file));
}
BENCHMARK(load)->Unit(benchmark::kMicrosecond);

void compare(benchmark::State& state) {
  const auto a = load_recipe(path("deepseek-v4-flash-r16-dspark5-128k"));
  const auto b = load_recipe(path("deepseek-v4-flash-r16-nospec-128k"));
  if (!a.ok() || !b.ok()) {
    state.SkipWithError("a shipped recipe does not load");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(diff(*a.value, *b.value, nullptr));
}
BENCHMARK(compare)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace anvil::recipe
