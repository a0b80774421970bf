"""Repair mends what it can without inventing content, and says what it did."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, repair, validate
from holdfast.errors import BadJSONError
from holdfast.wire import RULES, Text, ToolResult

from .bodies import bodies, styles
from .test_rules import EXAMPLES, Example, answer, claude, use

# What only the writer of the request can mend, as it would need new content or another request.
UNMENDABLE = {
    *("A6", "A8", "A9", "A11", "A15", "A16", "A17", "A18"),
    *("B5", "B6", "B7"),
    *("C5", "C6", "C7", "G5", "R4", "R5", "S1"),
}
NAMES = {
    "$.tools[0].function.name",
    "$.tools[0].functionDeclarations[0].name",
    "$.tools[0].function_declarations[0].name",
}
EMPTY = {"$.messages", "$.contents", "$.input"}


@pytest.mark.parametrize(
    "example",
    [
        e
        for e in EXAMPLES
        if e.rule not in UNMENDABLE and e.path not in NAMES | EMPTY | {"$.contents[0].role"}
    ],
    ids=lambda e: f"{e.rule} {e.path}",
)
def test_bad_examples_are_mended(example: Example) -> None:
    dialect = example.dialect or RULES[example.rule].dialect or None
    mended = repair(example.bad, dialect, example.model)
    assert example.rule in {action.rule for action in mended.actions}
    assert all(action.message and action.path for action in mended.actions)
    # Nothing is left of a request that was nothing but its fault.
    assert {v.path for v in mended.left if v.rule == example.rule} <= EMPTY
    assert validate(mended.body, dialect, example.model) == list(mended.left)


@pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES if e.rule in UNMENDABLE and e.rule != "S1"],
    ids=lambda e: e.rule,
)
def test_what_cannot_be_mended_is_named(example: Example) -> None:
    mended = repair(example.bad, RULES[example.rule].dialect, example.model)
    assert example.rule in {v.rule for v in mended.left}


@given(bodies, styles)
def test_a_valid_body_is_left_alone(drawn: tuple[str, dict[str, Any]], style: Any) -> None:
    raw = style(drawn[1])
    mended = repair(raw, drawn[0])
    assert mended.body == raw
    assert mended.actions == ()
    assert mended.left == ()


@given(bodies, st.data())
def test_a_body_that_lost_messages_is_mended_without_new_words(
    drawn: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    dialect, body = drawn
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    gone = data.draw(st.sets(st.integers(0, len(body[key]) - 1), max_size=len(body[key]) - 1))
    body[key] = [m for n, m in enumerate(body[key]) if n not in gone]

    mended = repair(body, dialect)
    left = {v.rule for v in mended.left}
    assert left <= {"A9", "B4", "C4", "G4", "R5"}  # at worst nothing is left
    assert bool(left) <= (read(mended.body, dialect).messages == ())
    known = json.dumps(body, ensure_ascii=False)
    for message in read(mended.body, dialect).messages:
        for block in message.blocks:
            if isinstance(block, (Text, ToolResult)):
                for word in re.findall(r"\w+", block.text):
                    assert word in known


@given(bodies)
def test_repair_is_idempotent(drawn: tuple[str, dict[str, Any]]) -> None:
    dialect, body = drawn
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    body[key] = body[key][::-1]
    once = repair(body, dialect)
    twice = repair(once.body, dialect)
    assert twice.body == once.body
    assert twice.actions == ()


def test_repeated_ids_are_renamed_with_their_results() -> None:
    ask = {"role": "user", "content": "q"}
    body = claude(ask, use("t"), answer("t"), use("t", "t"), answer("t", "t"))
    mended = repair(body)
    assert mended.left == ()
    messages = json.loads(mended.body)["messages"]
    assert [[p.get("id") or p.get("tool_use_id") for p in m["content"]] for m in messages[1:]] == [
        ["t"],
        ["t"],
        ["t_2", "t_3"],
        ["t_2", "t_3"],
    ]


def test_lone_surrogates_are_replaced_and_pairs_are_kept() -> None:
    raw = rb'{"messages":[{"role":"user","content":"\ud83d\ude00 \ud83d \\ud83d \udc00\ud83d"}]}'
    mended = repair(raw, "openai-chat")
    assert json.loads(mended.body)["messages"][0]["content"] == "😀 � \\ud83d ��"
    assert [(a.rule, a.path) for a in mended.actions] == [("S2", "$.messages[0].content")]


def test_many_lone_surrogates_are_found_in_one_scan() -> None:
    raw = b'{"messages":[{"role":"user","content":"%s"}]}' % (rb"\ud83d" * 100_000)
    assert [v.path for v in validate(raw, "openai-chat")] == ["$.messages[0].content"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"role":"user","content":"a\xed\xa0\xbd"}]}',
        '{"messages":[{"role":"user","content":"a\ud83d"}]}',
    ],
    ids=["bytes", "text"],
)
def test_halves_that_are_not_escaped_are_mended_where_they_stand(body: object) -> None:
    repaired = repair(body, "openai-chat")
    assert json.loads(repaired.body)["messages"][0]["content"] == "a\ufffd"
    assert [action.path for action in repaired.actions] == ["$.messages[0].content"]


def test_keys_that_would_become_the_same_are_refused() -> None:
    with pytest.raises(BadJSONError, match="surrogates"):
        repair({"messages": [], "x": dict.fromkeys(["\ud800", "\udfff"])}, "openai-chat")


def test_a_surrogate_in_a_dictionary_is_mended_too() -> None:
    body = {"messages": [{"role": "user", "content": "x\ud83d", "k\ud83d": 1}]}
    mended = repair(body, "openai-chat")
    assert json.loads(mended.body)["messages"][0] == {"role": "user", "content": "x�", "k�": 1}


def test_untouched_messages_keep_their_bytes() -> None:
    raw = (
        b'{"messages": [ {"role":"user",  "content":"q"}, '
        b'{"role":"tool","tool_call_id":"gone","content":"r"}, '
        b'{"role": "user","content":"\\u0061"} ]}'
    )
    mended = repair(raw, "openai-chat")
    assert mended.body == (
        b'{"messages": [ {"role":"user",  "content":"q"}, {"role": "user","content":"\\u0061"} ]}'
    )


def test_a_parallel_batch_keeps_its_answered_calls() -> None:
    ask = {"role": "user", "content": "q"}
    mended = repair(claude(ask, use("a", "b"), answer("b")))
    assert [m.calls[0].id for m in read(mended.body).messages if m.calls] == ["b"]


def test_the_account_holds_no_content() -> None:
    body = {"messages": [{"role": "tool", "tool_call_id": "x", "content": "swordfish"}]}
    assert "swordfish" not in repr(repair(body, "openai-chat"))
