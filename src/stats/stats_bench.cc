#include <benchmark/benchmark.h>

#include "stats/bootstrap.h"
#include "stats/distance.h"
#include "stats/percentile.h"
#include "stats/random.h"

namespace anvil::stats {
namespace {

void bootstrap_of_pairs(benchmark::State& state) {
  Random random(1);
  std::vector<Block> blocks;
  for (int64_t i = 0; i < state.range(0); ++i)
    blocks.push_back({{10 + random.normal()}, {9 + random.normal()}});
  for (auto _ : state) benchmark::DoNotOptimize(ratio_of_medians(blocks, {.seed = 3}));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kFewestResamples));
}
BENCHMARK(bootstrap_of_pairs)->Arg(6)->Arg(12)->Arg(40)->Unit(benchmark::kMillisecond);

void kolmogorov_smirnov(benchmark::State& state) {
  Random random(1);
  std::vector<double> a, b;
  for (int64_t i = 0; i < state.range(0); ++i) {
    a.push_back(random.normal());
    b.push_back(random.normal());
  }
  for (auto _ : state) benchmark::DoNotOptimize(ks_two_sample(a, b));
}
BENCHMARK(kolmogorov_smirnov)->Arg(100)->Arg(1'000)->Unit(benchmark::kMicrosecond);

void four_percentiles(benchmark::State& state) {
  Random random(1);
  std::vector<double> values;
  for (int64_t i = 0; i < state.range(0); ++i) values.push_back(random.exponential(20));
  for (auto _ : state) {
    std::vector<double> copy = values;
    RisingPercentiles<double> percentiles(copy);
    for (const PerMille q : {500U, 900U, 950U, 990U}) benchmark::DoNotOptimize(percentiles.at(q));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(four_percentiles)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace anvil::stats
