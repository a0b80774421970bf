"""Bodies that take the place of others: whatever was read before, what is read is the same."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import count, read, write
from holdfast.engine.vendor_cache import cache_lives
from holdfast.wire import Conversation
from holdfast.wire.message import Body, Message, MessageWindow, common_prefix
from holdfast.wire.places import head_of, heads

words = st.text(alphabet='ab"\\é{', max_size=4)
marks = st.sampled_from(["", "5m", "1h"])
spoken = st.lists(st.tuples(words, marks), min_size=1, max_size=12)
gaps = st.sampled_from([",", ", ", " ,\n"])


def message_of(number: int, text: str, life: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": text or "."}
    if life:
        part["cache_control"] = {"type": "ephemeral", "ttl": life}
    return {"role": "assistant" if number % 2 else "user", "content": [part]}


def body_of(said: list[tuple[str, str]], gap: str = ",", system: str = "") -> bytes:
    messages = [message_of(n, text, life) for n, (text, life) in enumerate(said)]
    written = gap.join(json.dumps(message, separators=(",", ":")) for message in messages)
    head = f'{{"model":"claude-sonnet-4-5","max_tokens":9,"system":{json.dumps(system)},'
    return f'{head}"messages":[{written}]}}'.encode()


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Requests, each with the place of the earlier one that it is read after: some are forks."""
    requests: list[tuple[int, list[tuple[str, str]]]] = [(0, draw(spoken))]
    for n in range(1, draw(st.integers(2, 6))):
        before = draw(st.integers(0, n - 1))
        said = requests[before][1]
        kept = draw(st.sampled_from([len(said), len(said), max(0, len(said) - 2)]))
        requests.append((before, said[:kept] + draw(spoken)))
    gap, system = draw(gaps), draw(words)
    others = st.sampled_from([gap, gap, ", "]), st.sampled_from([system, system, "else"])
    return [(before, body_of(said, *map(draw, others))) for before, said in requests]


@given(histories())
def test_what_was_read_before_changes_nothing(requests: list[tuple[int, bytes]]) -> None:
    chain: list[Conversation] = []
    for before, body in requests:
        chain.append(read(body, "anthropic", previous=chain[before] if chain else None))
        assert_as_if_read_alone(chain[-1], body)
    for conversation, (_, body) in zip(chain, requests, strict=True):
        assert_as_if_read_alone(conversation, body)  # also when others were read after it


def assert_as_if_read_alone(conversation: Conversation, body: bytes) -> None:
    alone = read(body, "anthropic")
    assert write(conversation) == body
    assert [m.raw for m in conversation.messages] == [m.raw for m in alone.messages]
    assert [m.size for m in conversation.messages] == [len(m.raw) for m in alone.messages]
    assert (conversation.frame, conversation.rest) == (alone.frame, alone.rest)
    assert alone.even or not conversation.even
    assert heads(conversation) == heads(alone)
    assert head_of(conversation) == head_of(alone)
    assert cache_lives(conversation) == cache_lives(alone)
    assert count(conversation) == count(alone)


@given(histories(), st.data())
def test_what_is_spliced_is_what_would_be_joined(
    requests: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    before: Conversation | None = None
    for _, body in requests:
        asked = read(body, "anthropic")
        messages = asked.messages
        if before is not None:  # some of the messages that went out before go out again
            again = data.draw(st.integers(0, len(before.messages)))
            messages = before.messages[:again] + messages[again:]
        edited = asked.with_messages(messages)
        joined = asked.with_messages(messages)
        assert write(edited, before) == write(joined)
        before = edited


def test_a_body_makes_way_for_the_one_that_goes_on_from_it() -> None:
    said = [("a" * 100, ""), ("b" * 100, "")]
    first = read(body_of(said), "anthropic")
    window = first.messages[0].window
    longer = body_of([*said, ("c", "")])
    second = read(longer, "anthropic", previous=first)
    assert isinstance(window, MessageWindow)
    assert window.body.data is longer
    assert all(
        isinstance(message.window, MessageWindow) and message.window.body is window.body
        for message in second.messages
    )


def test_only_one_body_goes_on_from_another() -> None:
    before, one, other = b"a", b"ab", b"ac"
    body = Body(before)
    taken = [body.grow(before, one), body.grow(before, other)]
    assert taken == [True, False]
    assert body.data is one


def test_two_threads_that_go_on_from_one_request_both_keep_their_words() -> None:
    said = [(f"message {n}", "") for n in range(20)]
    for _ in range(20):
        first = read(body_of(said), "anthropic")
        bodies = [body_of([*said, (f"branch {n}" * 3, "")]) for n in range(4)]
        branches: dict[int, Conversation] = {}
        start = threading.Barrier(len(bodies))

        def go_on(n: int) -> None:
            start.wait()  # noqa: B023 - joined below
            branches[n] = read(bodies[n], "anthropic", previous=first)  # noqa: B023

        threads = [threading.Thread(target=go_on, args=(n,)) for n in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n, body in enumerate(bodies):
            assert branches[n].messages[-1].raw == read(body, "anthropic").messages[-1].raw


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_lists_have_as_many_messages_in_common_as_are_the_same(
    same: int, only_old: int, only_new: int
) -> None:
    def new(number: int) -> list[Message]:
        return list(read(body_of([("x", "")] * number), "anthropic").messages) if number else []

    shared = new(same)
    assert common_prefix([*shared, *new(only_old)], [*shared, *new(only_new)]) == same


@pytest.mark.parametrize("changed", [1, 2, 5])
def test_messages_before_a_moved_mark_are_known(changed: int) -> None:
    said = [(f"message {n}", "") for n in range(30)]
    marked = [*said[:-changed], *((text, "5m") for text, _ in said[-changed:])]
    before = read(body_of(marked), "anthropic")
    now = read(body_of([*said, ("next", "5m")]), "anthropic", previous=before)
    assert common_prefix(before.messages, now.messages) == len(said) - changed
    assert len(now.extends) >= len(said) - changed
