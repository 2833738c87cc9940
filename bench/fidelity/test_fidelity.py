"""What the benchmark computes, on numbers worked out by hand and on small outputs in each tool's own form."""
import copy
import json
import pathlib
import random
import sys
import tempfile
import tomllib
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import engine  # noqa: E402
import score  # noqa: E402
import table  # noqa: E402
import tools  # noqa: E402

RECORDED = HERE / "recorded"
MS = 1_000_000


def truth(id=None, received=0, at=(100, 150, 200), tokens=1, extra=2, prompt=16):
    """A request whose output events were written at `at` ms after its last byte."""
    return score.Truth(id=id, received_ns=received * MS, outputs=[((received + moment) * MS, tokens) for moment in at], events=len(at) + extra,
                       ended_ns=(received + at[-1] + 1) * MS, output_tokens=tokens * len(at), prompt_tokens=prompt)


def report(first, id=None, start=None, gaps=(50.0, 50.0), tokens=3, mean=None):
    return tools.Report(id=id, start_ns=None if start is None else start * MS, first_output_ms=first, gaps_ms=None if gaps is None else list(gaps),
                        mean_gap_ms=mean, per_token_ms=50.0, output_tokens=tokens, prompt_tokens=16)


class Adapters(unittest.TestCase):
    """Only successful requests count; times in ms; a request id where the tool sends one."""

    def test_guidellm(self):
        first, second = tools.guidellm_read(RECORDED / "guidellm")
        self.assertEqual((first.first_output_ms, second.first_output_ms), (100.5, 101.5))
        self.assertEqual((first.gaps_ms, first.mean_gap_ms, first.output_tokens, first.prompt_tokens), (None, 50.25, 5, 16))
        self.assertIsNone(first.id)
        self.assertEqual(second.start_ns - first.start_ns, 10**9)
        self.assertEqual(tools.guidellm_doubts(RECORDED / "guidellm"), ["root_late"])

    def test_aiperf(self):
        first, second = tools.aiperf_read(RECORDED / "aiperf")
        self.assertEqual((first.first_output_ms, first.gaps_ms, first.output_tokens), (101.25, [50.0, 49.5, 51.0, 50.0], 5))
        self.assertEqual(second.id, "00000000-0000-0000-0000-000000000001")

    def test_vllm(self):
        first, second = tools.vllm_read(RECORDED / "vllm")
        self.assertEqual((first.id, second.id), ("fidelity-0", "fidelity-1"))
        self.assertAlmostEqual(first.first_output_ms, 100.5)
        self.assertEqual([round(gap, 3) for gap in first.gaps_ms], [50, 49.5, 51, 50, 0.2])
        self.assertAlmostEqual(first.per_token_ms, (0.301 - 0.1005) / 4 * 1e3)

    def test_anvil(self):
        first, second = tools.anvil_read(RECORDED / "anvil")
        self.assertEqual((first.first_output_ms, first.gaps_ms, first.output_tokens, first.per_token_ms), (100.2, [50.0] * 4, 5, 50.0))
        self.assertEqual((second.first_output_ms, second.id), (101.2, "scripted-4"))
        self.assertEqual(tools.anvil_doubts(RECORDED / "anvil"), [])

    def test_output_that_is_missing_or_of_another_version(self):
        for tool in tools.TOOLS.values():
            with tempfile.TemporaryDirectory() as folder, self.subTest(tool.name):
                with self.assertRaises(tools.Unreadable):
                    tool.read(pathlib.Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "vllm.json").write_text('{"errors": [""], "ttfts": [0.1]}')
            with self.assertRaisesRegex(tools.Unreadable, "output_lens.*another version"):
                tools.vllm_read(pathlib.Path(folder))

    def test_commands_carry_the_load(self):
        load = tools.Load(url="http://127.0.0.1:1", model="scripted", streams=37, requests=74, prompt_tokens=16, output_tokens=32,
                          tokenizer=pathlib.Path("/t"), folder=pathlib.Path("/f"))
        for tool in tools.TOOLS.values():
            text = " ".join(map(str, tool.command("program", load)))
            with self.subTest(tool.name):
                for part in ("http://127.0.0.1:1", "scripted", "37", "74", "32"):
                    self.assertIn(part, text)


