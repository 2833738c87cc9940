"""The scripted engine as the benchmark uses it: its schedules, its process, its ledger; and the tokenizer that fits it."""
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading

import score

MODEL = "scripted"
# 4096 requests of 32 tokens, with room for heads, ends and warm-up.
LEDGER_EVENTS = 1_000_000

# What the streams look like. `steady` is the one whose timing is compared at every level; the others show at one level what
# a client makes of a stream that is not one token per event.
VARIANTS = {
    "steady": "one token per event",
    "role": "a role event without text 5 ms after the request",
    "chunks": "4 tokens per event",
    "no-usage": "no usage block at the end",
}


def schedule(variant, first_ms, gap_ms, tokens):
    """The TOML text of a variant's schedule; docs/schedule.md has the fields."""
    return f"""schema = "anvil/schedule/v1"
name = "{variant}"
[engine]
model = "{MODEL}"
stamps = false
[[stream]]
name = "{variant}"
role = "{'empty' if variant == 'role' else 'none'}"
role_ms = {5.0 if variant == 'role' else 0.0}
first_ms = {first_ms:.1f}
gap_ms = {gap_ms:.1f}
content_tokens = {tokens}
chunk_tokens = [{4 if variant == 'chunks' else 1}]
usage = "{'none' if variant == 'no-usage' else 'asked'}"
"""


def write_tokenizer(folder):
    """A Hugging Face tokenizer folder in which every word between spaces is one token, as it is for the scripted engine."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["unknown"] + [f"w{number}" for number in range(4096)]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: index for index, word in enumerate(words)}, "unk_token": "unknown"}}))
    # No special tokens: GuideLLM decodes without them, and unknown words would vanish from its prompts.
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 131072, "clean_up_tokenization_spaces": False,
        "chat_template": "{% for m in messages %}{{ m.content }}\n{% endfor %}"}))
    # vLLM looks for a model beside the tokenizer and tries again for seconds when there is none.
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))


class EngineFailed(Exception):
    pass


class Engine:
    """One run of `anvil engine`, in a session of its own, from start() to stop(), which reads the ledger."""

    def __init__(self, anvil, folder, cpus):
        self.anvil, self.folder, self.cpus = anvil, pathlib.Path(folder), cpus
        self.process = None
        self.url = None

    def start(self, schedule_text, patience_s=20):
        (self.folder / "schedule.toml").write_text(schedule_text)
        command = ["taskset", "-c", self.cpus, str(self.anvil), "engine", "--schedule", str(self.folder / "schedule.toml"),
                   "--ledger", str(self.folder / "ledger.jsonl"), "--ledger-events", str(LEDGER_EVENTS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(self.folder / "engine.err", "wb"),
                                        stdin=subprocess.DEVNULL, start_new_session=True, text=True)
        lines = queue.Queue()
        threading.Thread(target=lambda: lines.put(self.process.stdout.readline()), daemon=True).start()
        try:
            self.url = re.fullmatch(r"listening on (http://\S+)\n", lines.get(timeout=patience_s)).group(1)
        except (queue.Empty, AttributeError):
            self.kill()
            error = (self.folder / "engine.err").read_text(errors="replace").strip().splitlines()
            raise EngineFailed(f"anvil engine did not say where it listens{': ' + error[-1] if error else ''}") from None
        return self.url

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self, patience_s=60):
        """Asks it to stop and reads what it wrote then: see read_ledger()."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise EngineFailed("anvil engine did not stop when asked to") from None
        return read_ledger((self.folder / "ledger.jsonl").read_text())


def read_ledger(text):
    """(truths of all requests that were answered to the end with some output, the engine's summary of itself)"""
    truths, summary = [], None
    for line in text.splitlines():
        entry = json.loads(line)
        if "summary" in entry:
            summary = entry["summary"]
            continue
        outputs = [(event["write_end_ns"], event["tokens"]) for event in entry["events"] if event["tokens"] > 0]
        if entry["outcome"] != "done" or not outputs:
            continue
        if entry["cut"]:
            raise EngineFailed("the ledger was too small for the run")
        truths.append(score.Truth(id=entry["id"], received_ns=entry["arrived_ns"], outputs=outputs, events=len(entry["events"]),
                                  ended_ns=max(event["write_end_ns"] for event in entry["events"]),
                                  output_tokens=entry["completion_tokens"], prompt_tokens=entry["prompt_tokens"]))
    if summary is None:
        raise EngineFailed("the ledger has no end; the engine was killed")
    return truths, summary
