"""Engines that start well and answer badly: every attempt stays in the record and in the denominator."""
import pytest

from harness import read_json, rows


def judged(case, done):
    run = case.explained(done)
    assert done.code == 1, done
    assert done.json["decision"] == "rejected", done
    gates = {gate["id"]: gate for gate in done.json["gates"]}
    assert gates["answers"]["verdict"] == "fail", gates
    return run, read_json(run / "results.json")


@pytest.mark.parametrize("fault, outcomes", [
    ("http-500", {"http_error"}),
    ("html", {"protocol_error"}),
    ("garbage-inference", {"protocol_error"}),
    ("close-midstream", {"truncated"}),
    ("no-done", {"truncated"}),
    ("stall", {"timeout"}),
    ("headers-only", {"timeout"}),
    ("silent", {"timeout"}),
    ("huge-event", {"too_large"}),
    ("endless-line", {"too_large"}),
    ("error-in-200", {"error_in_stream"}),
    ("bad-json", {"protocol_error"}),
])
def test_bad_answers(case, fault, outcomes):
    # Where silence is the fault, the limits are low; elsewhere they must not be what ends the attempt.
    patience = 0.5 if outcomes == {"timeout"} else 30
    suite = {"limits": {"first_byte_s": patience, "idle_s": patience, "total_s": 60, "event_bytes": 1 << 20}, "ladder": None,
             "fingerprint": {"enabled": False}}
    done = case.qualify(fault, suite=suite)
    run, results = judged(case, done)
    lane = results["lanes"][0]
    assert lane["requests"]["total"] == 4 and lane["requests"]["ok"] == 0 and lane["requests"]["failed"] == 4, lane
    assert lane["success_rate"] == 0, lane
    found = [row for row in rows(run) if row["purpose"] == "lane"]
    assert len(found) == 4
    assert {row["outcome"] for row in found} == outcomes, [(row["outcome"], row.get("error")) for row in found]
    assert results["requests"]["total"] == len(rows(run))
    assert results["requests"]["by_outcome"], results["requests"]


def test_one_bad_answer_among_good_ones(case):
    # The warm-up and the checks are numbers 1 and up; a late fault hits only part of the lane.
    done = case.qualify("close-midstream@7", suite={"ladder": None, "lane": [
        {"id": "short", "prompt_tokens": 64, "output_tokens": 16, "concurrency": 1, "requests": 8, "warmup": 0, "cache": "cold"}]})
    run, results = judged(case, done)
    requests = results["lanes"][0]["requests"]
    assert requests["total"] == 8 and 0 < requests["failed"] < 8 and requests["ok"] + requests["failed"] == 8, requests
    assert 0 < results["lanes"][0]["success_rate"] < 1
    # What is said about speed is about the good ones, and says how many they were.
    assert results["lanes"][0]["e2e_ms"]["n"] == requests["ok"]


def test_failed_checks_are_reported_as_failed(case):
    done = case.qualify("http-500", suite={"ladder": None})
    run, results = judged(case, done)
    assert results["checks"]["total"] >= 1 and results["checks"]["passed"] == 0, results["checks"]
    for check in read_json(run / "checks.json")["checks"]:
        assert check["verdict"] == "fail" and check["detail"] and check["proves"], check


def test_the_engine_dies_in_the_middle(case):
    done = case.qualify("die@4")
    assert done.code == 1, done
    step = done.json["failed_step"]
    run = case.explained(done, failed_step=step, klass="killed")
    assert done.json["decision"] in ("rejected", "no-promotion"), done
    launch = read_json(run / "launch.json")
    assert "SIGKILL" in launch["failure"]["line"] and "signal 9" in launch["stop"]["how"], launch
    assert any(row["outcome"] != "ok" for row in rows(run))


def test_the_engine_stops_answering(case):
    done = case.qualify("wedge@4", suite={"limits": {"first_byte_s": 0.5, "idle_s": 0.5, "total_s": 2, "event_bytes": 1 << 20}})
    assert done.code == 1, done
    case.explained(done, failed_step=done.json["failed_step"])


def test_answers_that_are_not_http_at_all(case):
    done = case.qualify("garbage", recipe={"launch.progress_limit_s": 2, "launch.start_ceiling_s": 5})
    assert done.code == 1, done
    case.explained(done, failed_step="launch", decision="rejected")


@pytest.mark.parametrize("fault", ["ignore-term", "setsid-child", "ignore-term,setsid-child"])
def test_processes_that_do_not_want_to_go(case, fault):
    done = case.qualify(fault)
    run = case.explained(done)
    results = read_json(run / "results.json")
    assert results["stop"]["port_free"] is True and results["stop"]["left"] == 0, results["stop"]
    gates = {gate["id"]: gate for gate in done.json["gates"]}
    assert gates["answers"]["verdict"] == "pass", gates


def test_everything_goes_well_without_a_fault(case):
    done = case.qualify()
    run = case.explained(done)
    assert done.code == 0 and done.json["decision"] in ("promote-eligible", "no-promotion"), done
    results = read_json(run / "results.json")
    assert results["lanes"][0]["success_rate"] == 1
    rung = results["ladder"]["rungs"][0]
    assert rung["target"] == 256 and abs(rung["deviation_tokens"]) <= 2, rung
    states = {rung["state"]: rung for rung in results["ladder"]["rungs"]}
    assert states["cold"]["cached_tokens"] == 0 and states["prefix"]["cached_tokens"] > 0, states
    assert all(gate["verdict"] == "pass" and gate["value"] is not None for gate in done.json["gates"])
