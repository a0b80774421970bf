"""Requests parsed with the previous one: the same conversation as if parsed alone, in bounded
memory.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.errors import HoldfastError
from holdfast.surfaces.proxy import recent
from holdfast.surfaces.proxy.recent import Recent
from holdfast.wire import Conversation
from holdfast.wire.strict import Limits

LONG = "a question " * 200


def read_on(known: Recent, body: bytes) -> Conversation:
    """Parse a request as the proxy does: with the one that it continues."""
    return known.read(body, "openai-chat", before=known.before(body, "openai-chat"))


def body_of(said: list[str], **more: object) -> bytes:
    messages = [{"role": "user", "content": text} for text in said]
    return json.dumps({"model": "gpt-4o", "messages": messages, **more}).encode()


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c" * 2000]), max_size=4), max_size=12))
def test_what_is_read_does_not_depend_on_what_was_read_before(requests: list[list[str]]) -> None:
    known = Recent(Limits())
    for said in requests:
        body = body_of(said, temperature=len(said))
        made, alone = read_on(known, body), holdfast.read(body, "openai-chat")
        assert holdfast.write(made) == body
        assert made.rest == alone.rest
        assert [m.value for m in made.messages] == [m.value for m in alone.messages]


def test_only_what_was_added_is_read() -> None:
    known = Recent(Limits())
    first = read_on(known, body_of([LONG, "b"]))
    other = read_on(known, body_of([LONG, "x"]))
    second = read_on(known, body_of([LONG, "b", "c"]))
    assert second.messages[:2] == first.messages, "they compare by identity"
    assert other.messages[1] not in second.messages


def test_a_bad_request_is_refused_and_forgotten() -> None:
    known = Recent(Limits())
    read_on(known, body_of(["a"]))
    with pytest.raises(HoldfastError):
        read_on(known, body_of(["a"])[:-2])
    assert read_on(known, body_of(["a", "b"])).messages[1].value["content"] == "b"


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_MOST_BYTES", 20_000)
    known = Recent(Limits())
    for n in range(50):
        read_on(known, body_of([f"{n} " + "x" * 1000]))
        read_on(known, body_of(["s" * 1000, f"{n}"]))
        assert known._bytes == sum(map(recent._size, known._known.values()))
        assert known._bytes <= 20_000


def test_no_more_beginnings_are_kept_than_are_allowed() -> None:
    known = Recent(Limits())
    for n in range(300):
        read_on(known, body_of([f"{n} " + "x" * 1000]))
    assert len(known._known) == recent._MOST_BEGINNINGS
    assert known._bytes == sum(map(recent._size, known._known.values()))
