"""anvil report on invented runs and campaigns: rows for spreadsheets and scripts, tables for posts. No engine takes part."""
import csv
import io
import json
import pathlib
import subprocess

import pytest

import harness


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    tool = pathlib.Path(harness.anvil_bin()).parent / "src" / "report" / "anvil_sample_run"
    assert tool.exists(), f"{tool} is not built: cmake --build the target anvil_sample_run"
    anvil = harness.Anvil(folder / "home", folder / "runs")
    anvil.home.mkdir()
    anvil.runs.mkdir()
    subprocess.run([tool, anvil.runs / "load", "bench"], check=True)
    subprocess.run([tool, anvil.runs / "checked", "full"], check=True)
    subprocess.run([tool, anvil.runs / "campaign", "campaign", "exploratory"], check=True)
    return anvil


def test_rows_as_csv_and_as_json_lines_say_the_same(samples):
    table = samples.run("report", samples.runs / "load", "--format", "csv")
    lines = samples.run("report", samples.runs / "load", "--format", "jsonl")
    assert table.code == 0 and lines.code == 0, (table, lines)
    rows = list(csv.DictReader(io.StringIO(table.out)))
    objects = [json.loads(line) for line in lines.out.splitlines()]
    assert len(rows) == len(objects) == 616, "each measured request once"
    for row, each in zip(rows, objects):
        assert float(row["ttfo_ms"]) == each["ttfo_ms"]
        assert row["cached_tokens"] == "" and each["cached_tokens"] is None, "unknown is not 0"
        assert len(row["chunk_gaps_ms"].split()) == len(each["chunk_gaps_ms"])


def test_rows_leave_out_what_was_not_measured_and_keep_failures(samples, tmp_path):
    out = tmp_path / "rows.csv"
    done = samples.run("report", "checked", "--runs-dir", samples.runs, "--format", "csv", "-o", out, "--json")
    assert done.code == 0 and done.json["file"] == str(out), done
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["purpose"] for row in rows} == {"lane"}
    failed = [row for row in rows if row["outcome"] != "ok"]
    assert failed and all(row["ttfo_ms"] == "" and row["error_class"] for row in failed)


def test_a_campaign_is_rendered_where_a_run_is_asked_for(samples):
    for form, words in (("html", "<b>EXPLORATORY</b>"), ("md", "| Lane | Metric | A | B | B / A |"), ("term", "EXPLORATORY: ")):
        done = samples.run("report", "campaign", "--runs-dir", samples.runs, "--format", form, timeout=300)
        assert done.code == 0 and words in done.out, done
    done = samples.run("report", samples.runs / "campaign", "--format", "csv", "--json")
    assert done.code == 2, done
    assert "is a campaign" in done.json["error"]["detail"] and "runs" in done.json["error"]["hint"]
