"""Clients that go away: their upstream call ends with them, and nothing of it is left."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

import holdfast
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.app import ProxyApp
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import DIALECTS, Running, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import PATIENCE, Fault, Upstream
from tests.wire.responses.streams import Script

FAULTS = {"stall": faults.stall, "midway": faults.stall_midway, "endless": faults.endless}
AT_ONCE = 20


class Case(NamedTuple):
    """When a client leaves."""

    dialect: str
    stream: bool
    fault: str
    opening: bool
    """Whether the model has opened a ref before."""

    @property
    def hears(self) -> bool:
        """Whether the client gets something before it leaves."""
        return self.stream and (self.opening or self.fault != "stall")


CASES = [
    Case(dialect, stream, fault, opening)
    for dialect, stream, fault, opening in itertools.product(
        DIALECTS, [False, True], FAULTS, [False, True]
    )
    if stream or fault != "endless"
]


def turn(got: Got) -> Script | Fault:
    """Return the upstream's behaviour, as the question requests."""
    asked = re.search(r"(\w+) (\w+)!", got.texts)
    assert asked
    found = REF.search(got.texts)
    if asked[2] == "opening" and "expand_ref" not in _called(got):
        assert found
        return says(text("Let me look. "), call("expand_ref", {"ref_id": found[0]}, "call_01"))
    return FAULTS[asked[1]]


def _called(got: Got) -> set[str]:
    """The tools that were called in the conversation so far."""
    messages = holdfast.read(got.body, got.dialect).messages
    return {one.name for message in messages for one in message.calls}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        running.always = turn
        yield running


@pytest.fixture(scope="module")
def proxy(upstream: Upstream) -> Iterator[Running]:
    # A queue worker has its own tasks, which start while these tests count theirs.
    with running_proxy({"background_jobs": False}, upstream.url) as running:
        yield running


def send(proxy: Running, case: Case, extra: str = "") -> socket.socket:
    """Ask; `extra` are lines of the head."""
    words = f"{case.fault} {'opening' if case.opening else 'now'}!"
    body = request_in(case.dialect, chat(log(100), question=words), stream=case.stream)
    address = urlsplit(proxy.url)
    client = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
    head = (
        f"POST {path_of(case.dialect, stream=case.stream)} HTTP/1.1\r\nhost: {address.netloc}\r\n"
        f"authorization: Bearer {KEY}\r\nx-goog-api-key: {KEY}\r\nanthropic-version: 1\r\n"
        f"{extra}content-length: {len(body)}\r\n\r\n"
    )
    client.sendall(head.encode() + body)
    return client


def hear(client: socket.socket) -> None:
    """Hear the first byte of the body."""
    heard = b""
    while b"\r\n\r\n" not in heard or heard.endswith(b"\r\n\r\n"):
        piece = client.recv(1)
        assert piece, "the proxy hung up"
        heard += piece


def leave(proxy: Running, upstream: Upstream, cases: list[Case]) -> None:
    """Clients that ask at once, and leave when the upstream is where it should be."""
    clients = [send(proxy, case) for case in cases]
    for _ in cases:
        assert upstream.waiting.acquire(timeout=PATIENCE), upstream.refused
    for client, case in zip(clients, cases, strict=True):
        if case.hears:
            hear(client)
    for client in clients:
        client.close()
    for _ in cases:
        assert upstream.left.acquire(timeout=PATIENCE), "the upstream call goes on"


async def tasks_left(before: set[asyncio.Task[object]]) -> set[str]:
    """What still runs once all that can end has ended."""
    new = asyncio.all_tasks() - before - {asyncio.current_task()}
    if new:
        _, new = await asyncio.wait(new, timeout=PATIENCE)
    return {str(task.get_coro()) for task in new}


async def all_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c.dialect}-{c.fault}{'-stream' * c.stream}{'-open' * c.opening}"
)
def test_the_upstream_call_ends_with_its_client(
    proxy: Running, upstream: Upstream, case: Case
) -> None:
    before = proxy.do(all_tasks())
    leave(proxy, upstream, [case])
    assert upstream.refused == []
    assert proxy.service.http.open_connections == 0
    assert proxy.do(tasks_left(before)) == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_that_only_passes_through_ends_with_its_client(
    proxy: Running, upstream: Upstream, fault: str
) -> None:
    before = proxy.do(all_tasks())
    case = Case("anthropic", stream=True, fault=fault, opening=False)
    client = send(proxy, case, "x-holdfast-bypass: on\r\n")
    assert upstream.waiting.acquire(timeout=PATIENCE), upstream.refused
    if case.hears:
        hear(client)
    client.close()
    assert upstream.left.acquire(timeout=PATIENCE), "the upstream call goes on"
    assert proxy.service.http.open_connections == 0
    assert proxy.do(tasks_left(before)) == set()


def test_a_call_ends_if_not_even_the_head_of_its_answer_can_be_given(
    proxy: Running, upstream: Upstream
) -> None:
    """The stream of the answer is there by then, but nobody has read from it."""
    body = request_in("anthropic", chat(log(100), question="midway now!"), stream=True)
    path, headers = "/v1/messages", {"x-api-key": KEY, "anthropic-version": "1"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else await asyncio.Future()

    async def send(message: MutableMapping[str, Any]) -> None:
        assert message["type"] == "http.response.start"
        raise ConnectionResetError

    proxy.do(ProxyApp(proxy.service)(scope, receive, send))
    assert upstream.left.acquire(timeout=PATIENCE), "the upstream call goes on"
    upstream.waiting.acquire(blocking=False)  # if it came so far
    assert proxy.service.http.open_connections == 0


def many_leave(proxy: Running, upstream: Upstream, count: int, among: list[Case]) -> None:
    cases = itertools.cycle(among)
    leave(proxy, upstream, list(itertools.islice(cases, AT_ONCE)))  # all that is lazy is there
    proxy.settled()
    upstream.settled()
    before, files = proxy.do(all_tasks()), open_files()
    for _ in range(count // AT_ONCE):
        leave(proxy, upstream, list(itertools.islice(cases, AT_ONCE)))
    proxy.settled()
    upstream.settled()
    assert upstream.refused == []
    assert proxy.service.http.open_connections == 0
    assert proxy.do(tasks_left(before)) == set()
    assert open_files() <= files


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="open files are counted in /proc, which is not here"
)


@needs_proc
def test_forty_that_leave_leave_nothing(proxy: Running, upstream: Upstream) -> None:
    quiet = [case for case in CASES if case.fault != "endless"]  # talking costs seconds
    many_leave(proxy, upstream, 40, quiet)


@needs_proc
@pytest.mark.campaign
def test_two_thousand_that_leave_leave_nothing(proxy: Running, upstream: Upstream) -> None:
    many_leave(proxy, upstream, 2_000, CASES)
