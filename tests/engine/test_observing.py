"""What is written down of a request: truly, of any request, and what is learnt from it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

import holdfast
from holdfast.engine import Expanded, Holdfast
from holdfast.store.memory import MemoryStore
from tests.fitting.test_citing import chat

USAGE = {"prompt_tokens": 999, "completion_tokens": 7}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("learn", [True, False])
def test_usage_that_is_our_own_count_is_written_down_but_teaches_nothing(learn: bool) -> None:
    async def work() -> None:
        engine = Holdfast(MemoryStore())
        session = engine.session("s")
        before = engine.calibration.dump()
        for _ in range(5):
            fitted = await session.fit(chat("short"))
            turn = await engine.observe(session, fitted, USAGE, learn=learn)
            assert (turn.usage.input, turn.usage.output) == (999, 7)
        assert (engine.calibration.dump() != before) == learn

    run(work())


def test_a_turn_that_opened_refs_teaches_nothing() -> None:
    async def work() -> None:
        engine = Holdfast(MemoryStore())
        session = engine.session("s")
        before = engine.calibration.dump()
        opened = Expanded(1, 50)
        turn = await engine.observe(
            session, await session.fit(chat("short")), USAGE, expanded=opened
        )
        assert (turn.usage.expansions, turn.usage.expansion_tokens) == (1, 50)
        assert engine.calibration.dump() == before

    run(work())


def test_a_session_is_known_by_what_the_client_sent_not_by_what_was_made_of_it() -> None:
    """Hidden calls that were brought back are not in the client's next request."""

    async def work() -> None:
        engine = Holdfast(MemoryStore())
        came = holdfast.read(chat(question="One?"))
        fuller = came.insert(0, {"role": "user", "content": "Brought back."})
        session = await engine.session_of(came)
        fitted = await session.fit(fuller)
        await engine.observe(session, fitted, asked=came)
        longer = came.insert(
            1, {"role": "assistant", "content": "A."}, {"role": "user", "content": "B?"}
        )
        fresh = Holdfast(engine.store)
        assert (await fresh.session_of(longer)).name == session.name

    run(work())


def test_a_request_without_messages_is_written_down() -> None:
    async def work() -> None:
        engine = Holdfast(MemoryStore())
        body = holdfast.read({"model": "gpt-5", "input": [], "previous_response_id": "r"})
        session = await engine.session_of(body)
        turn = await engine.observe(session, await session.fit(body))
        assert turn.number == 1

    run(work())
