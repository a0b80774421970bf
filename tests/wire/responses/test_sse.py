"""Any stream, however it is cut, gives the same events, and they give back its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProviderError
from holdfast.wire.responses import Event, EventParser, write_event
from tests.wire.responses.streams import chopped

lines = st.sampled_from(
    [b"data: a", b"data:b", b"data", b"event: x", b": note", b"id: 7", b"", b"junk", b"\xff\xfe"]
)
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
streams = st.lists(st.tuples(lines, ends), max_size=25).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)
cuts = st.lists(st.integers(0, 500), max_size=12)


def parse(chunks: list[bytes]) -> list[Event]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    rest = parser.finish()
    return [*events, rest] if rest else events


def by_the_standard(stream: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The events with data, read slowly: what the standard says, line by line."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = []
    data: list[bytes] = []
    name = identity = b""
    for line in text.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                found.append((b"\n".join(data), name, identity))
            data, name, identity = [], b"", b""
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
        elif field == b"id":
            identity = value
    return [*found, (b"\n".join(data), name, identity)] if data else found


@given(streams, cuts)
def test_cuts_do_not_matter(stream: bytes, places: list[int]) -> None:
    assert parse(chopped(stream, places)) == parse([stream])


@given(streams, cuts)
def test_events_give_back_all_bytes(stream: bytes, places: list[int]) -> None:
    assert b"".join(event.raw for event in parse(chopped(stream, places))) == stream


@given(streams, st.booleans())
def test_events_are_those_of_the_standard(stream: bytes, marked: bool) -> None:
    stream = b"\xef\xbb\xbf" * marked + stream
    found = [(e.data, e.name, e.id) for e in parse([stream]) if e.data is not None]
    assert found == by_the_standard(stream)


@given(st.binary(max_size=60).filter(lambda data: b"\r" not in data), st.sampled_from([b"", b"x"]))
def test_what_is_written_is_read(data: bytes, name: bytes) -> None:
    [event] = parse([write_event(data, name)])
    assert (event.data, event.name) == (data, name)


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 200, b"data: " + b"x" * 200 + b"\n\n"])
def test_event_over_the_cap_is_refused(chunk: bytes) -> None:
    parser = EventParser(max_event_bytes=100)
    pieces = [chunk[n : n + 7] for n in range(0, len(chunk), 7)]
    with pytest.raises(ProviderError, match="100 bytes"):
        [parser.feed(piece) for piece in pieces]


def test_event_within_the_cap_is_taken_however_many_there_are() -> None:
    parser = EventParser(max_event_bytes=100)
    assert len(parser.feed(write_event(b"x" * 50) * 1000)) == 1000


def test_an_event_in_many_small_chunks_is_searched_once() -> None:
    parser = EventParser()
    searched = 0
    find = EventParser._end

    def counted(self: EventParser, window: bytes | bytearray, start: int) -> int:
        nonlocal searched
        searched += len(window) - start
        return find(self, window, start)

    EventParser._end = counted  # type: ignore[method-assign]
    try:
        for _ in range(2000):
            parser.feed(b"x" * 10)
    finally:
        EventParser._end = find  # type: ignore[method-assign]
    assert searched < 2000 * 10 * 2
