"""Which requests are side requests of a client: titles, quota checks, compactions, checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.engine.client_texts import SIDE_TEXTS, SideText
from holdfast.engine.side_requests import purpose_of
from holdfast.wire import read

BASE = "You are Claude Code, Anthropic's official CLI for Claude."
TOOLS = [{"name": "Read", "input_schema": {"type": "object"}}]


def claude(
    *texts: str, system: tuple[str, ...] = (BASE,), before: int = 0, **more: Any
) -> dict[str, Any]:
    """A request of Claude Code: some turns, then a message of the user with these texts."""
    talk: list[Any] = []
    for n in range(before):
        talk += [
            {"role": "user", "content": f"Do step {n}."},
            {"role": "assistant", "content": "Done."},
        ]
    content = [{"type": "text", "text": text} for text in texts]
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": text} for text in system],
        "messages": [*talk, {"role": "user", "content": content}],
        **more,
    }


def purpose(value: dict[str, Any], dialect: str = "anthropic", client: str = "") -> str:
    return purpose_of(read(json.dumps(value).encode(), dialect), client)


def _request(row: SideText) -> dict[str, Any]:
    order = f"\n{row.start} and so on."
    match row.where:
        case "system":
            return claude("Mend the build.", system=(BASE, order))
        case "first":
            return claude(order)
        case _:
            return claude("<system-reminder>x</system-reminder>", order, before=2, tools=TOOLS)


@pytest.mark.parametrize("row", SIDE_TEXTS, ids=lambda row: f"{row.client}: {row.start[:40]}")
def test_every_order_of_the_table_is_recognised(row: SideText) -> None:
    assert purpose(_request(row), client=row.client) == row.purpose
    assert purpose(_request(row), client="another") == ("" if row.only else row.purpose)


@pytest.mark.parametrize("row", SIDE_TEXTS, ids=lambda row: f"{row.client}: {row.start[:40]}")
def test_an_order_that_is_only_quoted_makes_no_side_request(row: SideText) -> None:
    quoted = f"Why does the log say: {row.start}?"
    assert purpose(claude(quoted, system=(quoted,), before=1), client=row.client) == ""


def test_an_earlier_order_makes_no_side_request_of_what_follows() -> None:
    value = claude("[SUGGESTION MODE: Suggest what comes next.]")
    value["messages"] += [
        {"role": "assistant", "content": "Run the tests."},
        {"role": "user", "content": "Yes."},
    ]
    assert purpose(value, client="claude-code") == ""


def test_a_conversation_is_no_side_request() -> None:
    assert purpose(claude("Mend the build.", tools=TOOLS), client="claude-code") == ""
    assert purpose({"contents": []}, "gemini") == ""
    assert purpose({"model": "m", "messages": []}, "openai-chat") == ""


@pytest.mark.parametrize(
    ("text", "client", "expected"),
    [
        ("quota", "claude-code", "quota"),
        ("count", "claude-code", "count"),
        ("# A part of the instructions", "claude-code", "count"),
        ("quota", "", ""),
    ],
)
def test_a_request_for_one_token_asks_nothing_of_the_model(
    text: str, client: str, expected: str
) -> None:
    assert purpose(claude(text, max_tokens=1), client=client) == expected
    assert purpose(claude(text), client=client) == ""


def test_orders_are_found_in_every_dialect() -> None:
    title = "You are a title generator. You output ONLY a thread title. Nothing else."
    chat = [{"role": "system", "content": title}, {"role": "user", "content": "Hello"}]
    assert purpose({"model": "m", "messages": chat}, "openai-chat") == "title"
    said = [{"role": "user", "content": "Hello"}]
    asked = {"model": "m", "instructions": title, "input": said}
    assert purpose(asked, "openai-responses") == "title"
    routing = {"parts": [{"text": "You are a specialized Task Routing AI. Your sole function"}]}
    contents = [{"role": "user", "parts": [{"text": "Hello"}]}]
    assert purpose({"contents": contents, "systemInstruction": routing}, "gemini") == "routing"


def test_a_trigger_for_compaction_is_an_order() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
        {"type": "compaction_trigger"},
    ]
    assert purpose({"model": "m", "input": items}, "openai-responses") == "compaction"
    assert purpose({"model": "m", "input": items[:1]}, "openai-responses") == ""
