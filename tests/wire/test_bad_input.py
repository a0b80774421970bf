"""Bad input gets a typed error that says what, where and what to do; never anything else."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, repair, validate, write
from holdfast.errors import BadJSONError, HoldfastError, LimitError, ShapeError, WireError
from holdfast.wire import Limits, detect
from holdfast.wire.strict import parse

HEAD = b'{"model":"gpt-4o","messages":[{"role":"user","content":'
TAIL = b"}]}"
PART = "$.messages[0].content"


def deep(levels: int) -> bytes:
    return HEAD + b"[" * levels + b"]" * levels + TAIL


def keys(pair: bytes) -> bytes:
    return b",".join([pair % n for n in range(1_000_000)])


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def circular() -> dict[str, Any]:
    body: dict[str, Any] = {"messages": []}
    body["messages"].append(body)
    return body


HUGE: dict[str, Callable[[], bytes]] = {
    "50 MB": lambda: b'{"messages":[' + b" " * 50_000_000 + b"]}",
    "1,000,000 keys": lambda: b'{"messages":[],' + keys(b'"k%d":1') + b"}",
    "1,000,000 spaced keys": lambda: HEAD + b"{" + keys(b'"k%d" :1') + b"}" + TAIL,
    "1,000,000 escaped keys": lambda: HEAD + b"{" + keys(rb'"k%d\\":1') + b"}" + TAIL,
    "9,000,000 empty objects": lambda: HEAD + b"[" + b"{}," * 9_000_000 + b"{}]" + TAIL,
    "9,000,000 numbers": lambda: b'{"messages":[' + b"1," * 9_000_000 + b"1]}",
}
"""Made when they are asked for: every worker imports this module, and half of them took seconds."""

CASES: list[tuple[str, object, type[WireError], str]] = [
    ("empty", b"", BadJSONError, "$"),
    ("white space", b"  \n", BadJSONError, "$"),
    ("not JSON", b"hello", BadJSONError, "$"),
    ("cut off", HEAD + b'"hi', BadJSONError, "$.messages[0].content"),
    ("two documents", b'{"messages":[]} {}', BadJSONError, "$"),
    ("byte order mark", b'\xef\xbb\xbf{"messages":[]}', BadJSONError, "$"),
    ("NaN", HEAD + b"NaN" + TAIL, BadJSONError, "$.messages[0].content"),
    ("Infinity", HEAD + b"-Infinity" + TAIL, BadJSONError, "$.messages[0].content"),
    ("huge exponent", HEAD + b"1e999" + TAIL, BadJSONError, "$.messages[0].content"),
    ("NUL in a string", HEAD + b'"a\x00b"' + TAIL, BadJSONError, "$.messages[0].content"),
    ("NUL outside", b"\x00" + HEAD + b'"a"' + TAIL, BadJSONError, "$"),
    ("bad UTF-8", HEAD + b'"a\xff"' + TAIL, BadJSONError, "$.messages[0].content"),
    (
        "UTF-8 of a surrogate",
        HEAD + b'"\xed\xa0\x80"' + TAIL,
        BadJSONError,
        "$.messages[0].content",
    ),
    ("lone surrogate", HEAD + rb'"a\ud83d"' + TAIL, BadJSONError, "$.messages[0].content"),
    ("lone low surrogate", HEAD + rb'"\udc00b"' + TAIL, BadJSONError, "$.messages[0].content"),
    (
        "lone surrogate in text",
        HEAD.decode() + '"é\ud83d"}]}',
        BadJSONError,
        "$.messages[0].content",
    ),
    ("fault behind 20 MB", HEAD + b'"' + b"a" * 20_000_000 + b'\x00"' + TAIL, BadJSONError, PART),
    ("duplicate key", HEAD + b'"a","content":"b"' + TAIL, BadJSONError, "$.messages[0].content"),
    (
        "duplicate key, spaced",
        b'{"messages": [ {"role" : "user", "content" : [ {"type" : 1, "type":2} ]} ]}',
        BadJSONError,
        "$.messages[0].content[0].type",
    ),
    (
        "duplicate key, escaped",
        rb'{"messages":[{"role":"user","content":"x","\u0063ontent":"\u0022:"}]}',
        BadJSONError,
        "$.messages[0].content",
    ),
    ("duplicate list", b'{"messages":[],"messages":[]}', BadJSONError, "$.messages"),
    ("duplicate field", b'{"model":"a","messages":[],"model":"b"}', BadJSONError, "$.model"),
    ("100,000 deep", deep(100_000), LimitError, "$"),
    ("100,000 deep, whole", b"[" * 100_000 + b"]" * 100_000, LimitError, "$"),
    ("100,000 deep, unclosed", b'{"messages":' * 100_000, WireError, "$"),
    *((name, cache(write_body), LimitError, "$") for name, write_body in HUGE.items()),
    ("a list", b"[]", ShapeError, "$"),
    ("a number", b"12", ShapeError, "$"),
    ("null", b"null", ShapeError, "$"),
    ("no messages", b'{"model":"gpt-4o"}', ShapeError, "$.messages"),
    ("messages is an object", b'{"messages":{}}', ShapeError, "$.messages"),
    ("messages is null", b'{"messages":null}', ShapeError, "$.messages"),
    ("message is a number", b'{"messages":[1]}', ShapeError, "$.messages[0]"),
    ("no role", b'{"messages":[{"content":"x"}]}', ShapeError, "$.messages[0].role"),
    ("unknown role", b'{"messages":[{"role":"robot"}]}', ShapeError, "$.messages[0].role"),
    ("role is a list", b'{"messages":[{"role":[]}]}', ShapeError, "$.messages[0].role"),
    ("content is a number", HEAD + b"12" + TAIL, ShapeError, "$.messages[0].content"),
    (
        "calls are an object",
        b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":{}}]}',
        ShapeError,
        "$.messages[1].tool_calls",
    ),
    ("None", None, BadJSONError, "$"),
    ("a set", {1, 2}, BadJSONError, "$"),
    (
        "NaN in a dictionary",
        {"messages": [{"a": [float("nan")]}]},
        BadJSONError,
        "$.messages[0].a[0]",
    ),
    ("an object in a dictionary", {"messages": [object()]}, BadJSONError, "$.messages[0]"),
    ("bytes in a dictionary", {"messages": [{"x": b"raw"}]}, BadJSONError, "$.messages[0].x"),
    ("a number as a key", {"messages": [{1: 2}]}, BadJSONError, "$.messages[0]"),
    ("a surrogate in a dictionary", {"messages": ["\ud83d"]}, BadJSONError, "$.messages[0]"),
    ("a dictionary in itself", circular(), BadJSONError, "$.messages[0].messages"),
]


def body_of(case: object) -> object:
    return case() if callable(case) else case


@pytest.mark.parametrize(
    ("case", "kind", "where"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_read_says_what_where_and_what_to_do(
    case: object, kind: type[WireError], where: str
) -> None:
    with pytest.raises(kind) as caught:
        read(body_of(case), "openai-chat")
    assert caught.value.what
    assert caught.value.fix
    assert caught.value.where.startswith(where)
    if kind is not LimitError:
        assert caught.value.where == where or kind is WireError


def typed(reader: Callable[[Any], object], body: object) -> object:
    """Return what a reader returns, or its typed error; any other error ends the test."""
    try:
        return reader(body)
    except HoldfastError as error:
        return error


@pytest.mark.parametrize("case", [case[1] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("reader", [validate, repair, detect], ids=lambda f: f.__name__)
def test_the_other_readers_fail_with_typed_errors_only(
    reader: Callable[[object], object], case: object
) -> None:
    assert typed(reader, body_of(case)) is not None


@pytest.mark.parametrize("levels", [300, 900, 960, 980, 990, 1000, 3000, 100_000])
def test_deep_nesting_is_read_or_refused_whatever_the_interpreter_bears(levels: int) -> None:
    for body in ({"messages": [], "x": nested(levels)}, deep(levels), deep(levels).decode()):
        for reader in (read, validate, repair):
            with suppress(LimitError, BadJSONError, ShapeError):  # anything else fails the test
                reader(body, "openai-chat")
    with pytest.raises((LimitError, BadJSONError)):
        read({"messages": [], "x": nested(100_000)}, "openai-chat")


def test_an_error_names_a_place_in_other_dialects_too() -> None:
    with pytest.raises(ShapeError) as caught:
        read({"contents": [{"role": "user", "parts": "text"}]}, "gemini")
    assert caught.value.where == "$.contents[0].parts"
    with pytest.raises(ShapeError) as caught:
        read({"input": [{"type": 5}]}, "openai-responses")
    assert caught.value.where == "$.input[0].type"
    with pytest.raises(ShapeError) as caught:
        read({"messages": [{"role": "user", "content": "text"}]}, "converse")
    assert caught.value.where == "$.messages[0].content"


@pytest.mark.parametrize(
    ("dialect", "key"),
    [("openai-chat", "messages"), ("anthropic", "messages"), ("gemini", "contents"),
     ("converse", "messages"), ("cohere", "messages")],
)  # fmt: skip
def test_a_text_in_the_place_of_the_messages_is_told_as_that(dialect: str, key: str) -> None:
    """It was told as a message that is no object, which sent people to look for a message."""
    with pytest.raises(ShapeError, match="expected a list of messages, found string") as caught:
        read({key: "text"}, dialect)
    assert caught.value.where == f"$.{key}"


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(ShapeError, match="openai-chat, openai-responses, anthropic, gemini"):
        read({"messages": []}, "openai")


def test_a_fault_has_its_place_in_the_body_when_the_dialect_is_detected() -> None:
    for reader in (read, validate, repair, detect):
        with pytest.raises(BadJSONError) as caught:
            reader(b'{"messages":[{"role":"user"},{"role":"user","a":1,"a":2}]}')
        assert caught.value.where == "$.messages[1].a"


# Every level, since how much of the stack is in use differs from one runner of tests to the next.
@pytest.mark.parametrize("levels", range(850, 1000))
def test_nesting_at_the_edge_of_the_stack_is_a_limit_wherever_it_is_looked_at(levels: int) -> None:
    inner = b"[" * levels + b"]" * levels
    call = b'{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":%s}}}]}' % inner
    raw = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]},%s]}' % call
    with suppress(LimitError):  # anything else fails the test
        conversation = read(raw, "gemini")
        edited = conversation.replace(conversation.messages[0].blocks[0], "ho")
        assert write(edited) == raw.replace(b"hi", b"ho")
        assert {violation.rule for violation in validate(raw, "gemini")} == {"G6"}  # who is last
        assert validate(repair(raw, "gemini").body, "gemini") == []


def test_any_mapping_is_a_body() -> None:
    body = MappingProxyType({"messages": ({"role": "user", "content": "é"},)})
    assert write(read(body)) == '{"messages":[{"role":"user","content":"é"}]}'.encode()


def test_limits_are_the_callers_to_set() -> None:
    body = json.dumps({"messages": [], **{f"key{i}": i for i in range(200)}}).encode()
    read(body, "openai-chat", limits=Limits(max_body_bytes=len(body)))
    with pytest.raises(LimitError, match="max_body_bytes"):
        read(body, "openai-chat", limits=Limits(max_body_bytes=len(body) - 1))
    with pytest.raises(LimitError, match="keys; at most 100"):
        validate(body, "openai-chat", limits=Limits(max_keys=100))
    with pytest.raises(LimitError, match="max_body_bytes"):
        repair(body, "openai-chat", limits=Limits(max_body_bytes=10))


def test_json_in_a_string_does_not_count_as_keys() -> None:
    inner = json.dumps({f"k{i}": i for i in range(400)})
    body = {"messages": [{"role": "user", "content": inner}]}
    [message] = read(json.dumps(body).encode(), "openai-chat", limits=Limits(max_keys=100)).messages
    assert message.value["content"] == inner


def test_commas_and_brackets_in_a_string_do_not_count_as_values() -> None:
    rows = "\n".join(['"[1,2,3]",\\"{}"'] * 4000)
    body = {"messages": [{"role": "user", "content": rows}]}
    raw = json.dumps(body).encode()
    assert raw.count(b",") > 400
    read(raw, "openai-chat", limits=Limits(max_keys=100))
    with pytest.raises(LimitError, match="values"):
        read({"messages": [], "x": [1] * 401}, "openai-chat", limits=Limits(max_keys=100))


def test_of_very_many_misshapen_messages_the_first_are_named() -> None:
    found = validate({"messages": [1] * 5000}, "openai-chat")
    assert [v.path for v in found[:2]] == ["$.messages[0]", "$.messages[1]"]
    assert len(found) == 1000


def test_no_content_reaches_an_error() -> None:
    for broken in (
        b'"swordfish',
        b'"swordfish\x00"',
        b'["swordfish", NaN]',
        rb'"swordfish \ud800"',
    ):
        with pytest.raises(WireError) as caught:
            read(HEAD + broken + TAIL, "openai-chat")
        assert "swordfish" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_very_long_keys_are_shortened_in_paths() -> None:
    key = "k" * 10_000
    with pytest.raises(BadJSONError) as caught:
        read(b'{"messages":[],"%s":{"a":NaN}}' % key.encode(), "openai-chat")
    assert len(str(caught.value)) < 300


@given(st.binary(max_size=200))
def test_any_bytes_give_a_conversation_or_a_typed_error(raw: bytes) -> None:
    for reader in (read, validate, repair, detect):
        assert typed(reader, raw) is not None


def test_fewer_keys_are_read_around_the_messages_than_in_them() -> None:
    limits = Limits(max_keys=400)
    many = {f"key_{n}": n for n in range(200)}
    said = {"role": "user", "content": "hi"}
    inside = {"model": "gpt-4o", "messages": [said, {**said, "metadata": many}]}
    assert len(read(json.dumps(inside), "openai-chat", limits=limits).messages) == 2
    around = {"model": "gpt-4o", "messages": [said], "metadata": many}
    with pytest.raises(LimitError, match="object keys"):
        read(json.dumps(around), "openai-chat", limits=limits)


LONG = "x" * 1_200_000
"""Large enough for the reader that does not write a value once more to see its keys."""


@pytest.mark.parametrize(
    "text",
    [
        f'{{"a":"{LONG}","a":"{LONG}"}}',
        f'{{"a":"{LONG}","b":1,"a":1}}',
        f'{{"a":12,"b":"{LONG}","a":1}}',
        f'{{"b":1,"b":1,"a":"{LONG}"}}',
        f'{{"a":"{LONG}","c":{{"b":1,"b":2}}}}',
        f'{{"a":["{LONG}",{{"b":1,"b":1}}]}}',
        f'{{"a":"{LONG}","\\u0061":"{LONG}"}}',
    ],
    ids=("alike", "shorter", "longer", "before", "in an object", "in a list", "escaped"),
)
def test_a_key_given_twice_beside_a_long_text_is_refused(text: str) -> None:
    with pytest.raises(BadJSONError, match="same key twice"):
        parse(text.encode())


@pytest.mark.parametrize("indent", [None, 2])
def test_a_long_text_is_read_without_a_second_copy_of_it(indent: int | None) -> None:
    value = {"role": "tool", "content": LONG, "parts": [1, {"a": [2]}]}
    raw = json.dumps(value, indent=indent).encode()
    tracemalloc.start()
    try:
        assert parse(raw) == value
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.5 * len(raw)
