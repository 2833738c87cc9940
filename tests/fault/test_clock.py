"""The wall clock is stepped during a run: every duration stays what it was, because none comes from it."""
import glob
import os

import pytest

from harness import read_json, rows

LIBRARIES = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed (package faketime)")
@pytest.mark.parametrize("step", ["+1d", "-1d"])
def test_clock_step(case, tmp_path, step):
    clock = tmp_path / "clock"
    clock.write_text("+0")
    env = {"LD_PRELOAD": LIBRARIES[0], "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
           "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
           # In a sanitizer's build the preloaded library comes before its runtime, which it tolerates when told so.
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "exitcode=99") + ":verify_asan_link_order=0"}
    probe = case.anvil.run("--version", env=env)
    if "ThreadSanitizer" in probe.err:
        pytest.skip("the thread sanitizer's runtime and libfaketime do not go together")
    assert probe.code == 0, probe
    process = case.begin("slow:0.02", env=env)
    case.wait_for_step(process, "lanes")
    clock.write_text(step)
    done = case.anvil.finish(process)
    run = case.explained(done)
    assert done.code == 0, done
    results = read_json(run / "results.json")
    assert 0 < results["lanes"][0]["e2e_ms"]["max"] < 60_000, results["lanes"][0]["e2e_ms"]
    # The step itself is seen and said.
    expected = 86_400_000 if step == "+1d" else -86_400_000
    assert abs(results["wall_clock"]["step_ms"] - expected) < 60_000, results["wall_clock"]
    for row in rows(run):
        stamps = [v for v in row["stamps"].values() if isinstance(v, int)]
        assert max(stamps) - min(stamps) < 60 * 10**9, row["stamps"]
