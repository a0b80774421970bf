"""Whether a source says what a summary states: its ids, URLs, numbers, errors and quotations.

support: after levels. Of what a sentence states exactly, each must stand in the source; a sentence
with one that does not is dropped, for half of a lie is no better. What is only paraphrased is not
judged here. A summary is held against the very text that it was made of. Work is linear in both:
the source is cut into words once, and at most 64 statements are looked for as they are.

The patterns are in `re`, for words of any script. They are linear: what repeats without a limit is
possessive, or is bounded by what cannot be in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

# A URL, a number with its groups, or a word with what joins words in ids, paths and addresses.
_EXACT = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\"'`|]++"
    r"|\d{1,3}(?:,\d{3})++(?:\.\d++)?+"
    r"|\w++(?:[-./:@#\\+~]\w++)*+"
)
_JOINERS = re.compile(r"[-./:@#\\+~]")
_QUOTED = re.compile(r"\"([^\"\n]{3,300})\"|“([^”\n]{3,300})”|`([^`\n]{2,300})`|«([^»\n]{3,300})»")
_NUMBER = re.compile(r"\d++(?:\.\d++)?")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_MARKER = re.compile(r"\s*(?:[-*•–]|\d{1,3}[.)]|#{1,6})\s+")  # noqa: RUF001
_BETWEEN = re.compile(r"((?<=[.!?…。！？])[\"'”’)\]]{0,3}\s++|\n\s*+)")  # noqa: RUF001
_WORD = re.compile(r"[^\W\d_]{4,}")
_WORDS_OF_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
_LOOKED_FOR = 64
"""Statements that are looked for as they stand; those of a longer list are not believed."""
_STEM = 5
"""Letters by which a word is known again in another form."""


class Sentence(NamedTuple):
    """A sentence of a summary, and what stands behind it."""

    text: str
    gap: str


class Support(NamedTuple):
    """What of a summary its source bears out."""

    sentences: tuple[Sentence, ...]
    checked: int
    unsupported: int


def supported(summary: str, source: str) -> Support:
    """The sentences of a summary without those that state what the source does not say."""
    sentences = list(sentences_of(summary))
    claims = [list(_claims(sentence.text)) for sentence in sentences]
    unborne = _unborne(set(chain.from_iterable(claims)), source)
    standing = [
        sentence
        for sentence, stated in zip(sentences, claims, strict=True)
        if unborne.isdisjoint(stated)
    ]
    return Support(tuple(standing), len(sentences), len(sentences) - len(standing))


def sentences_of(text: str) -> Iterator[Sentence]:
    """The sentences of a text, each with what is between it and the next."""
    pieces = [*_BETWEEN.split(text.strip()), ""]
    before = ""
    for sentence, gap in zip(pieces[::2], pieces[1::2], strict=False):
        closing = gap.rstrip()  # a quotation mark or a bracket belongs to what it closes
        whole = before + sentence + closing
        before = ""
        if _MARKER.fullmatch(f"{whole} ") and gap:
            before = whole + gap  # `1.` ends no sentence: it begins one
        elif whole.strip():
            yield Sentence(whole, gap[len(closing) :])
    if before.strip():
        yield Sentence(before.strip(), "")


def shared_words(summary: str, source: str) -> float:
    """The share of a summary's words that its source has too; 1 if it has next to none."""
    words = {word[:_STEM].lower() for word in _WORD.findall(summary)}
    if len(words) < 5:
        return 1.0
    stems = {word[:_STEM].lower() for word in _WORD.findall(source)}
    return len(words & stems) / len(words)


# --- what a sentence states ----------------------------------------------------------------------


class _Claim(NamedTuple):
    text: str
    quoted: bool = False


def _claims(sentence: str) -> Iterator[_Claim]:
    marker = _MARKER.match(sentence)
    body = sentence[marker.end() :] if marker else sentence  # `1.` before a point is no number
    for match in _QUOTED.finditer(body):
        text = next(group for group in match.groups() if group is not None)
        yield _Claim(" ".join(text.split()).rstrip(",.;:"), quoted=True)
    for match in _EXACT.finditer(body):
        text = match[0].rstrip(".,;:!?)]}")
        if text and _is_exact(text):
            yield _Claim(text)


