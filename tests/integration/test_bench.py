"""anvil bench and anvil ab against the real llama.cpp server."""
import csv
import pathlib

import harness


def test_a_closed_loop_against_an_endpoint_that_somebody_else_runs(measuring, server, tmp_path):
    table = tmp_path / "rows.csv"
    done = measuring.run("bench", "--url", server, "--concurrency", "1,2", "--requests", "11", "--prompt-tokens", "48", "--max-tokens", "12",
                         "--warmup", "1", "--runs-dir", measuring.runs, "--csv", table, "--json", "--rows", timeout=300)
    assert done.code == 0, done
    answer = done.json
    assert answer["valid"] is True and answer["invalid_reasons"] == [], done
    assert [lane["id"] for lane in answer["lanes"]] == ["c1", "c2"]
    for lane in answer["lanes"]:
        assert lane["requests"] == {"total": 11, "ok": 11, "failed": 0, "refused": 0}, lane
        assert lane["fixed_output_missed"] == 0, lane
        assert lane["ttfo_ms"]["p50"] > 0 and lane["tpot_ms"]["p50"] > 0 and lane["steady"]["output_tok_s"] > 0, lane
        assert lane["client"]["valid"] and lane["client"]["stamp_source"] == "kernel", lane["client"]
        # The client's own error was measured in the same run, and stands beside the figure.
        assert lane["client"]["calibration"]["concurrency"] == lane["concurrency"], lane["client"]
        # The engine's own counters, as differences over the lane: exactly what was asked for.
        assert lane["counters"]["output_tokens"] == 11 * 12, lane["counters"]
        assert lane["counters"]["reset"] is False
    assert len(answer["requests"]) == 22
    for request in answer["requests"]:
        assert request["outcome"] == "ok" and request["error_class"] is None
        assert request["output_tokens"] == 12 and abs(request["prompt_tokens"] - 48) <= 2, request
        assert request["token_source"] == "usage"
        assert request["service_ms"] >= request["e2e_ms"] >= request["ttfo_ms"] > 0
    with open(table, newline="") as file:
        assert len(list(csv.DictReader(file))) == 22
    verified = measuring.run("verify", answer["run_dir"], "--json")
    assert verified.code == 0 and verified.json["ok"], verified


def test_an_open_loop_reports_latency_from_the_plan_too(measuring, server):
    done = measuring.run("bench", "--url", server, "--model", "gemma", "--rate", "4", "--requests", "12", "--prompt-tokens", "48",
                         "--max-tokens", "4", "--warmup", "1", "--objective", "ttfo_ms_p50=60000", "--runs-dir", measuring.runs, "--json", timeout=300)
    assert done.code in (0, 1), done
    (lane,) = done.json["lanes"]
    assert lane["load"]["kind"] == "poisson" and lane["load"]["rate_target"] == 4, lane["load"]
    assert lane["requests"]["ok"] == 12, done
    # From the planned moment nothing can be faster than from the moment of sending.
    assert lane["schedule_ms"]["p50"] >= lane["service_ms"]["p50"] > 0
    assert lane["goodput"]["met"] == lane["goodput"]["of"] == 12 and lane["goodput"]["objectives"][0]["holds"], lane["goodput"]


def test_a_model_that_is_not_served_is_refused_before_anything_runs(measuring, server):
    done = measuring.run("bench", "--url", server, "--model", "gema", "--runs-dir", measuring.runs, "--json")
    assert done.code == 2, done
    assert "gemma" in done.json["error"]["hint"], done


def test_speculation_against_target_only(measuring, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text('''schema = "anvil/suite/v1"
name = "small"
seed = 3
[[lane]]
id = "decode"
prompt_tokens = 32
output_tokens = 24
requests = 11
warmup = 1
''')
    recipes = harness.SOURCE / "recipes"
    done = measuring.run("ab", recipes / "gemma-3-270m.toml", recipes / "gemma-3-270m-ngram.toml", "--suite", suite, "--pairs", "2",
                         "--runs-dir", measuring.runs, "--json", timeout=600)
    assert done.code == 0, done
    answer = done.json
    assert answer["runs"] == 4 and answer["excluded"] == 0, done
    campaign = pathlib.Path(answer["campaign_dir"])
    frozen = harness.read_json(campaign / "campaign.json")
    assert frozen["plan"]["order"] == "abba"
    assert [change["variable"] for change in frozen["diff"]["changed"]] == ["speculation"]
    for arm in ("a", "b"):
        assert frozen[arm]["digest"]
    comparison = harness.read_json(campaign / "comparison.json")
    assert comparison == answer["comparison"]
    assert (campaign / "report.html").stat().st_size > 1000
    # Only the arm with speculation drafted anything, by the engine's own counters.
    for directory in sorted((campaign / "runs").iterdir()):
        (lane,) = harness.read_json(directory / "results.json")["lanes"]
        drafted = lane["counters"]["draft_tokens"]
        if "ngram" in directory.name:
            assert drafted is not None and drafted >= 0, lane["counters"]
        else:
            assert not drafted, lane["counters"]
    verified = measuring.run("verify", campaign, "--json")
    assert verified.code == 0 and verified.json["ok"], verified
    # A changed figure is named by its place.
    text = (campaign / "comparison.json").read_text()
    (campaign / "comparison.json").write_text(text.replace("\"abba\"", "\"baab\"") if "\"abba\"" in text else text.replace("1", "2", 1))
    verified = measuring.run("verify", campaign, "--json")
    assert verified.code == 1 and any("comparison.json" in m["where"] for m in verified.json["mismatches"]), verified


def test_two_changed_variables_are_refused(measuring, tmp_path):
    text = (harness.SOURCE / "recipes/gemma-3-270m-ngram.toml").read_text().replace("context_tokens = 8192", "context_tokens = 4096")
    other = tmp_path / "other.toml"
    other.write_text(text)
    done = measuring.run("ab", harness.SOURCE / "recipes/gemma-3-270m.toml", other, "--runs-dir", measuring.runs, "--json")
    assert done.code == 2, done
    detail = done.json["error"]["detail"]
    assert "speculation" in detail and "context" in detail and "exploratory" in done.json["error"]["hint"], done
