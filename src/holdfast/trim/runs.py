"""Neighbouring messages of the client's as they are stored once they are folded: a JSON list.

runs: before pieces. While a fold is sought, many runs are tried that are never stored, of messages
that may be a whole body long: what such a run is called is known without joining its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from holdfast.wire import Message
from holdfast.wire.message import spans_of

_AT_ONCE = 32
"""Messages whose bytes are joined at once to be hashed."""


def listed(messages: Sequence[Message]) -> bytes:
    """Messages as a JSON list, which is how folded ones are stored."""
    return b"[" + b",".join(spans_of(messages)) + b"]"


def run_digest(messages: Sequence[Message]) -> str:
    """The SHA-256 of that list."""
    spans = list(spans_of(messages))
    summed = hashlib.sha256(b"[")
    # Some at a time: all at once would be held twice, and one by one many runs take many calls.
    for start in range(0, len(spans), _AT_ONCE):
        summed.update(b"," * (start > 0) + b",".join(spans[start : start + _AT_ONCE]))
    summed.update(b"]")
    return summed.hexdigest()
