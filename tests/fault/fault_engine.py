#!/usr/bin/env python3
"""A small stand-in for llama-server that goes wrong on demand. For tests; standard library only.

Takes llama-server's flags (unknown ones are ignored), writes llama-server's log lines and speaks its HTTP surface
with deterministic answers: every answer is a list of numbered words, one word one token, tokens are words and signs.
What goes wrong is in ANVIL_FAULT, a comma-separated list of NAME, NAME:ARGUMENT, or NAME@N (from the N-th inference
request on, counted from 1); `python3 fault_engine.py --list-faults` prints the names.
"""
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib

FAULTS = {
    # starting
    "exit-at-once": "ends before it does anything; :CODE",
    "exit-during-load": "ends with an error line while loading",
    "signal-during-load": "is killed by SIGSEGV while loading",
    "missing-library": "what the dynamic loader says, exit 127",
    "out-of-memory": "what llama.cpp says, exit 1",
    "bad-flag": "refuses a flag as llama-server does",
    "corrupt-model": "what llama.cpp says of a truncated file",
    "hang-silent": "never listens and never writes a line",
    "hang-loading": "answers 503 for ever and writes nothing more",
    "slow-load": "loads for SECONDS (default 2), a log line every 0.1 s",
    "chatty-load": "loads for ever and keeps writing the same line",
    "noise": "writes 2 MB of log, with bytes that are not UTF-8 and a line without end",
    # processes
    "ignore-term": "ignores TERM and INT",
    "setsid-child": "starts a child in a session of its own that ignores TERM",
    "die": "kills itself (SIGKILL) instead of answering",
    "wedge": "stops answering anything (health too) but stays alive",
    # identity
    "wrong-model": "says that it serves another model",
    "wrong-context": "says that it has half the context",
    # answers
    "garbage": "answers every request with bytes that are not HTTP",
    "garbage-inference": "the same for inference requests only",
    "http-500": "answers inference requests with 500 and an error body",
    "html": "answers inference requests with 200 and an HTML page",
    "headers-only": "sends the head of an answer and then nothing",
    "silent": "reads the request and sends nothing at all",
    "close-midstream": "closes the connection after a few events",
    "no-done": "ends the stream properly but without finish and [DONE]",
    "stall": "stops sending after a few events",
    "huge-event": "one event of 20 MB",
    "endless-line": "an event that never ends, as fast as it can",
    "error-in-200": "an error event inside a 200 stream",
    "bad-json": "events that are not JSON",
    "slow": "SECONDS (default 0.05) before every token",
}
TOKEN = re.compile(r"\w+|[^\w\s]|\n")
STARTED = time.monotonic()


class Fault:
    """The faults that ANVIL_FAULT asks for."""

    def __init__(self, text):
        self.wanted = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, since = part.partition("@")
            name, _, argument = name.partition(":")
            if name not in FAULTS:
                sys.exit(f"unknown fault {name!r}; known: {', '.join(FAULTS)}")
            self.wanted[name] = (argument, int(since or 1))

    def __call__(self, name, request=1 << 60):
        return name in self.wanted and request >= self.wanted[name][1]

    def number(self, name, fallback):
        return float(self.wanted[name][0] or fallback)


def log(level, source, text):
    """One line in llama-server's form, on stderr."""
    micros = int((time.monotonic() - STARTED) * 1e6)
    stamp = f"{micros // 60_000_000}.{micros // 1_000_000 % 60:02}.{micros // 1000 % 1000:03}.{micros % 1000:03}"
    sys.stderr.write(f"{stamp} {level} {source}: {text}\n")
    sys.stderr.flush()


def tokens_of(text):
    return TOKEN.findall(text)


def token_id(token):
    return zlib.crc32(token.encode()) % 262144


