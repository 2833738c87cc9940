"""Compares what a tool reported with what the scripted engine's ledger says. Pure functions, standard library only."""
import dataclasses
import math
import statistics


@dataclasses.dataclass
class Truth:
    """One request in the ledger. Times are CLOCK_MONOTONIC nanoseconds."""
    id: str | None
    received_ns: int   # its last byte came in, by the kernel's stamp: a busy engine reads late
    outputs: list      # (write ended, tokens) of each event that carried output
    events: int        # all events written, the ones without output too
    ended_ns: int      # the last write ended
    output_tokens: int
    prompt_tokens: int | None

    @property
    def first_output_ms(self):
        return (self.outputs[0][0] - self.received_ns) / 1e6

    @property
    def gaps_ms(self):
        return [(after[0] - before[0]) / 1e6 for before, after in zip(self.outputs, self.outputs[1:])]

    @property
    def per_token_ms(self):
        """Of the tokens after the first event, whose own tokens came at once."""
        rest = sum(tokens for _, tokens in self.outputs[1:])
        return (self.outputs[-1][0] - self.outputs[0][0]) / 1e6 / rest if rest else None


def nearest_rank(values, q):
    """The smallest value that at least the share q of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def wasserstein1(a, b):
    """The area between the two empirical distribution functions, in the unit of the values; any two sizes."""
    if not a or not b:
        raise ValueError("a distribution without values")
    a, b = sorted(a), sorted(b)
    i = j = 0
    at = 0.0
    area = 0.0
    while i < len(a) and j < len(b):
        until = min((i + 1) / len(a), (j + 1) / len(b))
        area += (until - at) * abs(a[i] - b[j])
        # Integers decide which step ends, so that rounding cannot skip one.
        left, right = (i + 1) * len(b), (j + 1) * len(a)
        i, j = i + (left <= right), j + (right <= left)
        at = until
    return area


def join(reports, truths, wall_minus_monotonic_ns=0):
    """Pairs of (Report, Truth), and how they were found: "id", "start", or "rank".

    By the request id where the tool sent one. Else by the order of the starts, which pairs requests that began within
    the same instant at will; they are alike, so the distribution of the error keeps its shape. Else both sides sorted
    by their time to first output, which flatters the tool: the error cannot be smaller under any other pairing.
    """
    by_id = {truth.id: truth for truth in truths if truth.id}
    if reports and all(report.id in by_id for report in reports):
        return [(report, by_id[report.id]) for report in reports], "id"
    if all(report.start_ns is not None for report in reports):
        left = sorted(truths, key=lambda truth: truth.received_ns)
        pairs = []
        for report in sorted(reports, key=lambda report: report.start_ns):
            if len(left) > len(reports) - len(pairs):  # the ledger holds more than was measured: skip what began before
                began = report.start_ns - wall_minus_monotonic_ns
                while len(left) > len(reports) - len(pairs) and left[0].received_ns < began:
                    left.pop(0)
            if not left:
                break
            pairs.append((report, left.pop(0)))
        return pairs, "start"
    ordered = sorted(truths, key=lambda truth: truth.first_output_ms)
    return list(zip(sorted(reports, key=lambda report: report.first_output_ms), ordered)), "rank"


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def gap_errors(pairs):
    """(Wasserstein distance in ms or None, error of the median as a share of the true median or None)."""
    if all(report.gaps_ms is not None for report, _ in pairs):
        told = [gap for report, _ in pairs for gap in report.gaps_ms]
        true = [gap for _, truth in pairs for gap in truth.gaps_ms]
        if not told or not true:
            return None, None
        return wasserstein1(told, true), statistics.median(told) / statistics.median(true) - 1
    told = median(report.mean_gap_ms for report, _ in pairs)
    true = median(statistics.fmean(truth.gaps_ms) for _, truth in pairs if truth.gaps_ms)
    return None, (told / true - 1 if told is not None and true else None)


def in_flight(truths, asked):
    """(most, mean) requests in the engine at once; the mean from the moment that `asked` was reached to the last arrival."""
    steps = sorted([(truth.received_ns, 1) for truth in truths] + [(truth.ended_ns, -1) for truth in truths])
    last_arrival = max(truth.received_ns for truth in truths)
    count = most = 0
    since, area, began = None, 0, None
    for at, step in steps:
        if began is not None and at <= last_arrival:
            area += count * (at - since)
        count += step
        most = max(most, count)
        if began is None and count >= asked:
            began = at
        since = at
    mean = area / (last_arrival - began) if began is not None and last_arrival > began else None
    return most, mean


def score(reports, truths, asked_streams, wall_minus_monotonic_ns=0):
    """Every figure of one run that the ledger and the tool's output give; None where a tool does not report it."""
    pairs, joined_by = join(reports, truths, wall_minus_monotonic_ns)
    if not pairs:
        raise ValueError("the tool reported no successful request")
    errors = [report.first_output_ms - truth.first_output_ms for report, truth in pairs]
    distance, of_median = gap_errors(pairs)
    tokens = [report.output_tokens == truth.output_tokens for report, truth in pairs]
    prompt = [report.prompt_tokens == truth.prompt_tokens for report, truth in pairs if truth.prompt_tokens is not None]
    # From here on only what was measured: warm-up and probes of a tool are in the ledger too.
    measured = [truth for _, truth in pairs]
    most, mean = in_flight(measured, asked_streams)
    began, ended = min(truth.received_ns for truth in measured), max(truth.ended_ns for truth in measured)
    events = sum(len(truth.outputs) for truth in measured)
    return {
        "joined_by": joined_by,
        "requests": len(pairs),
        "requests_in_ledger": len(truths),
        "first_output_error_ms_p50": nearest_rank(errors, 0.5),
        "first_output_error_ms_p99": nearest_rank([abs(error) for error in errors], 0.99),
        "first_output_ms_told": median(report.first_output_ms for report, _ in pairs),
        "first_output_ms_true": median(truth.first_output_ms for _, truth in pairs),
        "gap_wasserstein_ms": distance,
        "gap_median_error": of_median,
        "per_token_ms_told": median(report.per_token_ms for report, _ in pairs),
        "per_token_ms_true": median(truth.per_token_ms for _, truth in pairs),
        "output_tokens_exact": sum(tokens) / len(tokens),
        "prompt_tokens_exact": sum(prompt) / len(prompt) if prompt else None,
        "in_flight_max": most,
        "in_flight_mean": mean,
        "output_events": events,
        "events": sum(truth.events for truth in measured),
        "events_per_s": events / ((ended - began) / 1e9),
        "began_ns": began,
        "ended_ns": ended,
    }


SATURATED_FIRST_OUTPUT_MS = 5.0
SATURATED_GAP = 0.05


def saturated(summary):
    """Whether the median over the rounds of one level passes a bound: 5 ms of time to first output, 5 % of the median gap."""
    gap = summary.get("gap_median_error")
    return abs(summary["first_output_error_ms_p50"]["median"]) > SATURATED_FIRST_OUTPUT_MS or \
        (gap is not None and abs(gap["median"]) > SATURATED_GAP)


def summarize(rounds):
    """{figure: {"median", "min", "max"}} over the scores of one tool at one level; None where no round has the figure."""
    out = {}
    for key in rounds[0]:
        values = [scores[key] for scores in rounds if isinstance(scores.get(key), (int, float))]
        out[key] = {"median": statistics.median(values), "min": min(values), "max": max(values)} if values else None
    return out


def saturation(levels):
    """(streams, summary) pairs, ascending by events/s -> (the rate where a bound is passed first or None, the highest rate seen)."""
    ordered = sorted((summary for _, summary in levels), key=lambda summary: summary["events_per_s"]["median"])
    first = next((summary["events_per_s"]["median"] for summary in ordered if saturated(summary)), None)
    return first, ordered[-1]["events_per_s"]["median"] if ordered else None
