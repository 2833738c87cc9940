"""The load clients that are compared: how each is called, and what it says about every request.

One function builds a command line, one reads the tool's own output; TOOLS is the table of them. Standard library only.
"""
import dataclasses
import json
import pathlib
import typing


@dataclasses.dataclass
class Load:
    """What a tool is asked to do, once. `folder` is its own and empty; its standard output goes to folder/stdout."""
    url: str
    model: str
    streams: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    tokenizer: pathlib.Path
    folder: pathlib.Path


@dataclasses.dataclass
class Report:
    """What a tool says about one request that it counts as successful. None: it does not say."""
    id: str | None              # the x-request-id that it sent
    start_ns: int | None        # when it began, by the clock that the tool's table entry names
    first_output_ms: float      # its time to first token
    gaps_ms: list | None        # one gap for each chunk after the first
    mean_gap_ms: float | None   # one mean for the request, where it keeps no gaps
    per_token_ms: float | None  # its time per output token after the first
    output_tokens: int | None
    prompt_tokens: int | None = None


@dataclasses.dataclass
class Tool:
    name: str
    title: str
    program: str                # below the tool's environment; empty for Anvil itself
    command: typing.Callable    # (program, Load) -> list
    read: typing.Callable       # folder -> [Report]
    doubts: typing.Callable     # folder -> what the tool itself holds against its figures, as texts
    start_clock: str            # "wall" or "monotonic": the clock of Report.start_ns
    environment: dict
    first_output: str           # the tool's own name of what is compared
    gap: str
    codes: tuple = (0,)         # exit codes after which there is output to read


class Unreadable(Exception):
    """The tool ended well but its output is not what this adapter knows."""


def load_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise Unreadable(f"{pathlib.Path(path).name}: {error}") from error


def fields(read):
    """Makes a missing field of a tool's output an Unreadable that names it."""
    def guarded(folder):
        try:
            return read(folder)
        except (KeyError, IndexError, TypeError) as error:
            raise Unreadable(f"the output lacks {error}; is it another version of the tool?") from error
    return guarded


# ---------------------------------------------------------------- GuideLLM

def guidellm_command(program, load):
    return [program, "run",
            "--backend", f"kind=openai_http,target={load.url},model={load.model},validate_backend=false",
            "--profile", f"kind=concurrent,streams={load.streams}",
            "--constraint", f"kind=max_requests,count={load.requests}",
            "--data", f"kind=synthetic_text,prompt_tokens={load.prompt_tokens},output_tokens={load.output_tokens}",
            "--tokenizer", f"kind=huggingface_auto,model={load.tokenizer}",
            "--output", f"kind=json,path={load.folder / 'guidellm.json'}",
            "--disable-console"]


@fields
def guidellm_read(folder):
    """Keeps no gaps: `inter_token_latency_ms` is (last - first) / (tokens - 1) of a request. Sends no request id."""
    out = []
    for request in load_json(folder / "guidellm.json")["benchmarks"][0]["requests"]["successful"]:
        out.append(Report(id=None, start_ns=round(request["request_start_time"] * 1e9), first_output_ms=request["time_to_first_token_ms"],
                          gaps_ms=None, mean_gap_ms=request["inter_token_latency_ms"], per_token_ms=request["inter_token_latency_ms"],
                          output_tokens=request["output_tokens"], prompt_tokens=request["prompt_tokens"]))
    return out


@fields
def guidellm_doubts(folder):
    return [warning["code"] for warning in load_json(folder / "guidellm.json")["benchmarks"][0].get("warnings") or []]


# ---------------------------------------------------------------- AIPerf

def aiperf_command(program, load):
    return [program, "profile", "--model", load.model, "--url", load.url, "--endpoint-type", "chat", "--streaming",
            "--concurrency", str(load.streams), "--request-count", str(load.requests),
            "--isl", str(load.prompt_tokens), "--isl-stddev", "0", "--osl", str(load.output_tokens), "--osl-stddev", "0",
            "--tokenizer", str(load.tokenizer), "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics",
            "--export-level", "records", "--artifact-dir", str(load.folder / "aiperf")]


