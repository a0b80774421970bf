"""An OpenAI-compatible server in front of the model: `python -m benchmarks.judge.server --port N`.

It turns calls that the model writes as text into `tool_calls`, shows no tools where `tool_choice`
is `none`, and fixes temperature and seed. A request that was answered before is answered from a
file in the cache folder, with the figures of that time: conditions share prompts, and a repeated
run after a change only computes what changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.judge import weights
from benchmarks.judge.toolcalls import parse_reply
from benchmarks.peers import environment

MOST_TOKENS = 200
SEED = 28
_PATIENCE = 1_800
"""Seconds for one answer: the machine may be busy."""


class ModelCall(NamedTuple):
    """One request that reached the model."""

    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Time of the model, when the answer was computed."""
    reply: str
    """As the model wrote it, calls included."""
    calls: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    """What the model was shown."""


class AnswerFile:
    """Replies by the hash of the request, in SQLite."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._rows.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")

    def read(self, key: str) -> dict[str, Any] | None:
        row = self._rows.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def write(self, key: str, reply: dict[str, Any]) -> None:
        with self._rows:
            self._rows.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, json.dumps(reply))
            )

    def close(self) -> None:
        self._rows.close()


class Model:
    """The model behind a llama.cpp server, asked one question at a time."""

    def __init__(self, address: str, answers: AnswerFile) -> None:
        self.calls: list[ModelCall] = []
        """Every request since the list was last cleared."""
        self.scripted = ""
        """Reply to the next request instead of the model's, where only the request matters."""
        self._address = urlsplit(address)
        self._answers = answers
        self._lock = threading.Lock()

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the chat completion for a request.

        Raises:
            ModelError: the model's server refused it.
        """
        with self._lock:
            return self._complete(request)

    def _complete(self, request: dict[str, Any]) -> dict[str, Any]:
        sent = model_request(request)
        key = hashlib.sha256(
            (weights.SHA256 + json.dumps(sent, sort_keys=True)).encode()
        ).hexdigest()
        reply = self._take_scripted() or self._answers.read(key)
        if reply is None:
            started = time.perf_counter()
            reply = self._post(sent)
            reply["seconds"] = time.perf_counter() - started
            self._answers.write(key, reply)
        tools = {tool["function"]["name"] for tool in sent.get("tools", ())}
        choice, usage = reply["choices"][0], reply["usage"]
        text = choice["message"].get("content") or ""
        parsed = parse_reply(text, tools)
        self.calls.append(
            ModelCall(
                usage["prompt_tokens"],
                usage["completion_tokens"],
                reply["seconds"],
                text,
                parsed.calls,
                sent["messages"],
            )
        )
        message: dict[str, Any] = {"role": "assistant", "content": parsed.text or None}
        finish = choice["finish_reason"]
        if parsed.calls:
            for call in parsed.calls:  # unique among all calls of a conversation, as providers' are
                call["id"] += f"_{key[:12]}"
            message["tool_calls"] = parsed.calls
            finish = "tool_calls"
        return {
            "id": f"chatcmpl-{key[:24]}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": weights.NAME,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": usage["prompt_tokens"],
                "completion_tokens": usage["completion_tokens"],
                "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            },
        }

    def _take_scripted(self) -> dict[str, Any] | None:
        text, self.scripted = self.scripted, ""
        if not text:
            return None
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        return {"choices": [choice], "usage": usage, "seconds": 0.0}

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        host, port = self._address.hostname or "", self._address.port
        connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ModelError(response.status, data)
        value: dict[str, Any] = json.loads(data)
        return value


class ModelError(Exception):
    """The model's server refused a request."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the model's server answered {status}: {body[:300]!r}")
        self.status = status
        self.body = body


def model_request(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request for llama.cpp: no tools where none may be called, no randomness."""
    sent: dict[str, Any] = {
        "messages": request["messages"],
        "temperature": 0,
        "seed": SEED,
        "max_tokens": request.get("max_tokens")
        or request.get("max_completion_tokens")
        or MOST_TOKENS,
        "cache_prompt": True,
    }
    if request.get("tools") and request.get("tool_choice") != "none":
        sent["tools"] = request["tools"]
    return sent


@contextlib.contextmanager
def model_process(port: int = 0) -> Iterator[str]:
    """Start llama.cpp's server and yield its address; set it up where that was not done yet.

    `$HOLDFAST_JUDGE_MODEL` is the address of one that runs already.
    """
    if address := os.environ.get("HOLDFAST_JUDGE_MODEL"):
        yield address
        return
    path = weights.fetch_weights()
    python = environment.python("xllamacpp")
    print("judge: starting the model", file=sys.stderr)
    # On a busy machine one thread is faster: several wait for each other at every layer.
    threads = os.environ.get("HOLDFAST_JUDGE_THREADS") or str(os.cpu_count())
    script = Path(__file__).with_name("llama.py")
    command = [str(python), str(script), str(path), str(port), threads]
    process = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise EOFError(f"the model's server ended with status {process.wait()}")
        yield address
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def serve(model: Model, port: int = 0) -> Iterator[str]:
    """Serve `/v1/chat/completions` in a thread and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, answer = 200, json.dumps(model.complete(json.loads(body))).encode()
            except ModelError as error:
                status, answer = error.status, error.body
            self._reply(status, answer)

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": weights.NAME, "object": "model"}]}
            self._reply(200, json.dumps(models).encode())

        def _reply(self, status: int, answer: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing: the runner prints the progress."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def running_model() -> Iterator[Model]:
    """Yield the model, with the answers of earlier runs."""
    answers = AnswerFile(weights.cache_folder() / "replies.sqlite")
    with contextlib.closing(answers), model_process() as address:
        yield Model(address, answers)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge.server", description=__doc__)
    parser.add_argument("--port", type=int, default=8901, help="default 8901; 0: any free port")
    options = parser.parse_args()
    with running_model() as model, serve(model, options.port) as address:
        print(f"{address}/v1 serves {weights.NAME}; end it with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
