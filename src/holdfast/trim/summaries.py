"""What a model says of folded messages: which it is asked about, and what a digest quotes of it.

A model is asked about originals, never about digests, and about each message once: a run that is
folded again brings the parts that were asked about before, and what is new in it is a part of its
own. A digest has the same room for quotations whether there are some yet or not; what has no room
in it is left out whole, for half a sentence may say the opposite.
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
"""How long quotations may be for each token: as texts have it as a rule, and ever less for those
in scripts of which a character takes a token. What is made is counted."""
_LEAST_TIMES = 2
"""What is summed up has at least so many times the tokens of a summary: of less, one would save
nothing."""
_BYTES_PER_TOKEN = 4


class _Quotable(NamedTuple):
    """A sentence, where it is in the order of the conversation, and where it can be opened."""

    place: tuple[int, int]
    text: str


def has_room(tokens: float, summary_tokens: float) -> bool:
    """Whether a run of so many tokens is long enough for its digest to have a summary."""
    return tokens >= _LEAST_TIMES * summary_tokens > 0


def parts_of(gist: Gist, bench: Bench) -> tuple[Part, ...]:
    """What of a run is summarised together: as before, with what was said since; then what is new.

    What is new must be stored under a ref of its own: from there it is summarised.
    """
    if not bench.summary_tokens or len(gist.originals) != gist.stop - gist.start:
        return tuple(gist.parts)
    parts: list[Part] = []
    at = gist.start
    for part in gist.parts:
        parts.extend(_new_part(gist, at, part.start, bench))
        told = part.told or bench.told.get(part.ref_id, ())
        parts.append(msgspec.structs.replace(part, told=told))
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
    """What models say of the parts of a fold, in so many characters, and how many sentences it is.

    The first sentence of each part comes before the second of any, those of the latest part first:
    what was said earlier is nearer to being done with. They stand in the order of the conversation.
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
    """Where a sentence comes from, in what the digest's own ref leads to.

    Written `$.3` and not `$[3]`: a digest has no bracket but its own.
    """
    shift = part.start - fold.start
    first, last = sentence.first + shift, sentence.last + shift
    return f" $.{first} to $.{last}" if last > first else f" $.{first}"


def transcript(messages: Sequence[Message]) -> list[str]:
    """What was said in messages, as texts to summarise, one for each; no line can pass for another.

    Lines of a result stand further in than those with which a message begins.
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
