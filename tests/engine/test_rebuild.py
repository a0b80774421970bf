"""The main promise: the client's request can be rebuilt from the sent one, its edits and the
store.

The formats of clients are written here by hand: bytes in, the same bytes out.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from holdfast import Holdfast, count, read, repair
from holdfast.cite import CitingRules
from holdfast.engine.record import (
    Before,
    asked_body,
    last_sides,
    patches_of,
    state_of,
    unpatched,
    written,
)
from holdfast.errors import DamagedContentError, HoldfastError, StoreError
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.fitting.draft import FrameEdit
from holdfast.store import Turn
from holdfast.store.records import Edit
from holdfast.wire import DIALECTS as WIRE
from holdfast.wire import Entry, Text, ToolCall, convert, write
from holdfast.wire.frame import pack
from holdfast.wire.responses import HiddenTurn, Hop, ModelCall
from tests.support.recorded import needs_trajectories, needs_usage, requests, trajectories
from tests.trim.test_fit import DIALECTS, MODELS, long_scripts
from tests.wire.bodies import WRITERS, scripts

LISTS = {"openai-responses": "input", "gemini": "contents"}
GAPS = (",", ", ", ",\n  ", " ,\t")


def client_bytes(body: dict[str, Any], dialect: str, gaps: Iterator[str]) -> bytes:
    """Return a request as some client writes it, with white space between messages."""
    key = LISTS.get(dialect, "messages")
    members = []
    for name, value in body.items():
        if name == key and isinstance(value, list):
            text = "[ " + "".join(
                (next(gaps) if n else "") + json.dumps(message) for n, message in enumerate(value)
            )
            members.append(f'"{name}" : {text}\n]')
        else:
            members.append(json.dumps(name) + ": " + json.dumps(value))
    return ("{" + ", ".join(members) + " }").encode()


class Record:
    """A session's turns as they are written down, without a store."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.stored: dict[str, bytes] = {}
        self.before = Before()

    def add(self, state: FitState) -> None:
        change = written(state, self.before)
        self.before = change.known
        self.stored |= {name: bytes(data) for name, data in change.messages.items()}
        turn = Turn(
            number=len(self.turns) + 1,
            started_at=0.0,
            sent=change.trail,
            standings=change.standings,
            patches=change.patches,
            asked=change.asked,
        )
        self.turns.append(turn)

    def rebuild(self, number: int) -> bytes:
        sides = last_sides(self.turns[:number])
        assert sides is not None
        return asked_body(sides, self.stored)

    def restarted(self, dialect: str) -> FitState | None:
        sides = last_sides(self.turns)
        return None if sides is None else state_of(dialect, sides, self.stored)


def told(fitted: Fitted, asked: bytes) -> None:
    """Check that a changed request has edits, and an unchanged one the client's own bytes."""
    record = Record()
    record.add(fitted.state)
    [turn] = record.turns
    assert (fitted.body == asked) == (not turn.standings and not turn.patches)
    assert all(standing.edits for standing in turn.standings)
    for standing in turn.standings:
        for edit in standing.edits:
            assert edit.action, edit.why and edit.where


def follow(
    bodies: list[bytes],
    dialect: str,
    options: FitOptions,
    hidden: tuple[HiddenTurn, ...] = (),
    *,
    restarts: bool = False,
) -> list[Fitted]:
    """Fit one request after the other, and rebuild each of them."""
    record = Record()
    state: FitState | None = None
    fitted: list[Fitted] = []
    for number, body in enumerate(bodies, 1):
        try:
            made = fit_request(body, options, state=state, hidden=hidden)
        except HoldfastError:
            return fitted
        told(made, body)
        record.add(made.state)
        assert record.rebuild(number) == body
        state = record.restarted(dialect) if restarts else made.state
        fitted.append(made)
    for number, body in enumerate(bodies[: len(fitted)], 1):
        assert record.rebuild(number) == body, "and still later"
    return fitted


def turns_of(body: dict[str, Any], dialect: str) -> list[dict[str, Any]]:
    key = LISTS.get(dialect, "messages")
    if not isinstance(body[key], list):
        return [body]
    ends = [e.stop for e in read(body, dialect).exchanges if e.kind in ("user", "tool")]
    return [{**body, key: body[key][:end]} for end in ends]


