"""Point from a result to lines that stand above, in the place of sending them once more.

pointing: after repeats and policy, before arrival. Nothing is hidden by it: what is left out stands
in an earlier result as the model is sent that, verbatim and in a row. It depends on the messages
before the result alone, so that the same conversation gets the same; what was decided is replayed.
When a result that is pointed to gives way later, the pointer stays as it went out: it opens its own
original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from holdfast.cite import Citation, CitingRules
from holdfast.cite.remainder import Standing, remainder
from holdfast.errors import PrivacyError
from holdfast.fitting.calls import calls_before, scalars
from holdfast.fitting.policy import Arrival
from holdfast.fitting.repeats import LONGEST, Hashes, hashes, line_end, repeats
from holdfast.trim.standing import STAND, edits_of, own_of
from holdfast.wire import Message
from holdfast.wire.message import result_texts
from holdfast.wire.notes import SingleNote

LEAST_SAVED = 100
"""Tokens: our own lines take some 80, and a reader has to look up for what they stand for."""
_MOST_LINES = 100_000
_MOST_MESSAGES = 2_000
"""Of what stands before, the last first, are looked at: that takes some 3 ms."""
_LARGE = 4 * LONGEST
"""Bytes of a message that is not read again for the lines in it."""
_PLACE_CHARACTERS = 60
"""Of an argument, to tell one call from another."""


class _Above(NamedTuple):
    """A result that stands above."""

    message: int
    number: int
    """Which of the message's results."""


def pointing(
    arrival: Arrival, messages: Sequence[Message], n: int, rules: CitingRules
) -> Citation | None:
    """A result without the lines that stand above; None where that would not save enough."""
    if len(arrival.text) > LONGEST:
        return None
    places: list[_Above] = []
    earlier: list[Hashes] = []
    for place, numbers in _looked_at(messages, n):
        places.append(place)
        earlier.append(numbers)
    end = line_end(arrival.text)
    lines = arrival.text.split(end)
    runs = repeats(lines, earlier)
    if not runs:
        return None
    starts = [0, *accumulate(len(line) + len(end) for line in lines)]
    above = [
        Standing(starts[run.start], min(starts[run.stop], len(arrival.text)), _words(messages, at))
        for run in runs
        if _stands(lines[run.start : run.stop], messages, at := places[run.source], run.at)
    ]
    try:
        citation = remainder(arrival.text, above, tool=arrival.tool, rules=rules)
    except PrivacyError:
        return None  # what may not be stored is not taken out either
    saved = citation.fidelity.from_tokens - citation.fidelity.to_tokens
    return citation if saved >= LEAST_SAVED else None


def was_pointed(citation: Citation, messages: Sequence[Message]) -> bool:
    """Whether a pointer stood for this very content before: who asks once more wants to see it."""
    return any(
        edit.action == "repeat" and edit.ref_id == citation.ref_id
        for message in messages[-_MOST_MESSAGES:]
        for edit in edits_of(message)
    )


def pointed(message: Message) -> Message:
    """The client's message whose results point above; any other message itself."""
    stand = STAND.get(message)
    if stand is None or {edit.action for edit in stand.edits} != {"repeat"}:
        return message
    return own_of(message)


def _looked_at(messages: Sequence[Message], n: int) -> Iterator[tuple[_Above, Hashes]]:
    """The results before a place, the last first, with a number for each line as it is sent."""
    left = _MOST_LINES
    for place in range(n - 1, max(-1, n - 1 - _MOST_MESSAGES), -1):
        of_results = _hashes(messages[place])
        for number in range(len(of_results) - 1, -1, -1):
            left -= len(of_results[number])
            if left < 0:
                return
            yield _Above(place, number), of_results[number]


def _hashes(message: Message) -> tuple[Hashes, ...]:
    of_results = _HASHES.get(message)
    if of_results is None:
        texts = () if message.size > _LARGE else result_texts(message)
        of_results = _HASHES.put(message, tuple(hashes(text) for _, _, text in texts))
    return of_results


_HASHES: SingleNote[tuple[Hashes, ...]] = SingleNote("hashes of lines")


def _stands(lines: Sequence[str], messages: Sequence[Message], above: _Above, at: int) -> bool:
    """Whether lines really stand there, and not only others of the same hashes."""
    text = [text for _, _, text in result_texts(messages[above.message])][above.number]
    return text.split(line_end(text))[at : at + len(lines)] == lines


def _words(messages: Sequence[Message], above: _Above) -> str:
    """The result in words: its tool, and what that was asked."""
    result = list(result_texts(messages[above.message]))[above.number][0]
    calls = calls_before(messages, above.message)
    call = calls.get(result.call_id or result.name) or calls.get(result.name)
    tool = result.name or (call.name if call is not None else "") or "a tool"
    arguments = scalars(call.arguments) if call is not None else []
    asked = " ".join(max(arguments, key=len, default="").split())
    if not asked:
        return tool
    return f"{tool}: {asked[:_PLACE_CHARACTERS]}{'…' if len(asked) > _PLACE_CHARACTERS else ''}"
