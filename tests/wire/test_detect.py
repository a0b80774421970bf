"""The dialect is guessed from the shape of the body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from holdfast import read
from holdfast.errors import LimitError, ShapeError
from holdfast.wire import Limits, detect

from .bodies import bodies

USER = {"role": "user", "content": "hi"}
PARTS = {"role": "user", "content": [{"text": "hi"}]}


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai-chat", {"messages": [USER]} | {"model": "gpt-4o"}),
        (
            "openai-chat",
            {"messages": [USER], "model": "anthropic/claude-sonnet-4", "max_tokens": 5},
        ),
        ("openai-chat", {"messages": [USER], "model": "claude-sonnet-4-6", "stream": True}),
        ("openai-chat", {"messages": [{"role": "developer", "content": "x"}]}),
        ("anthropic", {"messages": [USER], "model": "claude-sonnet-4-6", "max_tokens": 5}),
        ("anthropic", {"messages": [USER], "model": "claude-sonnet-4-6"}),  # count_tokens
        (
            "anthropic",
            {"messages": [USER], "anthropic_version": "bedrock-2023-05-31", "max_tokens": 5},
        ),
        ("openai-responses", {"input": "hi", "model": "gpt-5"}),
        ("openai-responses", {"input": [], "model": "gpt-5"}),
        ("gemini", {"contents": []}),
        ("gemini", {"generateContentRequest": {"contents": []}}),
        ("converse", {"messages": [PARTS], "inferenceConfig": {}}),
        ("converse", {"messages": [PARTS]}),
        ("converse", {"input": {"converse": {"messages": [PARTS]}}}),
        ("cohere", {"messages": [USER], "model": "command-a-03-2025"}),
        ("cohere", {"message": "hi", "model": "command-r", "chat_history": []}),
    ],
)
def test_typical_bodies_are_recognised(dialect: str, body: dict[str, Any]) -> None:
    assert detect(body) == dialect
    assert read(body).dialect == dialect


@given(bodies)
def test_bodies_with_a_tool_call_are_recognised(drawn: tuple[str, dict[str, Any]]) -> None:
    dialect, body = drawn
    assert detect(body) == dialect


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(ShapeError, match="no dialect fits"):
        detect({"hello": "world"})


def test_limits_hold_here_too() -> None:
    with pytest.raises(LimitError):
        detect({"messages": [USER]}, limits=Limits(max_body_bytes=5))


def test_wrapped_requests_are_read_where_they_stand() -> None:
    inner = {
        "contents": [{"parts": [{"text": "q"}]}],
        "systemInstruction": {"parts": [{"text": "s"}]},
    }
    conversation = read({"generateContentRequest": inner | {"model": "models/gemini-2.5-flash"}})
    assert [b.path for b in conversation.system] == [
        "generateContentRequest.systemInstruction.parts[0]"
    ]
    assert conversation.path(conversation.messages[0].blocks[0]) == (
        "$.generateContentRequest.contents[0].parts[0]"
    )
    wrapped = {"messages": [PARTS], "system": [{"text": "s"}]}
    conversation = read({"input": {"converse": wrapped}})
    assert conversation.path(conversation.messages[0].blocks[0]) == (
        "$.input.converse.messages[0].content[0]"
    )
    assert conversation.system[0].path == "input.converse.system[0]"
