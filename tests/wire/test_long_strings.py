"""JSON with very long strings: the same values, spans and bytes as in one go, in small steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadJSONError
from holdfast.wire import long_strings, read, strict
from holdfast.wire.blocks import text_of
from holdfast.wire.places import head_of
from holdfast.wire.strict import sha256_of

# Half an escape, a pair of surrogates, a backslash before a quote: all that a cut could part.
TEXTS = st.lists(
    st.sampled_from(["a", '"', "\\", "\n", "\u00e9", "\u6f22", "\U0001f600", "\x00", "u", "d83d"]),
    max_size=60,
).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    """Strings are long from 16 bytes on, and are cut after 13: the same code, in test sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_strings, "_WINDOW", 16)
        patch.setattr(long_strings, "_PIECE", 13)
        patch.setattr(long_strings, "_SKELETON_SHARE", 9.0)
        yield


def outcome(reading: Any, raw: bytearray) -> Any:
    """What a reader gives; None where it refuses."""
    try:
        return reading(memoryview(raw))
    except (ValueError, msgspec.MsgspecError):
        return None


@settings(max_examples=50)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_values_are_read_as_in_one_go(value: Any, plain: bool, indent: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=plain, indent=indent).encode()
    assert long_strings.decode(memoryview(raw)) == value


@settings(max_examples=30)
@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.lists(VALUES, max_size=5))
def test_spans_are_those_of_one_go(members: dict[str, Any], elements: list[Any]) -> None:
    raw = json.dumps(members).encode()
    spans = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    assert {name: bytes(span) for name, span in long_strings.fields(memoryview(raw)).items()} == {
        name: bytes(span) for name, span in spans.items()
    }
    raw = json.dumps(elements, indent=2).encode()
    windows = long_strings.items(memoryview(raw))
    assert [json.loads(bytes(window)) for window in windows] == elements


@settings(max_examples=50)
@given(VALUES, st.data())
def test_what_is_no_json_is_none_in_steps_either(value: Any, data: st.DataObject) -> None:
    raw = bytearray(json.dumps(value).encode())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place : place + 1] = data.draw(st.sampled_from([b"", b'"', b"\\", b"\x01", b"\xff", b"{"]))
    assert outcome(long_strings.decode, raw) == outcome(msgspec.json.decode, raw)


@settings(max_examples=50)
@given(VALUES, VALUES)
def test_large_bodies_are_parsed_as_small_ones(value: Any, other: Any) -> None:
    raw = json.dumps({"a": value, "b": [other, {"c": value}]}).encode()
    expected = strict.parse(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "_LARGE_BYTES", 0)
        assert strict.parse(raw) == expected
        with pytest.raises(BadJSONError, match="the same key twice") as caught:
            strict.parse(raw.replace(b'"c"', b'"c": 1, "c"', 1))
        assert caught.value.where == "$.b[1].c"


def test_a_key_that_stands_twice_gives_the_spans_of_the_parser() -> None:
    raw = json.dumps({"a": "x" * 40, "b": 1}).replace('"b"', '"a"').encode()
    assert bytes(long_strings.fields(memoryview(raw))["a"]) == b"1"


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_in_parts_is_what_is_written_at_once(value: Any) -> None:
    assert b"".join(long_strings.write_in_parts(value)) == msgspec.json.encode(value)
    assert sha256_of(value, 10**9) == sha256_of(value, 0)


def test_no_step_takes_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that is given little at once holds the interpreter for little."""
    given_at_once: list[int] = []
    monkeypatch.setattr(long_strings, "_WINDOW", 16_384)
    monkeypatch.setattr(long_strings, "_PIECE", 262_144)
    for name in ("_decode", "_fields", "_items", "_encode"):
        real = getattr(long_strings, name)

        def noted(data: Any, real: Any = real) -> Any:
            given_at_once.append(len(data))
            return real(data)

        monkeypatch.setattr(long_strings, name, noted)
    text = '\n"\\' * 400_000
    body = {"messages": [{"role": "user", "content": text}], "model": "gpt-4o"}
    conversation = read(json.dumps(body).encode(), "openai-chat")
    assert [text_of(block) for block in conversation.messages[0].blocks] == [text]
    assert head_of(conversation)
    assert len(given_at_once) > 20
    assert max(given_at_once) <= 262_146


@settings(max_examples=50)
@given(VALUES)
def test_values_are_counted_in_steps_as_at_once(value: Any) -> None:
    raw = json.dumps(value).encode()
    at_once = strict._count_values(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "_LARGE_BYTES", 20)
        assert strict._count_values(raw) == at_once
        assert strict.holds(b"-" * 13 + raw, raw, 7, 13 + len(raw))
        assert not strict.holds(b"-" * 13 + raw, raw, 7, 12 + len(raw))
