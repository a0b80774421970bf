"""Promise: any edit of a valid conversation leaves it valid, or is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, validate, write
from holdfast.errors import EditError, WireError
from holdfast.wire import (
    Block,
    Conversation,
    Entry,
    Media,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

from .bodies import DIALECTS, WRITERS, bodies, scripts, words


def edit(conversation: Conversation, data: st.DataObject) -> Conversation:
    """Draw one edit of any kind and make it."""
    kind = data.draw(st.sampled_from(["replace", "arguments", "drop", "insert", "exchange"]))
    if kind == "replace":
        blocks = [b for m in conversation.messages for b in m.blocks]
        kinds = (Text, ToolResult, Thinking, Opaque, Media)
        block = data.draw(st.sampled_from([b for b in blocks if isinstance(b, kinds)]))
        return conversation.replace(block, data.draw(words | st.sampled_from(["", " ", "a \n"])))
    if kind == "arguments":
        calls = [call for m in conversation.messages for call in m.calls]
        if not calls:
            return conversation
        return conversation.replace(data.draw(st.sampled_from(calls)), '{"path": "/"}')
    if kind == "drop":
        several = st.lists(st.sampled_from(conversation.exchanges), min_size=1, unique=True)
        return conversation.drop(*data.draw(several))
    index = data.draw(st.integers(0, len(conversation.messages)))
    if kind == "insert":
        role: Role = data.draw(st.sampled_from(("user", "assistant")))
        return conversation.insert(index, Entry(role, (Text(text=data.draw(words)),)))
    call_id = data.draw(st.sampled_from(["new_1", "new_2", "call_1"]))
    return conversation.insert(
        index,
        Entry("assistant", (ToolCall(id=call_id, name="look", arguments={}),)),
        Entry("tool", (ToolResult(call_id=call_id, name="look", text="seen"),)),
    )


@given(bodies, st.data())
def test_chained_edits_leave_every_dialect_valid(
    drawn: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    dialect, body = drawn
    conversation = read(body, dialect)
    for _ in range(data.draw(st.integers(1, 5))):
        try:
            conversation = edit(conversation, data)
        except EditError:
            continue
        written = write(conversation)
        assert validate(written, dialect) == []
        # What was written is what the view shows.
        again = read(written, dialect)
        assert [m.raw for m in again.messages] == [m.raw for m in conversation.messages]
        assert [e.kind for e in again.exchanges] == [e.kind for e in conversation.exchanges]


@given(bodies, st.data())
def test_an_edit_does_not_change_the_original(
    drawn: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    dialect, body = drawn
    conversation = read(body, dialect)
    before = write(conversation)
    with suppress(EditError):
        edit(conversation, data)
    assert write(conversation) == before


@given(st.sampled_from(DIALECTS), scripts(), st.data())
def test_replaced_text_is_what_the_model_would_read(
    dialect: str, script: Any, data: st.DataObject
) -> None:
    conversation = read(WRITERS[dialect](script), dialect)
    results = [r for m in conversation.messages for r in m.results]
    texts = [b for m in conversation.messages for b in m.blocks if isinstance(b, Text)]
    block = data.draw(st.sampled_from([*results, *texts]))
    new = data.draw(words)
    edited = conversation.replace(block, new)
    index = conversation.messages.index(block.owner)
    position = conversation.messages[index].blocks.index(block)
    assert edited.messages[index].blocks[position].text == new  # type: ignore[attr-defined]


def test_dropping_everything_is_refused() -> None:
    conversation = read({"messages": [{"role": "user", "content": "hi"}]}, "openai-chat")
    with pytest.raises(EditError, match="nothing would be left"):
        conversation.drop(*conversation.exchanges)


def test_several_replacements_write_each_message_once() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = {"system": "s", "messages": [{"role": "user", "content": parts}]}
    conversation = read(body, "anthropic")
    first, second = conversation.messages[0].blocks
    edited = conversation.replace_all([(first, "A"), (second, "B"), (conversation.system[0], "S")])
    assert json.loads(write(edited)) == {
        "system": "S",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("block", "text", "why"),
    [
        (2, " ", "A7"),
        (0, "x", "thinking"),
        (3, "not json", "JSON object"),
        (3, "[1]", "JSON object"),
        (2, "half \ud83d", "lone surrogate"),
    ],
)
def test_an_edit_that_would_be_refused_by_the_provider_is_refused_here(
    block: int, text: str, why: str
) -> None:
    parts = [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "t1", "name": "n", "input": {}},
    ]
    body = {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": parts},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
        ]
    }
    conversation = read(body, "anthropic")
    target = conversation.messages[1].blocks[block]
    if why == "A7":
        target = conversation.messages[0].blocks[0]
    with pytest.raises(EditError, match=why) as caught:
        conversation.replace(target, text)
    assert caught.value.fix


def test_nothing_is_inserted_between_a_call_and_its_result() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ]
    }
    conversation = read(body, "openai-chat")
    with pytest.raises(EditError, match="between a call and its result"):
        conversation.insert(2, {"role": "user", "content": "hey"})
    with pytest.raises(EditError, match="same id"):
        conversation.insert(3, *body["messages"][1:])
    with pytest.raises(EditError, match="together with its result"):
        conversation.insert(3, {"role": "assistant", "tool_calls": [{**call, "id": "d"}]})
    with pytest.raises(EditError, match="not part of this conversation"):
        read(body, "openai-chat").replace(conversation.messages[0].blocks[0], "x")
    with pytest.raises(EditError, match="not part of this conversation"):
        read(body, "openai-chat").drop(conversation.exchanges[0])


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"role": "user", "content": "half \ud83d"}, "lone surrogate"),
        ({"role": "user", "content": "x", "n": float("nan")}, "NaN"),
        ({"role": "user", "content": "x", "n": object()}, "not a JSON value"),
        ({"role": "robot", "content": "x"}, "unknown role"),
        (5, "the body is a int"),
        (Entry("assistant", (Thinking(text="hm"),)), "role assistant"),
        (Entry("user", (ToolResult(call_id="c", text="r"),)), "role user"),
        (Entry("system", (Text(text="be kind"),)), "no system messages"),
        (Entry("user", ()), "A7"),
    ],
)
def test_what_is_no_message_is_not_inserted(message: Any, why: str) -> None:
    conversation = read({"messages": [{"role": "user", "content": "q"}]}, "anthropic")
    with pytest.raises(WireError, match=why):
        conversation.insert(1, message)


@pytest.mark.parametrize("index", [-1, 2, 99])
def test_nothing_is_inserted_where_there_is_no_message(index: int) -> None:
    conversation = read({"messages": [{"role": "user", "content": "q"}]}, "anthropic")
    with pytest.raises(EditError, match="no message at this index"):
        conversation.insert(index, {"role": "user", "content": "x"})


def test_any_mapping_can_be_inserted() -> None:
    conversation = read({"messages": [{"role": "user", "content": "q"}]}, "openai-chat")
    edited = conversation.insert(1, MappingProxyType({"role": "user", "content": "x"}))
    assert edited.messages[1].value == {"role": "user", "content": "x"}


@pytest.mark.parametrize("outer_first", [True, False])
def test_a_result_and_a_part_of_it_are_not_replaced_at_once(outer_first: bool) -> None:
    output = [{"type": "input_text", "text": "a"}]
    items = [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": output},
    ]
    conversation = read({"input": items}, "openai-responses")
    [result] = conversation.messages[1].results
    changes: list[tuple[Block, str]] = [(result, "x"), (result.parts[0], "y")]
    with pytest.raises(EditError, match="at once"):
        conversation.replace_all(changes if outer_first else changes[::-1])


def test_a_broken_conversation_can_still_be_edited_elsewhere() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "tool", "tool_call_id": "gone", "content": "r"},
            {"role": "user", "content": "again"},
        ]
    }
    conversation = read(body, "openai-chat")
    edited = conversation.replace(conversation.messages[0].blocks[0], "Q")
    assert edited.messages[0].blocks[0].text == "Q"  # type: ignore[attr-defined]


def test_a_single_string_of_input_becomes_a_list_when_something_is_added() -> None:
    conversation = read({"model": "gpt-5", "input": "hello"}, "openai-responses")
    longer = conversation.insert(1, {"role": "user", "content": "and more"})
    assert json.loads(write(longer)) == {
        "model": "gpt-5",
        "input": [
            {"type": "message", "role": "user", "content": "hello"},
            {"role": "user", "content": "and more"},
        ],
    }
    replaced = conversation.replace(conversation.messages[0].blocks[0], "bye")
    assert json.loads(write(replaced)) == {"model": "gpt-5", "input": "bye"}


def test_gemini_does_not_lose_the_turn_before_a_call() -> None:
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
        ]
    }
    conversation = read(body, "gemini")
    with pytest.raises(EditError, match="G2"):
        conversation.drop(conversation.exchanges[0])


def test_representations_hold_no_text() -> None:
    secret = "the password is swordfish"
    body = {"messages": [{"role": "user", "content": secret}], "system": secret}
    conversation = read(body, "anthropic")
    shown = [conversation, conversation.messages[0], conversation.messages[0].blocks[0]]
    shown += [conversation.exchanges[0], conversation.system[0], conversation.frame]
    assert not any("swordfish" in repr(value) for value in shown)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses", "gemini"])
def test_an_edited_system_text_is_in_the_rest_of_the_request(dialect: str) -> None:
    requests: dict[str, Any] = {
        "anthropic": {
            "system": "old",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "a"}],
        },
        "openai-responses": {"instructions": "old", "input": [{"role": "user", "content": "a"}]},
        "gemini": {
            "systemInstruction": {"parts": [{"text": "old"}]},
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        },
    }
    conversation = read(requests[dialect], dialect)
    assert "old" in json.dumps(conversation.rest)  # read before the edit, and not afterwards
    [block] = [block for block in conversation.system if isinstance(block, Text)]
    edited = conversation.replace(block, "new")
    assert "new" in json.dumps(edited.rest)
    assert "old" not in json.dumps(edited.rest)
