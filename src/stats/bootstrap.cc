#include "stats/bootstrap.h"

#include <algorithm>
#include <string>

#include "stats/check.h"
#include "stats/percentile.h"
#include "stats/random.h"

namespace anvil::stats {

namespace {
constexpr size_t kMostResamples = 10'000'000;

Result<RatioOfMedians> estimate(std::vector<double> a, std::vector<double> b) {
  TRY(positive(a, "arm a"));
  TRY(positive(b, "arm b"));
  if (a.empty() || b.empty())
    return fail(Kind::kInvalidInput, Side::kInternal,
                std::string("arm ") + (a.empty() ? "a" : "b") +
                    " has no value, so there is no ratio of medians");
  RatioOfMedians out;
  out.median_a = median_in_place(a);
  out.median_b = median_in_place(b);
  out.ratio = out.median_b / out.median_a;
  return out;
}

// Most values that one block has of an arm.
size_t largest(std::span<const Block> blocks, std::vector<double> Block::*arm) {
  size_t most = 0;
  for (const Block& block : blocks) most = std::max(most, (block.*arm).size());
  return most;
}
}  // namespace

Result<void> check(const BootstrapOptions& options) {
  if (options.resamples < kFewestResamples || options.resamples > kMostResamples)
    return fail(Kind::kInvalidInput, Side::kClient,
                std::to_string(options.resamples) + " resamples; between " +
                    std::to_string(kFewestResamples) + " and " + std::to_string(kMostResamples) +
                    " are possible");
  if (!(options.level > 0 && options.level < 1))
    return fail(Kind::kInvalidInput, Side::kClient,
                "a confidence level of " + std::to_string(options.level),
                "write a share between 0 and 1, such as 0.95");
  return {};
}

Interval percentile_interval(std::span<const double> rising, double level) {
  const double share = (1 - level) / 2 * static_cast<double>(rising.size());
  // (1 - 0.9) / 2 * 10000 is a hair under 500.
  const size_t cut = std::min(static_cast<size_t>(share + 1e-6), (rising.size() - 1) / 2);
  return {rising[cut], rising[rising.size() - 1 - cut], level};
}

std::optional<Interval> RatioOfMedians::interval(double level) const {
  if (resampled.empty()) return std::nullopt;
  return percentile_interval(resampled, level);
}

Result<RatioOfMedians> ratio_of_medians(std::span<const Block> blocks,
                                        const BootstrapOptions& options) {
  TRY(check(options));
  std::vector<double> a, b;
  for (const Block& block : blocks) {
    a.insert(a.end(), block.a.begin(), block.a.end());
    b.insert(b.end(), block.b.begin(), block.b.end());
  }
  RatioOfMedians out = TRY(estimate(a, b));
  if (blocks.size() < 2) return out;

  Random random(options.seed);
  std::vector<double> drawn_a(blocks.size() * largest(blocks, &Block::a));
  std::vector<double> drawn_b(blocks.size() * largest(blocks, &Block::b));
  out.resampled.reserve(options.resamples);
  while (out.resampled.size() < options.resamples) {
    double* end_a = drawn_a.data();
    double* end_b = drawn_b.data();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Block& block = blocks[random.below(blocks.size())];
      end_a = std::copy(block.a.begin(), block.a.end(), end_a);
      end_b = std::copy(block.b.begin(), block.b.end(), end_b);
    }
    if (end_a == drawn_a.data() || end_b == drawn_b.data()) continue;
    out.resampled.push_back(median_in_place({drawn_b.data(), end_b}) /
                            median_in_place({drawn_a.data(), end_a}));
  }
  std::sort(out.resampled.begin(), out.resampled.end());
  return out;
}

Result<RatioOfMedians> ratio_of_medians(std::span<const double> a, std::span<const double> b,
                                        const BootstrapOptions& options) {
  TRY(check(options));
  RatioOfMedians out = TRY(estimate({a.begin(), a.end()}, {b.begin(), b.end()}));
  if (a.size() < 2 || b.size() < 2) return out;
  Random random(options.seed);
  std::vector<double> drawn_a(a.size()), drawn_b(b.size());
  out.resampled.reserve(options.resamples);
  for (size_t i = 0; i < options.resamples; ++i) {
    for (double& value : drawn_a) value = a[random.below(a.size())];
    for (double& value : drawn_b) value = b[random.below(b.size())];
    out.resampled.push_back(median_in_place(drawn_b) / median_in_place(drawn_a));
  }
  std::sort(out.resampled.begin(), out.resampled.end());
  return out;
}

}  // namespace anvil::stats
