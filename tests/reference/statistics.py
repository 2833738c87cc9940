#!/usr/bin/env python3
"""Prints the reference values that the tests of src/stats compare with, computed by SciPy and by plain enumeration.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install scipy && /tmp/reference/bin/python tests/reference/statistics.py
"""
import itertools
import math

import numpy as np
import scipy
from scipy import stats

A = [10.1, 9.7, 10.4, 9.9, 10.0, 10.6, 9.8, 10.2]
B = [9.4, 9.6, 10.3, 9.1, 9.5, 9.9, 9.2, 9.8]
TIED = [1, 1, -1, 2, 2, -3, 4, 0, 5]


def show(name, value):
    print(f"{name:44} {value!r}" if not isinstance(value, float) else f"{name:44} {value:.17g}")


def signed_rank_by_enumeration(differences):
    kept = [d for d in differences if d != 0]
    ranks = stats.rankdata(np.abs(kept))
    observed = sum(r for r, d in zip(ranks, kept) if d > 0)
    sums = [sum(r for r, s in zip(ranks, signs) if s) for signs in itertools.product((0, 1), repeat=len(kept))]
    low = sum(s <= observed for s in sums) / len(sums)
    high = sum(s >= observed for s in sums) / len(sums)
    return observed, min(1.0, 2 * min(low, high))


def floor(q):
    n = 2
    while not stats.binom.cdf(1, n, 1 - q) < 0.01:
        n += 1
    return n


print("scipy", scipy.__version__)
for x in (0.1, 1, 2.5, 7, 100.5, 4000):
    show(f"log_gamma({x})", float(scipy.special.gammaln(x)))
for a, b, x in ((0.5, 0.5, 0.3), (2, 3, 0.4), (10, 1, 0.95), (500, 600, 0.45), (6630, 7, 0.999)):
    show(f"incomplete_beta({a}, {b}, {x})", float(scipy.special.betainc(a, b, x)))
for p, df in ((0.975, 2), (0.975, 1), (0.8, 5), (0.995, 30), (0.1, 4)):
    show(f"student_t_quantile({p}, {df})", float(stats.t.ppf(p, df)))
show("student_t_two_sided(2.5, 7)", float(2 * stats.t.sf(2.5, 7)))
for q in (0.5, 0.9, 0.95, 0.99, 0.999):
    show(f"sample_floor({q})", floor(q))
show("binomial_at_most(5, 1000, 0.01)", float(stats.binom.cdf(5, 1000, 0.01)))
show("clopper_pearson(7, 10)", tuple(map(float, stats.binomtest(7, 10).proportion_ci(0.95))))
show("clopper_pearson(0, 27)", tuple(map(float, stats.binomtest(0, 27).proportion_ci(0.95))))
d = [b - a for a, b in zip(A, B)]
show("hodges_lehmann(B - A)", float(np.median([(d[i] + d[j]) / 2 for i in range(8) for j in range(i, 8)])))
show("hodges_lehmann(A, B)", float(np.median([b - a for a in A for b in B])))
show("signed rank of B - A", signed_rank_by_enumeration([round(v, 10) for v in d]))
show("signed rank with ties and a zero", signed_rank_by_enumeration(TIED))
show("scipy wilcoxon of 1..12, -3 and -7", float(stats.wilcoxon([1, 2, -3, 4, 5, 6, -7, 8, 9, 10, 11, 12], method="exact").pvalue))
show("mann_whitney without ties", float(stats.mannwhitneyu([1.1, 2.2, 3.3, 4.4, 9.9], [5.5, 6.6, 7.7, 8.8], method="exact").pvalue))
k = stats.ks_2samp(A, B, method="exact")
show("ks_two_sample(A, B)", (float(k.statistic), float(k.pvalue)))
k = stats.ks_2samp(list(range(50)), [v + 9.5 for v in range(70)], method="exact")
show("ks_two_sample(0..49, 9.5..78.5)", (float(k.statistic), float(k.pvalue)))
show("wasserstein1(A, B)", float(stats.wasserstein_distance(A, B)))
show("wasserstein1([0, 1, 3], [5, 6])", float(stats.wasserstein_distance([0, 1, 3], [5, 6])))
show("a12(A, B)", float(np.mean([(a > b) + (a == b) / 2 for a in A for b in B])))
show("ks_to_exponential(A)", float(stats.kstest(A, "expon", args=(0, np.mean(A))).statistic))
X, Y = list(range(8)), A
r = stats.linregress(X, Y)
half = stats.t.ppf(0.975, 6) * r.stderr
show("linear_slope(0..7, A)", tuple(map(float, (r.slope, r.intercept, r.stderr, r.pvalue, r.slope - half, r.slope + half))))
means = [np.mean(A[i:i + 2]) for i in (0, 2, 4, 6)]
se = np.std(means, ddof=1) / 2
half = stats.t.ppf(0.975, 3) * se
show("batch_means(A, 4)", tuple(map(float, (np.mean(means), se, np.mean(means) - half, np.mean(means) + half))))
ratios = [1.02, 0.97, 1.05, 0.99]
s = math.sqrt(np.mean(np.log(ratios) ** 2))
show("noise_floor(ratios, 6 pairs)", float(math.exp(stats.t.ppf(0.975, 4) * math.sqrt(math.pi / 2) * s / math.sqrt(6))))
show("minimum_detectable_ratio(0.05, 10)", float(math.exp((stats.t.ppf(0.975, 9) + stats.t.ppf(0.8, 9)) * 0.05 / math.sqrt(10))))
rng = np.random.default_rng(1)
pick = rng.integers(0, 8, (200_000, 8))
ratio = np.sort(np.median(np.array(B)[pick], axis=1) / np.median(np.array(A)[pick], axis=1))
show("block bootstrap of B / A, 200,000 draws", (float(ratio[5000]), float(ratio[-5001])))
items = [3, 2, 3, 0, 1, 3, 3, 2, 3]  # passes of 3 attempts each
chances = {0: 1.0}
for _ in items:
    after = {}
    for total, chance in chances.items():
        for item in items:
            after[total + item] = after.get(total + item, 0) + chance / len(items)
    chances = after
cumulative = np.cumsum([chances[total] for total in sorted(chances)])
ends = [sorted(chances)[int(np.searchsorted(cumulative, q))] / 27 for q in (0.05, 0.95)]
show("clustered_pass_rate at 90 %, all draws", ends)
d = 131 / 6000
e = math.sqrt(3000)
show("kolmogorov limit, n = 6000, d = 131/6000", float(scipy.special.kolmogorov((e + 0.12 + 0.11 / e) * d)))
