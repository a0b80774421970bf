"""A server for a model whose template has no tools: it describes them and parses calls.

llama.cpp does the same for such models: the tools are in a system message, and a grammar forces
calls to match their schemas.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_PATIENCE = 600.0


def told(body: dict[str, Any]) -> dict[str, Any]:
    """The request without tools; after a task, and not after a result, a call is to be written."""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    lines = [f"{f['name']}: {json.dumps(f['parameters'])}" for f in functions]
    messages = [{"role": "system", "content": "Tools:\n" + "\n".join(lines)}]
    for message in body["messages"]:
        text = message.get("content") or json.dumps(message.get("tool_calls"))
        role = "user" if message["role"] == "tool" else message["role"]
        messages.append({"role": role, "content": text})
    asked = {key: value for key, value in body.items() if key not in ("tools", "tool_choice")}
    asked["messages"] = messages
    if functions and body["messages"][-1]["role"] == "user":
        calls = [
            {
                "type": "object",
                "properties": {"name": {"const": f["name"]}, "arguments": f["parameters"]},
                "required": ["name", "arguments"],
            }
            for f in functions
        ]
        schema = {"name": "call", "schema": {"anyOf": calls}}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return asked


def heard(answer: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the answer, with a call parsed if it is one."""
    message = answer["choices"][0]["message"]
    try:
        call = json.loads(message["content"])
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    except (ValueError, KeyError, TypeError):
        return answer  # words, or a call that was too long
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    answer["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": calls}
    return answer


class Offering(NamedTuple):
    """A server that adds tools to a model without them."""

    url: str
    sizes: list[int]
    """Tokens of each request with its answer, as the model's own server counts them."""


@contextmanager
def offering_tools(url: str) -> Iterator[Offering]:
    """Begin to offer tools."""
    sizes: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            request = urllib.request.Request(
                url + self.path,
                json.dumps(told(body)).encode(),
                {"content-type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=_PATIENCE) as response:
                    answer = json.load(response)
                sizes.append(answer["usage"]["total_tokens"])
                status, data = 200, json.dumps(heard(answer, len(sizes)))
            except urllib.error.HTTPError as error:
                status, data = error.code, error.read().decode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Offering(f"http://127.0.0.1:{server.server_port}", sizes)
    finally:
        server.shutdown()
        server.server_close()
