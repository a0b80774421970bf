"""Check whether a source supports the exact statements of a summary.

Each id, URL, number, error and quotation of a sentence must occur in the source, and a sentence
must not assert what the source only negates: `was not successful` does not support `was
successful`. Other sentences are dropped; paraphrases are not judged. All patterns are linear, and
at most 64 statements are searched verbatim. The negations are English, with the most common German,
French and Spanish ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from holdfast.search.stems import first_letters
from holdfast.summarise.measures import Figure, ascii_digits, figure_at, number, spellings_of

# Up to two function words may separate a negation from the negated word. `Not only` and `not just`
# negate nothing.
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|without|no|neither|nor|nicht|kein(?:e[mnrs]?)?|nie|pas|jamais|nunca)"
    r"|n['’]t)(?![ ](?:only|just|merely|nur|seulement)\b)"  # noqa: RUF001
    r"(?:[ ](?:the|a|an|any|be|been|being|yet|to|so|very|longer|more|have|had|of|for|all|in|on|by"
    r"|at|up))"
    r"{0,2}[ ]([^\W\d_]{4,})",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\b(?:no|not|never|cannot|without|none|nothing|nobody|neither|nor|nicht|kein(?:e[mnrs]?)?|nie"
    r"|ohne|pas|jamais|sans|nunca|sin|fail\w*|unable|refus\w*|den(?:y|ie[sd])|reject\w*|lack\w*"
    r"|miss(?:ed|es|ing)|absent|absence|prevent\w*|avoid\w*|forb\w+|prohibit\w*|disallow\w*"
    r"|block\w*|stop(?:s|ped)?|ceas\w+|hardly|barely|rather|instead|(?:un|dis|non)\w{4,})\b"
    r"|n['’]t\b",  # noqa: RUF001
    re.IGNORECASE,
)
_DENIED_WORD = re.compile(r"[^\W\d_]{4,}")
_DENIED_LETTERS = 6
"""Number of first letters by which forms of a word match: `connect`, `connected`."""


def denied_only(source: str, sentences: Iterable[str]) -> set[str]:
    """Return the sentences that assert, without negation, what their source only negates."""
    denials = Counter(_stem(match[1]) for match in _DENIED.finditer(source))
    if not denials:
        return set()
    claims = {
        sentence: stems
        for sentence in sentences
        if not _DENYING.search(sentence)
        and (stems := {_stem(word) for word in _DENIED_WORD.findall(sentence)} & denials.keys())
    }
    if not claims:
        return set()
    claimed_stems = set().union(*claims.values())
    occurrences = Counter(
        stem for word in _DENIED_WORD.findall(source) if (stem := _stem(word)) in claimed_stems
    )
    only_denied = {stem for stem in claimed_stems if occurrences[stem] <= denials[stem]}
    return {sentence for sentence, stems in claims.items() if stems & only_denied}


def _stem(word: str) -> str:
    return first_letters(word, _DENIED_LETTERS)


_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
"""Scripts without spaces between words: a number ends with its digits, and two letters carry as
much information as a word.
"""
# A URL, a number with digit groups, or a word with the joiners of ids, paths and addresses.
_EXACT = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\"'`|]++"
    # In a table, `41,2048` is two numbers. Bounded, because each of many groups would otherwise
    # scan all following ones.
    r"|\d{1,3}(?:,\d{3}){1,12}+(?!\d)(?:\.\d++)?+"
    rf"|[^\W{_CJK}]++(?:[-./:@#\\+~][^\W{_CJK}]++)*+"
)
_JOINERS = re.compile(r"[-./:@#\\+~]")
_QUOTED = re.compile(
    r"\"([^\"\n]{3,300})\"|“([^”\n]{3,300})”|`([^`\n]{2,300})`|«([^»\n]{3,300})»"
    r"|„([^“\n]{3,300})“|「([^」\n]{2,300})」|(?<!\w)'([^'\n]{3,300})'(?!\w)"  # not an apostrophe
)
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_MARKER = re.compile(r"\s*(?:[-*•–]|\d{1,3}[.)]|#{1,6})\s+")  # noqa: RUF001
_BETWEEN = re.compile(r"((?<=[.!?…。！？])[\"'”’)\]]{0,3}\s++|\n\s*+)")  # noqa: RUF001
_WORD = re.compile(rf"[^\W\d_{_CJK}]{{4,}}")
_PAIR = re.compile(f"(?=([{_CJK}]{{2}}))")
_COMPOUND = re.compile(r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty-[a-z]{3,5}", re.IGNORECASE)
_MAX_SEARCHED = 64
"""Maximum statements searched verbatim; further ones count as unsupported."""
_STEM_LETTERS = 5
"""Number of first letters by which forms of a word match."""


class CheckedSentence(NamedTuple):
    """A sentence of a summary and the whitespace after it."""

    text: str
    gap: str


class Support(NamedTuple):
    """The supported sentences of a summary."""

    sentences: tuple[CheckedSentence, ...]
    checked: int
    unsupported: int


def supported(summary: str, source: str) -> Support:
    """Return a summary without the sentences that its source does not support."""
    sentences = list(sentences_of(summary))
    texts, source = [ascii_digits(sentence.text) for sentence in sentences], ascii_digits(source)
    claims = [list(_claims(text)) for text in texts]
    unsupported = _unsupported(set(chain.from_iterable(claims)), source)
    denied = denied_only(source, texts)
    supported_sentences = [
        sentence
        for sentence, text, stated in zip(sentences, texts, claims, strict=True)
        if unsupported.isdisjoint(stated) and text not in denied
    ]
    return Support(
        tuple(supported_sentences), len(sentences), len(sentences) - len(supported_sentences)
    )


def sentences_of(text: str) -> Iterator[CheckedSentence]:
    """Yield the sentences of a text, each with the whitespace before the next one."""
    pieces = [*_BETWEEN.split(text.strip()), ""]
    before = ""
    for sentence, gap in zip(pieces[::2], pieces[1::2], strict=False):
        closing = gap.rstrip()  # a closing quote or bracket belongs to its sentence
        sentence_text = before + sentence + closing
        before = ""
        if _MARKER.fullmatch(f"{sentence_text} ") and gap:
            before = sentence_text + gap  # `1.` starts a sentence rather than ending one
        elif sentence_text.strip():
            yield CheckedSentence(sentence_text, gap[len(closing) :])
    if before.strip():
        yield CheckedSentence(before.strip(), "")


def shared_words(summary: str, source: str) -> float:
    """Return the share of a summary's words that occur in its source; 1 if it has no words."""
    words = _stems(summary)
    return len(words & _stems(source)) / len(words) if words else 1.0


