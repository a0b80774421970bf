"""`holdfast memory recall` and `memory forget`: a table or JSON; forgetting needs --yes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Holdfast
from tests.surfaces.harness import Cli

TALK: list[dict[str, Any]] = [
    {
        "role": "user",
        "name": "Caro",
        "content": "I made a blue bowl.",
        "at": 1_683_554_400,
        "id": "a",
    },
    {
        "role": "user",
        "name": "Mel",
        "content": "I ran a \x1b[31mrace.",
        "at": 1_683_554_460,
        "id": "b",
    },
]


@pytest.fixture
def store(cli: Cli) -> str:
    url = f"sqlite:///{cli.folder}/talk.db"

    async def fill() -> None:
        async with Holdfast.open(url) as engine:
            await engine.remember("friends", TALK)

    asyncio.run(fill())
    return url


def test_a_table_shows_scores_sources_and_why(cli: Cli, store: str) -> None:
    result = cli("memory", "recall", "What did Caro make?", "--store", store, "--output", "table")
    assert result.code == 0
    first = next(line for line in result.out.splitlines() if "Caro" in line)
    assert all(word in first for word in ("2023-05-08 14:00", "friends", "blue bowl"))
    assert "2 of 2 turns" in result.out
    assert "\x1b[31m" not in result.out


def test_a_pipe_gets_json(cli: Cli, store: str) -> None:
    recalled = cli("memory", "recall", "bowl", "--store", store, "--most", "1").json
    (passage,) = recalled["passages"]
    assert (passage["turn_id"], passage["session"], passage["name"]) == ("a", "friends", "Caro")
    assert recalled["tokens"] <= recalled["budget"] == 1000
    assert cli("memory", "recall", "bowl", "--store", store, "--text", "--most", "1").out == (
        "[8 May 2023]\nCaro: I made a blue bowl.\n"
    )


def test_nothing_is_read_again_that_was_read_by_the_same(cli: Cli, store: str) -> None:
    result = cli("memory", "recall", "bowl", "--store", store, "--reindex")
    assert result.err == "Indexed 0 turns again.\n"


def test_forgetting_shows_what_would_go_before_it_goes(cli: Cli, store: str) -> None:
    forget = ("memory", "forget", "--store", store)
    # as JSON, where the list of turns does not show whether they were deleted
    listed = cli(*forget, "a")
    assert [turn["id"] for turn in listed.json] == ["a"]
    assert listed.err == "1 turn would be removed: add --yes.\n"
    assert "1 turn would be removed: add --yes." in cli(*forget, "a", "--output", "table").err
    assert "1 turn removed." in cli(*forget, "a", "--yes", "--output", "table").err
    assert cli(*forget, "a").json == []
    of_session = (*forget, "--session", "friends", "--yes")
    assert [turn["id"] for turn in cli(*of_session).json] == ["b"]
    nothing = cli("memory", "recall", "bowl", "--store", store, "--output", "table")
    assert "No turns are remembered here yet." in nothing.err


@pytest.mark.parametrize("arguments", [("recall", " "), ("forget",)])
def test_without_a_question_it_says_what_to_write(cli: Cli, arguments: tuple[str, ...]) -> None:
    result = cli("memory", *arguments, "--store", "memory:")
    assert result.code == 2
    assert "holdfast:" in result.err
