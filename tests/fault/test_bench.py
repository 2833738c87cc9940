"""anvil bench and anvil calibrate against the scripted engine: what it did is known exactly, faults included."""
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

import harness


class Engine:
    """`anvil engine` with a schedule of its own; `url` is where it listens."""

    def __init__(self, anvil, folder, schedule, *options):
        path = pathlib.Path(folder) / "schedule.toml"
        path.write_text('schema = "anvil/schedule/v1"\nname = "test"\n' + schedule)
        self.ledger_path = pathlib.Path(folder) / "ledger.jsonl"
        self.process = anvil.start("engine", "--schedule", path, "--listen", "127.0.0.1:0", "--ledger", self.ledger_path, *options)
        line = self.process.stdout.readline()
        self.url = line[line.index("http"):].split()[0]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return [json.loads(line) for line in self.ledger_path.read_text().splitlines()]


@pytest.fixture
def bench(tmp_path):
    anvil = harness.Anvil(tmp_path / "home", tmp_path / "runs")
    anvil.home.mkdir()
    engines = []

    class Bench:
        def engine(self, schedule, *options):
            engines.append(Engine(anvil, tmp_path, schedule, *options))
            return engines[-1]

        def run(self, url, *options, timeout=120):
            return anvil.run("bench", "--url", url, "--prompt-tokens", "24", "--warmup", "0", "--runs-dir", anvil.runs, "--json", "--rows", *options,
                             timeout=timeout)

        start = staticmethod(lambda url, *options: anvil.start("bench", "--url", url, "--prompt-tokens", "24", "--warmup", "0", "--runs-dir",
                                                               anvil.runs, "--json", "--rows", *options))

    b = Bench()
    b.anvil = anvil
    yield b
    anvil.kill_rest()


SD_1 = '''
[[stream]]
name = "sd-1"
role_ms = 5
times_ms = [100, 140, 180, 220, 260]
content_tokens = 20
chunk_tokens = [4]
finish_after_ms = 2
usage_after_ms = 4
done_after_ms = 5
'''


def test_the_worked_example(bench):
    engine = bench.engine(SD_1)
    done = bench.run(engine.url, "--requests", "11", "--max-tokens", "20")
    ledger = engine.stop()
    assert done.code == 0, done
    (lane,) = done.json["lanes"]
    assert lane["requests"]["ok"] == 11
    # The shape of the stream, which no lateness can change: five events of four tokens each, a role before them.
    for request in done.json["requests"]:
        assert len(request["chunk_gaps_ms"]) == 4 and request["output_tokens"] == 20, request
        assert 0 < request["ttfe_ms"] < request["ttfo_ms"] < request["e2e_ms"] < request["done_ms"], request
    # Against the server's own ledger, not against the clock on the wall: the client never saw an event before it was written, and what it
    # calls time to first output is at least what the server says passed between request and write.
    served = [entry for entry in ledger if "events" in entry and entry["completion_tokens"] == 20]
    assert len(served) >= 11
    assert lane["client"]["calibration"] is not None


