"""Digests: the sentences, rows or lines of a content that fit a number of tokens.

No model is used: everything is quoted verbatim, so nothing in a digest can be wrong, and each
quotation has its place in the content (a JSON value follows its key, as its condenser writes it).
With a question, quotations relevant to it, or to the names in the best of them, are selected;
without one, the beginnings of paragraphs, or the rows and lines with most new words. Digests are
deterministic. Work is linear: a content over a megabyte is read part by part, so that of 50 MB
only one part and the quotations are in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from holdfast.condense import text as plain_text
from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.kinds import condenser_for
from holdfast.condense.severity import alert_lines, level
from holdfast.condense.severity import rank as gravity
from holdfast.condense.source import Source
from holdfast.condense.spans import cut, lines_where
from holdfast.search.passages import rank
from holdfast.search.words import fold, is_stop_word

Count = Callable[[str], int]
"""The tokens of a text."""

_WHOLE = 1_000_000
"""Characters of a content that is condensed as a whole; a condenser uses up to 40 times as much
memory."""
_PART = 250_000
"""Characters of a part of a longer one, which is read as text: half a document is none."""
_AGAIN = 4
"""Multiple of each part's share that is ranked again, together with that of all others."""
_LEAST_AGAIN = 120
"""Tokens that a part gives at least: the one that gave none could hold the answer."""
_OWN_SHARE = 1_000
"""With a share of more tokens a part is digested by itself: it has room for what matters in it."""
_PROSE = frozenset({"text", "markdown", "html"})
"""Kinds that are quoted by sentences; all others by rows or lines."""
# Linear: the only unbounded repeat is white space after one character, and is possessive.
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]{0,3}\s++|\n\s*+")  # noqa: RUF001 Chinese
_BLANK = re.compile(r"\n[ \t\r]*+\n\s*+")
_WORD = re.compile(r"[^\W_]{2,}")
_NAME = re.compile(r"[A-Z][^\W_]{2,}|\d{3,}")
_LINES = re.compile(r"lines (\d+)-(\d+)")
_CHARACTERS = re.compile(r"characters (\d+)-(\d+)")

# The next five were chosen on a third of the multi-hop questions of benchmarks/summaries.py: at a
# quarter of the tokens 71 of 100 answers stay; without a second hop and the beginnings, 65.
_FIRST_HOP = 4
"""Sentences whose names are asked for next: most such questions are answered where one leads."""
_MOST_NAMES = 20
_OF_SECOND_HOP = 1.2
_OF_PARAGRAPH = 1.0
"""Weight of its paragraph's relevance for a sentence: `He was born in 1911` names nobody."""
_OF_BEGINNING = 0.3
"""Bonus of a first sentence: it introduces the topic of the paragraph."""
_FIRST_WORDS = 400
"""Characters of a row or line that show whether it is an error."""
_GRAVE = {3: 2.0, 2: 1.0}
"""Bonus of errors and warnings."""


class Quotation(NamedTuple):
    """A verbatim part of a content."""

    text: str
    where: str
    """Its place in source units, as `expand_ref` opens it."""
    paragraph: int
    """Sentences of one paragraph share a line."""
    place: int
    """Number of sentences before it in its paragraph."""
    tokens: int


class Digest(NamedTuple):
    """The quotations of a content, in its order."""

    text: str
    tokens: int
    quotations: tuple[Quotation, ...]
    torn: bool = False
    """Nothing fits whole: the best is cut."""

    def __repr__(self) -> str:
        return f"<Digest, {len(self.quotations)} quotations, {self.tokens} tokens>"


