"""Overload: few requests run, some wait, others are refused at once with a time to retry."""

from __future__ import annotations

import asyncio
import http.client
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest

from holdfast.surfaces.proxy import admission, connections
from holdfast.surfaces.proxy.admission import Admission, OverloadedError
from holdfast.workers.lanes import Slot
from tests.fitting.test_citing import chat
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_told_errors import SHAPES
from tests.surfaces.proxy.upstream import Upstream

SMALL = {"content-length": "1000"}


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request at work, one that waits."""
    for name in (
        "AT_WORK",
        "MOST_WAITING",
        "MOST_OF_ONE",
        "LARGE_AT_WORK",
        "MOST_LARGE",
        "LARGE_OF_ONE",
    ):
        monkeypatch.setattr(admission, name, 1)


async def waiting(line: Admission, tenant: str, headers: dict[str, str]) -> asyncio.Task[Slot]:
    task = asyncio.create_task(line.enter(tenant, headers))
    await asyncio.sleep(0)
    return task


@pytest.mark.usefixtures("tight")
def test_a_line_that_is_full_refuses_at_once_and_says_when_to_come_again() -> None:
    async def main() -> None:
        line = Admission()
        first = await line.enter("a", SMALL)
        second = await waiting(line, "a", SMALL)
        refusals = []
        for _ in range(8):
            with pytest.raises(OverloadedError) as refused:
                await line.enter("b", SMALL)
            refusals.append(refused.value)
        assert {refusal.status for refusal in refusals} == {503}
        assert all(refusal.retry_after >= 1 for refusal in refusals)
        first.release()
        first.release()
        (await second).release()
        assert line.waiting == 0
        (await line.enter("b", SMALL)).release()

    asyncio.run(main())


@pytest.mark.parametrize("length", ["29000000", "9" * 5_000])
@pytest.mark.usefixtures("tight")
def test_large_requests_have_slots_of_their_own(length: str) -> None:
    async def main() -> None:
        line = Admission()
        large = await line.enter("a", {"content-length": length})
        (await line.enter("a", SMALL)).release()
        large.release()

    asyncio.run(main())


@pytest.mark.usefixtures("tight")
def test_refused_clients_are_told_times_at_which_there_is_room() -> None:
    """With the same time for all, they would all be refused again."""
    now = [100.0]

    async def main() -> list[int]:
        line = Admission(clock=lambda: now[0])
        for _ in range(20):  # twenty requests begin in this second
            (await line.enter("a", SMALL)).release()
        now[0] += 1
        slot = await line.enter("a", SMALL)
        patient = await waiting(line, "a", SMALL)
        seconds = []
        for _ in range(2_000):
            with pytest.raises(OverloadedError) as refused:
                line.check("b", SMALL)
            seconds.append(refused.value.retry_after)
        slot.release()
        (await patient).release()
        return seconds

    seconds = Counter(asyncio.run(main()))
    assert min(seconds) >= 1
    assert max(seconds) == admission.LONGEST_RETRY
    assert all(count <= 21 for second, count in seconds.items() if second < max(seconds))


def test_one_tenant_cannot_fill_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AT_WORK", 1), ("MOST_WAITING", 4), ("MOST_OF_ONE", 2)):
        monkeypatch.setattr(admission, name, value)

    async def main() -> None:
        line = Admission()
        slot = await line.enter("flood", SMALL)
        tasks = [await waiting(line, "flood", SMALL) for _ in range(2)]
        with pytest.raises(OverloadedError) as refused:
            await line.enter("flood", SMALL)
        assert refused.value.status == 429
        other = await waiting(line, "other", SMALL)
        slot.release()
        (await tasks[0]).release()
        assert not tasks[1].done()
        (await other).release()  # before the second of the flood
        (await tasks[1]).release()

    asyncio.run(main())


@pytest.mark.usefixtures("tight")
def test_a_client_that_leaves_the_line_makes_room() -> None:
    async def main() -> None:
        line = Admission()
        slot = await line.enter("a", SMALL)
        gone = await waiting(line, "a", SMALL)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert line.waiting == 0
        slot.release()
        (await line.enter("a", SMALL)).release()

    asyncio.run(main())


@contextmanager
def overloaded(proxy: Running) -> Iterator[None]:
    """Hold the only slot, with a request waiting for it that is answered in the end."""
    slot = proxy.do(proxy.service.admission.enter("somebody", SMALL))
    with ThreadPoolExecutor(1) as client:
        url = proxy.url + path_of("openai-chat")
        patient = client.submit(ask, url, request_in("openai-chat", chat("short")), KEYS)
        while not proxy.service.admission.waiting:
            assert not patient.done()
        try:
            yield
        finally:
            proxy.loop.call_soon_threadsafe(slot.release)
        assert patient.result().status == 200


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.usefixtures("tight")
def test_an_overloaded_proxy_answers_in_the_form_of_the_provider(dialect: str) -> None:
    with Upstream() as provider, running_proxy({}, provider.url) as proxy:
        provider.always = says(text("Well."))
        with overloaded(proxy):
            refused = ask_model(proxy, dialect, chat("short"))
            assert refused.status == 503
            assert 1 <= int(refused.headers["retry-after"]) <= admission.LONGEST_RETRY
            assert set(refused.json["error"]) == SHAPES[dialect]
            assert ask(f"{proxy.url}/healthz").status == 200
        assert ask_model(proxy, dialect, chat("short")).status == 200


@pytest.mark.usefixtures("tight")
def test_waiting_for_a_model_holds_no_slot() -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with running_proxy({}, provider.url) as proxy, ThreadPoolExecutor(2) as clients:
            url = proxy.url + path_of("openai-chat")
            for n in range(2):
                body = request_in("openai-chat", chat(f"question {n}"), stream=True)
                clients.submit(ask, url, body, KEYS, patience=5)
            for _ in range(2):  # both have come to the model
                assert provider.waiting.acquire(timeout=30)
            proxy.server.stop()
            proxy.server.stop()


@pytest.mark.usefixtures("tight")
def test_a_refused_client_comes_again_on_the_same_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its body was taken for the beginning of another request, and that answered with 408."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    body = request_in("openai-chat", chat("words " * 20_000))
    with Upstream() as provider, running_proxy({}, provider.url) as proxy:
        provider.always = says(text("Well."))
        address = urlsplit(proxy.url)
        client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        with overloaded(proxy), closing(client):
            for _ in range(2):
                client.request("POST", path_of("openai-chat"), body, KEYS)
                refused = client.getresponse()
                assert (refused.status, refused.headers["connection"]) == (503, None)
                refused.read()
                proxy.do(asyncio.sleep(0))  # the request has quite ended
                [timer] = [connection._timer for connection in proxy.server.connections._waiting]
                assert timer is None, "nothing is expected of it"