class Engine:
    def __init__(self, options, fault):
        self.options, self.fault = options, fault
        self.ready = False
        self.requests = 0
        self.cache = []
        self.counters = dict.fromkeys(("prompt", "cached", "predicted"), 0)
        self.slot_context = options["context"] // options["slots"]
        if fault("wrong-context"):
            self.slot_context //= 2

    @property
    def model(self):
        return "another-model" if self.fault("wrong-model") else self.options["alias"]

    # -- what a model would do --------------------------------------------------------------------------------------

    @staticmethod
    def render(messages, tools=None):
        parts = [json.dumps(tools)] if tools else []
        for message in messages:
            content = message.get("content")
            if isinstance(content, list):
                content = " ".join(part.get("text", "") for part in content)
            parts.append(f"{message['role']}: {content or ''}")
        return "\n".join(parts) + "\nassistant:"

    def prompt_tokens(self, body, api):
        if api == "completions":
            prompt = body["prompt"]
            return [str(part) for part in prompt] if isinstance(prompt, list) else ["<bos>"] + tokens_of(prompt)
        messages = body.get("messages", body.get("input"))
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return ["<bos>"] + tokens_of(self.render(messages, body.get("tools")))

    def take_from_cache(self, prompt, body):
        cached = 0
        if body.get("cache_prompt", True):
            while cached < min(len(prompt) - 1, len(self.cache)) and prompt[cached] == self.cache[cached]:
                cached += 1
        self.cache = prompt
        self.counters["prompt"] += len(prompt) - cached
        self.counters["cached"] += cached
        return cached

    # -- HTTP -------------------------------------------------------------------------------------------------------

    async def serve(self, reader, writer):
        try:
            while await self.one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def one_request(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if self.fault("garbage") and self.ready:
            writer.write(b"\x00\x01\xff garbage \r\n" * 20)
            await writer.drain()
            return False
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await reader.readexactly(int(length.group(1))) if length else b""
        if self.fault("wedge", self.requests + 1) and self.ready and path.startswith("/v1/"):
            self.fault.wanted["wedged"] = ("", 1)
        if "wedged" in self.fault.wanted:
            await asyncio.sleep(3600)
        if path == "/health":
            return self.send(writer, 200, {"status": "ok"}) if self.ready else self.loading(writer)
        if not self.ready:
            return self.loading(writer)
        if method == "GET" and path == "/v1/models":
            return self.send(writer, 200, self.models())
        if method == "GET" and path == "/props":
            return self.send(writer, 200, self.props())
        if method == "GET" and path == "/slots":
            slots = range(self.options["slots"])
            return self.send(writer, 200, [{"id": i, "n_ctx": self.slot_context, "is_processing": False} for i in slots])
        if method == "GET" and path == "/metrics":
            return self.send(writer, 200, self.metrics(), "text/plain; version=0.0.4")
        try:
            document = json.loads(body or b"{}")
        except ValueError:
            return self.refuse(writer, 400, "parse error", "invalid_request_error")
        if path == "/tokenize":
            tokens = ["<bos>"] * bool(document.get("add_special")) + tokens_of(document["content"])
            pieces = [{"id": token_id(t), "piece": t} for t in tokens]
            return self.send(writer, 200, {"tokens": pieces if document.get("with_pieces") else [p["id"] for p in pieces]})
        if path == "/apply-template":
            return self.send(writer, 200, {"prompt": self.render(document["messages"], document.get("tools"))})
        for api in ("chat/completions", "completions", "responses"):
            if path == "/v1/" + api:
                return await self.infer(writer, document, api.split("/")[0])
        return self.refuse(writer, 404, "File Not Found", "not_found_error")

    def send(self, writer, status, document, kind="application/json; charset=utf-8"):
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        writer.write(b"HTTP/1.1 %d X\r\nServer: llama.cpp\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
                     % (status, kind.encode(), len(body)) + body)
        return True

    def refuse(self, writer, status, message, kind):
        return self.send(writer, status, {"error": {"code": status, "message": message, "type": kind}})

    def loading(self, writer):
        return self.refuse(writer, 503, "Loading model", "unavailable_error")

    def models(self):
        meta = {"n_ctx": self.slot_context, "n_ctx_train": 32768, "n_params": 1, "size": 1}
        return {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "llamacpp", "meta": meta}]}

    def props(self):
        params = {"temperature": self.options["temperature"], "top_p": 0.95, "top_k": 40, "seed": self.options["seed"]}
        return {"default_generation_settings": {"params": params, "n_ctx": self.slot_context},
                "total_slots": self.options["slots"], "model_alias": self.model, "model_path": self.options["model"],
                "chat_template": "", "bos_token": "<bos>", "build_info": "b0-unknown"}

    def metrics(self):
        names = {"prompt_tokens_total": "prompt", "prompt_tokens_cached_total": "cached", "tokens_predicted_total": "predicted"}
        lines = [f"# TYPE llamacpp:{name} counter\nllamacpp:{name} {self.counters[key]}" for name, key in names.items()]
        return "\n".join(lines + ["llamacpp:requests_processing 0", "llamacpp:requests_deferred 0", ""])

    # -- inference --------------------------------------------------------------------------------------------------

    async def infer(self, writer, body, api):
        self.requests += 1
        number = self.requests

        def wrong(name):
            return self.fault(name, number)

        if wrong("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if wrong("silent"):
            await asyncio.sleep(3600)
        if wrong("garbage-inference"):
            writer.write(b"\x00\x01\xff garbage \r\n" * 20)
            return False
        if wrong("http-500"):
            return self.refuse(writer, 500, "the device fell off the bus", "server_error")
        if wrong("html"):
            return self.send(writer, 200, "<html><body>Welcome to nginx!</body></html>", "text/html")
        if wrong("headers-only"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(3600)
        prompt = self.prompt_tokens(body, api)
        if len(prompt) >= self.slot_context:
            error = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": len(prompt), "n_ctx": self.slot_context,
                     "message": f"request ({len(prompt)} tokens) exceeds the available context size ({self.slot_context} tokens)"}
            return self.send(writer, 400, {"error": error})
        cached = self.take_from_cache(prompt, body)
        limit = body.get("max_tokens") or body.get("max_output_tokens") or 16
        words = [f" word{i}" for i in range(limit if body.get("ignore_eos") else min(limit, 8))]
        self.counters["predicted"] += len(words)
        finish = "length" if len(words) == limit else "stop"
        counts = (len(prompt), len(words), cached)
        if not body.get("stream"):
            return self.send(writer, 200, self.whole(api, "".join(words), finish, counts))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in self.events(api, words, finish, counts, wrong, body):
            if event is None:  # a pause
                await writer.drain()
                await asyncio.sleep(self.fault.number("slow", 0.05) if wrong("slow") else 0)
            elif event == "close":
                await writer.drain()
                writer.transport.abort()
                return False
            elif event == "stall":
                await writer.drain()
                await asyncio.sleep(3600)
            elif event == "endless":
                while True:
                    self.chunk(writer, b"x" * 65536)
                    await writer.drain()
            else:
                self.chunk(writer, event)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    @staticmethod
    def chunk(writer, data):
        writer.write(b"%x\r\n" % len(data) + data + b"\r\n")

    def timings(self, counts):
        prompt, completion, cached = counts
        return {"cache_n": cached, "prompt_n": prompt - cached, "prompt_ms": 1.0, "predicted_n": completion, "predicted_ms": 1.0}

    def usage(self, api, counts):
        prompt, completion, cached = counts
        if api == "responses":
            return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion,
                    "input_tokens_details": {"cached_tokens": cached}}
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": cached}}

    def output_item(self, text):
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}

    def whole(self, api, text, finish, counts):
        usage, timings = self.usage(api, counts), self.timings(counts)
        if api == "responses":
            return {"id": "resp_1", "object": "response", "model": self.model, "status": "completed",
                    "output": [self.output_item(text)], "usage": usage}
        if api == "completions":
            choice = {"index": 0, "text": text, "finish_reason": finish}
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        return {"id": "chatcmpl-1", "object": "chat.completion" if api == "chat" else "text_completion", "model": self.model,
                "system_fingerprint": "b0-unknown", "choices": [choice], "usage": usage, "timings": timings}

    def events(self, api, words, finish, counts, wrong, body):
        """Bytes to send as one chunk each; None where a token takes its time; a word for what goes wrong."""

        def data(document, event=None):
            head = f"event: {event}\n" if event else ""
            return f"{head}data: {json.dumps(document)}\n\n".encode()

        def delta(text):
            if api == "responses":
                return data({"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}, "response.output_text.delta")
            if api == "completions":
                return data({"object": "text_completion", "model": self.model, "choices": [{"index": 0, "text": text, "finish_reason": None}]})
            return data({"object": "chat.completion.chunk", "model": self.model,
                         "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})

        if api == "responses":
            yield data({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}, "response.created")
        elif api == "chat":
            yield data({"object": "chat.completion.chunk", "model": self.model,
                        "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]})
        for index, word in enumerate(words):
            yield None
            if index == min(2, len(words) - 1):
                if wrong("close-midstream"):
                    yield "close"
                if wrong("stall"):
                    yield "stall"
                if wrong("no-done"):
                    return
                if wrong("huge-event"):
                    word = "x" * (20 << 20)
                if wrong("endless-line"):
                    yield b"data: "
                    yield "endless"
                if wrong("bad-json"):
                    yield b"data: {\"choices\": [{\n\n"
                if wrong("error-in-200"):
                    yield data({"error": {"code": 500, "message": "CUDA error: out of memory", "type": "server_error"}})
                    return
            yield delta(word)
        usage, timings = self.usage(api, counts), self.timings(counts)
        if api == "responses":
            response = {"id": "resp_1", "object": "response", "model": self.model, "status": "completed",
                        "output": [self.output_item("".join(words))], "usage": usage}
            yield data({"type": "response.completed", "response": response, "timings": timings}, "response.completed")
            return
        wants_usage = (body.get("stream_options") or {}).get("include_usage")
        if api == "completions":
            last = {"object": "text_completion", "model": self.model, "choices": [{"index": 0, "text": "", "finish_reason": finish}]}
            yield data({**last, "usage": usage, "timings": timings} if wants_usage else last)
        else:
            yield data({"object": "chat.completion.chunk", "model": self.model, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            if wants_usage:
                yield data({"object": "chat.completion.chunk", "model": self.model, "choices": [], "usage": usage, "timings": timings})
        yield b"data: [DONE]\n\n"


def parse(argv):
    options = {"model": "", "context": 4096, "slots": 1, "host": "127.0.0.1", "port": 8080, "alias": "fault", "seed": 1, "temperature": 0.8}
    flags = {"-m": ("model", str), "-c": ("context", int), "-np": ("slots", int), "--host": ("host", str), "--port": ("port", int),
             "--alias": ("alias", str), "--seed": ("seed", int), "--temp": ("temperature", float)}
    rest = iter(argv)
    for flag in rest:
        if flag in flags:
            name, convert = flags[flag]
            options[name] = convert(next(rest))
    return options


def start_child():
    """A child that outlives a careless stop: its own session, deaf to TERM."""
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)


async def run(options, fault):
    if fault("exit-at-once"):
        log("E", "main", "giving up at once")
        sys.exit(int(fault.number("exit-at-once", 1)))
    if fault("missing-library"):
        sys.stderr.write("llama-server: error while loading shared libraries: libllama.so: cannot open shared object file: "
                         "No such file or directory\n")
        sys.exit(127)
    if fault("bad-flag"):
        sys.stderr.write("error: invalid argument: --jinja\n")
        sys.exit(1)
    if fault("hang-silent"):
        await asyncio.sleep(3600)
    if fault("setsid-child"):
        start_child()
    if fault("ignore-term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = Engine(options, fault)
    log("I", "srv          init", "initializing ...")
    if fault("noise"):
        sys.stderr.buffer.write(b"\xff\xfe broken \x00 bytes\n" + b"noise " * 20 + b"\n")
        for _ in range(20):
            sys.stderr.buffer.write(b"n" * 100_000 + b"\n")
        sys.stderr.buffer.write(b"a line without an end")
        sys.stderr.flush()
        sys.stderr.write("\n")
    try:
        server = await asyncio.start_server(engine.serve, options["host"], options["port"], limit=64 << 20)
    except OSError:
        log("E", "srv         start", f"couldn't bind HTTP server socket, hostname: {options['host']}, port: {options['port']}")
        log("E", "srv          init", "exiting due to HTTP server error")
        sys.exit(1)
    log("I", "srv          init", "loading model")
    log("I", "srv    load_model", f"loading model '{options['model']}'")
    if fault("hang-loading"):
        await asyncio.sleep(3600)
    while fault("chatty-load"):
        log("I", "load", "still loading")
        await asyncio.sleep(0.05)
    if fault("slow-load"):
        for _ in range(int(fault.number("slow-load", 2) * 10)):
            log("I", "load_tensors", "loading tensors")
            await asyncio.sleep(0.1)
    if fault("exit-during-load"):
        log("E", "llama_model_load", "error loading model: unknown model architecture: 'mystery'")
        log("E", "srv    load_model", f"failed to load model, '{options['model']}'")
        sys.exit(1)
    if fault("corrupt-model"):
        log("E", "llama_model_load", "error loading model: tensor 'output.weight' data is not within the file bounds, "
            "model is corrupted or incomplete")
        sys.exit(1)
    if fault("out-of-memory"):
        log("E", "ggml_backend_cpu_buffer_type_alloc_buffer", "failed to allocate CPU buffer of size 999999999999")
        sys.exit(1)
    if fault("signal-during-load"):
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
    log("I", "srv    load_model", f"initializing, n_slots = {options['slots']}, n_ctx_slot = {engine.slot_context}, kv_unified = 'false'")
    log("I", "srv          init", "model loaded")
    log("I", "srv          init", f"listening on http://{options['host']}:{options['port']}")
    engine.ready = True
    if not fault("ignore-term"):
        stop = asyncio.get_running_loop().create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, lambda: stop.done() or stop.set_result(None))
        await stop
        log("I", "~Server", "main loop exited")
        server.close()
        os._exit(0)
    await asyncio.sleep(1 << 20)


if __name__ == "__main__":
    if "--list-faults" in sys.argv:
        for fault_name, what in FAULTS.items():
            print(f"{fault_name:20} {what}")
    elif "--version" in sys.argv:
        print("version: 11549 (fault engine)", file=sys.stderr)
    else:
        asyncio.run(run(parse(sys.argv[1:]), Fault(os.environ.get("ANVIL_FAULT", ""))))
