"""Two servers on one file: a conversation whose requests alternate between them is one session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store import Store
from holdfast.store.records import SessionRecord
from tests.fitting.test_citing import chat, log
from tests.store.harness import Opener
from tests.surfaces.proxy.harness import ask, path_of, request_in
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_server import Process
from tests.surfaces.proxy.test_tenants import ANN, SECRET, bearing, going_on, opens
from tests.surfaces.proxy.upstream import Upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="ends processes with POSIX signals"),
]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream(opens) as provider:
        provider.always = says(text("All is well."))
        yield provider
        assert provider.refused == []


@pytest.fixture
def servers(tmp_path: Path, upstream: Upstream) -> Iterator[list[Process]]:
    started = [Process(tmp_path, "--openai", upstream.url) for _ in range(2)]
    yield started
    for process in started:
        process.process.terminate()
        code, said = process.end()
        assert code == 0, said


def test_a_conversation_that_alternates_between_servers_is_one_session(
    servers: list[Process], upstream: Upstream, tmp_path: Path
) -> None:
    body = chat(log(600, 7))
    names = []
    for n in range(6):
        url = servers[n % 2].url + path_of("openai-chat")
        sent_body = request_in("openai-chat", body, stream=n % 3 == 0)
        answered = ask(url, sent_body, bearing(ANN))
        assert answered.status == 200
        names.append(answered.headers["x-holdfast-session"])
        assert SECRET in upstream.requests[-1].texts, "what was opened is known to both"
        body = going_on(body, "All is well.", f"And {n}?")
    assert len(set(names)) == 1
    for process in servers:
        process.process.terminate()
        process.process.wait(30)

    file = tmp_path / ".local" / "share" / "holdfast" / "holdfast.db"
    assert (file.parent / "holdfast.db.key").stat().st_mode & 0o777 == 0o600

    async def read(store: Store) -> list[SessionRecord]:
        [scope] = await store.scopes()
        return await store.sessions(scope)

    [record] = Opener(f"sqlite:///{file}").run(read)
    assert (record.session, record.turns) == (names[0], 6)