def _stems(text: str) -> set[str]:
    stems = {first_letters(word, _STEM_LETTERS) for word in _WORD.findall(text)}
    return stems if text.isascii() else stems | set(_PAIR.findall(text))


# --- statements of a sentence
# ----------------------------------------------------------------------


class _Claim(NamedTuple):
    text: str
    quoted: bool = False
    figure: Figure | None = None


def _claims(sentence: str) -> Iterator[_Claim]:
    marker = _MARKER.match(sentence)
    begin = marker.end() if marker else 0  # the marker `1.` is not a number
    for match in _QUOTED.finditer(sentence, begin):
        text = next(group for group in match.groups() if group is not None)
        yield _Claim(" ".join(text.split()).rstrip(",.;:"), quoted=True)
    for match in _EXACT.finditer(sentence, begin):
        text = match[0].rstrip(".,;:!?)]}")
        if not text or text.lower() == "one":  # `one of them` states no number
            continue
        figure = figure_at(sentence, match.start(), match.start() + len(text))
        if figure is not None:
            yield _Claim(text, figure=figure)
        elif _is_exact(text):
            yield _Claim(text)


def _is_exact(text: str) -> bool:
    """Return whether a word must not change: it has a digit, or is a name from code."""
    return (
        any(map(str.isdigit, text))
        or "://" in text
        or "@" in text
        or "_" in text
        or "\\" in text
        or text.count("/") > 1
        or _HUMP.search(text) is not None
        or _COMPOUND.fullmatch(text) is not None
    )


# --- support in the source
# -------------------------------------------------------------------------


