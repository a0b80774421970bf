"""Streams that only pass: what is seen of them does not depend on how their bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.responses import StreamObserver, observe_stream
from tests.wire.responses.passing_streams import (
    cohere_events,
    converse_events,
    event,
    exception,
    frame,
)
from tests.wire.responses.streams import Part, Script

SCRIPT = Script((Part("text", ("Hel", "lo: message-end.")),), input=70, output=5)
STREAMS = {
    "converse": b"".join(converse_events(SCRIPT)),
    "cohere": b"".join(cohere_events(SCRIPT)),
}
USAGE = {
    "converse": {"inputTokens": 70, "outputTokens": 5, "totalTokens": 75},
    "cohere": {"input_tokens": 70, "output_tokens": 5},
}


def watched(dialect: str, *chunks: bytes) -> StreamObserver:
    seen = observe_stream(dialect)
    for chunk in chunks:
        seen.feed(chunk)
    return seen


@given(st.sampled_from(["converse", "cohere"]), st.sets(st.integers(0, 400)))
def test_the_end_is_seen_however_the_bytes_are_cut(dialect: str, cuts: set[int]) -> None:
    stream = STREAMS[dialect]
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    seen = watched(dialect, *(stream[a:b] for a, b in pairwise(places)))
    assert (seen.ended, seen.failed, seen.usage) == (True, False, USAGE[dialect])


@given(st.sampled_from(["converse", "cohere"]), st.data())
def test_what_broke_off_has_no_end(dialect: str, data: st.DataObject) -> None:
    stream = STREAMS[dialect]
    cut = data.draw(st.integers(0, len(stream) - 1))
    assert not watched(dialect, stream[:cut]).ended


@given(st.sampled_from(["converse", "cohere"]), st.lists(st.binary(max_size=80)))
def test_junk_is_no_end_and_no_failure_of_ours(dialect: str, chunks: list[bytes]) -> None:
    assert not watched(dialect, *chunks).ended


@pytest.mark.parametrize("step", [1_000, 300_000, 10_000_000])
def test_a_frame_of_megabytes_is_counted_past(step: int) -> None:
    stream = event("contentBlockDelta", {"delta": "x" * 3_000_000}) + STREAMS["converse"]
    seen = watched("converse", *(stream[at : at + step] for at in range(0, len(stream), step)))
    assert (seen.ended, seen.usage) == (True, USAGE["converse"])


@pytest.mark.parametrize(
    "stream",
    [
        exception("throttlingException", "a bad day"),
        b"\xff" * 12,
        frame({}, b"")[:4] + b"\xff" * 8,
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_an_exception_or_what_is_no_frame_is_a_failure(stream: bytes) -> None:
    seen = watched("converse", stream, STREAMS["converse"])
    assert (seen.ended, seen.failed) == (False, True)


def test_coheres_stream_that_ends_with_an_error_is_a_failure() -> None:
    end = b'data: {"type": "message-end", "delta": {"finish_reason": "ERROR", "usage": {}}}\n\n'
    seen = watched("cohere", end)
    assert (seen.ended, seen.failed) == (False, True)