@st.composite
def requests_in(draw: st.DrawFn) -> tuple[str, list[bytes], FitOptions]:
    dialect = draw(st.sampled_from(DIALECTS))
    script = draw(st.one_of(long_scripts(), scripts()))
    body = WRITERS[dialect](script)
    key = LISTS.get(dialect, "messages")
    if draw(st.booleans()) and isinstance(body[key], list) and len(body[key]) > 2:
        broken = list(body[key])  # a message lost by the client, or sent in the wrong order
        del broken[draw(st.integers(0, len(broken) - 1))]
        body = {**body, key: broken}
    if draw(st.booleans()):
        body["stream"] = True
    spacing = draw(st.integers(0, 2**16))
    chance = random.Random(spacing)
    gaps = iter(lambda: chance.choice(GAPS) if spacing % 3 else ", ", None)
    try:
        total = count(read(body, dialect), model=MODELS[dialect]).tokens
        several = turns_of(body, dialect)
    except HoldfastError:
        total, several = 100, [body]
    options = FitOptions(
        dialect=dialect,
        model=MODELS[dialect],
        limit=draw(st.integers(max(1, total // 5), total + 300)),
        rules=CitingRules(
            threshold=draw(st.sampled_from([50, 1_000])),
            policy=draw(st.sampled_from(["auto", "always"])),
        ),
        cites=draw(st.booleans()),
        opens=draw(st.booleans()),
        reports_usage=draw(st.booleans()),
        strategy=draw(st.sampled_from(["auto", "summarise", "heads_tails", "progressive"])),
    )
    return dialect, [client_bytes(one, dialect, gaps) for one in several], options


@settings(max_examples=120)
@given(requests_in(), st.booleans())
def test_every_request_of_a_conversation_can_be_rebuilt(
    case: tuple[str, list[bytes], FitOptions], restarts: bool
) -> None:
    dialect, bodies, options = case
    follow(bodies, dialect, options, restarts=restarts)


@pytest.mark.campaign
def test_so_can_a_hundred_thousand() -> None:
    rebuilt = 0
    for number in itertools.count():  # in rounds: what hypothesis remembers of one fills its memory

        @seed(number)
        @settings(max_examples=2_000, database=None)
        @given(requests_in(), st.booleans())
        def some_can(case: tuple[str, list[bytes], FitOptions], restarts: bool) -> None:
            nonlocal rebuilt
            dialect, bodies, options = case
            rebuilt += len(follow(bodies, dialect, options, restarts=restarts))

        some_can()
        if rebuilt >= 100_000:
            return


# --- calls that the client never saw -------------------------------------------------------------


def opened(dialect: str, number: int, text: str) -> tuple[Hop, Hop]:
    """Return an answer that opened a ref before its text."""
    spoken = WIRE[dialect]
    call = ToolCall(id=f"hidden_{number}", name="expand_ref", arguments={"ref_id": f"r{number}"})
    calling = spoken.compose([Entry("assistant", (call,))])
    saying = spoken.compose([Entry("assistant", (Text(text=text),))])
    asked = ModelCall(call.id, call.name, json.dumps(call.arguments))
    return (
        Hop(tuple(json.dumps(one).encode() for one in calling), ((asked, "what was opened"),)),
        Hop(tuple(json.dumps(one).encode() for one in saying)),
    )


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_hidden_calls_come_back_and_the_clients_request_too(dialect: str, restarts: bool) -> None:
    spoken = WIRE[dialect]
    key = LISTS.get(dialect, "messages")
    entries: list[Entry] = []
    bodies, hidden = [], []
    frame = {"model": MODELS[dialect]} if dialect != "gemini" else {}
    for n in range(12):
        entries.append(Entry("user", (Text(text=f"Question {n}? " + "More words. " * 40),)))
        bodies.append({**frame, key: spoken.compose(entries)})
        answer = f"This is answer {n}."
        hidden.append(HiddenTurn(opened(dialect, n, answer), index=len(entries)))
        entries.append(Entry("assistant", (Text(text=answer),)))
    texts = [client_bytes(body, dialect, iter(lambda: ", ", None)) for body in bodies]
    options = FitOptions(
        dialect=dialect, model=MODELS[dialect], opens=True, cites=True, limit=2_000
    )
    fitted = follow(texts, dialect, options, tuple(hidden), restarts=restarts)
    assert len(fitted) == 12
    assert b"what was opened" in fitted[1].body
    assert [edit.action for edit in fitted[1].edits] == ["rejoin"]
    assert any(edit.action == "fold" for one in fitted for edit in one.edits)


# --- in the stores -------------------------------------------------------------------------------


def conversation(turns: int) -> list[bytes]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why did it fail?"}]
    bodies = []
    for n in range(turns):
        log = "\n".join(f"{n}:{i} INFO served request {i * 7}" for i in range(80))
        call = {"id": f"c{n}", "type": "function", "function": {"name": "log", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": log},
        ]
        bodies.append(json.dumps({"model": "gpt-4o", "messages": messages}).encode())
    return bodies


def test_a_session_rebuilds_its_turns_in_every_store(store_url: str) -> None:
    bodies = conversation(20)

    async def work() -> None:
        async with Holdfast.open(store_url) as engine:
            for body in bodies:
                fresh = Holdfast(engine.store)  # as after a restart
                session = fresh.session("s")
                await fresh.observe(session, await session.fit(body, limit=2_000))
            session = Holdfast(engine.store).session("s")
            for number, body in enumerate(bodies, 1):
                assert await session.rebuild(number) == body
            turns = await engine.store.turns(session.scope)
            assert {edit.action for turn in turns for edit in turn.edits} >= {"cite", "fold"}
            for number in (0, 21):
                with pytest.raises(StoreError, match="no record of such a turn"):
                    await session.rebuild(number)

    asyncio.run(work())


def test_what_a_policy_kept_out_of_the_store_is_said_to_be_missing(tmp_path: Path) -> None:
    body = json.dumps(
        {"model": "gpt-4o", "messages": [{"role": "user", "content": "I am ann.lee@corp.com"}]}
    ).encode()

    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        async with Holdfast.open(url) as opened:
            engine = opened.with_parts(options=FitOptions(rules=CitingRules(privacy="refuse")))
            session = engine.session("s")
            await engine.observe(session, await session.fit(body))
            with pytest.raises(DamagedContentError, match="cannot be rebuilt"):
                await session.rebuild(1)

    asyncio.run(work())


# --- recorded ------------------------------------------------------------------------------------


@needs_trajectories
def test_recorded_conversations_can_be_rebuilt_in_every_dialect() -> None:
    rebuild_trajectories(every=60)


@pytest.mark.campaign
@needs_trajectories
def test_all_recorded_conversations_can_be_rebuilt() -> None:
    rebuild_trajectories(every=1)


def rebuild_trajectories(every: int) -> None:
    fits = 0
    for number, trajectory in enumerate(trajectories()):
        if number % every:
            continue
        raw = {"model": "gpt-4o", "messages": trajectory["messages"]}
        chat = repair(raw, "openai-chat").body
        for dialect, model in MODELS.items():
            body = chat if dialect == "openai-chat" else convert(chat, dialect, "openai-chat").body
            total = count(read(body, dialect), model=model).tokens
            for share in (1.1, 0.5, 0.25):
                options = FitOptions(
                    dialect=dialect, model=model, limit=int(total * share), cites=True, opens=True
                )
                steps = turns_of(json.loads(body), dialect)
                some = steps[:: max(1, len(steps) // 4)]
                texts = [client_bytes(one, dialect, iter(lambda: ", ", None)) for one in some]
                fits += len(follow(texts, dialect, options))
    assert fits > 100


@needs_usage
@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
def test_recorded_requests_can_be_rebuilt() -> None:
    assert rebuild_requests(every=5) > 1_000


@pytest.mark.campaign
@needs_usage
@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
def test_all_recorded_requests_can_be_rebuilt() -> None:
    assert rebuild_requests(every=1) > 5_000


def rebuild_requests(every: int) -> int:
    rebuilt = 0
    for number, (dialect, record) in enumerate(requests()):
        if number % every:
            continue
        body = json.dumps(record["request"]).encode()
        options = FitOptions(
            dialect=dialect,
            model=record["model"] or MODELS.get(dialect, "gpt-4o"),
            limit=2_000,
            cites=True,
            opens=True,
        )
        rebuilt += len(follow([body], dialect, options))
    return rebuilt


# --- the record alone -----------------------------------------------------------------------------


def test_the_hash_of_a_request_whose_bytes_were_not_kept_is_of_all_its_bytes() -> None:
    conversation = read(b'{"messages": [{"role": "user", "content": "hi"}], "model": "m"}')
    again = conversation.with_messages(conversation.messages)
    assert again.source is None
    record = written(FitState(again, again, ((0, 1),)), Before())
    assert record.asked == hashlib.sha256(write(again)).hexdigest()


def test_changes_around_the_messages_are_undone_one_after_the_other() -> None:
    asked = read(b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}')
    once = asked.with_field("stream", value=True)
    twice = once.with_field("stream_options", {"include_usage": True})
    edit = Edit(action="usage", what="asked", why="a test", where="$")
    changes = (FrameEdit(edit, asked.frame), FrameEdit(edit, once.frame))
    patches = patches_of(FitState(asked, twice, ((0, 1),), changes))
    assert [patch.edit.action for patch in patches] == ["usage", "usage"]
    assert unpatched(pack(twice.frame), patches, {}) == pack(asked.frame)
    assert unpatched(pack(once.frame), patches[:1], {}) == pack(asked.frame)