def _is_exact(text: str) -> bool:
    """Whether a word is one that must not change: it holds a digit, or is a name of code."""
    return (
        any(map(str.isdigit, text))
        or "://" in text
        or "@" in text
        or "_" in text
        or "\\" in text
        or text.count("/") > 1
        or _HUMP.search(text) is not None
    )


# --- whether the source says so ------------------------------------------------------------------


def _unborne(claims: set[_Claim], source: str) -> set[_Claim]:
    """The claims that the source does not bear out."""
    if not claims:
        return set()
    exact = {claim.text for claim in claims if not claim.quoted}
    numbers = {number for text in exact if (number := _number(text)) is not None}
    words, values = _standing(source, exact, numbers)
    open_claims = {
        claim
        for claim in claims
        if claim.quoted or not (claim.text in words or _is_borne(claim.text, values))
    }
    # A number is there or not; parts of ids and paths, and quotations, are looked for.
    sought = sorted(claim for claim in open_claims if claim.quoted or _number(claim.text) is None)
    if not sought:
        return open_claims
    spaced = " ".join(source.split())
    return open_claims - {claim for claim in sought[:_LOOKED_FOR] if _stands(claim, spaced)}


def _standing(source: str, exact: set[str], numbers: set[str]) -> tuple[set[str], set[str]]:
    """Those of the words and of the numbers that stand in the source."""
    words: set[str] = set()
    values: set[str] = set()
    for match in _EXACT.finditer(source):
        text = match[0]
        if text in exact:
            words.add(text)
        if not any(map(str.isdigit, text)):
            value = _WORDS_OF_NUMBERS.get(text.lower())
            if value is not None:
                values.add(value)
        elif (value := _number(text)) is not None:
            values.add(value)
        else:
            parts = _JOINERS.split(text)
            words.update(part for part in parts if part in exact)
            values.update(number for part in parts if (number := _number(part)) is not None)
    return words, values & (numbers | _parts_of(exact))


def _parts_of(exact: set[str]) -> set[str]:
    parts = chain.from_iterable(map(_JOINERS.split, exact))
    return {number for part in parts if (number := _number(part)) is not None}


def _is_borne(text: str, values: set[str]) -> bool:
    """Whether a number stands there, also in another spelling, or in `10-year`."""
    number = _number(text)
    if number is not None:
        return number in values
    parts = _JOINERS.split(text)
    counts = [number for part in parts if (number := _number(part)) is not None]
    plain = all(part.islower() and part.isalpha() for part in parts if _number(part) is None)
    return len(counts) == 1 and len(parts) > 1 and plain and counts[0] in values


def _number(text: str) -> str | None:
    """A number in one spelling: `1,200.50` is 1200.5; None if the text is none."""
    plain = text.replace(",", "")
    if not _NUMBER.fullmatch(plain):
        return None
    whole, _, rest = plain.partition(".")
    rest = rest.rstrip("0")
    return f"{whole.lstrip('0') or '0'}.{rest}" if rest else whole.lstrip("0") or "0"


def _stands(claim: _Claim, spaced: str) -> bool:
    """Whether a text holds the claim, not as a part of a longer word or number."""
    at = spaced.find(claim.text)
    tries = 0
    while at >= 0 and tries < _LOOKED_FOR:
        end = at + len(claim.text)
        before, after = spaced[max(0, at - 1) : at], spaced[end : end + 2]
        whole = not (before.isalnum() and claim.text[0].isalnum())
        longer = after[:1] in (".", ",") and after[1:].isdigit() and claim.text[-1].isdigit()
        if whole and not longer and not (after[:1].isalnum() and claim.text[-1].isalnum()):
            return True
        at = spaced.find(claim.text, at + 1)
        tries += 1
    return False
