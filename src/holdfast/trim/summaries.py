"""Models' summaries of folded messages: the parts to summarise, and the quotations in a digest.

A model summarises originals, never digests, and each message once: a run that is folded again
keeps its earlier parts, and new messages become a separate part. A digest reserves the same room
for quotations with or without a summary; sentences beyond the room are omitted, because half a
sentence may mean the opposite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from holdfast.quoting import indented
from holdfast.trim.excerpts import quote
from holdfast.trim.gists import Gist
from holdfast.trim.pieces import Bench
from holdfast.trim.provenance import Fold, Part, Sentence
from holdfast.wire import Message, Text, ToolCall, ToolResult

CHARACTERS_PER_TOKEN = (3, 2, 1)
"""Maximum characters of quotations for each token: the usual rate, then lower ones for scripts
with a token per character. The result is counted."""
_LEAST_TIMES = 2
"""A part has at least this many times the tokens of a summary: for less, one would save nothing."""
_BYTES_PER_TOKEN = 4


class _Quotable(NamedTuple):
    """A sentence, where it is in the order of the conversation, and where it can be opened."""

    place: tuple[int, int]
    text: str


def has_room(tokens: float, summary_tokens: float) -> bool:
    """Return whether a run is long enough for its digest to have a summary."""
    return tokens >= _LEAST_TIMES * summary_tokens > 0


def parts_of(gist: Gist, bench: Bench) -> tuple[Part, ...]:
    """Return the parts of a run to summarise together: earlier ones, extended, then new ones.

    A new part must be stored under its own ref, from which it is summarised.
    """
    if not bench.summary_tokens or len(gist.originals) != gist.stop - gist.start:
        return tuple(gist.parts)
    parts: list[Part] = []
    at = gist.start
    for part in gist.parts:
        parts.extend(_new_part(gist, at, part.start, bench))
        summaries = part.told or bench.told.get(part.ref_id, ())
        parts.append(msgspec.structs.replace(part, told=summaries))
        at = part.stop
    parts.extend(_new_part(gist, at, gist.stop, bench))
    return tuple(parts)


def _new_part(gist: Gist, start: int, stop: int, bench: Bench) -> Iterator[Part]:
    originals = gist.originals[start - gist.start : stop - gist.start]
    tokens = sum(message.size for message in originals) / _BYTES_PER_TOKEN
    if has_room(tokens, bench.summary_tokens):
        ref = bench.keep_run(originals, tokens)
        if ref:
            yield Part(start, stop, ref)


def quotations(fold: Fold, most: int, *, opens: bool) -> tuple[str, int]:
    """Return the summaries of a fold's parts, within `most` characters, and their sentences.

    The first sentence of each part precedes the second of any, the latest part first, because
    earlier messages are more likely to be settled. They are in the order of the conversation.
    """
    chosen: list[_Quotable] = []
    for rank, sentences in enumerate(zip_longest(*(part.told for part in reversed(fold.parts)))):
        for part, sentence in zip(reversed(fold.parts), sentences, strict=True):
            if sentence is None:
                continue
            text = quote(sentence.text, len(sentence.text))
            if opens:
                text += _path(sentence, part, fold)
            if len(text) + 2 <= most:
                chosen.append(_Quotable((part.start, rank), text))
                most -= len(text) + 2
    return "; ".join(quotable.text for quotable in sorted(chosen)), len(chosen)


def _path(sentence: Sentence, part: Part, fold: Fold) -> str:
    """Return the source of a sentence, within the content of the digest's own ref.

    Written `$.3` and not `$[3]`: a digest has no brackets except its own.
    """
    shift = part.start - fold.start
    first, last = sentence.first + shift, sentence.last + shift
    return f" $.{first} to $.{last}" if last > first else f" $.{first}"


def transcript(messages: Sequence[Message]) -> list[str]:
    """Return the text of messages for a summary, one each; no line can imitate another.

    Lines of a result are indented further than the first line of a message.
    """
    return ["\n".join(map(indented, _lines(message))) for message in messages]


def _lines(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield f"{message.role} calls {block.name}: {block.arguments}"
        elif isinstance(block, ToolResult):
            yield f"result: {block.text}"
        elif isinstance(block, Text):
            yield f"{message.role}: {block.text}"
