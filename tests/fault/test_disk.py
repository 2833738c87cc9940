"""Runs folders that cannot hold evidence: refused before the engine starts; a disk that fills up later loses no truth."""
import contextlib
import os
import pathlib
import subprocess

import pytest

from harness import read_jsonl, wait_until


@contextlib.contextmanager
def tmpfs(folder, options):
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def refused_before_the_engine(case, done, *needles):
    assert done.code == 3, done
    answer = done.json
    assert answer["decision"] is None and answer["failed_step"], done
    text = "\n".join(answer["reasons"])
    assert any(needle in text.lower() for needle in needles), done
    assert "fault_engine" not in "".join(case.anvil.processes().values())
    case.nothing_left()



def test_full_disk(case, tmp_path):
    with tmpfs(tmp_path / "full", "size=256k") as folder:
        (folder / "filler").write_bytes(b"x" * (240 << 10))
        done = case.qualify(runs=folder)
        refused_before_the_engine(case, done, "space", "left", "free")


def test_small_disk(case, tmp_path):
    with tmpfs(tmp_path / "small", "size=8m") as folder:
        done = case.qualify(runs=folder)
        assert done.code in (1, 3), done
        assert "left" in done.out or "space" in done.out, done
        for directory in (p for p in folder.iterdir() if p.is_dir()):
            assert not any(e.get("step") == "launch" for e in read_jsonl(directory / "journal.jsonl"))
        case.nothing_left()


def test_read_only_folder(case, tmp_path):
    if os.geteuid() != 0:
        folder = tmp_path / "readonly"
        folder.mkdir(mode=0o555)
        refused_before_the_engine(case, case.qualify(runs=folder), "permission", "read-only", "writ")
        return
    with tmpfs(tmp_path / "readonly", "size=1m,ro") as folder:
        refused_before_the_engine(case, case.qualify(runs=folder), "permission", "read-only", "writ")
        assert list(folder.iterdir()) == []


def test_the_folder_is_a_file(case, tmp_path):
    (tmp_path / "file").write_text("")
    done = case.qualify(runs=tmp_path / "file")
    assert done.code in (2, 3) and done.json["decision"] is None, done
    case.nothing_left()


def test_the_disk_fills_up_during_the_run(case, tmp_path):
    with tmpfs(tmp_path / "filling", "size=80m") as folder:
        case.write("slow:0.05")
        process = case.anvil.start(*case.command(runs=folder))

        def lanes():
            for directory in folder.iterdir():
                if any(e.get("step") == "lanes" for e in read_jsonl(directory / "journal.jsonl")):
                    return directory
            assert process.poll() is None, process.communicate()
            return None

        directory = wait_until(lanes, "the lanes begin")
        with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 65536)
        with contextlib.suppress(OSError), open(folder / "filler2", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x")
        done = case.anvil.finish(process)
        assert "space" in done.out.lower() or "disk" in done.out.lower(), done
        case.nothing_left()
        pathlib.Path(folder / "filler").unlink()
        shown = case.anvil.run("runs", "show", directory, "--json")
        verified = case.anvil.run("verify", directory, "--json")
        assert shown.code == 0 and verified.json["ok"] is True, (shown, verified)
        if done.code == 1:
            # There was room for the end: the run is whole, and its failed step says what happened.
            assert done.json["decision"] in ("rejected", "no-promotion") and done.json["failed_step"], done
            assert shown.json["status"] == "sealed" and verified.json["complete"] is True, (shown, verified)
        else:
            assert done.code == 3 and done.json["decision"] is None, done
            assert shown.json["status"] == "incomplete" and verified.json["complete"] is False, (shown, verified)
