"""The memory of a session: measured correctly, and no more than needed."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, read
from holdfast.engine import Session, live
from holdfast.fitting import FitOptions
from holdfast.store.opening import open_memory
from holdfast.wire import Message
from holdfast.wire.strict import decode
from tests.fitting.test_citing import RULES, chat, in_dialect, log

Turns = list[dict[str, Any]]
ALWAYS = FitOptions(cites=True, opens=True, rules=RULES)


def many_short() -> Turns:
    body = chat(*(f"result {n}: " + "all went well. " * 10 for n in range(200)))
    longer = {"role": "user", "content": "And what is next?"}
    return [body, {**body, "messages": [*body["messages"], longer]}]


def one_long_that_is_cited() -> Turns:
    return [chat(log(8_000))]


def one_long_that_is_not() -> Turns:
    return [chat("short", question="What of this? " + log(8_000))]


def long_ones_in_turn() -> Turns:
    body = chat(log(4_000))
    more = chat("".join(reversed(log(4_000))))["messages"][1:]
    return [body, {**body, "messages": [*body["messages"], *more]}]


SHAPES = [many_short, one_long_that_is_cited, one_long_that_is_not, long_ones_in_turn]


def encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


async def after(engine: Holdfast, turns: Turns) -> Session:
    """A session that has had these requests."""
    session, before = engine.session("measured"), None
    for turn in turns:
        before = read(encoded(turn), "openai-chat", previous=before)
        await engine.observe(session, await session.fit(before))
    return session


@pytest.mark.parametrize("shape", SHAPES)
def test_a_session_knows_how_much_memory_it_takes(
    tmp_path: Path, shape: Callable[[], Turns]
) -> None:
    async def measured() -> tuple[int, int, int]:
        async with Holdfast.open(f"sqlite:///{tmp_path}/store.db") as engine:
            await after(engine, shape())  # warm up
            engine.live.drop_all()
            turns = shape()
            gc.collect()
            tracemalloc.start()
            try:
                session = await after(engine, turns)
                size = session.size
                gc.collect()
                held = tracemalloc.get_traced_memory()[0]
                engine.live.drop_all()
                del session
                gc.collect()
                held -= tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
            return size, held, len(encoded(turns[-1]))

    size, held, sent = asyncio.run(measured())
    assert 0.75 * held <= size <= 1.25 * held
    if shape in (one_long_that_is_cited, long_ones_in_turn):
        assert held < 1.25 * sent  # the body, and no text of the cited result


def test_what_is_cited_is_held_once_and_then_no_more() -> None:
    async def work() -> None:
        engine = Holdfast(open_memory(), options=ALWAYS)
        conversation = read(encoded(chat(log(60))), "openai-chat")
        [cited] = (message for message in conversation.messages if message.results)
        weight = cited.parsed_bytes
        session = engine.session("s")
        fitted = await session.fit(conversation)
        assert fitted.contents
        assert not any(content.data for content in fitted.contents)  # they are in the store
        assert cited.parsed_bytes < weight - len(log(60))
        ref = fitted.contents[0].ref_id
        stored = await engine.store.get(session.scope, ref)
        assert stored is not None
        assert stored.data.decode() == log(60)

    asyncio.run(work())


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
def test_a_request_that_is_new_is_read_once(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules, the count, the hash and the citations look at what reading it has given."""
    read_again: list[Message] = []

    def watched(message: Message) -> Any:
        read_again.append(message)
        return decode(message.span)

    async def work() -> None:
        engine = Holdfast(open_memory(), options=ALWAYS)
        conversation = read(in_dialect(chat("short", log(60), "short"), dialect), dialect)
        monkeypatch.setattr(Message, "value", property(watched))
        session = await engine.session_of(conversation)
        await engine.observe(session, await session.fit(conversation))

    asyncio.run(work())
    # We wrote the citation: it is parsed to be counted, with its message.
    assert len(read_again) <= 1


def test_a_session_that_was_forgotten_while_it_was_answered_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "_MOST_SESSIONS", 1)
    messages: list[Message] = []

    async def work() -> None:
        engine = Holdfast(open_memory())
        session = engine.session("answered")
        conversation = read(encoded(chat("short", "short")), "openai-chat")
        fitted = await session.fit(conversation)
        engine.session("another")
        assert [each.name for each in engine.live] == ["another"]
        await engine.observe(session, fitted)
        messages.extend(fitted.state.asked.messages)

    asyncio.run(work())
    for message in messages:
        assert message._blocks is None  # which refer to their message
        assert all(kind.lasting for kind in message.notes)


def one_log() -> dict[str, Any]:
    return chat(log(40_000))


def results_that_are_folded() -> dict[str, Any]:
    return chat(*(f"file {n}\n{log(900)}" for n in range(60)))


@pytest.mark.parametrize(
    ("shape", "most"),
    # Folded messages are stored a second time, as the content of a digest.
    [(one_log, 3.0), (results_that_are_folded, 3.3)],
)
def test_a_large_body_takes_about_three_times_its_size_at_most(
    tmp_path: Path, shape: Callable[[], dict[str, Any]], most: float
) -> None:
    """While it is read, recognised, cited, stored and written down; see `benchmarks memory`."""

    async def measured() -> float:
        async with Holdfast.open(f"sqlite:///{tmp_path}/store.db") as engine:
            await after(engine, [chat(log(900))])  # warm up, and start a worker
            body = encoded(shape())
            gc.collect()
            tracemalloc.start()
            try:
                conversation = await engine.workers.off_loop(
                    len(body), partial(read, body, "openai-chat")
                )
                session = await engine.session_of(conversation)
                await engine.observe(session, await session.fit(conversation))
                return 1 + tracemalloc.get_traced_memory()[1] / len(body)
            finally:
                tracemalloc.stop()

    assert asyncio.run(measured()) <= most