def test_no_usage_is_unknown_and_never_the_budget(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 6\nfirst_ms = 2\ngap_ms = 1\nusage = "none"\n')
    done = bench.run(engine.url, "--requests", "3", "--max-tokens", "6")
    assert len(done.json["requests"]) == 3
    for request in done.json["requests"]:
        assert request["outcome"] == "ok" and request["output_tokens"] is None and request["tpot_ms"] is None, request
        assert request["token_source"] == "none" and "no-usage" in request["flags"], request
    assert done.json["lanes"][0]["steady"]["output_tok_s"] is None


def test_without_streaming_there_is_no_first_output_time(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 6\nfirst_ms = 2\ngap_ms = 1\n')
    done = bench.run(engine.url, "--requests", "3", "--max-tokens", "6", "--no-stream")
    assert len(done.json["requests"]) == 3
    for request in done.json["requests"]:
        assert request["outcome"] == "ok" and request["ttfo_ms"] is None and request["output_tokens"] == 6, request
        assert request["service_ms"] > 0, request


def test_failures_keep_their_class_and_stay_in_the_denominator(bench):
    engine = bench.engine('''choose = "round-robin"
[[stream]]
name = "fine"
content_tokens = 8
first_ms = 2
gap_ms = 1
[[stream]]
name = "reset"
content_tokens = 8
first_ms = 2
gap_ms = 1
[stream.fault]
kind = "reset"
after_events = 4
[[stream]]
name = "error"
first_ms = 2
[stream.fault]
kind = "event"
message = "out of memory"
[[stream]]
name = "busy"
[stream.fault]
kind = "status"
status = 429
retry_after_s = 1
''')
    done = bench.run(engine.url, "--requests", "12", "--max-tokens", "8")
    (lane,) = done.json["lanes"]
    assert lane["requests"]["total"] == 12 and lane["requests"]["ok"] + lane["requests"]["failed"] == 12
    outcomes = {request["outcome"] for request in done.json["requests"]}
    assert {"ok", "error_in_stream", "http_error"} <= outcomes, outcomes
    assert lane["success_rate"] < 1
    for request in done.json["requests"]:
        if request["outcome"] != "ok":
            assert request["error_class"], request
    verified = bench.anvil.run("verify", done.json["run_dir"], "--json")
    assert verified.code == 0 and verified.json["ok"], verified


def test_an_engine_that_dies_leaves_a_run_that_says_so(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 400\nfirst_ms = 2\ngap_ms = 20\n')
    process = bench.start(engine.url, "--requests", "4", "--max-tokens", "400")
    harness.wait_until(lambda: [d for d in bench.anvil.run_dirs() if any(e.get("step") == "lanes" for e in harness.read_jsonl(d / "journal.jsonl"))],
                       "the lanes began")
    engine.process.kill()
    done = harness.Anvil.finish(process)
    assert done.code == 1, done
    assert done.json["valid"] is False and done.json["invalid_reasons"], done
    assert bench.anvil.run("verify", done.json["run_dir"]).code == 0


def test_ctrl_c_keeps_and_derives_what_was_measured(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 8\nfirst_ms = 2\ngap_ms = 20\n')
    process = bench.start(engine.url, "--requests", "2000", "--max-tokens", "8")

    def some_rows():
        for directory in bench.anvil.run_dirs():
            if len([r for r in harness.read_jsonl(directory / "requests.jsonl") if r["purpose"] == "lane"]) >= 3:
                return directory
        return None

    directory = harness.wait_until(some_rows, "three rows are on disk")
    process.send_signal(signal.SIGINT)
    done = harness.Anvil.finish(process)
    assert done.code == 1, done
    results = harness.read_json(directory / "results.json")
    assert results["lanes"][0]["requests"]["ok"] >= 3
    assert bench.anvil.run("verify", directory).code == 0


def test_nobody_there(bench):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = bench.run(f"http://127.0.0.1:{port}")
    assert done.code == 3, done
    assert done.json["error"]["kind"] == "connect" and done.json["error"]["hint"], done
    assert bench.anvil.run_dirs() == []


def test_a_refused_key_stops_before_the_first_request(bench):
    engine = bench.engine('[engine]\napi_key = "right"\n[[stream]]\nname = "s"\n')
    done = bench.run(engine.url)
    assert done.code == 3 and done.json["error"]["kind"] == "permission" and "--api-key" in done.json["error"]["hint"], done
    bench.anvil.env["ANVIL_TEST_KEY"] = "right"
    done = bench.run(engine.url, "--api-key", "env:ANVIL_TEST_KEY", "--requests", "1", "--max-tokens", "4")
    assert done.json["lanes"][0]["requests"]["ok"] == 1, done
    # The key is a reference everywhere; its value is in no file of the run.
    for path in pathlib.Path(done.json["run_dir"]).iterdir():
        assert b'right"' not in path.read_bytes() or path.name in ("report.html",), path


def test_bad_flags_and_plans(bench, tmp_path):
    engine = bench.engine('[[stream]]\nname = "s"\n')
    assert bench.run(engine.url, "--objective", "ttfo").code == 2
    assert bench.run(engine.url, "--objective", "speed_p90=5").code == 2
    assert bench.run(engine.url, "--model", "other").code == 2
    plan = tmp_path / "plan.toml"
    plan.write_text('schema = "anvil/suite/v1"\nname = "p"\n[[lane]]\nid = "a"\nload = "poisson"\n')
    done = bench.run(engine.url, "--plan", plan)
    assert done.code == 2 and "rate" in done.out + done.err, done
    assert bench.anvil.run_dirs() == []


def test_outputs_do_not_replace_what_is_no_file(bench, tmp_path):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 2\nfirst_ms = 2\ngap_ms = 1\n')
    target, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    done = bench.run(engine.url, "--requests", "2", "--max-tokens", "2", "--csv", link)
    assert done.code == 0, done
    assert link.is_symlink() and target.read_text().startswith("lane,"), done
    # Refused before anything is measured.
    runs = len(bench.anvil.run_dirs())
    done = bench.run(engine.url, "--csv", tmp_path / "no-such-folder" / "rows.csv")
    assert done.code == 2 and len(bench.anvil.run_dirs()) == runs, done


def test_what_is_no_number_is_refused(bench):
    for arguments in (["calibrate", "--rate", "nan"], ["bench", "--url", "http://127.0.0.1:1", "--rate", "inf"],
                      ["ab", "a.toml", "b.toml", "--margin", "nan"]):
        done = bench.anvil.run(*arguments)
        assert done.code == 2 and ("nan" in done.err or "inf" in done.err), done
    done = bench.anvil.run("bench", "--url", "http://127.0.0.1:1", "--rate", "4", "--concurrency", "2")
    assert done.code == 2, done


def test_a_campaign_of_two_endpoints(bench, tmp_path):
    """Two endpoints of which only the addresses are known to differ, at three pairs; then its folder is tampered with."""
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 4\nfirst_ms = 2\ngap_ms = 1\n')
    suite = tmp_path / "suite.toml"
    suite.write_text('schema = "anvil/suite/v1"\nname = "small"\n[[lane]]\nid = "c1"\nprompt_tokens = 16\noutput_tokens = 4\nrequests = 11\nwarmup = 0\n')
    done = bench.anvil.run("ab", "--a-url", engine.url, "--b-url", engine.url.replace("127.0.0.1", "localhost"), "--suite", suite, "--pairs", "3",
                           "--runs-dir", bench.anvil.runs, "--json", timeout=300)
    assert done.code in (0, 1), done
    campaign = pathlib.Path(done.json["campaign_dir"])
    changed = harness.read_json(campaign / "campaign.json")["diff"]["changed"]
    assert [change["variable"] for change in changed] == ["endpoint"], changed
    assert bench.anvil.run("verify", campaign).code == 0
    listed = bench.anvil.run("runs", "list", "--runs-dir", bench.anvil.runs, "--json").json["runs"]
    assert any(entry["run"] == campaign.name and entry["status"] == "campaign" for entry in listed), listed

    def places():
        verified = bench.anvil.run("verify", campaign, "--json")
        assert verified.code == 1, verified
        return [mismatch["where"] for mismatch in verified.json["mismatches"]]

    # A run that no line of the journal names, a file that does not belong there, two runs that changed places.
    first, second = sorted((campaign / "runs").iterdir())[:2]
    shutil.copytree(first, campaign / "runs" / "unreported")
    assert "runs/unreported" in places()
    shutil.rmtree(campaign / "runs" / "unreported")
    (campaign / "extra.txt").write_text("x")
    assert "extra.txt" in places()
    (campaign / "extra.txt").unlink()
    first.rename(campaign / "away")
    second.rename(first)
    (campaign / "away").rename(second)
    assert f"runs/{first.name}/manifest.json" in places()
    (campaign / "away-journal").write_bytes((campaign / "journal.jsonl").read_bytes())
    (campaign / "journal.jsonl").unlink()
    assert places() == ["journal.jsonl"]


def test_calibrate_reports_our_own_error(bench):
    done = bench.anvil.run("calibrate", "--concurrency", "1,4", "--rate", "50", "--json")
    assert done.code in (0, 1), done  # 1: this machine was too busy for the scripted engine to be on time, and it says so
    assert [point["concurrency"] for point in done.json["points"]] == [1, 4]
    for point in done.json["points"]:
        assert point["stamp_us"]["n"] > 50 and point["stamp_us"]["p50"] >= 0, point
        assert point["valid"] or point["because"], point
        assert point["client"]["stamp_source"] == {"kernel": point["client"]["stamp_source"]["kernel"], "user": 0}, point["client"]


def test_a_stopped_client_shows_in_schedule_latency_and_the_run_says_so(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 4\nfirst_ms = 2\ngap_ms = 1\n')
    process = bench.start(engine.url, "--rate", "50", "--arrivals", "constant", "--requests", "150", "--max-tokens", "4")

    def under_way():
        for directory in bench.anvil.run_dirs():
            if len([r for r in harness.read_jsonl(directory / "requests.jsonl") if r["purpose"] == "lane"]) >= 20:
                return True
        return False

    harness.wait_until(under_way, "the open loop is under way")
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)  # at least this long; fifteen planned moments pass
    process.send_signal(signal.SIGCONT)
    done = harness.Anvil.finish(process)
    requests = done.json["requests"]
    assert len(requests) == 150 and all(request["outcome"] == "ok" for request in requests), done
    # What our own stop cost is in the latency from the plan, request by request, and not in the service latency.
    late = [request for request in requests if request["schedule_ms"] - request["service_ms"] >= 100]
    assert len(late) >= 5, sorted(request["schedule_ms"] - request["service_ms"] for request in requests)[-10:]
    (lane,) = done.json["lanes"]
    assert lane["schedule_ms"]["max"] >= 200
    assert any("left late by" in warning for warning in lane["client"]["warnings"]), lane["client"]
    # Fifteen of 150 left late: a tenth, so the percentile that the rule looks at is touched.
    assert done.code == 1 and done.json["valid"] is False and "our client was late" in done.json["invalid_reasons"][0], done


NGINX = """daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering {buffering};
      proxy_buffer_size 16k;
      proxy_buffers 8 16k;
    }}
  }}
}}
"""


@pytest.mark.parametrize("buffering", ["off", "on"])
def test_through_nginx(bench, tmp_path, buffering):
    """nginx passes small chunks on at once, also with proxy_buffering: what matters is what arrives, and that is what the verdict is about."""
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    if not pathlib.Path(nginx).exists():
        pytest.skip("nginx is not installed (packages.txt lists it)")
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 60\nfirst_ms = 5\ngap_ms = 5\n')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.format(folder=tmp_path, port=port, upstream=engine.url, buffering=buffering))
    proxy = subprocess.Popen([nginx, "-c", config, "-p", tmp_path], env=bench.anvil.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listens():
        assert proxy.poll() is None, (tmp_path / "error.log").read_text()
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

    harness.wait_until(listens, "nginx listens", 30)
    try:
        done = bench.run(f"http://127.0.0.1:{port}", "--requests", "3", "--max-tokens", "60")
        (lane,) = done.json["lanes"]
        assert lane["requests"]["ok"] == 3, done
        assert all(len(request["chunk_gaps_ms"]) == 59 for request in done.json["requests"])
        assert lane["client"]["path"] == "streaming", lane["client"]
    finally:
        proxy.terminate()
        proxy.wait(10)


def test_a_path_that_holds_events_back_is_called_buffered(bench):
    engine = bench.engine('[[stream]]\nname = "s"\ncontent_tokens = 120\nfirst_ms = 5\ngap_ms = 3\nrole = "none"\nbuffer_bytes = 8192\n')
    done = bench.run(engine.url, "--requests", "3", "--max-tokens", "120")
    (lane,) = done.json["lanes"]
    assert lane["requests"]["ok"] == 3, done
    assert lane["client"]["path"] == "buffered", lane["client"]
    assert any("buffered path" in warning for warning in lane["client"]["warnings"]), lane["client"]