class Scores(unittest.TestCase):
    def test_wasserstein_of_shifted_and_unequal_samples(self):
        self.assertEqual(score.wasserstein1([1, 2, 3], [2, 3, 4]), 1)
        self.assertAlmostEqual(score.wasserstein1([0, 1], [0, 0.5, 1]), 1 / 6)
        self.assertAlmostEqual(score.wasserstein1([0, 40] * 10, [20]), 20)
        draw = random.Random(1)
        a, b = [draw.gauss(0, 1) for _ in range(35)], [draw.gauss(1, 2) for _ in range(14)]
        # The same by brute force: both repeated to one size, sorted, paired.
        brute = sum(abs(x - y) for x, y in zip(sorted(a * 2), sorted(b * 5))) / 70
        self.assertAlmostEqual(score.wasserstein1(a, b), brute)
        with self.assertRaises(ValueError):
            score.wasserstein1([], [1])

    def test_nearest_rank(self):
        self.assertEqual([score.nearest_rank([4, 1, 3, 2], q) for q in (0.25, 0.5, 0.51, 0.99, 1)], [1, 2, 3, 4, 4])

    def test_join_by_id_ignores_requests_of_a_probe(self):
        truths = [truth("probe"), truth("a", 10), truth("b", 20, at=(120, 170, 220))]
        pairs, how = score.join([report(121, "b", 20), report(101, "a", 10)], truths)
        self.assertEqual((how, [t.id for _, t in pairs]), ("id", ["b", "a"]))

    def test_join_by_start_crosses_clocks_and_skips_what_came_before(self):
        wall = 5_000_000_000_000
        truths = [truth("probe", 10), truth("x", 1000), truth("y", 2000)]
        reports = [report(101, start=1999 + wall // MS), report(102, start=999 + wall // MS)]
        pairs, how = score.join(reports, truths, wall)
        self.assertEqual((how, [(r.first_output_ms, t.id) for r, t in pairs]), ("start", [(102, "x"), (101, "y")]))

    def test_what_only_warmed_up_is_not_counted(self):
        s = score.score([report(101, "a")], [truth("warm-up"), truth("a", 5000)], 1)
        self.assertEqual((s["requests"], s["requests_in_ledger"], s["output_events"], s["in_flight_max"], s["began_ns"]), (1, 2, 3, 1, 5000 * MS))

    def test_join_without_either_pairs_ranks(self):
        pairs, how = score.join([report(130), report(110)], [truth("x", at=(120, 130)), truth("y", at=(100, 110))])
        self.assertEqual((how, [(r.first_output_ms, t.id) for r, t in pairs]), ("rank", [(110, "y"), (130, "x")]))

    def test_scores_of_one_run(self):
        truths = [truth("a"), truth("b", 50), truth("c", 400)]
        reports = [report(101, "a"), report(103, "b", gaps=(51.0, 49.0)), report(95, "c", tokens=4)]
        s = score.score(reports, truths, 2)
        self.assertEqual((s["first_output_error_ms_p50"], s["first_output_error_ms_p99"]), (1, 5))
        self.assertAlmostEqual(s["gap_wasserstein_ms"], 2 / 6)
        self.assertEqual(s["gap_median_error"], 0)
        self.assertAlmostEqual(s["output_tokens_exact"], 2 / 3)
        self.assertEqual((s["in_flight_max"], s["output_events"], s["events"]), (2, 9, 15))
        # 2 at once from 50 to 201 ms, 1 until 251, none until the last arrives at 400.
        self.assertAlmostEqual(s["in_flight_mean"], (2 * 151 + 50) / 350)
        self.assertAlmostEqual(s["events_per_s"], 9 / 0.601)

    def test_one_mean_gap_per_request_is_held_against_true_means(self):
        truths = [truth("a", at=(100, 140, 200)), truth("b", 50, at=(100, 110, 120))]
        distance, error = score.gap_errors([(report(100, gaps=None, mean=55.0), truths[0]), (report(100, gaps=None, mean=11.0), truths[1])])
        self.assertIsNone(distance)
        self.assertAlmostEqual(error, 0.1)

    def test_tokens_of_the_first_event_take_no_time(self):
        self.assertEqual(truth(at=(100, 140, 180, 220, 260), tokens=4).per_token_ms, 10.0)
        self.assertIsNone(truth(at=(300,), tokens=36).per_token_ms)

    def test_saturation_is_the_smallest_rate_past_a_bound(self):
        def level(rate, error, gap=0.0):
            return score.summarize([{"events_per_s": rate, "first_output_error_ms_p50": error, "gap_median_error": gap}])
        self.assertEqual(score.saturation([(1, level(20, 1)), (256, level(5000, 80)), (32, level(600, -6))]), (600, 5000))
        self.assertEqual(score.saturation([(1, level(20, 1)), (32, level(600, 1, 0.06))]), (600, 600))
        self.assertEqual(score.saturation([(1, level(20, 4.9, None))]), (None, 20))


class Engine(unittest.TestCase):
    def test_schedules_are_toml_and_differ_as_declared(self):
        read = {name: tomllib.loads(engine.schedule(name, 100, 50, 32))["stream"][0] for name in engine.VARIANTS}
        self.assertEqual({name: stream["role"] for name, stream in read.items()},
                         {"steady": "none", "role": "empty", "chunks": "none", "no-usage": "none"})
        self.assertEqual(read["chunks"]["chunk_tokens"], [4])
        self.assertEqual(read["no-usage"]["usage"], "none")

    @staticmethod
    def entry(id, outcome="done", cut=False):
        events = [("head", 1, 0), ("role", 1, 0), ("content", 100, 4), ("content", 150, 4), ("finish", 150, 0), ("done", 151, 0)]
        return json.dumps({"id": id, "arrived_ns": 1000 * MS, "recv_last_byte_ns": 1002 * MS, "outcome": outcome, "cut": cut, "completion_tokens": 8, "prompt_tokens": 24,
                           "events": [{"kind": kind, "write_end_ns": (1000 + at) * MS, "tokens": tokens} for kind, at, tokens in events]}) + "\n"

    def test_ledger_keeps_whole_answers_and_counts_events_with_output(self):
        end = json.dumps({"summary": {"void": False}})
        truths, summary = engine.read_ledger(self.entry("a") + self.entry("b", "client-closed") + self.entry("c") + end)
        self.assertEqual(([t.id for t in truths], summary), (["a", "c"], {"void": False}))
        self.assertEqual((truths[0].first_output_ms, truths[0].gaps_ms, truths[0].per_token_ms, truths[0].ended_ns), (100, [50], 12.5, 1151 * MS))

    def test_ledger_that_is_cut_or_has_no_end(self):
        with self.assertRaisesRegex(engine.EngineFailed, "too small"):
            engine.read_ledger(self.entry("a", cut=True))
        with self.assertRaisesRegex(engine.EngineFailed, "killed"):
            engine.read_ledger(self.entry("a"))

    def test_tokenizer_counts_words(self):
        with tempfile.TemporaryDirectory() as folder:
            engine.write_tokenizer(pathlib.Path(folder) / "t")
            model = json.loads((pathlib.Path(folder) / "t" / "tokenizer.json").read_text())
            self.assertEqual(model["pre_tokenizer"], {"type": "WhitespaceSplit"})
            self.assertIn(model["model"]["unk_token"], model["model"]["vocab"])


def run_of(tool, streams, round_number, error, variant="steady", void=(), failed=None):
    scores = score.score([report(100 + error, "a", 0)], [truth("a")], 1)
    scores.pop("began_ns"), scores.pop("ended_ns")
    scores.update(cpu_us_per_event=4.0, rss_mib=10.0, whole_cpu_s=1.0)
    return {"tool": tool, "variant": variant, "streams": streams, "round": round_number, "void": list(void), "failed": failed, "doubts": ["root_late"],
            "scores": None if failed else scores}


class Table(unittest.TestCase):
    RECORD = {"machine": {"date": "2026-01-01", "cpu": "Test CPU", "cores": 2, "kernel": "6.1", "memory_mib": 1},
              "plan": {"first_ms": 100.0, "gap_ms": 50.0, "output_tokens": 3, "engine_cpus": "0", "tool_cpus": "1"},
              "versions": {"anvil": "1.0", "aiperf": "0.13.0"}, "missing": {"guidellm": "no matching distribution"}, "sanitized": False,
              "runs": [run_of("anvil", 1, 0, 0.5), run_of("anvil", 1, 1, 0.1), run_of("anvil", 1, 2, 90, void=["host busy"]),
                       run_of("aiperf", 1, 0, 9, void=["host busy"]), run_of("aiperf", 32, 0, 9), run_of("vllm", 32, 0, 0, failed="exit 1: boom"),
                       run_of("anvil", 32, 0, 2, variant="role")]}
    VARIANTS = {"role": "a role event first"}

    def test_medians_ranges_voids_and_reasons(self):
        text = table.markdown(self.RECORD, self.VARIANTS)
        self.assertIn("| 1 | Anvil 1.0 | 0.30 (0.10 to 0.50) |", text)
        self.assertIn("| 2 (1) |", text)
        self.assertIn("all 1 rounds void: host busy", text)
        self.assertIn("failed: exit 1: boom", text)
        self.assertIn("| GuideLLM | not run: no matching distribution |", text)
        self.assertIn("| a role event first | Anvil 1.0 | 102 / 100 |", text)
        self.assertNotIn("sanitizers", text)

    def test_doubts_are_listed_once_with_their_levels(self):
        self.assertIn("- AIPerf 0.13.0 at 1, 32 streams (2 runs): root_late\n", table.markdown(self.RECORD, self.VARIANTS))

    def test_every_row_is_as_wide_as_its_head(self):
        width = 0
        for line in table.markdown(self.RECORD, self.VARIANTS).splitlines():
            if line.startswith("|"):
                width = width or line.count("|")
                self.assertEqual(line.count("|"), width, line)
            else:
                width = 0

    def test_void_rounds_count_only_when_asked_and_the_table_says_so(self):
        text = table.markdown(self.RECORD, self.VARIANTS, with_void=True)
        self.assertIn("| 1 | AIPerf 0.13.0 | 9.00 |", text)
        self.assertIn("void rounds are counted here", text)

    def test_sanitizers_are_named(self):
        record = copy.deepcopy(self.RECORD) | {"sanitized": True}
        self.assertIn("sanitizers", table.markdown(record, self.VARIANTS))

    def test_the_section_is_replaced_in_place_or_appended(self):
        once = table.insert("# Performance\n\ntext\n", table.markdown(self.RECORD, self.VARIANTS))
        self.assertTrue(once.startswith("# Performance\n\ntext\n\n## "))
        again = table.insert(once + "\nafter\n", f"{table.BEGIN}\nnew\n{table.END}\n")
        self.assertEqual(again.count(table.BEGIN), 1)
        self.assertIn(f"{table.BEGIN}\nnew\n{table.END}", again)
        self.assertTrue(again.startswith("# Performance") and again.endswith("\nafter\n"))


if __name__ == "__main__":
    unittest.main()