def _unsupported(claims: set[_Claim], source: str) -> set[_Claim]:
    """Return the claims that the source does not support."""
    if not claims:
        return set()
    words, figures = _occurrences(source, claims)
    open_claims = {claim for claim in claims if not _is_supported(claim, words, figures, source)}
    # Numbers are compared by value; parts of ids and paths, and quotations, are searched verbatim.
    searchable = sorted(claim for claim in open_claims if claim.figure is None)
    if not searchable:
        return open_claims
    spaced_source = " ".join(source.split())
    return open_claims - {
        claim for claim in searchable[:_MAX_SEARCHED] if _occurs(claim, spaced_source)
    }


_Figures = dict[str, set[tuple[str, ...]]]
"""Numbers of a source, with the marks of each occurrence."""


def _occurrences(source: str, claims: set[_Claim]) -> tuple[set[str], _Figures]:
    """Return the claimed words that occur in the source, and the marks of the claimed numbers."""
    exact = {claim.text for claim in claims if not claim.quoted}
    figures: _Figures = {claim.figure.value: set() for claim in claims if claim.figure}
    figures |= {value: set() for text in exact for value in _numbers_in(text)}
    words: set[str] = set()
    for match in _EXACT.finditer(source):
        text = match[0]
        if text in exact:
            words.add(text)
        figure = figure_at(source, *match.span(), wanted=figures)
        if figure is not None:
            if figure.value in figures:
                figures[figure.value].add(figure.marks)
        elif any(map(str.isdigit, text)):
            words.update(part for part in _JOINERS.split(text) if part in exact)
            for value in _numbers_in(text):
                if value in figures:
                    figures[value].add(())
    return words, figures


def _numbers_in(text: str) -> list[str]:
    """Return the numbers joined to a word: `10-year`, `2024-03-15`."""
    return [value for part in _JOINERS.split(text) if (value := number(part)) is not None]


def _is_supported(claim: _Claim, words: set[str], figures: _Figures, source: str) -> bool:
    """Return whether the source supports a claim, verbatim or as an equal number."""
    if claim.quoted:
        return False  # searched verbatim later
    if claim.figure is not None:
        return _is_measured(claim.figure, figures[claim.figure.value], source)
    if claim.text in words:
        return True
    parts = _JOINERS.split(claim.text)
    counts = _numbers_in(claim.text)
    simple = all(part.islower() and part.isalpha() for part in parts if number(part) is None)
    return len(counts) == 1 and len(parts) > 1 and simple and bool(figures[counts[0]])


def _is_measured(figure: Figure, occurrences: set[tuple[str, ...]], source: str) -> bool:
    """Return whether a number occurs in the source with the same unit, currency or month.

    A table may state `latency_ms` once and then bare numbers. A bare number may therefore have any
    unit that the source names.
    """
    if not occurrences:
        return False
    known_marks = set(chain.from_iterable(occurrences))
    return all(
        mark in known_marks or (() in occurrences and _names(mark).search(source) is not None)
        for mark in figure.marks
    )


@cache
def _names(unit: str) -> re.Pattern[str]:
    """Return a pattern for a unit's spellings, as words or parts of `latency_ms` and `30ms`."""
    spellings = "|".join(map(re.escape, spellings_of(unit)))
    return re.compile(f"(?<![^\\W\\d_])(?:{spellings})(?![^\\W\\d_])")


def _occurs(claim: _Claim, spaced: str) -> bool:
    """Return whether a text contains the claim, but not inside a longer word or number."""
    at = spaced.find(claim.text)
    tries = 0
    while at >= 0 and tries < _MAX_SEARCHED:
        end = at + len(claim.text)
        before, after = spaced[max(0, at - 1) : at], spaced[end : end + 2]
        starts_word = not (before.isalnum() and claim.text[0].isalnum())
        continues_number = (
            after[:1] in (".", ",") and after[1:].isdigit() and claim.text[-1].isdigit()
        )
        if (
            starts_word
            and not continues_number
            and not (after[:1].isalnum() and claim.text[-1].isalnum())
        ):
            return True
        at = spaced.find(claim.text, at + 1)
        tries += 1
    return False
