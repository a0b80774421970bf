"""clauses: a message taken apart into statements that may stand alone, each with its place.

clauses: before dates. Code, quotations, headings, tables and lists are left out: they say
nothing of who wrote the message. A sentence is parted where a new statement of the speaker begins
(`…, and I …`) and where a question or a request does (`…, can you …?`), for people say in one
breath what they are and what they want.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

LEAST_CHARACTERS = 20
"""Of a statement: what is shorter says nothing that stands alone."""
_MOST_CHARACTERS = 200_000
_MOST_SENTENCES = 2_000
"""Of a message that are read: what is longer was pasted, and is no statement of its sender."""
_LONGEST = 1_000
"""Of a sentence: what is longer is no prose."""
_DASH = "\u2013\u2014"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'"})
"""Written differently by phones and by keyboards; one character for one, so that places stay."""

_FENCE = re2.compile(r"^\s*(?:```|~~~)")
# Headings, quotations, tables, lists, indented code, and brackets that are all of a line.
_NO_PROSE = re2.compile(
    rf"^(?:\s*(?:#{{1,6}} |>|\||[-*+•{_DASH}] |\d+[.)] |\[[^\]]*\]\s*$|<[a-z/!])|\t| {{4}})"
)
_END = re2.compile(r"[.!?…]+[\"'”)]*(?:\s+|$)")
_ABBREVIATION = re2.compile(
    r"(?i)(?:^|[\s(.])(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|etc|no|approx|inc|ltd|jr|sr|u\.s|a\.m"
    r"|p\.m|[a-z])\.$"
)
_SPEAKER = r"(?:I|I'm|I've|I'd|I'll|my|we|we're|we've|we'll|our)"
_QUESTION = (
    r"(?:can|could|would|will|should|do|does|did|is|are|was|were|have|has)"
    r" (?:you|I|we|it|this|that|there|they|he|she|the|my)|how|what|what's|which|when|where|who|why"
    r"|any|maybe|right|ok|okay|you know|isn't|don't you"
)
_PARTING = re2.compile(
    rf"(?i)(?:[,;]|\s[-{_DASH}])\s*(?:(?:and|but|so|then|also|plus|though|yet)\s+)*"
    rf"(?:({_SPEAKER}\s)|((?:{_QUESTION})\b))"
)
# The same without a comma, where only a statement of the speaker's own can follow.
# Not with `and`: what `Ann and I did`, `I` did not do alone.
_JOINED = re2.compile(r"\s(?:but|so)\s+((?:I|I'm|I've)\s)")
_LEAD = re2.compile(
    r"(?i)^(?:(?:yeah|yes|yep|yup|no|nope|well|oh|ooh|aw|wow|so|and|but|also|plus|by the way|btw"
    r"|actually|anyway|anyways|hey|hi|hello|sure|okay|ok|haha|lol|thanks|thank you|true|definitely"
    r"|absolutely|totally|honestly|basically|i mean|you know|as for me|guess what|of course|right"
    r"|great|nice|cool|awesome|good|exactly|unfortunately|luckily|fortunately|thankfully|for sure"
    r"|in fact|speaking of which|to be honest|tbh|oh yeah|oh no|wow yeah|still|then)"
    rf"(?:,? [A-Z][a-z]+)?(?:[,!.:{_DASH}-]+\s*|\s+))+"
)


class Clause(NamedTuple):
    """A part of a message that could be a statement."""

    text: str
    """Word for word."""
    plain: str
    """The same with one kind of apostrophe, as patterns know it."""
    start: int
    """Where it stands in the message, in characters."""
    asks: bool
    """It belongs to a question, or is one."""
    first: bool
    """Its sentence begins with it."""
    last: bool
    """Its sentence ends with it."""

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


class _Cut(NamedTuple):
    end: int
    """Where the clause before ends."""
    begin: int
    asks: bool


def clauses(message: str) -> Iterator[Clause]:
    """The clauses of a message's prose, in order."""
    plain = message[:_MOST_CHARACTERS].translate(_APOSTROPHES)
    sentences = 0
    for start, line in prose_lines(plain):
        for begin, end in _sentences(line):
            sentences += 1
            if sentences > _MOST_SENTENCES:
                return
            if LEAST_CHARACTERS <= end - begin <= _LONGEST:
                yield from _parts(line[begin:end], start + begin, message)


def prose_lines(message: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of prose and their offsets; images and the like are blanked out."""
    at, fenced = 0, False
    for line in message.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip() and not _NO_PROSE.match(line):
            yield at, _without_brackets(line)
        at += len(line)


def _without_brackets(line: str) -> str:
    """Return a line of the same length in which spaces stand for brackets and their text.

    Not with RE2: its wrapper takes quadratic time where a line is not ASCII.
    """
    parts: list[str] = []
    end = 0
    while (start := line.find("[", end)) >= 0 and (stop := line.find("]", start)) >= 0:
        parts += line[end:start], " " * (stop + 1 - start)
        end = stop + 1
    return "".join([*parts, line[end:]])


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in _END.finditer(line):
        before = line[max(begin, match.start() - 12) : match.start() + 1]
        if match[0].strip() == "." and _ABBREVIATION.search(before):
            continue
        yield begin, match.end()
        begin = match.end()
    if line[begin:].strip():
        yield begin, len(line)


def _parts(sentence: str, start: int, message: str) -> Iterator[Clause]:
    """A sentence at the places where something else begins."""
    is_question = sentence.rstrip("\"'”) \n").endswith("?")
    cuts = _cuts(sentence, is_question)
    for number, cut in enumerate(cuts):
        is_last = number + 1 == len(cuts)
        end = len(sentence) if is_last else cuts[number + 1].end
        part = sentence[cut.begin : end].rstrip(f" \n,;{_DASH}-")
        lead = _LEAD.match(part)
        skipped = lead.end() if lead else 0
        skipped += len(part[skipped:]) - len(part[skipped:].lstrip())
        plain, begin = part[skipped:], start + cut.begin + skipped
        asks = cut.asks or (is_question and is_last)
        text = message[begin : begin + len(plain)]
        yield Clause(text, plain, begin, asks, first=not number, last=is_last)
        if cut.asks:  # what follows a request belongs to it
            return


def _cuts(sentence: str, is_question: bool) -> list[_Cut]:
    cuts = {0: _Cut(0, 0, asks=False)}
    for match in _PARTING.finditer(sentence):
        group = 1 if match[1] else 2
        cuts[match.start(group)] = _Cut(
            match.start(),
            match.start(group),
            asks=group == 2 and is_question,
        )
    for match in _JOINED.finditer(sentence):
        cuts.setdefault(match.start(1), _Cut(match.start(), match.start(1), asks=False))
    return sorted(cuts.values())
