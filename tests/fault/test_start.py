"""Engines that do not start: classified from the log, stopped whole, kept as evidence with the log."""
import socket

import pytest

from harness import read_json, text_of


@pytest.mark.parametrize("fault, klass, in_log", [
    ("exit-at-once", None, "giving up at once"),
    ("exit-during-load", "model_unsupported", "unknown model architecture"),
    ("missing-library", "missing_library", "libllama.so"),
    ("out-of-memory", "oom_host", "failed to allocate CPU buffer"),
    ("bad-flag", "bad_flag", "invalid argument: --jinja"),
    ("corrupt-model", "model_corrupt", "corrupted or incomplete"),
    ("signal-during-load", None, "loading model"),
])
def test_ends_before_it_is_ready(case, fault, klass, in_log):
    done = case.qualify(fault)
    run = case.explained(done, failed_step="launch", klass=klass, decision="rejected")
    assert in_log in text_of(run, "engine.log")
    launch = read_json(run / "launch.json")
    assert launch["ready_ns"] is None and launch["failure"]["class"], launch
    if fault == "signal-during-load":
        assert "SIGSEGV" in done.out or "signal 11" in done.out, done


@pytest.mark.parametrize("fault", ["hang-silent", "hang-loading"])
def test_hangs_silently(case, fault):
    done = case.qualify(fault, recipe={"launch.progress_limit_s": 1})
    case.explained(done, failed_step="launch", decision="rejected")
    assert "progress" in "\n".join(done.json["reasons"]), done


def test_never_ready_but_talkative_meets_the_ceiling(case):
    done = case.qualify("chatty-load", recipe={"launch.start_ceiling_s": 2})
    case.explained(done, failed_step="launch", decision="rejected")


def test_slow_but_moving_start_is_waited_for(case):
    done = case.qualify("slow-load:2.5", recipe={"launch.progress_limit_s": 1})
    run = case.explained(done)
    assert done.code == 0, done
    phases = [phase["name"] for phase in read_json(run / "launch.json")["phases"]]
    assert "weights" in phases and "listening" in phases, phases


def test_noise_in_the_log_is_kept_and_survived(case):
    done = case.qualify("noise")
    run = case.explained(done)
    assert done.code == 0, done
    log = text_of(run, "engine.log")
    assert len(log) > 1_200_000 and log.count("[cut]") == 20  # lines above 64 KiB are cut, and say so
    assert "a line without an end" in log


def test_port_taken_by_somebody_else(case):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = case.qualify(recipe={"launch.port": port})
        run = case.explained(done, failed_step="launch", klass="port_in_use", decision="rejected")
        assert str(port) in "\n".join(done.json["reasons"]), done
        # The stranger was not touched.
        with socket.create_connection(("127.0.0.1", port)):
            pass
    assert run.exists()


def test_a_stranger_that_answers_health_is_not_taken_for_the_engine(case, tmp_path):
    import os
    import subprocess
    from harness import FAULT_ENGINE, PYTHON, wait_until
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    stranger = subprocess.Popen([PYTHON, str(FAULT_ENGINE), "--port", str(port)], stderr=subprocess.DEVNULL,
                                env={**os.environ, "ANVIL_FAULT": ""})
    try:
        def up():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        wait_until(up, "the stranger listens")
        done = case.qualify(recipe={"launch.port": port})
        case.explained(done, failed_step="launch", klass="port_in_use", decision="rejected")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_another_model_is_served(case):
    done = case.qualify("wrong-model")
    case.explained(done, failed_step="identity", decision="rejected")
    assert "model.served_name" in done.out, done


def test_another_context_is_served(case):
    done = case.qualify("wrong-context")
    case.explained(done, failed_step="identity", decision="rejected")
    assert "serving.context_tokens" in done.out, done
