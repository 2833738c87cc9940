"""anvil engine: the scripted engine as a program."""
import http.client
import json
import signal
import ssl
import subprocess
import urllib.parse

import pytest

import harness


@pytest.fixture
def anvil(tmp_path):
    anvil = harness.Anvil(tmp_path / "home", tmp_path / "runs")
    anvil.home.mkdir()
    yield anvil
    anvil.kill_rest()


def start(anvil, *arguments):
    """The running program and the address that it says it listens on."""
    process = anvil.start("engine", *arguments)
    source = process.stderr if "--json" in arguments else process.stdout
    line = source.readline()
    assert line.startswith("listening on "), line + process.stderr.read()
    return process, line.split()[-1]


def ask(url, path="/v1/chat/completions", body=None, context=None):
    place = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    options = {"context": context} if context else {}
    connection = kind(place.hostname, place.port, timeout=30, **options)
    try:
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


CHAT = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "one two three"}]}


def test_a_shipped_schedule_is_played_and_written_down(anvil, tmp_path):
    ledger = tmp_path / "sent.jsonl"
    process, url = start(anvil, "--schedule", "sd-1", "--ledger", ledger)
    status, text = ask(url, body=CHAT | {"stream_options": {"include_usage": True}})
    process.send_signal(signal.SIGINT)
    done = anvil.finish(process)
    assert done.code == 0, done
    assert "1 request, 9 events" in done.out
    assert status == 200 and text.endswith("data: [DONE]\n\n") and '"completion_tokens":20' in text

    request, summary = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert request["outcome"] == "done" and request["completion_tokens"] == 20
    due = [(e["kind"], (e["due_ns"] - request["start_ns"]) / 1e6) for e in request["events"]]
    assert due == [("role", 5), ("content", 100), ("content", 140), ("content", 180), ("content", 220), ("content", 260),
                   ("finish", 262), ("usage", 264), ("done", 265)]
    for event in request["events"]:
        assert event["due_ns"] <= event["write_begin_ns"] <= event["write_end_ns"]
    assert summary["summary"]["requests"] == 1


def test_json_is_one_object_at_the_end(anvil):
    process, url = start(anvil, "--schedule", "sd-1", "--json")
    assert ask(url, "/v1/models")[0] == 200
    process.terminate()
    done = anvil.finish(process)
    assert done.code == 0, done
    assert done.json["listening"] == url and done.json["schedule"] == "sd-1" and done.json["requests"] == 0
    assert done.json["void"] is False


def test_it_stops_by_itself(anvil):
    done = anvil.run("engine", "--schedule", "steady", "--max-seconds", "0.2")
    assert done.code == 0 and "0 requests" in done.out, done


def test_a_broken_schedule_is_explained(anvil, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text('schema = "anvil/schedule/v1"\nname = "x"\n[[stream]]\nname = "a"\ngap = 3\nusage = "sometimes"\n')
    done = anvil.run("engine", "--schedule", path)
    assert done.code == 2, done
    assert f"{path}:5:1: stream[0].gap" in done.err and f"{path}:6:1: stream[0].usage" in done.err, done
    assert anvil.run("engine", "--schedule", tmp_path / "missing.toml").code == 2
    assert anvil.run("engine", "--schedule", "sd-1", "--listen", "nowhere").code == 2
    process, url = start(anvil, "--schedule", "sd-1")
    taken = anvil.run("engine", "--schedule", "sd-1", "--listen", url.removeprefix("http://"))
    assert taken.code == 3 and "in use" in taken.err, taken
    process.terminate()
    anvil.finish(process)


def test_tls(anvil, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                           "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                          capture_output=True, check=False)
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here: " + made.stderr.decode()[-200:])
    process, url = start(anvil, "--schedule", "sd-1", "--tls-cert", certificate, "--tls-key", key)
    assert url.startswith("https://")
    status, text = ask(url, body=CHAT, context=ssl.create_default_context(cafile=certificate))
    assert status == 200 and text.endswith("data: [DONE]\n\n")
    status, text = ask(url, body=CHAT | {"stream": False}, context=ssl.create_default_context(cafile=certificate))
    assert status == 200 and json.loads(text)["usage"]["completion_tokens"] == 20
    process.terminate()
    assert anvil.finish(process).code == 0
