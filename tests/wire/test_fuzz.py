"""Fuzzing: whatever the bytes, there is a result or a typed error.

A short run is part of `make test`; `make fuzz` runs for FUZZ_SECONDS, mutating real shapes.
"""

from __future__ import annotations

import copy
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, repair, validate, write
from holdfast.errors import HoldfastError
from holdfast.wire import DIALECTS, RULES, Conversation, convert, detect

from .bodies import any_json, bodies, styles
from .test_bad_input import CASES
from .test_rules import EXAMPLES, Example

TOKENS = [
    *[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"\\u",
        b"\\ud83d",
        b"\\ude00",
        b"\x00",
        b"\xff",
    ],
    *[
        b"null",
        b"true",
        b"NaN",
        b"1e999",
        b"-0",
        b"{}",
        b"[]",
        b'""',
        b'"role"',
        b'"content"',
        b'"parts"',
    ],
    *[
        b'"messages"',
        b'"input"',
        b'"contents"',
        b'"type"',
        b'"tool_calls"',
        b'"tool_result"',
        b'"id"',
    ],
    *[b'"user"', b'"assistant"', b'"model"', b'"tool"', b'"system"', b"\xef\xbb\xbf", b"[" * 2000],
]


def exercise(raw: bytes, dialect: str) -> str:
    """Do everything that can be done with a body; give the name of what came of it."""
    outcome = "read"
    conversation: Conversation | None = None
    try:
        conversation = read(raw, dialect)
    except HoldfastError as error:
        outcome = type(error).__name__
        assert error.fix  # noqa: PT017 - both outcomes are right
    with suppress(HoldfastError):
        detect(raw)
    with suppress(HoldfastError):
        validate(raw, dialect)
    with suppress(HoldfastError):
        repair(raw, dialect)
    if conversation is not None:
        assert write(conversation) == raw
        assert write(conversation.with_messages(conversation.messages)) is not None
        assert sum(len(e.messages) for e in conversation.exchanges) == len(conversation.messages)
        _ = conversation.system, conversation.tools, conversation.model
        for to in DIALECTS:
            convert(conversation, to)
    return outcome


def mutate(raw: bytes, chance: random.Random) -> bytes:
    """Cut, repeat, swap or insert a few pieces."""
    data = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(data))
        stop = min(len(data), start + chance.choice([0, 1, 2, 8, 64]))
        kind = chance.randrange(4)
        if kind == 0:
            del data[start:stop]
        elif kind == 1:
            data[start:stop] = chance.choice(TOKENS)
        elif kind == 2:
            data[start:start] = data[stop : stop + chance.choice([1, 8, 64])]
        elif data:
            data[min(start, len(data) - 1)] = chance.randrange(256)
    return bytes(data)


@given(st.sampled_from(sorted(DIALECTS)), any_json)
def test_any_json_is_read_or_refused(dialect: str, value: Any) -> None:
    for key in ("messages", "input", "contents", "message"):
        for body in ({key: value}, {key: [value]}, {key: [{"role": "user", "content": value}]}):
            exercise(msgspec.json.encode(body), dialect)


@given(bodies, styles, st.integers(0, 2**32))
def test_mutated_requests_are_read_or_refused(drawn: Any, style: Any, seed: int) -> None:
    exercise(mutate(style(drawn[1]), random.Random(seed)), drawn[0])


ODD: list[Any] = [None, 5, "", "x", [], {}, ["x"], [{}], {"type": []}]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    members = list(value.items()) if isinstance(value, dict) else []
    elements = list(enumerate(value)) if isinstance(value, list) else []
    for step, item in members + elements:
        yield (*place, step)
        yield from places(item, (*place, step))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_any_field_of_another_type_is_read_or_refused(example: Example) -> None:
    exchange_fields(example, 1)


@pytest.mark.campaign
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_any_field_of_every_other_type_is_read_or_refused(example: Example) -> None:
    exchange_fields(example, len(ODD))


def exchange_fields(example: Example, times: int) -> None:
    """Put odd values in the place of each field: one for each, in turn, or so many."""
    dialect = example.dialect or RULES[example.rule].dialect or "openai-chat"
    if len(repr(example.bad)) > 10_000:
        pytest.skip("a large body, of a shape that others have too")
    fields = list(places(example.bad))
    # A body with a tool a hundred times is looked at in a few hundred places: they are alike.
    for number, place in enumerate(fields[:: 1 + len(fields) // 300]):
        body = copy.deepcopy(example.bad)
        holder: Any = body
        for step in place[:-1]:
            holder = holder[step]
        for n in range(number, number + times):
            holder[place[-1]] = ODD[n % len(ODD)]
            with suppress(UnicodeEncodeError):
                exercise(msgspec.json.encode(body), dialect)


@pytest.mark.campaign
def test_a_long_campaign_finds_nothing_but_typed_errors() -> None:
    chance = random.Random()
    seeds: list[tuple[str, bytes]] = []
    for example in EXAMPLES:
        for body in (example.bad, example.good):
            try:
                raw = msgspec.json.encode(body)
            except UnicodeEncodeError:
                continue
            if len(raw) < 100_000:
                seeds.extend((dialect, raw) for dialect in DIALECTS)
    small = [body for _, body, _, _ in CASES if isinstance(body, bytes) and len(body) < 10_000]
    seeds.extend(("openai-chat", body) for body in small)
    seconds = float(os.environ.get("FUZZ_SECONDS", "600"))
    outcomes = Counter[str]()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        dialect, raw = chance.choice(seeds)
        outcomes[exercise(mutate(raw, chance), dialect)] += 1
    print(f"\n{outcomes.total():,} mutated bodies: {dict(outcomes)}")  # noqa: T201
    assert outcomes["read"] > outcomes.total() * 0.02
