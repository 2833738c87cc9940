"""The record of a benchmark as Markdown. Pure functions of the raw JSON, so the table can be made again from it."""
import score
import tools

BEGIN, END = "<!-- bench/fidelity/run begins -->", "<!-- bench/fidelity/run ends -->"


def digits(value, least=0):
    """Three significant digits, at most two after the point."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:.{max(least, 0 if size >= 100 else 1 if size >= 10 else 2)}f}"


def spread(summary, key, factor=1.0):
    """The median over the rounds, and their range where there were several."""
    figure = summary.get(key)
    if figure is None:
        return "-"
    low, mid, high = (figure[name] * factor for name in ("min", "median", "max"))
    return digits(mid) if digits(low) == digits(high) else f"{digits(mid)} ({digits(low)} to {digits(high)})"


def percent(summary, key):
    figure = summary.get(key)
    return "-" if figure is None else f"{figure['median'] * 100:.{0 if figure['median'] in (0, 1) else 1}f} %"


def cells(record, with_void=False):
    """{(tool, variant, streams): {"valid": [scores], "void": [(reasons, scores)], "failed": [reason]}}

    `with_void`: the scores of void rounds are among the valid ones too.
    """
    out = {}
    for run in record["runs"]:
        cell = out.setdefault((run["tool"], run["variant"], run["streams"]), {"valid": [], "void": [], "failed": []})
        if run["failed"]:
            cell["failed"].append(run["failed"])
        else:
            if run["void"]:
                cell["void"].append((run["void"], run["scores"]))
            if with_void or not run["void"]:
                cell["valid"].append(run["scores"])
    return out


def title(record, name):
    version = record["versions"].get(name)
    return tools.TOOLS[name].title + (f" {version}" if version else "")


def names(record):
    """The tools of the record in the table's order."""
    present = {run["tool"] for run in record["runs"]} | set(record["missing"])
    return [name for name in tools.TOOLS if name in present]


def row(*columns):
    return "| " + " | ".join(columns) + " |"


def head(*columns):
    return [row(*columns), "|" + "---|" * len(columns)]


def why_not(cell):
    """What stands in place of figures when no round of a cell counts."""
    if cell["failed"]:
        return f"failed: {cell['failed'][-1]}"
    reasons = sorted({reason for void, _ in cell["void"] for reason in void})
    return f"all {len(cell['void'])} rounds void: {'; '.join(reasons)}"


def load_table(record, with_void):
    by_cell = cells(record, with_void)
    streams = sorted({run["streams"] for run in record["runs"] if run["variant"] == "steady"})
    out = head("streams", "client", "first output: error p50, ms", "p99 of its size, ms", "gaps: Wasserstein-1, ms", "median gap: error, %",
               "output tokens exact", "CPU, us/event", "RSS, MiB", "in flight: most, mean", "events/s", "rounds (void)")
    for level in streams:
        for name in names(record):
            cell = by_cell.get((name, "steady", level))
            if cell is None:
                continue
            counted = f"{len(cell['valid'])} ({len(cell['void'])})"
            if not cell["valid"]:
                out.append(row(str(level), title(record, name), why_not(cell), *["-"] * 8, counted))
                continue
            s = score.summarize(cell["valid"])
            out.append(row(str(level), title(record, name), spread(s, "first_output_error_ms_p50"), spread(s, "first_output_error_ms_p99"),
                           spread(s, "gap_wasserstein_ms"), spread(s, "gap_median_error", 100), percent(s, "output_tokens_exact"),
                           spread(s, "cpu_us_per_event"), digits(s["rss_mib"]["median"]),
                           f"{s['in_flight_max']['median']:.0f}, " + (f"{s['in_flight_mean']['median']:.0f}" if s["in_flight_mean"] else "-"),
                           f"{s['events_per_s']['median']:,.0f}", counted))
    return out


def saturation_table(record, with_void):
    by_cell = cells(record, with_void)
    out = head("client", "saturates at, events/s", "highest rate seen, events/s", "whole run at the smallest level: CPU, s")
    for name in names(record):
        if name in record["missing"]:
            out.append(row(title(record, name), f"not run: {record['missing'][name]}", "-", "-"))
            continue
        levels = sorted((streams, score.summarize(cell["valid"])) for (tool, variant, streams), cell in by_cell.items()
                        if tool == name and variant == "steady" and cell["valid"])
        if not levels:
            out.append(row(title(record, name), "no round counts", "-", "-"))
            continue
        first, highest = score.saturation(levels)
        out.append(row(title(record, name), f"{first:,.0f}" if first is not None else "not reached", f"{highest:,.0f}",
                       spread(levels[0][1], "whole_cpu_s")))
    return out


