"""Conversion carries text and tools over, and lists what it could not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, validate
from holdfast.wire import DIALECTS, Conversation, Text, convert

from .bodies import DIALECTS as DRAWN
from .bodies import WRITERS, scripts


def spoken(conversation: Conversation) -> list[str]:
    """Everything said, called and answered, in order, whatever the dialect."""
    said: list[str] = []
    for message in conversation.messages:
        texts = [b.text for b in message.blocks if isinstance(b, Text)]
        if message.role == "system":
            continue
        # Neighbours may be joined by an empty line.
        said.extend(f"{message.role}: {line}" for text in texts for line in text.split("\n\n"))
        said.extend(f"call {c.name} {_json(c.arguments)}" for c in message.calls)
        said.extend(f"result {r.text}" for r in message.results)
    return said


def _json(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


@given(st.sampled_from(DRAWN), st.sampled_from(DRAWN), scripts())
def test_every_word_call_and_result_arrives(origin: str, to: str, script: Any) -> None:
    source = read(WRITERS[origin](script), origin)
    converted = convert(source, to)
    assert validate(converted.body, to) == []
    arrived = read(converted.body, to)
    # Within a turn, text comes before calls, and results in any order.
    assert sorted(spoken(arrived)) == sorted(spoken(source))
    assert "".join(b.text for b in source.system if isinstance(b, Text)) == "".join(
        b.text for b in arrived.system if isinstance(b, Text)
    )


@given(st.sampled_from(DRAWN), st.sampled_from(DRAWN), scripts())
def test_there_and_back_again_says_the_same(origin: str, over: str, script: Any) -> None:
    source = convert(WRITERS[origin](script), origin, origin).body
    there = convert(source, over, origin).body
    back = convert(there, origin, over).body
    assert sorted(spoken(read(back, origin))) == sorted(spoken(read(source, origin)))


TOOL = {
    "name": "search",
    "description": "Search the notes.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
CHAT = {
    "model": "gpt-4o",
    "temperature": 0.5,
    "max_tokens": 100,
    "stop": "END",
    "tools": [{"type": "function", "function": TOOL}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
}


@pytest.mark.parametrize("to", DRAWN)
@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "function": {"name": "search"}}]
)
def test_parameters_and_tools_are_carried_over(to: str, choice: Any) -> None:
    converted = convert({**CHAT, "tool_choice": choice}, to, "openai-chat")
    arrived = read(converted.body, to)
    [tool] = arrived.tools
    assert (tool.name, tool.description, tool.parameters) == tuple(TOOL.values())
    back = json.loads(convert(converted.body, "openai-chat", to).body)
    assert back["temperature"] == 0.5
    assert back["max_completion_tokens"] == 100
    lost = {loss.path for loss in converted.lost}
    assert lost <= {"$.stop", "$.tool_choice"}
    if "$.stop" not in lost:
        assert back["stop"] in ("END", ["END"])
    if "$.tool_choice" not in lost and to != "cohere":
        assert back["tool_choice"] == choice


def test_what_is_lost_is_listed_with_its_place() -> None:
    body = {
        "model": "claude-haiku-4-5",
        "max_tokens": 10,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "file", "file_id": "f"}},
                    {"type": "text", "text": "What is this?"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "A cat."},
                ],
            },
            {"role": "user", "content": "Sure?"},
        ],
    }
    converted = convert(body, "openai-chat")
    assert {loss.path for loss in converted.lost} == {
        "$.messages[0].content[0]",
        "$.messages[1].content[0]",
        "$.thinking",
        "$.tools[0]",
    }
    first = json.loads(converted.body)["messages"][0]["content"]
    assert first == "[image not carried over]\n\nWhat is this?"


def test_ids_are_made_to_fit_and_stay_paired() -> None:
    call_id = "functions.search:0|" + "x" * 60
    function = {"name": "search", "arguments": "{}"}
    body = {
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": "r"},
        ]
    }
    for to in DIALECTS:
        assert validate(convert(body, to, "openai-chat").body, to) == []


def test_many_calls_in_one_turn_find_their_results() -> None:
    ids = [f"c{n}" for n in range(20_000)]
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": i, "type": "function", "function": function} for i in ids]
    answers = [{"role": "tool", "tool_call_id": i, "content": i} for i in reversed(ids)]
    ask = {"role": "user", "content": "q"}
    body = {"messages": [ask, {"role": "assistant", "tool_calls": calls}, *answers]}
    converted = convert(body, "anthropic", "openai-chat")
    assert [loss.path for loss in converted.lost] == ["$.max_tokens"]
    results = read(converted.body, "anthropic").messages[2].results
    assert [result.call_id for result in results] == [result.text for result in results]


def test_the_result_validates_or_its_loss_is_named() -> None:
    body = {
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "The "}]
    }
    converted = convert(body, "gemini", "openai-chat")
    assert validate(converted.body, "gemini") == []
    assert any("unfinished last turn" in loss.message for loss in converted.lost)
