"""Thinking that an edit before it would break is known, and let go of without harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.wire import is_bound, read, validate, without_thinking, write
from holdfast.wire.bound_thinking import (
    thinks,
    without_bound_thinking,
    without_bound_thinking_in_turn,
)
from tests.wire.test_rules import ASK, answer, claude, said, text, thinking, use

BOUND = "claude-opus-5-5"
ENABLED = {"type": "enabled", "budget_tokens": 2048}
ADAPTIVE = {"type": "adaptive"}
SEALED = {"type": "redacted_thinking", "data": "c2VhbGVk"}
DROPS = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize(
    ("model", "body", "expected"),
    [
        ("claude-opus-5-5", {}, True),
        ("claude-opus-5-5-20261001", {"thinking": ADAPTIVE}, True),
        ("us.anthropic.claude-sonnet-5-5-v1:0", {}, True),
        ("anthropic/claude-haiku-5.5", {}, True),
        ("claude-fable-5-1", {}, True),
        ("claude-fable-5", {}, False),
        ("claude-mythos-5-2", {}, True),
        ("claude-opus-4-5", {}, False),
        ("claude-opus-5-50", {}, False),
        ("gpt-5.5", {}, False),
        ("claude-opus-5-5", {"thinking": DROPS}, False),
        ("claude-opus-5-5", {"additionalModelRequestFields": {"thinking": DROPS}}, False),
        ("claude-opus-5-5", {"thinking": {**ADAPTIVE, "block_binding": {}}}, True),
    ],
)
def test_the_models_and_the_switch_that_unbinds(model: str, body: Any, expected: bool) -> None:
    assert is_bound(model, body) is expected


def history(**more: Any) -> bytes:
    """Two turns with thinking, a message of nothing else, and a tool's result at the end."""
    messages = [
        ASK,
        said(thinking(), text("First.")),
        ASK,
        said(thinking(), SEALED),
        said(text("Second."), SEALED),
        ASK,
        use("t1", before=[thinking(), text("I look.")]),
        answer("t1"),
    ]
    return json.dumps(claude(*messages, model=BOUND, **more), indent=1).encode()


def thoughts(body: bytes) -> list[int]:
    """The messages that hold thinking."""
    kinds = ("thinking", "redacted_thinking")
    return [
        n
        for n, message in enumerate(json.loads(body)["messages"])
        if any(b["type"] in kinds for b in message["content"] if isinstance(b, dict))
    ]


@pytest.mark.parametrize("start", range(9))
def test_thinking_goes_from_a_message_on_and_nothing_else_does(start: int) -> None:
    conversation = read(history(thinking=ADAPTIVE), "anthropic")
    bare = without_thinking(conversation, start)
    body = write(bare)
    assert validate(body) == []
    assert thoughts(body) == [n for n in (1, 3, 4, 6) if n < start]
    assert len(bare.messages) == (7 if start <= 3 else 8), "a message of nothing but thinking goes"
    for message in conversation.messages:
        if not thoughts(b'{"messages": [' + message.raw + b"]}"):
            assert any(message is other for other in bare.messages)
    words = b'"text": "Second."' if start > 4 else b'"Second."'
    assert words in body


def test_a_request_without_thinking_is_the_same_object() -> None:
    conversation = read(json.dumps(claude(ASK, said(text("a")), ASK)).encode(), "anthropic")
    assert without_thinking(conversation, 0) is conversation


def test_where_a_tool_turn_must_start_with_thinking_it_is_switched_off() -> None:
    conversation = read(history(thinking=ENABLED), "anthropic")
    bare = without_thinking(conversation, 0)
    assert validate(write(bare)) == []
    assert bare.rest["thinking"] == {"type": "disabled"}
    adaptive = without_thinking(read(history(thinking=ADAPTIVE), "anthropic"), 0)
    assert adaptive.rest["thinking"] == ADAPTIVE


def test_adaptive_thinking_does_not_demand_that_a_tool_turn_starts_with_it() -> None:
    messages = (ASK, use("t1", before=[text("I look.")]), answer("t1"))
    assert validate(json.dumps(claude(*messages, thinking=ADAPTIVE)).encode()) == []
    broken = validate(json.dumps(claude(*messages, thinking=ENABLED)).encode())
    assert [violation.rule for violation in broken] == ["A11"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"thinking": ENABLED}, ["A17"]),
        ({"thinking": ADAPTIVE}, []),
        ({"thinking": {**ENABLED, **{k: DROPS[k] for k in ("block_binding",)}}}, []),
        ({"thinking": ENABLED, "model": "claude-opus-4-5"}, []),
    ],
)
def test_thinking_that_is_missing_in_the_middle_is_seen_where_it_can_be_known(
    more: dict[str, Any], expected: list[str]
) -> None:
    messages = [ASK, said(thinking(), text("a")), ASK, said(text("b")), ASK]
    messages += [said(thinking(), text("c")), ASK]
    body = claude(*messages, **{"model": BOUND, **more})
    assert [violation.rule for violation in validate(json.dumps(body).encode())] == expected


def test_converse_lets_go_of_reasoning_too() -> None:
    reasoning = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    body = {
        "modelId": "us.anthropic.claude-opus-5-5-v1:0",
        "messages": [
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [reasoning, {"text": "Hello."}]},
            {"role": "user", "content": [{"text": "And?"}]},
        ],
    }
    bare = without_thinking(read(json.dumps(body).encode(), "converse"), 0)
    assert json.loads(write(bare))["messages"][1]["content"] == [{"text": "Hello."}]
    assert validate(write(bare), "converse") == []


@pytest.mark.parametrize("model", [BOUND, "claude-opus-4-5"])
def test_a_turn_behind_another_conversation_leaves_its_bound_thinking(model: str) -> None:
    behind = read(claude(ASK, model=model, thinking=ADAPTIVE), "anthropic")
    spoken = [use("t", before=[thinking()]), said(SEALED)]
    going_on = without_bound_thinking_in_turn(
        [json.dumps(message).encode() for message in spoken], behind
    )
    expected = [use("t")] if model == BOUND else spoken
    assert [json.loads(message) for message in going_on] == expected
    whole = read(claude(ASK, said(thinking(), text("Yes.")), ASK, model=model), "anthropic")
    assert (without_bound_thinking(whole, 0) is whole) == (model != BOUND)


def test_a_request_says_whether_it_wants_thinking() -> None:
    wanted = [{"thinking": ADAPTIVE}, {"thinking": ENABLED}, {"thinking": {"type": "disabled"}}, {}]
    assert [thinks(body) for body in wanted] == [True, True, False, False]
