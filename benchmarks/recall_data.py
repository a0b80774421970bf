"""Long conversations with questions and the turns that answer them, read from the data beside us.

Turns get times: LoCoMo and LongMemEval say when a session began, BEAM the day. Questions whose
labels an audit found wrong count with its corrections; those without evidence are left out.
"""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[2] / "shared" / "data")
LEFT_OUT = {"summarization", "event_ordering", "abstention"}
"""Of BEAM: what does not fit in 3,000 tokens, and what has no answer."""


class Asked(NamedTuple):
    """A question."""

    text: str
    category: str
    evidence: tuple[str, ...]
    answer: str


class Talk(NamedTuple):
    """A conversation."""

    name: str
    turns: list[dict[str, Any]]
    """With `session` and what `remember` takes."""
    asked: list[Asked]


def locomo() -> list[Talk]:
    """Two friends over months; both are users, by name."""
    lines = (DATA / "locomo" / "conversations.jsonl").read_text("utf-8").splitlines()
    return [_locomo(json.loads(line)) for line in lines]


def _locomo(record: dict[str, Any]) -> Talk:
    turns = []
    for number, turn in enumerate(record["turns"]):
        at = datetime.strptime(turn["datetime"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns.append(
            {
                "session": f"session {turn['session']}",
                "id": turn["id"],
                "role": "user",
                "name": turn["speaker"],
                "content": turn["text"],
                "at": at.timestamp() + number,
            }
        )
    asked = []
    for question in record["qa"]:
        evidence = question.get("audit", {}).get("correct_evidence") or question["evidence"]
        if evidence:
            answer = str(question.get("answer") or "")
            text, category = question["question"], question["category_name"]
            asked.append(Asked(text, category, tuple(evidence), answer))
    return Talk(record["conv_id"], turns, asked)


def long_chats() -> list[Talk]:
    """A user and an assistant over weeks."""
    path = DATA / "long_chats" / "conversations.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_long_chat(json.loads(line)) for line in lines]


def longmemeval() -> list[Talk]:
    """Two questions of LongMemEval, each with chats of its own: all that was found of it."""
    lines = (DATA / "long_chats" / "longmemeval_sample.jsonl").read_text("utf-8").splitlines()
    return [_longmemeval(json.loads(line)) for line in lines]


def _longmemeval(record: dict[str, Any]) -> Talk:
    turns = []
    for number, turn in enumerate(record["turns"]):
        at = datetime.strptime(turn["datetime"], "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
        turns.append(
            {
                "session": f"session {turn['session']}",
                "id": turn["id"],
                "role": turn["speaker"],
                "content": turn["text"],
                "at": at.timestamp() + number,
            }
        )
    asked = [
        Asked(q["question"], q["category"], tuple(q["evidence"]), str(q["answer"]))
        for q in record["qa"]
    ]
    return Talk(record["conv_id"], turns, asked)


def _long_chat(record: dict[str, Any]) -> Talk:
    turns = []
    at = 0.0
    for number, turn in enumerate(record["turns"]):
        if turn["datetime"]:
            day = datetime.strptime(turn["datetime"], "%B-%d-%Y").replace(tzinfo=UTC)
            at = day.timestamp()
        turns.append(
            {
                "session": f"batch {turn['session']}",
                "id": turn["id"],
                "role": turn["speaker"],
                "content": turn["text"],
                "at": at + number,
            }
        )
    asked = [
        Asked(q["question"], q["category"], tuple(q["evidence"]), str(q["answer"]))
        for q in record["qa"]
        if q["evidence"] and q["category"] not in LEFT_OUT
    ]
    return Talk(record["conv_id"], turns, asked)
