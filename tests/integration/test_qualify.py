"""From start to verified evidence: the real llama.cpp server, the real model, the shipped files."""
import re

import tamper
from harness import DECISIONS, STEPS, read_json, read_jsonl, rows


def test_it_ends_with_a_decision_in_which_every_gate_has_a_value(qualified):
    _, done = qualified
    assert done.code in (0, 1), done
    answer = done.json  # exactly one object on stdout
    assert answer["decision"] in DECISIONS and answer["failed_step"] is None, done
    assert answer["gates"], done
    for gate in answer["gates"]:
        assert gate["verdict"] in ("pass", "fail") and gate["value"] is not None, gate
        assert {"id", "verdict", "value", "threshold", "unit", "where"} <= set(gate), gate
    assert done.code == (0 if all(gate["verdict"] == "pass" for gate in answer["gates"]) else 1), done
    if answer["decision"] != "promote-eligible":
        assert answer["reasons"], done


def test_progress_in_a_pipe_is_one_line_per_phase(qualified):
    _, done = qualified
    assert "\r" not in done.err and "\x1b" not in done.err
    for step in ("launch", "lanes", "ladder"):
        assert step in done.err, done.err


def test_verify_agrees(qualified, run):
    anvil, _ = qualified
    done = anvil.run("verify", run, "--json")
    assert done.code == 0, done
    assert done.json["ok"] and done.json["complete"] and done.json["mismatches"] == [], done
    assert done.json["rows"] == len(rows(run)) > 10 and done.json["numbers"] > 50, done


def test_every_step_is_in_the_journal_in_order(run):
    journal = read_jsonl(run / "journal.jsonl")
    began = [e["step"] for e in journal if e["event"] == "begin"]
    assert began == [step for step in STEPS if step in began]
    assert {"launch", "identity", "checks", "lanes", "ladder", "stop", "derive", "decide", "report"} <= set(began)
    assert [e["seq"] for e in journal] == list(range(len(journal)))
    assert all(a["mono_ns"] <= b["mono_ns"] for a, b in zip(journal, journal[1:]))


def test_the_chain_is_unbroken(run):
    manifest = read_json(run / "manifest.json")
    assert manifest["status"] == "sealed"
    for name in ("recipe", "policy", "suite", "plan"):
        assert re.fullmatch(r"[0-9a-f]{64}", manifest[name]["digest"]), manifest[name]
    assert manifest["recipe"]["pinned"] is (manifest["recipe"]["unpinned"] == []), manifest["recipe"]
    listed = {artifact["name"] for artifact in manifest["artifacts"]}
    on_disk = {path.name for path in run.iterdir() if path.is_file()} - {"manifest.json"}
    assert on_disk - listed <= {"journal.jsonl"}, on_disk - listed
    assert all(path.stat().st_size <= 1 << 20 for path in run.iterdir())


def test_identity_is_observed(run):
    fields = {field["field"]: field for field in read_json(run / "identity.json")["fields"]}
    assert fields["model.served_name"]["verdict"] == "match"
    assert fields["serving.context_tokens"]["verdict"] == "match"
    assert fields["serving.max_sequences"]["verdict"] == "match"
    assert not [field for field in fields.values() if field["verdict"] == "mismatch"]
    for field in fields.values():
        assert field["verdict"] in ("match", "mismatch", "not observable") and (field["verdict"] == "not observable" or field["source"])


def test_checks_keep_request_and_answer_and_can_fail(run):
    checks = read_json(run / "checks.json")["checks"]
    assert len({check["id"] for check in checks}) >= 6
    for check in checks:
        assert check["verdict"] in ("pass", "fail", "skipped") and check["proves"], check["id"]
        if check["verdict"] != "skipped":
            assert check["rows"] and check["request"], check["id"]
        if check["verdict"] == "fail":
            assert check["detail"], check["id"]
    # A small base model: some checks really pass and some really fail.
    assert {"pass", "fail"} <= {check["verdict"] for check in checks}


def test_ladder_hits_its_targets_and_proves_its_cache_states(run):
    rungs = read_json(run / "results.json")["ladder"]["rungs"]
    assert len(rungs) >= 4
    for rung in rungs:
        if not rung["accepted"]:
            assert rung["refused"], rung
            continue
        assert abs(rung["deviation_tokens"]) <= max(2, rung["target"] / 1000), rung
        if rung["state"] == "cold":
            assert rung["cached_tokens"] == 0, rung
        else:
            assert rung["cached_tokens"] > 0.9 * rung["prompt_tokens"], rung
        assert rung["healthy"] is True, rung
        assert {needle["depth"] for needle in rung["needles"]} and all(0 <= n["grade"] <= 1 for n in rung["needles"]), rung
    assert {"cold", "prefix"} == {rung["state"] for rung in rungs}


def test_stamps_are_in_their_order(run):
    order = ("connect_begin", "connected", "sent", "first_byte", "first_event", "first_output", "last_output", "eof")
    lanes = [row for row in rows(run) if row["purpose"] == "lane"]
    assert lanes
    for row in lanes:
        stamps = [row["stamps"][name] for name in order if row["stamps"].get(name) is not None]
        assert stamps == sorted(stamps), row["stamps"]
        assert row["outcome"] == "ok" and row["token_source"] == "usage", row["outcome"]


def test_cold_lanes_are_cold(run):
    for lane in read_json(run / "results.json")["lanes"]:
        assert lane["success_rate"] == 1, lane
        if lane["cache_state"] == "cold":
            assert lane["tokens"]["cached"] == 0, lane["tokens"]
        if lane["fixed_output"]:
            assert lane["tokens"]["completion"] == lane["requests"]["ok"] * lane["output_tokens_target"], lane["tokens"]


def test_the_engine_is_gone(qualified, run):
    anvil, _ = qualified
    assert anvil.processes() == {}
    stop = read_json(run / "results.json")["stop"]
    assert stop["clean"] is True and stop["port_free"] is True and stop["left"] == 0, stop


def test_reports(qualified, run, tmp_path):
    anvil, done = qualified
    decision = done.json["decision"]
    html = (run / "report.html").read_text()
    words = decision.replace("-", "[- ]")
    loaded = re.findall(r'(?:src|href)="(?!#)[^"]*"|url\([^)]*\)|@import', html)
    assert all("data:" in reference or "://" in reference and reference.startswith("href") for reference in loaded), loaded
    for form, needle in (("html", "<!doctype html"), ("md", "# "), ("term", "verify")):
        out = tmp_path / f"report.{form}"
        made = anvil.run("report", run, "--format", form, "-o", out)
        assert made.code == 0, made
        text = out.read_text()
        assert needle in text.lower() and re.search(words, text, re.IGNORECASE), form
    assert (tmp_path / "report.html").read_text() == html


def test_runs_are_listed(qualified, run):
    anvil, done = qualified
    listed = anvil.run("runs", "list", "--runs-dir", anvil.runs, "--json")
    assert listed.code == 0 and [r["run"] for r in listed.json["runs"]] == [done.json["run"]], listed
    shown = anvil.run("runs", "show", done.json["run"], "--runs-dir", anvil.runs)
    assert shown.code == 0 and done.json["decision"] in shown.out, shown


def test_forgeries_are_found_and_named(qualified, run, tmp_path):
    anvil, _ = qualified
    tamper.everything(anvil, run, tmp_path)
