"""A request that is parsed again shares known messages: the same bytes, nothing counted twice."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.engine import Holdfast
from holdfast.engine.heads import sharing
from holdfast.settings import Settings
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log

texts = st.lists(st.text(max_size=5), min_size=1, max_size=6)


def body_of(said: list[str], gap: str = ", ") -> bytes:
    messages = gap.join(json.dumps({"role": "user", "content": text}) for text in said)
    return f'{{"model": "gpt-4o", "messages": [{messages}]}}'.encode()


@given(before=texts, now=texts, gap=st.sampled_from([",", ", ", " ,\n"]))
def test_equal_messages_are_shared_and_no_byte_changes(
    before: list[str], now: list[str], gap: str
) -> None:
    old = holdfast.read(body_of(before), "openai-chat")
    new = holdfast.read(body_of(now, gap), "openai-chat")
    shared = sharing(new, old)
    assert holdfast.write(shared) == body_of(now, gap)
    assert [bytes(m.span) for m in shared.messages] == [bytes(m.span) for m in new.messages]
    for n, message in enumerate(shared.messages):
        same = n < len(before) and before[n] == now[n]
        assert message is (old.messages[n] if same else new.messages[n])


@pytest.mark.parametrize("reads_on", [True, False])
def test_one_body_is_held_however_many_came(reads_on: bool) -> None:
    first = body_of(["a" * 1000])
    references = sys.getrefcount(first)
    old = holdfast.read(first, "openai-chat")
    body = body_of(["a" * 1000, "b"])
    new = holdfast.read(body, "openai-chat", previous=old if reads_on else None)
    shared = sharing(new, old)
    assert shared.messages[0] is old.messages[0]  # with all that is known of it
    del old, new
    assert sys.getrefcount(first) == references


def test_another_dialect_shares_nothing() -> None:
    old = holdfast.read({"messages": [{"role": "user", "content": "a"}]}, "anthropic")
    new = holdfast.read({"messages": [{"role": "user", "content": "a"}]}, "openai-chat")
    assert sharing(new, old) is new
    assert sharing(new, None) is new


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_goes_on_with_the_messages_it_knows(dialect: str) -> None:
    asyncio.run(goes_on(dialect))


async def goes_on(dialect: str) -> None:
    results = [log(60, seed) for seed in range(3)]
    async with Holdfast.open("memory:", settings=Settings()) as engine:
        first = holdfast.read(in_dialect(chat(*results[:2]), dialect), dialect)
        session = await engine.session_of(first)
        before = await session.fit(first)
        second = holdfast.read(in_dialect(chat(*results), dialect), dialect)
        assert await engine.session_of(second) is session
        after = await session.fit(second)
        known = before.state.asked.messages
        assert after.state.asked.messages[: len(known)] == known, "they compare by identity"
        assert after.state.sent.messages[: len(known)] == before.state.sent.messages
        assert holdfast.write(after.state.asked) == in_dialect(chat(*results), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_that_comes_back_from_another_process_keeps_what_was_known(
    dialect: str, tmp_path: Path
) -> None:
    store_url = f"sqlite:///{tmp_path}/store.db"
    asyncio.run(alternates(dialect, Settings(store_url=store_url, cite_policy="always")))


async def alternates(dialect: str, settings: Settings) -> None:
    """Requests of one conversation to two engines in turn: the bytes are those of one alone."""
    async with (
        Holdfast.open(settings=settings) as here,
        Holdfast.open(settings=settings) as there,
        Holdfast.open("memory:") as alone,
    ):
        for turn in range(1, 7):
            body = in_dialect(chat(*(log(300, n) for n in range(turn))), dialect)
            engine = here if turn % 2 else there
            known = engine.session("s").state
            asked = holdfast.read(body, dialect)
            fitted = await engine.fit(asked, session="s")
            assert fitted.body == (await alone.fit(body, session="s")).body
            await engine.observe(engine.session("s"), fitted)
            assert await engine.session("s").rebuild(turn) == body
            if known is not None:
                state = fitted.state
                for before, after in ((known.asked, state.asked), (known.sent, state.sent)):
                    assert after.messages[: len(before.messages)] == before.messages