def variant_table(record, variants):
    """What each client makes of streams that are not one token per event. Shown against the truth of the same run."""
    by_cell = cells(record)
    out = head("stream", "client", "first output: told / true, ms", "per token: told / true, ms", "output tokens exact", "rounds (void)")
    for variant, text in variants.items():
        for name in names(record):
            for (tool, of, _), cell in by_cell.items():
                if (tool, of) != (name, variant):
                    continue
                # What a client makes of a stream does not depend on a busy host as its stamps do.
                rounds = cell["valid"] or [scores for _, scores in cell["void"]]
                counted = f"{len(cell['valid'])} ({len(cell['void'])})"
                if not rounds:
                    out.append(row(text, title(record, name), why_not(cell), "-", "-", counted))
                    continue
                s = score.summarize(rounds)
                pair = lambda what: " / ".join(digits(s[f"{what}_{side}"]["median"] if s[f"{what}_{side}"] else None) for side in ("told", "true"))
                out.append(row(text, title(record, name), pair("first_output_ms"), pair("per_token_ms"),
                               percent(s, "output_tokens_exact"), counted))
    return out


def doubts(record):
    """What the clients themselves hold against their figures, by level: a list of Markdown lines."""
    found = {}
    for run in record["runs"]:
        for text in run["doubts"]:
            found.setdefault((run["tool"], text), []).append(run["streams"])
    return [f"- {title(record, tool)} at {', '.join(map(str, sorted(set(levels))))} streams ({len(levels)} runs): {text}"
            for (tool, text), levels in found.items()]


def sources(record):
    return head("client", "first output", "gap") + [row(title(record, name), f"`{tools.TOOLS[name].first_output}`", tools.TOOLS[name].gap)
                                                    for name in names(record)]


def markdown(record, variants, with_void=False):
    """The section between the two marks. `with_void`: figures of void rounds too, for a look at a machine that is not quiet."""
    machine, plan = record["machine"], record["plan"]
    voids = sum(1 for run in record["runs"] if run["void"])
    lines = [
        BEGIN,
        f"{machine['date']}, {machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}; engine on core {plan['engine_cpus']}, client on "
        f"{plan['tool_cpus']}. {len(record['runs'])} runs, {voids} of them void. Medians over the rounds that count, in brackets their range.",
        f"Each stream: first output {plan['first_ms']} ms after the request, then {plan['output_tokens'] - 1} events {plan['gap_ms']} ms apart, "
        "one token each. Truth is the engine's ledger:",
        "for first output, the end of the write of the first event with output, minus the kernel's stamp of the request's last byte.",
        "A client *saturates* at the smallest event rate at which the p50 of its error passes 5 ms, or its median gap is off by more than 5 %.",
    ]
    if record.get("sanitized"):
        lines += ["", "**Anvil was built with sanitizers here: its own CPU and memory are several times those of a release build.**"]
    if with_void:
        lines += ["", "**The void rounds are counted here: what else ran on the machine is in these figures.**"]
    lines += ["", *load_table(record, with_void), "", *saturation_table(record, with_void), ""]
    shown = variant_table(record, variants)
    if len(shown) > 2:
        lines += ["Other streams, one level:", "", *shown, ""]
    if doubts(record):
        lines += ["What the clients themselves hold against these runs:", "", *doubts(record), ""]
    lines += ["What is compared, by the client's own name:", "", *sources(record), END]
    return "\n".join(lines) + "\n"


def insert(document, section):
    """The document with its marked part replaced; appended under a heading of its own where there is none yet."""
    if BEGIN in document and END in document:
        before, rest = document.split(BEGIN, 1)
        return before + section.rstrip("\n") + rest.split(END, 1)[1]
    return document.rstrip("\n") + "\n\n## Beside other load clients\n\nMade by `bench/fidelity/run --write docs/performance.md`.\n\n" + section
