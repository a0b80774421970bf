"""A session that is erased while its answer is under way leaves nothing, and begins anew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.engine import Holdfast
from holdfast.errors import SessionErasedError
from holdfast.fitting import FitOptions
from holdfast.store import Scope, Store
from holdfast.store.refs import REF
from holdfast.wire import read
from tests.fitting.test_citing import chat, log
from tests.store.harness import Opener

OPTIONS = FitOptions(limit=6_000, cites=True, opens=True, offer_expand="always")


def later(body: dict[str, Any]) -> dict[str, Any]:
    """The next request of a client: the answer, and another question."""
    said = [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": "Sure?"}]
    return {**body, "messages": [*body["messages"], *said]}


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("how", ["erase", "delete_session"])
def test_nothing_is_written_of_a_session_that_was_erased_meanwhile(
    store_url: str, how: str, turns: int
) -> None:
    async def work(store: Store) -> None:
        engine = Holdfast(store)
        session = engine.session("s")
        body = chat(log(600))
        for _ in range(turns):
            await engine.observe(
                session, await session.fit(read(json.dumps(body).encode()), OPTIONS)
            )
            body = later(body)
        fitted = await session.fit(read(json.dumps(body).encode()), OPTIONS)
        await getattr(store, how)(session.scope)
        with pytest.raises(SessionErasedError):
            await engine.observe(session, fitted)
        assert await store.sessions(Scope()) == []

        again = await session.fit(read(json.dumps(later(body)).encode()), OPTIONS)
        await engine.observe(session, again)
        cited = REF.search(again.body.decode())
        assert cited, "nothing is cited"
        opened = await engine.expand_ref(cited[0], {"lines": "1-3"})
        assert opened.content

    Opener(store_url).run(work)
