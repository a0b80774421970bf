"""Split a message into clauses that may be facts, each with its place in the message.

Code, quotations, headings, tables and lists are left out: they do not describe the sender. A
sentence is split where a new statement of the speaker begins (`…, and I …`) and where a question or
a request does (`…, can you …?`), because people often put both into one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

LEAST_CHARACTERS = 20
"""Minimum length of a statement; shorter texts mean nothing on their own."""
_MOST_CHARACTERS = 200_000
_MOST_SENTENCES = 2_000
"""Maximum sentences read per message. A longer message was pasted and does not state facts about
its sender."""
_LONGEST = 1_000
"""Maximum length of a sentence; longer ones are not prose."""
_DASH = "\u2013\u2014"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'"})
"""Phones and keyboards write different apostrophes. One character replaces one, so that offsets
stay."""

_FENCE = re2.compile(r"^\s*(?:```|~~~)")
# Headings, quotations, tables, lists, indented code, and lines that are one bracket.
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
# The same without a comma, only before a statement of the speaker. Not after `and`: in `Ann and I
# did`, `I` does not begin a statement.
_JOINED = re2.compile(r"\s(?:but|so)\s+((?:I|I'm|I've)\s)")
_LEAD = re2.compile(
    r"(?i)^(?:(?:yeah|yes|yep|yup|no|nope|well|oh|ooh|aw|wow|so|and|but|also|plus|by the way|btw"
    r"|actually|anyway|anyways|hey|hi|hello|sure|okay|ok|haha|lol|thanks|thank you|true|definitely"
    r"|absolutely|totally|honestly|basically|i mean|you know|as for me|guess what|of course|right"
    r"|great|nice|cool|awesome|good|exactly|unfortunately|luckily|fortunately|thankfully|for sure"
    r"|in fact|speaking of which|to be honest|tbh|oh yeah|oh no|wow yeah|still|then)"
    rf"(?:,? [A-Z][a-z]+)?(?:[,!.:{_DASH}-]+\s*|\s+))+"
)


class MessageClause(NamedTuple):
    """A part of a message that may be a statement."""

    text: str
    """The original words."""
    plain: str
    """The same with one kind of apostrophe, which the patterns expect."""
    start: int
    """Offset in the message, in characters."""
    asks: bool
    """Whether it is a question or part of one."""
    first: bool
    """Whether it begins its sentence."""
    last: bool
    """Whether it ends its sentence."""

    @property
    def stop(self) -> int:
        """End offset in the message, exclusive."""
        return self.start + len(self.text)


class _Cut(NamedTuple):
    end: int
    """End of the clause before."""
    begin: int
    asks: bool


def split_clauses(message: str) -> Iterator[MessageClause]:
    """Yield the clauses of a message's prose, in order."""
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
    """Yield the lines of prose and their offsets, with bracketed text blanked out."""
    offset, in_fence = 0, False
    for line in message.splitlines(keepends=True):
        if _FENCE.match(line):
            in_fence = not in_fence
        elif not in_fence and line.strip() and not _NO_PROSE.match(line):
            yield offset, _without_brackets(line)
        offset += len(line)


def _without_brackets(line: str) -> str:
    """Return a line of the same length with spaces in place of brackets and their text.

    Does not use RE2: its wrapper takes quadratic time on a line that is not ASCII.
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


def _parts(sentence: str, start: int, message: str) -> Iterator[MessageClause]:
    """Yield the clauses of a sentence."""
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
        yield MessageClause(text, plain, begin, asks, first=not number, last=is_last)
        if cut.asks:  # the rest of the sentence belongs to the request
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
