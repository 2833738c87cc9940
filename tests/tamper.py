"""Forgeries of a sealed run, and what `anvil verify` must say of each. Used on runs of the fault engine and of the real one."""
import json
import pathlib
import shutil

from harness import read_json, rows


def copy(run, folder):
    target = pathlib.Path(folder) / run.name
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(run, target)
    return target


def expect_named(anvil, run, artifact, pointer=None, people_too=True):
    """verify exits 1 and names the artifact (and what in it), to programs and to people."""
    done = anvil.run("verify", run, "--json")
    assert done.code == 1, done
    answer = done.json
    assert answer["ok"] is False and answer["mismatches"], done
    where = [mismatch["where"] for mismatch in answer["mismatches"]]
    assert any(w.startswith(artifact) and (pointer is None or pointer in w) for w in where), (artifact, pointer, where)
    if people_too:
        text = anvil.run("verify", run)
        assert text.code == 1 and artifact in text.out, text


def artifact_names(run):
    return [artifact["name"] for artifact in read_json(run / "manifest.json")["artifacts"]]


def flip_one_byte(anvil, run, folder, name):
    forged = copy(run, folder)
    path = forged / name
    data = bytearray(path.read_bytes())
    if not data:
        path.write_bytes(b"x")
    else:
        # The middle of a number, if there is one: the hardest to see.
        digits = [i for i, byte in enumerate(data) if 0x30 <= byte <= 0x39]
        at = digits[len(digits) // 2] if digits else len(data) // 2
        data[at] = data[at] ^ 1
        path.write_bytes(data)
    expect_named(anvil, forged, name)


def numbers(document, pointer=""):
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers(value, f"{pointer}/{key}")
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from numbers(value, f"{pointer}/{index}")
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield pointer


def change(document, pointer, function):
    *parents, last = pointer.strip("/").split("/")
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document[part]
    key = int(last) if isinstance(document, list) else last
    document[key] = function(document[key])


def changed_number(anvil, run, folder, name, pointer):
    forged = copy(run, folder)
    document = read_json(forged / name)
    change(document, pointer, lambda value: value + 1)
    (forged / name).write_text(json.dumps(document))
    expect_named(anvil, forged, name, "#" + pointer, people_too=False)


def removed_row(anvil, run, folder):
    forged = copy(run, folder)
    path = forged / "requests.jsonl"
    if not path.exists():
        return False
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[len(lines) // 2]
    path.write_bytes(b"".join(lines))
    expect_named(anvil, forged, "requests.jsonl")
    return True


def reordered_journal(anvil, run, folder):
    forged = copy(run, folder)
    path = forged / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3], lines[4] = lines[4], lines[3]
    path.write_bytes(b"".join(lines))
    expect_named(anvil, forged, "journal.jsonl", "#/3")


def swapped_policy(anvil, run, folder):
    forged = copy(run, folder)
    policy = read_json(forged / "policy.json")
    for gate in policy.get("gate", policy.get("gates", [])):
        gate["on_fail"] = "watch"
    (forged / "policy.json").write_text(json.dumps(policy))
    expect_named(anvil, forged, "policy.json")


def forged_decision(anvil, run, folder):
    forged = copy(run, folder)
    decision = read_json(forged / "decision.json")
    decision["decision"] = "promote-eligible" if decision["decision"] != "promote-eligible" else "rejected"
    (forged / "decision.json").write_text(json.dumps(decision))
    expect_named(anvil, forged, "decision.json", "#/decision")


def careful_forger(anvil, run, folder):
    """Changes a number and also every hash of it in the manifest: recomputing still finds it."""
    import hashlib
    forged = copy(run, folder)
    path = forged / "results.json"
    results = read_json(path)
    change(results, "/requests/ok", lambda value: value + 1)
    path.write_text(json.dumps(results))
    manifest = read_json(forged / "manifest.json")
    for artifact in manifest["artifacts"]:
        if artifact["name"] == "results.json":
            artifact["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
            artifact["bytes"] = path.stat().st_size
    (forged / "manifest.json").write_text(json.dumps(manifest))
    expect_named(anvil, forged, "results.json", "#/requests/ok")


def everything(anvil, run, folder):
    run = pathlib.Path(run)
    untouched = anvil.run("verify", copy(run, folder), "--json")
    assert untouched.code == 0 and untouched.json["ok"] and untouched.json["complete"], untouched
    assert untouched.json["numbers"] > 20 and untouched.json["rows"] == len(rows(run)), untouched
    for name in [*artifact_names(run), "manifest.json"]:
        flip_one_byte(anvil, run, folder, name)
    results = list(numbers(read_json(run / "results.json")))
    for pointer in results[:: max(1, len(results) // 12)]:
        changed_number(anvil, run, folder, "results.json", pointer)
    removed_row(anvil, run, folder)
    reordered_journal(anvil, run, folder)
    swapped_policy(anvil, run, folder)
    forged_decision(anvil, run, folder)
    careful_forger(anvil, run, folder)
