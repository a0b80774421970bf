"""Exchanges: calls and all their results move together."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from holdfast import read
from holdfast.wire import Conversation

from .bodies import bodies


def shape(conversation: Conversation) -> list[tuple[str, int, int]]:
    return [(e.kind, e.start, e.stop) for e in conversation.exchanges]


@given(bodies)
def test_exchanges_cover_every_message_once_and_keep_calls_with_results(
    drawn: tuple[str, dict[str, Any]],
) -> None:
    conversation = read(drawn[1], drawn[0])
    covered = [m for exchange in conversation.exchanges for m in exchange.messages]
    assert covered == list(conversation.messages)
    for exchange in conversation.exchanges:
        called = [call.id for m in exchange.messages for call in m.calls]
        answered = [result.call_id for m in exchange.messages for result in m.results]
        assert sorted(called) == sorted(answered)
        assert exchange.complete


def call(*ids: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


USER: dict[str, Any] = {"role": "user", "content": "u"}


def test_a_parallel_batch_is_one_exchange() -> None:
    body = {"messages": [USER, call("a", "b"), result("b"), result("a"), call("c"), result("c")]}
    assert shape(read(body, "openai-chat")) == [("user", 0, 1), ("tool", 1, 4), ("tool", 4, 6)]


def test_reused_ids_are_paired_with_the_nearest_result() -> None:
    body = {"messages": [call("a"), result("a"), USER, call("a"), result("a")]}
    conversation = read(body, "openai-chat")
    assert shape(conversation) == [("tool", 0, 2), ("user", 2, 3), ("tool", 3, 5)]
    assert all(exchange.complete for exchange in conversation.exchanges)


def test_a_result_whose_call_is_gone_is_an_exchange_of_tools() -> None:
    assert shape(read({"messages": [USER, result("x"), USER]}, "openai-chat")) == [
        ("user", 0, 1),
        ("tool", 1, 2),
        ("user", 2, 3),
    ]
    asked = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
    assert shape(read({"messages": [asked], "max_tokens": 9}, "anthropic")) == [("tool", 0, 1)]


def test_an_unanswered_call_and_an_orphan_result_are_incomplete() -> None:
    conversation = read(
        {"messages": [result("x"), USER, call("a", "b"), result("a")]}, "openai-chat"
    )
    assert [e.complete for e in conversation.exchanges] == [False, True, False]


def test_reasoning_stays_with_the_items_it_led_to() -> None:
    items = [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": "let me see"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "r"},
        {"type": "function_call_output", "call_id": "b", "output": "r"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    conversation = read({"input": items}, "openai-responses")
    assert shape(conversation) == [("user", 0, 1), ("tool", 1, 7), ("assistant", 7, 9)]


def test_an_output_that_comes_late_keeps_what_stands_between() -> None:
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "hurry"},
        {"type": "function_call_output", "call_id": "a", "output": "r"},
    ]
    assert shape(read({"input": items}, "openai-responses")) == [("tool", 0, 3)]


def test_system_messages_stand_alone() -> None:
    body = {"messages": [{"role": "system", "content": "s"}, USER]}
    assert shape(read(body, "openai-chat")) == [("system", 0, 1), ("user", 1, 2)]
