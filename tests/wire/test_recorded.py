"""What providers really received and answered: it must round-trip, and be called valid."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from holdfast import read, repair, validate, write
from holdfast.wire import DIALECTS, convert, detect
from tests.support.recorded import needs_trajectories, needs_usage, requests, trajectories

STYLES: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {},
    {"indent": 2},
]


@needs_usage
def test_recorded_requests_round_trip_and_are_valid() -> None:
    total, flagged, misjudged = 0, Counter[str](), 0
    for dialect, record in requests():
        total += 1
        style = STYLES[total % len(STYLES)]
        raw = json.dumps(record["request"], **style).encode()
        conversation = read(raw, dialect)
        assert write(conversation) == raw
        assert all(message.raw in raw for message in conversation.messages)
        # Joined from its parts, not remembered.
        assert write(conversation.with_messages(conversation.messages)) == raw
        flagged.update({violation.rule for violation in validate(raw, dialect, record["model"])})
        misjudged += detect(raw) != dialect
    assert total > 8000
    assert sum(flagged.values()) <= 0.001 * total, flagged
    assert misjudged <= 0.002 * total


@needs_usage
def test_recorded_requests_convert_to_every_dialect() -> None:
    conversions(every=4)


@pytest.mark.campaign
@needs_usage
def test_all_recorded_requests_convert_to_every_dialect() -> None:
    conversions(every=1)


def conversions(every: int) -> None:
    for number, (dialect, record) in enumerate(islice(requests(), 0, None, every)):
        to = sorted(DIALECTS)[number % len(DIALECTS)]
        converted = convert(record["request"], to, dialect)
        left = {v.rule for v in validate(converted.body, to)}
        # Requests without a single message, and tool names that the other vendor does not take.
        assert left <= {"A9", "B4", "C4", "G4", "G6", "R5"}


@needs_trajectories
def test_trajectories_round_trip_in_every_dialect_and_are_repaired() -> None:
    round_trips(every=10)


@pytest.mark.campaign
@needs_trajectories
def test_all_trajectories_round_trip_in_every_dialect_and_are_repaired() -> None:
    round_trips(every=1)


def round_trips(every: int) -> None:
    for trajectory in islice(trajectories(), 0, None, every):
        body = {"model": "gpt-4o", "messages": trajectory["messages"]}
        raw = json.dumps(body).encode()
        assert write(read(raw, "openai-chat")) == raw
        mended = repair(raw, "openai-chat")
        assert mended.left == ()
        # tau-bench uses ids twice, which OpenAI allows: its halves are told apart by position.
        assert trajectory["wellformed"] or mended.actions or trajectory["source"] == "tau-bench"
        for to in DIALECTS:
            converted = convert(mended.body, to, "openai-chat").body
            assert write(read(converted, to)) == converted
            assert validate(converted, to) == []
