"""Anchors: the messages to keep, and how they are found."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import count, read
from holdfast.trim import DEFAULT_ANCHORS, AnchorDefinition, AnchorPreservationManager, mark
from holdfast.trim.anchors import MARK, lost_anchors

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Build it."},
    {"role": "assistant", "content": "How?"},
    {"role": "user", "content": "Like this; you must never delete files."},
    {"role": "user", "content": "x" * 2000 + " must"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Thanks."},
]


def test_the_default_anchors_are_found_with_their_reasons() -> None:
    messages = read({"messages": MESSAGES}, "openai-chat").messages
    found = {a.index: a.type for a in AnchorPreservationManager().identify(messages)}
    assert found == {
        0: "system_message",
        1: "first_user_message",
        3: "instruction_anchor",
        6: "latest_tool_result",
        8: "latest_user_message",
    }


@pytest.mark.parametrize("definition", DEFAULT_ANCHORS, ids=lambda d: d.type)
def test_looking_once_finds_what_every_selector_finds(definition: AnchorDefinition) -> None:
    messages = read({"messages": MESSAGES}, "openai-chat").messages
    one_by_one = [n for n, m in enumerate(messages) if definition.selector(m, n, messages)]
    at_once = AnchorPreservationManager([definition]).identify(messages)
    assert [anchor.index for anchor in at_once] == one_by_one


def test_marked_messages_and_custom_selectors_are_anchors() -> None:
    messages = read({"messages": MESSAGES}, "openai-chat").messages
    mark(messages[2])
    own = AnchorDefinition(
        type="custom", selector=lambda m, _, __: b"How" in m.raw, priority=99, description="mine"
    )
    plain = AnchorPreservationManager().identify(messages)
    assert 2 in {anchor.index for anchor in plain}
    first = next(
        a
        for a in AnchorPreservationManager([*DEFAULT_ANCHORS, own]).identify(messages)
        if a.index == 2
    )
    assert first.type == "custom"  # the higher priority names it


def test_lost_anchors_are_named() -> None:
    messages = read({"messages": MESSAGES}, "openai-chat").messages
    anchors = AnchorPreservationManager().identify(messages)
    assert lost_anchors(anchors, messages, messages) == ()
    lost = lost_anchors(anchors, messages, messages[2:])
    assert [anchor.type for anchor in lost] == ["system_message", "first_user_message"]


def test_an_anchor_is_recognised_in_another_reading_and_in_a_shortened_result() -> None:
    long = [{**m, "content": "done " * 900} if m["role"] == "tool" else m for m in MESSAGES]
    short = [{**m, "content": "done […]"} if m["role"] == "tool" else m for m in MESSAGES]
    before = read({"messages": long}, "openai-chat").messages
    after = read({"messages": short}, "openai-chat").messages
    anchors = AnchorPreservationManager().identify(before)
    assert lost_anchors(anchors, before, after) == ()
    without = [m for n, m in enumerate(after) if n not in (5, 6)]
    lost = lost_anchors(anchors, before, without)
    assert [anchor.type for anchor in lost] == ["latest_tool_result"]


def test_a_mark_outlives_counts_for_ever_more_models() -> None:
    conversation = read({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]})
    mark(conversation.messages[0])
    for n in range(200):
        count(conversation, model=f"gpt-4o-deployment-{n}")
    [anchor, *_] = AnchorPreservationManager().identify(conversation.messages)
    assert MARK.get(conversation.messages[0]) is True
    assert anchor.index == 0


def test_a_fault_of_a_default_selector_is_not_blamed_on_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: object) -> bool:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("holdfast.trim.anchors._reads_as_rule", fails)
    messages = read({"messages": MESSAGES}, "openai-chat").messages
    with pytest.raises(KeyError):
        AnchorPreservationManager().identify(messages)
