"""Promise: what is read is written back, to the byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, validate, write
from holdfast.wire import Text, ToolResult

from .bodies import any_json, bodies, styles


@given(bodies, styles)
def test_an_unedited_body_is_written_as_the_very_same_bytes(
    drawn: tuple[str, dict[str, Any]], style: Callable[[Any], bytes]
) -> None:
    dialect, body = drawn
    raw = style(body)
    assert write(read(raw, dialect)) == raw


@given(bodies)
def test_a_dictionary_is_written_as_the_same_json_value(drawn: tuple[str, dict[str, Any]]) -> None:
    dialect, body = drawn
    assert json.loads(write(read(body, dialect))) == body


@given(bodies, styles, st.data())
def test_an_edit_keeps_the_bytes_of_every_other_message(
    drawn: tuple[str, dict[str, Any]], style: Callable[[Any], bytes], data: st.DataObject
) -> None:
    dialect, body = drawn
    raw = style(body)
    conversation = read(raw, dialect)
    texts = [
        b for m in conversation.messages for b in m.blocks if isinstance(b, (Text, ToolResult))
    ]
    block = data.draw(st.sampled_from(texts))
    edited = conversation.replace(block, "something else")
    written = write(edited)

    for old, new in zip(conversation.messages, edited.messages, strict=True):
        if old is block.owner:
            assert new.raw != old.raw
        else:
            assert new is old
            assert new.raw in raw
            assert new.raw in written
    # Around the edited message even the white space stays.
    assert written.startswith(conversation.frame.head)
    assert written.endswith(conversation.frame.tail)
    before, after = json.loads(raw), json.loads(written)
    for key in before.keys() | after.keys():
        if key not in ("messages", "input", "contents"):
            assert before.get(key) == after.get(key)


@given(bodies)
def test_drawn_bodies_are_valid(drawn: tuple[str, dict[str, Any]]) -> None:
    dialect, body = drawn
    assert validate(body, dialect) == []


@given(st.dictionaries(st.text(max_size=5), any_json), styles)
def test_unknown_fields_come_back_whatever_they_hold(
    fields: dict[str, Any], style: Callable[[Any], bytes]
) -> None:
    body = fields | {"messages": [{"role": "user", "content": "hi", **fields, "tool_calls": None}]}
    body["messages"][0] |= {"role": "user", "content": "hi"}
    raw = style(body)
    conversation = read(raw, "openai-chat")
    assert write(conversation) == raw
    edited = write(conversation.replace(conversation.messages[0].blocks[0], "ho"))
    body["messages"][0]["content"] = "ho"
    assert json.loads(edited) == body


@pytest.mark.parametrize(
    "number", ["123456789012345678901234567890", "0.1000000000000000055511151231257827", "1E5"]
)
def test_numbers_beside_an_edit_keep_all_their_digits(number: str) -> None:
    raw = (
        b'{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},'
        b'{"type":"tool_use","id":"t","name":"n","input":{"x":%s}}]}]}' % number.encode()
    )
    conversation = read(raw, "anthropic")
    edited = conversation.replace(conversation.messages[0].blocks[0], "b")
    assert write(edited) == raw.replace(b'"text":"a"', b'"text":"b"')


def test_the_list_is_found_even_if_other_keys_have_its_name() -> None:
    raw = b'{"metadata":{"messages":[]},"note":"\\"messages\\": [", "messages":[]}'
    conversation = read(raw, "openai-chat")
    edited = conversation.insert(0, {"role": "user", "content": "hi"})
    assert json.loads(write(edited)) == {
        "metadata": {"messages": []},
        "note": '"messages": [',
        "messages": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize(
    "raw",
    [
        rb'{"mess\u0061ges":[{"role":"user","content":"hi"}]}',
        b' { "a,}" : "]" , "messages" : [ {"role":"user","content":"hi"} ] , "b":[{}] } ',
        b'{"metadata":[%s],"messages":[]}' % b",".join([b'{"messages":[]}'] * 50_000),
        rb'{"a\"messages\":[":"\\","messages":[{"role":"user","content":"hi"}]}',
    ],
    ids=["escaped key", "white space", "many lists of that name", "quotes in a key"],
)
def test_the_list_is_found_however_the_body_is_written(raw: bytes) -> None:
    conversation = read(raw, "openai-chat")
    assert write(conversation) == raw
    assert write(conversation.with_messages(conversation.messages)) == raw


def test_a_system_text_is_replaced_where_it_stands() -> None:
    raw = (
        b'{"system" : [{"type":"text","text":"old","x":1}], '
        b'"messages": [{"role":"user","content":"q"}]}'
    )
    conversation = read(raw, "anthropic")
    written = write(conversation.replace(conversation.system[0], "new"))
    assert json.loads(written)["system"] == [{"type": "text", "text": "new", "x": 1}]
    assert b'{"role":"user","content":"q"}' in written
