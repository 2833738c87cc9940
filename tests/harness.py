"""What the whole-program tests share: running anvil, writing its input files, reading its evidence.

ANVIL_BIN is the program under test. Every process that a test starts, directly or not, inherits a mark in its
environment, so that a test can prove that nothing is left.
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import uuid

SOURCE = pathlib.Path(os.environ.get("ANVIL_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
FAULT_ENGINE = SOURCE / "tests" / "fault" / "fault_engine.py"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else shutil.which("python3")
STEPS = ["freeze", "preflight", "snapshot", "launch", "identity", "fingerprint", "checks", "lanes", "calibrate", "ladder", "stop",
         "derive", "decide", "report", "seal"]
DECISIONS = {"promote-eligible", "no-promotion", "control", "watch", "rejected"}


def anvil_bin():
    path = os.environ.get("ANVIL_BIN")
    assert path and os.access(path, os.X_OK), "set ANVIL_BIN to the built program"
    return path


@dataclasses.dataclass
class Done:
    """A finished command."""
    code: int
    out: str
    err: str

    @property
    def json(self):
        """stdout as the one JSON object that --json promises."""
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


class Anvil:
    """The program with a home of its own. `mark` stands in the environment of everything it starts."""

    def __init__(self, home, runs):
        self.home, self.runs = pathlib.Path(home), pathlib.Path(runs)
        self.mark = uuid.uuid4().hex
        self.env = {**os.environ, "ANVIL_HOME": str(self.home), "ANVIL_TEST_MARK": self.mark, "NO_COLOR": "1"}
        self.env.pop("ANVIL_FAULT", None)

    def start(self, *arguments, env=None, prefix=()):
        command = [*prefix, anvil_bin(), *map(str, arguments)]
        return subprocess.Popen(command, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def finish(process, timeout=120):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"anvil did not end within {timeout} s\n{Done(-1, out, err)}") from None
        assert process.returncode != 99, f"a sanitizer found something\n{Done(99, out, err)}"
        return Done(process.returncode, out, err)

    def run(self, *arguments, timeout=120, env=None, prefix=()):
        return self.finish(self.start(*arguments, env=env, prefix=prefix), timeout)

    def run_dirs(self):
        return sorted(p for p in self.runs.iterdir() if (p / "journal.jsonl").exists()) if self.runs.exists() else []

    def processes(self):
        """Living processes that carry the mark: {pid: command line}."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if b"ANVIL_TEST_MARK=" + self.mark.encode() not in (entry / "environ").read_bytes():
                    continue
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                    continue
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, IndexError):
                continue
        return found

    def kill_rest(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def wait_until(condition, what, timeout=60):
    """Polls until `condition` holds and returns its value. The limit is only there so that a broken test ends."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.0005)
    raise AssertionError(f"never happened: {what}")


# -- input files --------------------------------------------------------------------------------------------------------


def to_toml(document):
    """TOML text of nested dicts: values, then tables, then arrays of tables."""

    def value(v):
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{json.dumps(k)} = {value(x)}" for k, x in v.items()) + " }"
        if isinstance(v, list):
            return "[" + ", ".join(map(value, v)) + "]"
        return json.dumps(v, ensure_ascii=False)

    def table(path, content, lines):
        for key, v in content.items():
            if not isinstance(v, dict) and not (isinstance(v, list) and v and isinstance(v[0], dict)):
                lines.append(f"{key} = {value(v)}")
        for key, v in content.items():
            name = f"{path}.{key}" if path else key
            if isinstance(v, dict):
                lines.append(f"\n[{name}]")
                table(name, v, lines)
            elif isinstance(v, list) and v and isinstance(v[0], dict):
                for element in v:
                    lines.append(f"\n[[{name}]]")
                    table(name, element, lines)

    lines = []
    table("", document, lines)
    return "\n".join(lines) + "\n"


def merge(document, changes):
    """`changes` are {"dotted.path": value}; None removes the key."""
    for path, value in changes.items():
        *parents, last = path.split(".")
        at = document
        for name in parents:
            at = at.setdefault(name, {})
        if value is None:
            at.pop(last, None)
        else:
            at[last] = value
    return document


def tiny_gguf():
    """A GGUF file that is whole: one key, one tensor of four floats."""

    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += text("general.architecture") + struct.pack("<I", 8) + text("gemma3")
    head += text("token_embd.weight") + struct.pack("<IQIQ", 1, 4, 0, 0)
    return head + b"\0" * (-len(head) % 32) + struct.pack("<4f", 1, 2, 3, 4)


class Case:
    """A folder with a recipe for the fault engine, a policy and a suite, small enough to run in a second or two."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.anvil = Anvil(self.folder / "home", self.folder / "runs")
        self.anvil.home.mkdir()
        weights = tiny_gguf()
        self.model = self.folder / "model.gguf"
        self.model.write_bytes(weights)
        self.recipe_document = {
            "schema": "anvil/recipe/v1", "name": "fault", "role": "candidate",
            "model": {"repo": "example/fault", "revision": "0" * 39 + "1", "licence": "Apache-2.0", "served_name": "fault",
                      "dtype": {"dense": "q4_k_m", "attention": "q4_k_m", "embedding": "q8_0", "head": "q8_0", "activations": "fp32"},
                      "artifact": [{"file": "model.gguf", "sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights),
                                    "kind": "weights"}]},
            "engine": {"kind": "llama.cpp", "interface": "llama.cpp", "version": "b11549"},
            "hardware": {"gpus": 0, "threads": 1},
            "serving": {"context_tokens": 2048, "max_sequences": 2, "prefix_cache": True},
            "launch": {"runner": "process", "program": [PYTHON, str(FAULT_ENGINE)], "port": 0, "start_ceiling_s": 20,
                       "progress_limit_s": 5, "stop_grace_s": 1, "env": {}},
        }
        self.policy_document = {
            "schema": "anvil/policy/v1", "name": "fault",
            "gate": [
                {"id": "answers", "metric": "lanes[*].success_rate", "op": "==", "threshold": 1, "on_fail": "reject",
                 "because": "every request is answered in full"},
                {"id": "identity", "metric": "identity.mismatch", "op": "==", "threshold": 0, "on_fail": "reject",
                 "because": "what runs is what was declared"},
                {"id": "clean-stop", "metric": "stop.left", "op": "==", "threshold": 0, "on_fail": "no-promotion",
                 "because": "nothing is left behind"},
            ],
        }
        self.suite_document = {
            "schema": "anvil/suite/v1", "name": "fault", "seed": 7,
            "limits": {"first_byte_s": 2, "idle_s": 2, "total_s": 10, "event_bytes": 1 << 20},
            "checks": {"include": ["json"], "max_tokens": 16},
            "lane": [{"id": "short", "prompt_tokens": 64, "output_tokens": 16, "concurrency": 2, "requests": 4, "warmup": 1,
                      "cache": "cold", "fixed_output": True}],
            "ladder": {"targets": [256], "depths": [0.5], "output_tokens": 8, "cached": True},
        }

    def write(self, fault="", recipe=None, policy=None, suite=None):
        changes = {"launch.env": {"ANVIL_FAULT": fault}, **(recipe or {})}
        for name, document, wanted in (("recipe", self.recipe_document, changes), ("policy", self.policy_document, policy),
                                       ("suite", self.suite_document, suite)):
            merged = merge(json.loads(json.dumps(document)), wanted or {})
            (self.folder / f"{name}.toml").write_text(to_toml(merged), encoding="utf-8")

    def command(self, *more, runs=None):
        return ["qualify", self.folder / "recipe.toml", "--policy", self.folder / "policy.toml", "--suite",
                self.folder / "suite.toml", "--runs-dir", runs or self.anvil.runs, "--json", *more]

    def qualify(self, fault="", timeout=120, env=None, prefix=(), runs=None, **documents):
        self.write(fault, **documents)
        return self.anvil.run(*self.command(runs=runs), timeout=timeout, env=env, prefix=prefix)

    def begin(self, fault="", env=None, **documents):
        """Starts a qualification and returns at once."""
        self.write(fault, **documents)
        self.earlier = set(self.anvil.run_dirs())
        return self.anvil.start(*self.command(), env=env)

    def wait_for_step(self, process, step, timeout=60):
        """Returns the directory of the run that begin() started, once its journal says that the step, or a later one, began."""

        def began():
            for directory in set(self.anvil.run_dirs()) - self.earlier:
                for entry in read_jsonl(directory / "journal.jsonl"):
                    if entry.get("event") == "begin" and STEPS.index(entry["step"]) >= STEPS.index(step):
                        return directory
            assert process.poll() is None, f"anvil ended before the step {step}\n{process.communicate()}"
            return None

        return wait_until(began, f"step {step}", timeout)

    def nothing_left(self):
        """No process of the test lives. They may need a moment to be reaped, not more."""
        wait_until(lambda: not self.anvil.processes(), f"all processes gone; living: {self.anvil.processes()}", 10)

    # What must hold of every run that ended in order, whatever went wrong in it.
    def explained(self, done, failed_step=None, klass=None, decision=None):
        assert done.code in (0, 1), done
        answer = done.json
        assert set(answer) >= {"run", "run_dir", "decision", "reasons", "gates", "failed_step"}, done
        assert answer["decision"] in DECISIONS, done
        assert answer["failed_step"] == failed_step, done
        if decision:
            assert answer["decision"] == decision, done
        if failed_step:
            assert done.code == 1 and answer["reasons"], done
        run = pathlib.Path(answer["run_dir"])
        shown = self.anvil.run("runs", "show", run, "--json")
        assert shown.code == 0, shown
        assert shown.json["status"] == "sealed" and shown.json["failed_step"] == failed_step, shown
        assert shown.json["explanation"], shown
        text = self.anvil.run("runs", "show", run)
        assert text.code == 0 and (not failed_step or failed_step in text.out), text
        verified = self.anvil.run("verify", run, "--json")
        assert verified.code == 0 and verified.json["ok"] and not verified.json["mismatches"], verified
        if klass:
            failure = read_json(run / "launch.json")["failure"]
            assert failure and failure["class"] == klass, failure
            assert failure["hint"], failure
        self.nothing_left()
        return run


# -- evidence -----------------------------------------------------------------------------------------------------------


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def read_jsonl(path):
    """Whole lines only: the last one may be in the making."""
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in data[:data.rfind(b"\n") + 1].splitlines() if line]


def bytes_of(run, name):
    """An artifact's content, also where the writer compressed or split it ("engine.log.zst", "requests.jsonl.000.zst")."""
    data = b""
    for path in sorted(p for p in pathlib.Path(run).iterdir() if p.name == name or p.name.startswith(name + ".")):
        raw = path.read_bytes()
        data += subprocess.run(["zstd", "-dcq"], input=raw, stdout=subprocess.PIPE, check=True).stdout if path.suffix == ".zst" else raw
    return data


def text_of(run, name):
    return bytes_of(run, name).decode(errors="replace")


def rows(run):
    """Whole rows of requests.jsonl."""
    data = bytes_of(run, "requests.jsonl")
    return [json.loads(line) for line in data[:data.rfind(b"\n") + 1].splitlines() if line]


def has_command(name):
    return shutil.which(name) is not None