@fields
def aiperf_read(folder):
    """One JSON line for each request; `inter_chunk_latency` holds its gaps. A metric that has no value is absent."""
    try:
        lines = (folder / "aiperf" / "profile_export.jsonl").read_text().splitlines()
    except OSError as error:
        raise Unreadable(str(error)) from error
    out = []
    for line in lines:
        record = json.loads(line)
        if record.get("error") or record["metadata"].get("was_cancelled"):
            continue
        if record["metadata"].get("benchmark_phase", "profiling") != "profiling":
            continue
        value = {name: metric["value"] for name, metric in record["metrics"].items()}
        out.append(Report(id=record["metadata"]["x_request_id"], start_ns=record["metadata"]["request_start_ns"],
                          first_output_ms=value["time_to_first_token"], gaps_ms=value.get("inter_chunk_latency", []), mean_gap_ms=None,
                          per_token_ms=value.get("inter_token_latency"), output_tokens=value.get("output_sequence_length"),
                          prompt_tokens=value.get("input_sequence_length")))
    return out


# ---------------------------------------------------------------- vllm bench serve

def vllm_command(program, load):
    return [program, "bench", "serve", "--backend", "openai-chat", "--base-url", load.url, "--endpoint", "/v1/chat/completions",
            "--model", load.model, "--tokenizer", str(load.tokenizer), "--dataset-name", "random",
            "--random-input-len", str(load.prompt_tokens), "--random-output-len", str(load.output_tokens),
            "--num-prompts", str(load.requests), "--max-concurrency", str(load.streams), "--num-warmups", "0",
            "--ready-check-timeout-sec", "0", "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99",
            "--request-id-prefix", "fidelity-", "--disable-tqdm", "--save-result", "--save-detailed",
            "--result-dir", str(load.folder), "--result-filename", "vllm.json"]


@fields
def vllm_read(folder):
    """Parallel lists in the order of the prompts; a failed request has a text in `errors` and 0 elsewhere."""
    result = load_json(folder / "vllm.json")
    out = []
    for index, error in enumerate(result["errors"]):
        if error:
            continue
        first, tokens = result["ttfts"][index], result["output_lens"][index]
        # As the tool's own median_tpot_ms is computed.
        per_token = (result["latencies"][index] - first) / (tokens - 1) * 1e3 if tokens > 1 else None
        out.append(Report(id=f"fidelity-{index}", start_ns=round(result["start_times"][index] * 1e9), first_output_ms=first * 1e3,
                          gaps_ms=[gap * 1e3 for gap in result["itls"][index]], mean_gap_ms=None, per_token_ms=per_token,
                          output_tokens=tokens, prompt_tokens=result["input_lens"][index]))
    return out


# ---------------------------------------------------------------- Anvil

def anvil_command(program, load):
    return [program, "bench", "--url", load.url, "--model", load.model, "--concurrency", str(load.streams),
            "--requests", str(load.requests), "--prompt-tokens", str(load.prompt_tokens), "--max-tokens", str(load.output_tokens),
            "--json", "--rows", "--quiet", "--runs-dir", str(load.folder / "runs")]


@fields
def anvil_read(folder):
    """The engine builds the id of its answer from that of the request, which it invents where the client sends none."""
    out = []
    for row in load_json(folder / "stdout")["requests"]:
        if row["outcome"] != "ok":
            continue
        answer = row.get("answer_id") or ""
        out.append(Report(id=answer.removeprefix("chatcmpl-") or None, start_ns=row.get("sent_ns"), first_output_ms=row["ttfo_ms"], gaps_ms=row["chunk_gaps_ms"],
                          mean_gap_ms=None, per_token_ms=row["tpot_ms"], output_tokens=row["output_tokens"],
                          prompt_tokens=row["prompt_tokens"]))
    return out


@fields
def anvil_doubts(folder):
    return load_json(folder / "stdout")["invalid_reasons"]


def none(_folder):
    return []


# AIPerf takes a folder for a repository's name when it is told to stay offline; the others must be told.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

TOOLS = {tool.name: tool for tool in [
    Tool("anvil", "Anvil", "", anvil_command, anvil_read, anvil_doubts, "monotonic", {}, "ttfo_ms", "chunk_gaps_ms", (0, 1)),
    Tool("guidellm", "GuideLLM", "guidellm", guidellm_command, guidellm_read, guidellm_doubts, "wall", OFFLINE,
         "time_to_first_token_ms", "inter_token_latency_ms (one mean per request)"),
    Tool("aiperf", "AIPerf", "aiperf", aiperf_command, aiperf_read, none, "wall", {}, "time_to_first_token", "inter_chunk_latency"),
    Tool("vllm", "vllm bench serve", "vllm", vllm_command, vllm_read, none, "monotonic",
         {**OFFLINE, "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}, "ttfts", "itls"),
]}
