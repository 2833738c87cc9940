"""`anvil verify` against forgeries of a run of the fault engine; each is found and named."""
import pathlib

import pytest

import harness
import tamper


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    case = harness.Case(tmp_path_factory.mktemp("sealed"))
    done = case.qualify()
    assert done.code == 0, done
    return case.anvil, pathlib.Path(done.json["run_dir"])


def test_untouched(sealed, tmp_path):
    anvil, run = sealed
    done = anvil.run("verify", tamper.copy(run, tmp_path), "--json")
    assert done.code == 0 and done.json["ok"] and done.json["complete"], done
    assert done.json["rows"] == len(harness.rows(run)) and done.json["numbers"] > 20, done


def test_one_flipped_byte_in_each_artifact(sealed, tmp_path):
    anvil, run = sealed
    names = tamper.artifact_names(run)
    assert {"recipe.toml", "recipe.json", "policy.json", "suite.json", "plan.json", "host.json", "launch.json", "identity.json",
            "engine.log", "checks.json", "results.json", "decision.json", "report.html"} <= set(names), names
    for name in names:
        tamper.flip_one_byte(anvil, run, tmp_path, name)


@pytest.mark.parametrize("name", ["manifest.json", "journal.jsonl"])
def test_one_flipped_byte_in_the_frame(sealed, tmp_path, name):
    anvil, run = sealed
    tamper.flip_one_byte(anvil, run, tmp_path, name)


def test_each_changed_number_in_results(sealed, tmp_path):
    anvil, run = sealed
    for pointer in tamper.numbers(harness.read_json(run / "results.json")):
        tamper.changed_number(anvil, run, tmp_path, "results.json", pointer)


def test_removed_row(sealed, tmp_path):
    assert tamper.removed_row(*sealed, tmp_path)


def test_reordered_journal(sealed, tmp_path):
    tamper.reordered_journal(*sealed, tmp_path)


def test_swapped_policy(sealed, tmp_path):
    tamper.swapped_policy(*sealed, tmp_path)


def test_forged_decision(sealed, tmp_path):
    tamper.forged_decision(*sealed, tmp_path)


def test_a_careful_forger(sealed, tmp_path):
    tamper.careful_forger(*sealed, tmp_path)


def test_removed_and_added_files(sealed, tmp_path):
    anvil, run = sealed
    forged = tamper.copy(run, tmp_path)
    (forged / "identity.json").unlink()
    tamper.expect_named(anvil, forged, "identity.json")
    forged = tamper.copy(run, tmp_path)
    (forged / "requests.jsonl.zst").write_bytes(b"x")
    done = anvil.run("verify", forged, "--json")
    assert done.code == 1, done
