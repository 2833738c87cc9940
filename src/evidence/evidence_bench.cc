#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "evidence/derive.h"
#include "evidence/testing/synthetic_run.h"
#include "evidence/verify.h"

namespace anvil::evidence {
namespace {

constexpr int kLanes = 3;
constexpr int kRowsPerLane = 6'700;
constexpr int kChunks = 64;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A sealed run with 20,000 rows of 64 chunks, written once and removed at exit.
const std::string& large_run() {
  static struct Run {
    std::string folder = std::filesystem::temp_directory_path() / "anvil-evidence-bench";
    std::string directory;
    Run() {
      std::filesystem::remove_all(folder);
      testing::SyntheticOptions options;
      options.lane_requests = kRowsPerLane;
      options.chunks = kChunks;
      auto written = testing::write_synthetic_run(folder, options);
      if (!written) {
        std::fprintf(stderr, "%s\n", base::to_string(written.error()).c_str());
        std::exit(1);
      }
      directory = *written;
    }
    ~Run() { std::filesystem::remove_all(folder); }
  } run;
  return run.directory;
}

void Verify(benchmark::State& state) {
  const std::string& directory = large_run();
  int64_t rows = 0;
  const double before = cpu_seconds();
  for (auto _ : state) {
    const auto outcome = verify(directory, testing::render_plain);
    if (!outcome || !outcome->ok || !outcome->complete) state.SkipWithError("verify failed");
    rows += outcome ? outcome->rows : 0;
  }
  state.SetItemsProcessed(rows);
  state.counters["cpu_us_per_row"] = (cpu_seconds() - before) * 1e6 / static_cast<double>(rows);
}
BENCHMARK(Verify)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void Derive(benchmark::State& state) {
  const auto run = RunReader::open(large_run());
  for (auto _ : state) {
    auto results = derive(*run);
    if (!results) state.SkipWithError("derive failed");
    benchmark::DoNotOptimize(results);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kLanes * kRowsPerLane);
}
BENCHMARK(Derive)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void ParseRow(benchmark::State& state) {
  const std::string line = to_line(testing::synthetic_row({.chunks = kChunks}));
  for (auto _ : state) {
    auto row = parse_row(line);
    benchmark::DoNotOptimize(row);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * line.size()));
}
BENCHMARK(ParseRow);

void WriteRow(benchmark::State& state) {
  const RequestRow row = testing::synthetic_row({.chunks = kChunks});
  for (auto _ : state) {
    auto line = to_line(row);
    benchmark::DoNotOptimize(line);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(WriteRow);

}  // namespace
}  // namespace anvil::evidence
