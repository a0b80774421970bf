"""The record of a request: true, for any request, and calibration from it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine import ExpansionUsage, Holdfast
from holdfast.store.opening import open_memory
from tests.fitting.test_citing import chat

USAGE = {"prompt_tokens": 999, "completion_tokens": 7}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("learn", [True, False])
def test_usage_that_is_our_own_count_is_written_down_but_teaches_nothing(learn: bool) -> None:
    async def work() -> None:
        engine = Holdfast(open_memory())
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
        engine = Holdfast(open_memory())
        session = engine.session("s")
        before = engine.calibration.dump()
        opened = ExpansionUsage(1, 50)
        turn = await engine.observe(
            session, await session.fit(chat("short")), USAGE, expanded=opened
        )
        assert (turn.usage.expansions, turn.usage.expansion_tokens) == (1, 50)
        assert engine.calibration.dump() == before

    run(work())


def test_a_request_without_messages_is_written_down() -> None:
    async def work() -> None:
        engine = Holdfast(open_memory())
        body = holdfast.read({"model": "gpt-5", "input": [], "previous_response_id": "r"})
        session = await engine.session_of(body)
        turn = await engine.observe(session, await session.fit(body))
        assert turn.number == 1

    run(work())


def big(name: str, size: int) -> dict[str, Any]:
    said = [
        {"role": "user", "content": f"{name} {n} " + "word " * 200} for n in range(size // 1000)
    ]
    return {"model": "gpt-4o", "messages": said}


def test_sessions_in_memory_are_bounded_by_their_bytes(tmp_path: Path) -> None:
    """The ones longest unused are forgotten first, and come back from the store as they were."""

    async def work() -> None:
        async with Holdfast.open(f"sqlite:///{tmp_path}/store.db") as engine:
            engine.live.most_bytes = 1_000_000

            async def turn(name: str, size: int) -> holdfast.fitting.Fitted:
                session = engine.session(name)
                fitted = await session.fit(big(name, size), limit=100_000)
                await engine.observe(session, fitted)
                assert session is engine.session(name), "what is in use stays"
                return fitted

            before = {f"s{n}": await turn(f"s{n}", 40_000) for n in range(20)}
            held = list(engine.live)
            assert 2 <= len(held) < 10
            assert sum(session.size for session in held) <= engine.live.most_bytes
            assert held[-1].name == "s19"
            again = await turn("s0", 41_000)
            assert again.body.startswith(before["s0"].body[:39_000])
            assert (await engine.store.turns(engine.scope.of("s0")))[-1].number == 2
            await turn("huge", 1_900_000)
            assert [session.name for session in engine.live] == ["huge"]

    run(work())