def digest(content: str, most: int, question: str, counted: Count) -> Digest:
    """Quote at most `most` tokens of a content."""
    if len(content) <= _WHOLE:
        quotations, prose = _quotations(content, counted)
        return choose(quotations, most, question, counted, prose=prose)
    shares = [(part, most * len(part.text) // len(content)) for part in _parts(content)]
    if min(share for _, share in shares[:-1]) > _OWN_SHARE:
        chosen = [_as_one(part, share, question, counted) for part, share in shares]
        return _joined([quotation for quotation in chosen if quotation.text], counted, most)
    candidates: list[Quotation] = []
    for part, share in shares:
        best = _of_part(part, max(_LEAST_AGAIN, _AGAIN * share), question, counted)
        first = candidates[-1].paragraph + 1 if candidates else 0
        candidates += [
            quotation._replace(paragraph=quotation.paragraph + first)
            for quotation in best.quotations
        ]
    return choose(candidates, most, question, counted, prose=True)


# --- what can be quoted --------------------------------------------------------------------------


def _quotations(content: str, counted: Count) -> tuple[list[Quotation], bool]:
    """Everything in a content that can be quoted, and whether it is prose."""
    source = Source(content.encode("utf-8", "replace"))
    condenser = condenser_for(source)
    prose = condenser.kind in _PROSE
    return _cut_up(condenser.passages(source), counted, prose=prose), prose


def _cut_up(passages: Sequence[Passage], counted: Count, *, prose: bool) -> list[Quotation]:
    """Return each sentence, row or line once: parts of a long section repeat its title."""
    quotations: list[Quotation] = []
    seen_texts: set[str] = set()
    number = 0
    for passage in passages:
        # Short paragraphs were joined to one passage, and each begins anew.
        for paragraph in _BLANK.split(passage.text) if prose else [passage.text]:
            number += 1
            place = 0
            for piece in _BETWEEN_SENTENCES.split(paragraph) if prose else [paragraph]:
                text = piece.strip()
                if text and text not in seen_texts:
                    seen_texts.add(text)
                    quotations.append(Quotation(text, passage.where, number, place, counted(text)))
                    place += 1
    return quotations


class _ContentPart(NamedTuple):
    text: str
    first_line: int
    start: int


def _parts(content: str) -> Iterator[_ContentPart]:
    """A long content in parts that end with a line, where there is one."""
    line = 1
    for start, stop in cut(content, 0, len(content), _PART, by="line"):
        text = content[start:stop]
        yield _ContentPart(text, line, start)
        line += text.count("\n")


def _of_part(part: _ContentPart, most: int, question: str, counted: Count) -> Digest:
    """Return the digest of a part, with places in the complete content."""
    source = Source(part.text.encode("utf-8", "replace"))
    quotations = _cut_up(plain_text.passages(source), counted, prose=True)
    chosen = choose(quotations, most, question, counted, prose=True)
    return chosen._replace(
        quotations=tuple(
            quotation._replace(where=_shifted(quotation.where, part))
            for quotation in chosen.quotations
        )
    )


def _shifted(where: str, part: _ContentPart) -> str:
    if lines := _LINES.fullmatch(where):
        before = part.first_line - 1
        return lines_where(int(lines[1]) + before, int(lines[2]) + before)
    if characters := _CHARACTERS.fullmatch(where):
        first, last = (int(number) + part.start for number in characters.groups())
        return f"characters {first}-{last}"
    return where


def _as_one(part: _ContentPart, most: int, question: str, counted: Count) -> Quotation:
    """The digest of a part as one quotation: half a million sentences take more than their text."""
    quoted = _of_part(part, most, question, counted)
    lines = lines_where(part.first_line, part.first_line + max(0, part.text.count("\n") - 1))
    return Quotation(quoted.text, lines, part.start, 0, quoted.tokens)


# --- what is chosen ------------------------------------------------------------------------------


def choose(
    quotations: Sequence[Quotation], most: int, question: str, counted: Count, *, prose: bool
) -> Digest:
    """Return the best quotations within `most` tokens."""
    plain = _beginnings(quotations) if prose else _news(quotations)
    bearing = _bearing(quotations, question, prose=prose) if question else [0.0] * len(quotations)
    share = _OF_BEGINNING if prose else 0.0
    weights = [
        (bears + share * by_itself, by_itself)
        for bears, by_itself in zip(bearing, plain, strict=True)
    ]
    best_first = sorted(range(len(quotations)), key=lambda n: (*(-w for w in weights[n]), n))
    chosen: list[int] = []
    room = most
    for n in best_first:
        # A line end or a space precedes each; a quotation that is too long leaves its room to
        # shorter ones.
        if quotations[n].tokens + 1 <= room:
            chosen.append(n)
            room -= quotations[n].tokens + 1
    if not chosen:
        return _torn([quotations[n] for n in best_first[:1]], most, question, counted)
    return _joined([quotations[n] for n in sorted(chosen)], counted, most)


def _joined(quotations: list[Quotation], counted: Count, most: int) -> Digest:
    """The quotations as one text; were it too long after all, without the last of them."""
    while True:
        text = text_of(quotations)
        tokens = counted(text)
        if tokens <= most or len(quotations) <= 1:
            return Digest(text, tokens, tuple(quotations), torn=tokens > most)
        # Tokens of parts and of the whole differ by a few: one or two rounds are enough.
        quotations = quotations[: -max(1, (tokens - most) * len(quotations) // tokens)]


def text_of(quotations: Sequence[Quotation]) -> str:
    """Quotations as one text: sentences of a paragraph in one line, all others in their own."""
    pieces: list[str] = []
    paragraph = -1
    for quotation in quotations:
        if pieces:
            pieces.append(" " if quotation.paragraph == paragraph else "\n")
        pieces.append(quotation.text)
        paragraph = quotation.paragraph
    return "".join(pieces)


def spans_in(quotations: Sequence[Quotation]) -> Iterator[tuple[int, int]]:
    """Where each quotation begins and ends in `text_of` all of them."""
    start = 0
    for quotation in quotations:
        yield start, start + len(quotation.text)
        start += len(quotation.text) + 1


def _torn(best: list[Quotation], most: int, question: str, counted: Count) -> Digest:
    """The part of the best quotation that bears most on the question, where nothing fits whole."""
    for quotation in best:
        characters = min(len(quotation.text), most * 6)
        while characters > 0:
            text = excerpt(quotation.text, question, characters)[0]
            tokens = counted(text)
            if 0 < tokens <= most:
                return Digest(text, tokens, (quotation._replace(text=text),), torn=True)
            characters = characters * 3 // 4
    return Digest("", 0, (), torn=bool(best))


def _beginnings(quotations: Sequence[Quotation]) -> list[float]:
    return [1 / (1 + quotation.place) for quotation in quotations]


def _news(quotations: Sequence[Quotation]) -> list[float]:
    """Return the new information per token of each quotation; errors count more."""
    seen_words: set[str] = set()
    lines = [quotation.text[:_FIRST_WORDS].replace("\n", " ") for quotation in quotations]
    # Few lines hold a word of an error: these are found all at once, and only they are weighed.
    alerting = set(alert_lines(Source("\n".join(lines).encode("utf-8", "replace"))))
    news = []
    for number, (quotation, line) in enumerate(zip(quotations, lines, strict=True), 1):
        words = set(_WORD.findall(quotation.text))
        fresh = words - seen_words
        seen_words |= fresh
        grave = _GRAVE.get(gravity(line, level(line)), 0.0) if number in alerting else 0.0
        news.append(len(fresh) / (quotation.tokens + 3) + (grave if fresh else 0.0))
    return news


def _bearing(quotations: Sequence[Quotation], question: str, *, prose: bool) -> list[float]:
    """How much each has to do with the question, and with what its best answers name."""
    bearing = _ranked(quotations, question)
    if not prose:
        return bearing
    best = sorted(range(len(bearing)), key=lambda n: (-bearing[n], n))[:_FIRST_HOP]
    question_words = set(_WORD.findall(fold(question)))
    names = dict.fromkeys(
        name
        for n in best
        if bearing[n] > 0
        for name in _NAME.findall(quotations[n].text)
        if fold(name) not in question_words and not is_stop_word(fold(name))
    )
    if not names:
        return bearing
    next_hop = _ranked(quotations, " ".join(islice(names, _MOST_NAMES)))
    return [
        first + _OF_SECOND_HOP * second for first, second in zip(bearing, next_hop, strict=True)
    ]


def _ranked(quotations: Sequence[Quotation], question: str) -> list[float]:
    """How much each sentence, and the paragraph around it, have to do with a question: 0 to 2."""
    own = _scores(question, [Passage(candidate.text, "") for candidate in quotations])
    paragraphs: dict[int, list[str]] = {}
    for quotation in quotations:
        paragraphs.setdefault(quotation.paragraph, []).append(quotation.text)
    if len(paragraphs) == len(quotations):
        return own
    around = _scores(question, [Passage(" ".join(texts), "") for texts in paragraphs.values()])
    by_number = dict(zip(paragraphs, around, strict=True))
    return [
        score + _OF_PARAGRAPH * by_number[quotation.paragraph]
        for score, quotation in zip(own, quotations, strict=True)
    ]


def _scores(question: str, passages: Sequence[Passage]) -> list[float]:
    """The rank of each passage against that of the best: 0 to 1."""
    scores = [0.0] * len(passages)
    ranked = rank(question, passages)
    most = max((match.score for match in ranked), default=1.0)
    for match in ranked:
        scores[match.index] = match.score / most
    return scores
