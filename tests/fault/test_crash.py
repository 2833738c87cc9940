"""Ctrl-C and kill -9: what is on disk explains itself, the next run works, nothing is lost or hidden."""
import os
import signal

import pytest

from harness import STEPS, read_json, read_jsonl, rows

# Slow enough that a signal lands inside the step; the fault engine takes this long for every token.
SLOW = "slow:0.05"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", ["launch", "checks", "lanes", "ladder"])
def test_once_is_an_orderly_stop(case, step, number):
    process = case.begin("slow-load:1," + SLOW)
    case.wait_for_step(process, step)
    process.send_signal(number)
    done = case.anvil.finish(process)
    assert done.code == 1, done
    run = case.explained(done, failed_step=done.json["failed_step"])
    # The signal may have landed on the seam to the next step.
    assert STEPS.index(done.json["failed_step"]) >= STEPS.index(step), done
    assert done.json["decision"] != "promote-eligible", done
    steps = [(e["event"], e["step"]) for e in read_jsonl(run / "journal.jsonl") if "step" in e]
    if step != "launch":
        assert ("end", "stop") in steps, steps  # the engine was stopped as a step of its own
    assert done.json["error"]["kind"] == "cancelled" and "stopped by request" in "\n".join(done.json["reasons"]), done


def test_twice_gives_up_the_grace_but_not_the_evidence(case):
    # An engine that ignores TERM, and a grace that nobody would wait for.
    process = case.begin("ignore-term," + SLOW, recipe={"launch.stop_grace_s": 600})
    directory = case.wait_for_step(process, "lanes")
    process.send_signal(signal.SIGINT)
    case.wait_for_step(process, "stop")
    process.send_signal(signal.SIGINT)
    done = case.anvil.finish(process, timeout=60)
    assert done.code == 1, done
    case.nothing_left()
    shown = case.anvil.run("runs", "show", directory, "--json")
    assert shown.code == 0 and shown.json["explanation"], shown


@pytest.mark.parametrize("step", STEPS)
def test_kill_9(case, step):
    process = case.begin("slow-load:0.3," + SLOW)
    if step == "freeze":
        # The journal begins with it; wait for the folder only.
        from harness import wait_until
        wait_until(lambda: process.poll() is not None or (case.anvil.runs.exists() and any(case.anvil.runs.iterdir())), "a run folder")
        directory = None
    elif step == "seal":
        # After the report nothing but sealing is left.
        directory = case.wait_for_step(process, "report")
    else:
        directory = case.wait_for_step(process, step)
    process.kill()
    process.communicate()

    found = case.anvil.run_dirs()
    if directory is None and not found:
        # Killed before the first line of the journal: no run, and nothing that gets into the way of the next one.
        listed = case.anvil.run("runs", "list", "--runs-dir", case.anvil.runs, "--json")
        assert listed.code == 0, listed
    else:
        directory = directory or found[0]
        shown = case.anvil.run("runs", "show", directory, "--json", "--runs-dir", case.anvil.runs)
        assert shown.code == 0, shown
        state = shown.json
        assert state["explanation"], shown
        if state["status"] != "sealed":
            assert state["status"] == "incomplete", shown
            assert STEPS.index(state["last_step"]) >= STEPS.index(step) - (step == "seal"), shown
            verified = case.anvil.run("verify", directory, "--json")
            assert verified.code == 1 and verified.json["complete"] is False, verified
            assert verified.json["ok"] is True and verified.json["mismatches"] == [], verified
            text = case.anvil.run("runs", "show", directory)
            assert state["last_step"] in text.out, text
            report = case.anvil.run("report", directory, "--format", "term")
            assert report.code in (0, 1), report
        else:
            assert step in ("report", "seal"), shown
        rows(directory)  # every whole line parses

    orphans = case.anvil.processes()
    done = case.qualify()
    assert done.code == 0, done
    second = os.path.basename(done.json["run_dir"])
    host = read_json(case.anvil.runs / second / "host.json")
    reported = {orphan["pid"] for orphan in host["anvil_orphans"]}
    # An engine that outlived its anvil is found, named, and left alone.
    still = {pid for pid, command in orphans.items() if pid in case.anvil.processes()}
    assert reported == still, (reported, orphans, case.anvil.processes())
    if still:
        assert all(orphan["run"] == directory.name for orphan in host["anvil_orphans"]), host["anvil_orphans"]
        shown = case.anvil.run("runs", "show", directory, "--runs-dir", case.anvil.runs)
        assert all(str(pid) in shown.out for pid in still), shown
        assert all(str(pid) in done.err for pid in still), done
    assert case.anvil.run("verify", done.json["run_dir"]).code == 0
    case.anvil.kill_rest()


def test_an_orphan_is_expected_somewhere(case):
    """The matrix above would pass if no engine ever survived; this one must see one."""
    process = case.begin(SLOW)
    directory = case.wait_for_step(process, "lanes")
    process.kill()
    process.communicate()
    assert case.anvil.processes(), "the engine should have outlived a killed anvil"
    shown = case.anvil.run("runs", "show", directory, "--runs-dir", case.anvil.runs, "--json")
    assert {orphan["pid"] for orphan in shown.json["orphans"]} == set(case.anvil.processes()), shown


def test_kill_9_in_the_middle_of_a_row(case):
    """What a crash can leave at the end of a file: a line without its end."""
    process = case.begin(SLOW)
    directory = case.wait_for_step(process, "lanes")
    process.kill()
    process.communicate()
    case.anvil.kill_rest()
    for name in ("requests.jsonl", "journal.jsonl", "samples.jsonl"):
        with open(directory / name, "ab") as file:
            file.write(b'{"seq":999,"ev')
    shown = case.anvil.run("runs", "show", directory, "--json")
    assert shown.code == 0 and shown.json["status"] == "incomplete", shown
    verified = case.anvil.run("verify", directory, "--json")
    assert verified.code == 1 and verified.json["complete"] is False, verified


def test_the_terminal_goes_away(case):
    """SIGHUP and a closed stdout do not cost the evidence."""
    process = case.begin(SLOW)
    directory = case.wait_for_step(process, "lanes")
    process.stdout.close()
    process.stderr.close()
    process.wait(timeout=60)
    assert process.returncode in (0, 1, 3), process.returncode
    case.nothing_left()
    verified = case.anvil.run("verify", directory, "--json")
    assert verified.code == 0, verified


def test_reindex_after_everything(case):
    assert case.qualify().code == 0
    process = case.begin(SLOW)
    case.wait_for_step(process, "lanes")
    process.kill()
    process.communicate()
    case.anvil.kill_rest()
    for index in case.anvil.home.rglob("*.sqlite*"):
        index.unlink()
    done = case.anvil.run("runs", "reindex", "--runs-dir", case.anvil.runs, "--json")
    assert done.code == 0, done
    listed = case.anvil.run("runs", "list", "--runs-dir", case.anvil.runs, "--json").json["runs"]
    assert sorted(run["status"] for run in listed) == ["incomplete", "sealed"], listed
