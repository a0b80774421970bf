"""Reading a longer request again costs what was added, and gives what reading it whole gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, write
from holdfast.errors import BadJSONError, ShapeError
from holdfast.wire import openai_chat

from .bodies import WRITERS, any_json, scripts, styles

KEYS = {"openai-responses": "input", "gemini": "contents"}


@given(st.sampled_from(sorted(WRITERS)), scripts(), styles, st.data())
def test_an_extended_read_equals_a_whole_read(
    dialect: str, script: Any, style: Callable[[Any], bytes], data: st.DataObject
) -> None:
    body = WRITERS[dialect](script)
    key = KEYS.get(dialect, "messages")
    whole = body[key]
    cut = data.draw(st.integers(0, len(whole)))
    changed = data.draw(
        st.just({}) | st.dictionaries(st.sampled_from(["a", "z", "model"]), any_json)
    )
    previous = read(style({**body, key: whole[:cut]}), dialect)
    if data.draw(st.booleans()):
        previous.exchanges  # noqa: B018 - known exchanges are carried over, unknown ones are not
    raw = style({**body, **changed, key: whole})

    extended = read(raw, dialect, previous=previous)
    fresh = read(raw, dialect)
    assert write(extended) == raw
    assert [m.raw for m in extended.messages] == [m.raw for m in fresh.messages]
    assert extended.rest == fresh.rest
    assert extended.frame == fresh.frame
    assert [(e.kind, e.start, e.stop, e.complete) for e in extended.exchanges] == [
        (e.kind, e.start, e.stop, e.complete) for e in fresh.exchanges
    ]
    if cut and not changed:
        assert all(
            old is new for old, new in zip(previous.messages, extended.messages, strict=False)
        )


def test_known_messages_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [{"role": "user", "content": f"message {n}"} for n in range(50)]
    previous = read({"messages": messages}, "openai-chat")
    looked_at: list[object] = []
    check = openai_chat.check

    def watched(message: Any, place: Any) -> Any:
        looked_at.append(message)
        return check(message, place)

    monkeypatch.setattr(openai_chat, "check", watched)

    more = [*messages, {"role": "user", "content": "one more"}]
    assert len(read({"messages": more}, "openai-chat", previous=previous).messages) == 51
    assert len(looked_at) == 1
    # Something else changed before the list: the messages are compared, but not read again.
    other = read({"model": "x", "messages": more}, "openai-chat", previous=previous)
    assert len(other.messages) == 51
    assert len(looked_at) == 2


def test_an_error_in_what_was_added_has_its_place_in_the_whole() -> None:
    previous = read(b'{"messages":[{"role":"user","content":"a"}]}', "openai-chat")
    with pytest.raises(ShapeError) as shape:
        read(b'{"messages":[{"role":"user","content":"a"},{"role":"who"}]}', previous=previous)
    assert shape.value.where == "$.messages[1].role"
    with pytest.raises(BadJSONError) as syntax:
        read(b'{"messages":[{"role":"user","content":"a"},{"role":NaN}]}', previous=previous)
    assert syntax.value.where == "$.messages[1].role"


@pytest.mark.parametrize("joint", [b"", b" ", b",", b",,", b", , "])
def test_a_comma_too_few_or_too_many_is_found(joint: bytes) -> None:
    first, second = b'{"role":"user","content":"a"}', b'{"role":"user","content":"b"}'
    previous = read(b'{"messages":[%s]}' % first, "openai-chat")
    added = b"" if joint == b"," else second
    with pytest.raises(BadJSONError):
        read(b'{"messages":[%s%s%s]}' % (first, joint, added), previous=previous)


def test_a_body_that_goes_back_in_time_is_read_whole() -> None:
    long = b'{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}'
    short = b'{"messages":[{"role":"user","content":"a"}]}'
    assert len(read(short, "openai-chat", previous=read(long, "openai-chat")).messages) == 1


def test_the_same_body_again_is_the_same_conversation() -> None:
    raw = b'{"messages": [{"role": "user", "content": "a"}], "n": 1}'
    first = read(raw, "openai-chat")
    second = read(raw, "openai-chat", previous=first)
    assert second.messages[0] is first.messages[0]
    assert write(second) == raw


def test_another_dialect_is_not_mistaken_for_the_previous_one() -> None:
    raw = b'{"messages":[{"role":"user","content":[{"text":"a"}]}]}'
    assert read(raw, "converse", previous=read(raw, "anthropic")).dialect == "converse"


def test_tools_are_read_once_however_many_turns_go_on() -> None:
    tool = {"type": "function", "function": {"name": "read_file", "parameters": {}}}
    turns: list[dict[str, str]] = []
    before = None
    for n in range(3):
        turns += [{"role": "user", "content": f"question {n}"}]
        body = orjson.dumps({"model": "gpt-4o", "tools": [tool], "messages": turns})
        conversation = read(body, "openai-chat", previous=before)
        if before is not None:
            assert conversation.tools is before.tools
        assert [offered.name for offered in conversation.tools] == ["read_file"]
        before = conversation
    other = orjson.dumps({"model": "gpt-4o", "tools": [], "messages": turns})
    assert read(other, "openai-chat", previous=before).tools == ()
