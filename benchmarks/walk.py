"""The walk of a request: which functions of Holdfast the proxy calls for one cited result.

A conversation of two requests goes through a running proxy with its default kind of store, a file.
The second comes over the same connection, as clients send it, and brings one tool result, long
enough to be cited. From its first byte until it is written down, every function that is entered is
noted, in the loop's thread and in the workers'. Functions count once however often they run;
comprehensions, lambdas and functions within functions count as part of the one that they stand in,
since versions of Python differ in which of them are frames.
"""

from __future__ import annotations

import json
import tempfile
import threading
from http.client import HTTPConnection
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console

import holdfast
from benchmarks import ratios
from benchmarks.proxy_peers import servers
from tests.surfaces.proxy.harness import Running, running_proxy

_PACKAGE = str(Path(holdfast.__file__).parent) + "/"
_CALL = {"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
_LOG = "\n".join(
    f"2026-11-16T09:{n // 60:02}:{n % 60:02} {'ERROR' if n == 77 else 'INFO'} worker-{n % 4} "
    f"took job {n} from the queue"
    for n in range(120)
)
_ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful engineer."},
    {"role": "user", "content": "Why did the worker stop?"},
]
_ADDED: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": _LOG},
]


class Step(NamedTuple):
    """A function that was entered."""

    file: str
    """Within the package."""
    function: str


class Walk:
    """The functions of the package that are entered while it looks, in their order."""

    def __init__(self) -> None:
        self._looks = False
        self._codes: dict[object, Step] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        """A profile function, for every thread that starts from now on."""
        del arg
        code = frame.f_code
        new = self._looks and event == "call" and code not in self._codes
        if new and code.co_filename.startswith(_PACKAGE):
            name = code.co_qualname.split(".<locals>")[0]
            self._codes[code] = Step(code.co_filename.removeprefix(_PACKAGE), name)

    def of(self, proxy: Running, client: HTTPConnection, body: dict[str, Any]) -> list[Step]:
        """The steps of one request, from its first byte until it is written down."""
        self._looks = True
        edits = _ask(proxy, client, body)
        self._looks = False
        assert edits != "0", "nothing was cited"
        return list(dict.fromkeys(self._codes.values()))


def _ask(proxy: Running, client: HTTPConnection, body: dict[str, Any]) -> str:
    """Send a request, and wait until all of it is done; how many edits there were."""
    client.request("POST", "/v1/chat/completions", json.dumps(body))
    answer = client.getresponse()
    said = answer.read()
    assert answer.status == 200, said
    proxy.settled()
    return answer.headers["x-holdfast-edits"]


def steps() -> list[Step]:
    """The walk of the second request of a conversation, which brings one result to be cited."""
    walk = Walk()
    body = {"model": "gpt-4o", "messages": _ASKED}
    threading.setprofile(walk)
    try:
        with servers.upstream() as port, tempfile.TemporaryDirectory() as folder:
            store = {"store_url": f"sqlite:///{folder}/holdfast.db"}
            with running_proxy(store, f"http://127.0.0.1:{port}") as proxy:
                client = HTTPConnection(urlsplit(proxy.url).netloc)
                _ask(proxy, client, body)
                return walk.of(proxy, client, {**body, "messages": _ASKED + _ADDED})
    finally:
        threading.setprofile(None)


def run(console: Console) -> None:
    """Print how long the walk is, and the rooms that it goes through in their order."""
    walked = steps()
    ratios.note("walk: 1,000 functions", 1_000, len(walked))
    files = {step.file for step in walked}
    console.print(f"One cited result: {len(walked)} functions in {len(files)} files\n")
    for room, inside in groupby(walked, lambda step: str(Path(step.file).parent)):
        named = [f"{Path(step.file).stem}.{step.function}" for step in inside]
        console.print(f"[bold]{room:24}[/bold] {', '.join(named)}", highlight=False)
