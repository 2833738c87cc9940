#include "stats/rank_tests.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "stats/check.h"
#include "stats/percentile.h"

namespace anvil::stats {

namespace {
constexpr size_t kMostSignedRanks = 300;
constexpr size_t kMostRankSumValues = 100;

tl::unexpected<Error> too_many(size_t n, size_t most, std::string_view what) {
  return fail(Kind::kTooLarge, Side::kInternal,
              std::to_string(n) + " " + std::string(what) + "; at most " + std::to_string(most) +
                  " are computed exactly");
}

tl::unexpected<Error> nothing(std::string_view what) {
  return fail(Kind::kInvalidInput, Side::kInternal, std::string(what) + ": no values");
}

// Twice the mean rank of each value, which is whole: tied values share the mean of their ranks.
std::vector<size_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size()), ranks(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  for (size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (size_t i = from; i < to; ++i) ranks[order[i]] = from + 1 + to;
  }
  return ranks;
}

// Two-sided p from the weights of every possible sum: twice the smaller tail, at most 1.
double two_sided(const std::vector<double>& weight, size_t observed) {
  double low = 0, high = 0, all = 0;
  for (size_t sum = 0; sum < weight.size(); ++sum) {
    all += weight[sum];
    if (sum <= observed) low += weight[sum];
    if (sum >= observed) high += weight[sum];
  }
  return std::min(1.0, 2 * std::min(low, high) / all);
}
}  // namespace

Result<double> hodges_lehmann(std::span<const double> differences) {
  TRY(finite(differences, "paired differences"));
  const size_t n = differences.size();
  if (n == 0) return nothing("Hodges-Lehmann shift");
  if (n > kMostPairs || n * (n + 1) / 2 > kMostPairs)
    return too_many(n, 7'070, "paired differences");
  std::vector<double> averages;
  averages.reserve(n * (n + 1) / 2);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i; j < n; ++j) averages.push_back(differences[i] / 2 + differences[j] / 2);
  return median_in_place(averages);
}

Result<double> hodges_lehmann(std::span<const double> a, std::span<const double> b) {
  TRY(finite(a, "arm a"));
  TRY(finite(b, "arm b"));
  if (a.empty() || b.empty()) return nothing("Hodges-Lehmann shift");
  if (a.size() > kMostPairs / b.size())
    return too_many(std::max(a.size(), b.size()), kMostPairs / std::min(a.size(), b.size()),
                    "values of one arm");
  std::vector<double> shifts;
  shifts.reserve(a.size() * b.size());
  for (const double from : a)
    for (const double to : b) shifts.push_back(to - from);
  return median_in_place(shifts);
}

Result<SignedRank> wilcoxon_signed_rank(std::span<const double> differences, double alpha) {
  TRY(finite(differences, "paired differences"));
  SignedRank out;
  out.pairs = differences.size();
  std::vector<double> sizes;
  std::vector<bool> above;
  for (const double difference : differences) {
    if (difference == 0) continue;
    sizes.push_back(std::fabs(difference));
    above.push_back(difference > 0);
  }
  const size_t n = sizes.size();
  out.zeros = out.pairs - n;
  if (n > kMostSignedRanks) return too_many(n, kMostSignedRanks, "non-zero differences");
  out.can_reject = std::ldexp(2.0, -static_cast<int>(n)) < alpha;
  if (n == 0) return out;

  const std::vector<size_t> ranks = doubled_ranks(sizes);
  const size_t all = std::accumulate(ranks.begin(), ranks.end(), size_t{0});
  size_t positive_sum = 0;
  for (size_t i = 0; i < n; ++i)
    if (above[i]) positive_sum += ranks[i];
  // Chance of every sum of positive ranks: each rank counts or not, with one half.
  std::vector<double> chance(all + 1, 0);
  chance[0] = 1;
  size_t reached = 0;
  for (const size_t rank : ranks) {
    reached += rank;
    for (size_t sum = reached + 1; sum-- > 0;)
      chance[sum] = 0.5 * (chance[sum] + (sum >= rank ? chance[sum - rank] : 0));
  }
  out.w_plus = static_cast<double>(positive_sum) / 2;
  out.w_minus = static_cast<double>(all - positive_sum) / 2;
  out.p_two_sided = two_sided(chance, positive_sum);
  return out;
}

Result<RankSum> mann_whitney(std::span<const double> a, std::span<const double> b) {
  TRY(finite(a, "arm a"));
  TRY(finite(b, "arm b"));
  if (a.empty() || b.empty()) return nothing("Mann-Whitney test");
  if (a.size() + b.size() > kMostRankSumValues)
    return too_many(a.size() + b.size(), kMostRankSumValues, "values of both arms");
  std::vector<double> pooled(b.begin(), b.end());
  pooled.insert(pooled.end(), a.begin(), a.end());
  const std::vector<size_t> ranks = doubled_ranks(pooled);
  const size_t all = std::accumulate(ranks.begin(), ranks.end(), size_t{0});
  const size_t observed = std::accumulate(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(b.size()), size_t{0});

  // Ways to choose as many ranks as b has values, by their sum.
  const size_t chosen = b.size();
  std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(all + 1, 0));
  ways[0][0] = 1;
  for (const size_t rank : ranks)
    for (size_t k = chosen; k-- > 0;)
      for (size_t sum = 0; sum + rank <= all; ++sum) ways[k + 1][sum + rank] += ways[k][sum];
  RankSum out;
  out.u = static_cast<double>(observed) / 2 -
          static_cast<double>(chosen) * static_cast<double>(chosen + 1) / 2;
  out.p_two_sided = two_sided(ways[chosen], observed);
  return out;
}

}  // namespace anvil::stats
