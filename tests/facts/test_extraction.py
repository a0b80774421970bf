"""Extraction without a model: what becomes a fact, word for word, and what never does."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.facts import FactIndexCache, Ledger
from holdfast.facts.clauses import split_clauses
from holdfast.facts.dates import annotate_dates
from holdfast.facts.extraction import (
    extract_from_message,
    extract_from_result,
    find_subject,
    read_message,
)
from holdfast.facts.values import MOST_BYTES
from holdfast.store.opening import open_memory
from tests.store.harness import HERE

AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
"""A Monday."""


def facts_of(text: str, **more: Any) -> list[str]:
    message = {"role": "user", "content": text, "at": AT, **more}
    return [fact.text for fact in extract_from_message(read_message(message, "s"))]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "Hey Mel! I went to a pottery class yesterday and it was so calming. How are you?",
            ["Ann: I went to a pottery class yesterday [7 May 2023] and it was so calming."],
        ),
        (
            "My sister Clara works as a nurse in Leeds.",
            ["Ann: My sister Clara works as a nurse in Leeds."],
        ),
        (
            "I'm building a budget tracker with Flask 2.3.1, and I prefer small dependencies, can "
            "you help me with that?",
            [
                "Ann: I'm building a budget tracker with Flask 2.3.1",
                "Ann: I prefer small dependencies",
            ],
        ),
        (
            "We decided to use PostgreSQL for the billing service.",
            ["Ann: We decided to use PostgreSQL for the billing service."],
        ),
        (
            "The deadline for the first release is April 15.",
            ["Ann: The deadline for the first release is April 15."],
        ),
        (
            "Always use metric units when I ask about distances.",
            ["Ann: Always use metric units when I ask about distances."],
        ),
    ],
)
def test_statements_are_copied_word_for_word_behind_who_said_them(
    text: str, facts: list[str]
) -> None:
    assert facts_of(text, name="Ann") == facts


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, that means a lot to me!",
        "I totally agree with you.",
        "It was the best day of my life.",
        "They told me about the new house in Rome.",
        "I love it so much.",
        "Can you help me with the report for Monday?",
        "I think the meeting in Rome went well.",
        "I can't wait to see the new house.",
        "You should visit the museum in Oslo.",
        "I'd do the same in Rome.",
        "I told her about the trip to Rome.",
        "I bought this from her in Leeds for 300 dollars.",
        "My budget for this is 300 dollars a month.",
        "I prefer it over trains and planes.",
        "Sounds great, Bob!",
        "```\nI = my_value(3)\nMy budget is 300 dollars.\n```",
        "> My budget is 300 dollars, somebody read_message.",
        "I wonder whether Ann lives in Rome.",
        "If I lived in Rome, I would buy a scooter.",
    ],
)
def test_what_asks_guesses_or_points_elsewhere_is_no_fact(text: str) -> None:
    assert facts_of(text) == []


def test_preferences_and_instructions_of_the_user_are_standing() -> None:
    message = read_message(
        {"role": "user", "content": "I prefer trains over planes for work."}, "s"
    )
    assert [(fact.kind, fact.standing) for fact in extract_from_message(message)] == [
        ("fact", True)
    ]
    message = read_message(
        {"role": "user", "content": "From now on answer in short paragraphs."}, "s"
    )
    assert [fact.standing for fact in extract_from_message(message)] == [True]
    message = read_message({"role": "assistant", "content": "I prefer trains over planes."}, "s")
    assert extract_from_message(message) == []


def test_of_an_assistant_only_what_it_did_is_kept() -> None:
    text = "I have booked flight HAT137 for 2 May. I recommend a window seat in row 12."
    message = read_message({"role": "assistant", "content": text}, "s")
    assert [fact.text for fact in extract_from_message(message)] == [
        "Assistant: I have booked flight HAT137 for 2 May."
    ]


def test_a_fact_knows_its_message_and_its_place() -> None:
    text = "Hello. I moved to Oslo last week."
    (fact,) = extract_from_message(
        read_message({"role": "user", "content": text, "id": "m7", "at": AT}, "s")
    )
    start, stop = map(int, fact.place.removeprefix("characters ").split("-"))
    assert (fact.ref, text[start:stop]) == ("m7", "I moved to Oslo last week.")
    nameless = {"role": "user", "content": text}
    assert (
        read_message(nameless, "s").ref
        == read_message(nameless, "s").ref
        != read_message(nameless, "t").ref
    )


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("yesterday", "yesterday [7 May 2023]"),
        ("last Friday", "last Friday [5 May 2023]"),
        ("last Monday", "last Monday [1 May 2023]"),  # read_message on a Monday: the one before
        ("this Monday", "this Monday [8 May 2023]"),
        ("next Monday", "next Monday [15 May 2023]"),
        ("last week", "last week [week of 1 May 2023]"),
        ("next month", "next month [June 2023]"),
        ("two years ago", "two years ago [2021]"),
        ("3 days ago", "3 days ago [5 May 2023]"),
        ("2 weeks from now", "2 weeks from now [week of 22 May 2023]"),
        ("read in 2 weeks", "read in 2 weeks"),
        ("this weekend", "this weekend [weekend of 13 May 2023]"),
        ("last weekend", "last weekend [weekend of 6 May 2023]"),
        ("tomorrow and today", "tomorrow [9 May 2023] and today [8 May 2023]"),
        ("999 years ago", "999 years ago"),
        ("[yesterday]", "[yesterday]"),
        ("someday", "someday"),
    ],
)
def test_relative_days_are_resolved_beside_the_words(text: str, dated: str) -> None:
    assert annotate_dates(text, AT) == dated
    assert annotate_dates(text, None) == text


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("My favorite color is blue", "ann: favourite color"),
        ("I moved to Oslo", "ann: home"),
        ("The deadline is April 15", "ann: deadline in days"),
        ("Our budget is now $500", "ann: budget in $"),
        ("The meeting is important", ""),
        ("I bought a bicycle", ""),
    ],
)
def test_a_subject_is_only_what_has_one_value(text: str, subject: str) -> None:
    assert find_subject(text, "Ann") == subject


ORDER = {
    "order_id": "#W2378156",
    "status": "pending",
    "total": 1e2,
    "items": [{"item_id": "1151293680", "name": "Keyboard", "price": 272.33, "options": {}}],
}


def test_things_with_ids_are_taken_from_a_result_with_their_exact_values() -> None:
    text = json.dumps(ORDER).replace("100.0", "100.00")
    facts = extract_from_result(text, "ref:json:1", "get_order", AT)
    assert [(fact.text, fact.place) for fact in facts] == [
        ("order #W2378156: status = pending, total = 100.00", "$"),
        (
            "item 1151293680 of order #W2378156: name = Keyboard, price = 272.33",
            "$.items[0]",
        ),
    ]


@pytest.mark.parametrize("text", ["", "no json", "[1, 2]", '{"a": 1}', "[" * 5000, '{"id": "x"'])
def test_what_names_nothing_gives_nothing(text: str) -> None:
    assert extract_from_result(text, "r", "t", None) == []


def test_a_later_result_supersedes_what_an_earlier_one_said_of_a_thing() -> None:
    async def work() -> None:
        store = open_memory()
        ledger = Ledger(store, HERE, FactIndexCache(store, None))
        origin = {"tool": "get_order", "session": "s"}
        await ledger.extract(json.dumps(ORDER), source_ref="r1", at=1.0, **origin)
        shipped = json.dumps(ORDER | {"status": "shipped"})
        await ledger.extract(shipped, source_ref="r2", at=2.0, **origin)
        current = [fact.text for fact in await ledger.latest(kind="entity")]
        assert len(current) == 2
        assert any("status = shipped" in text for text in current)
        assert not any("status = pending" in text for text in current)
        (item,) = [fact for fact in await ledger.latest() if "Keyboard" in fact.text]
        assert [source.ref for source in item.sources] == ["r1", "r2"]

    asyncio.run(work())


@pytest.mark.parametrize(
    "text",
    [
        "I " * 100_000,
        "I am, and I am" * 15_000,
        "." * 200_000,
        "? " * 100_000,
        "(" * 200_000,
        "and I, " * 30_000,
        "My " + "very " * 40_000 + "is 3 km long.",
        "\n".join(["I bought a boat in Rome."] * 8_000),
        "yesterday " * 20_000,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_messages_give_few_facts(text: str) -> None:
    assert len(facts_of(text)) <= 50
    assert sum(clause.stop - clause.start for clause in split_clauses(text)) <= 2 * len(text)


def test_a_result_that_would_hold_up_others_is_left_to_be_opened() -> None:
    row = {"order_id": "W-1234567", "status": "shipped", "total": 12}
    padded = json.dumps([row, {"note": "x" * MOST_BYTES}])
    assert extract_from_result(json.dumps([row]), "r", "t", None)
    assert extract_from_result(padded, "r", "t", None) == []
