"""Whether a source says what a summary states: its ids, URLs, numbers, errors and quotations.

support: after measures and denials. Of what a sentence states exactly, each must stand in the
source; a sentence with one that does not is dropped, for half of a lie is no better. So is one that
says what the source only denies. What is else put in other words is not judged here. A summary is
held against the very text that it was made of. Work is linear in both: the source is cut into words
once, and at most 64 statements are looked for as they are.

The patterns are in `re`, for words of any script. They are linear: what repeats without a limit is
possessive, or is bounded by what cannot be in it.

What a source only denies: `was not successful` does not bear out `was successful`. A word that a
source has nowhere but behind a `not` must not stand in a sentence that denies nothing. That finds
the lie which is a sentence of the source without its one small word, and no other: what is put in
other words is not judged. English, and the plainest words of German, French and Spanish. Linear:
each text is read once or twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from holdfast.search.stems import first_letters
from holdfast.summarise.measures import Figure, figure_at, number, plain, spellings_of

# Between a denial and what it denies may stand two words that say nothing themselves. `Not only`
# and `not just` deny nothing.
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
"""Letters by which a word is known again in another form: `connect`, `connected`."""


def denied_only(source: str, sentences: Iterable[str]) -> set[str]:
    """Those of the sentences that say, denying nothing, what their source only denies."""
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
    wanted = set().union(*claims.values())
    told = Counter(stem for word in _DENIED_WORD.findall(source) if (stem := _stem(word)) in wanted)
    only_denied = {stem for stem in wanted if told[stem] <= denials[stem]}
    return {sentence for sentence, stems in claims.items() if stems & only_denied}


def _stem(word: str) -> str:
    return first_letters(word, _DENIED_LETTERS)


_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
"""Scripts that put nothing between words, or join all to one: there a number ends where its digits
do, and two letters tell as much as a word."""
# A URL, a number with its groups, or a word with what joins words in ids, paths and addresses.
_EXACT = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\"'`|]++"
    # `41,2048` are two, in a table. Bounded: else each of many groups would look at all behind it.
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
_LOOKED_FOR = 64
"""Statements that are looked for as they stand; those of a longer list are not believed."""
_STEM_LETTERS = 5
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
    texts, source = [plain(sentence.text) for sentence in sentences], plain(source)
    claims = [list(_claims(text)) for text in texts]
    unborne = _unborne(set(chain.from_iterable(claims)), source)
    denied = denied_only(source, texts)
    standing = [
        sentence
        for sentence, text, stated in zip(sentences, texts, claims, strict=True)
        if unborne.isdisjoint(stated) and text not in denied
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
    """The share of a summary's words that its source has too; 1 if it has none."""
    words = _stems(summary)
    return len(words & _stems(source)) / len(words) if words else 1.0


def _stems(text: str) -> set[str]:
    stems = {first_letters(word, _STEM_LETTERS) for word in _WORD.findall(text)}
    return stems if text.isascii() else stems | set(_PAIR.findall(text))


# --- what a sentence states ----------------------------------------------------------------------


class _Claim(NamedTuple):
    text: str
    quoted: bool = False
    figure: Figure | None = None


def _claims(sentence: str) -> Iterator[_Claim]:
    marker = _MARKER.match(sentence)
    begin = marker.end() if marker else 0  # `1.` before a point is no number
    for match in _QUOTED.finditer(sentence, begin):
        text = next(group for group in match.groups() if group is not None)
        yield _Claim(" ".join(text.split()).rstrip(",.;:"), quoted=True)
    for match in _EXACT.finditer(sentence, begin):
        text = match[0].rstrip(".,;:!?)]}")
        if not text or text.lower() == "one":  # `one of them` counts nothing
            continue
        figure = figure_at(sentence, match.start(), match.start() + len(text))
        if figure is not None:
            yield _Claim(text, figure=figure)
        elif _is_exact(text):
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
        or _COMPOUND.fullmatch(text) is not None
    )


# --- whether the source says so ------------------------------------------------------------------


def _unborne(claims: set[_Claim], source: str) -> set[_Claim]:
    """The claims that the source does not bear out."""
    if not claims:
        return set()
    words, figures = _standing(source, claims)
    open_claims = {claim for claim in claims if not _is_borne(claim, words, figures, source)}
    # A number is there or not; parts of ids and paths, and quotations, are looked for.
    sought = sorted(claim for claim in open_claims if claim.figure is None)
    if not sought:
        return open_claims
    spaced = " ".join(source.split())
    return open_claims - {claim for claim in sought[:_LOOKED_FOR] if _stands(claim, spaced)}


_Figures = dict[str, set[tuple[str, ...]]]
"""The numbers of a source, and the marks with which each stands there."""


def _standing(source: str, claims: set[_Claim]) -> tuple[set[str], _Figures]:
    """Those of the words and of the numbers that stand in the source."""
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
    """The numbers that are joined to one word: `10-year`, `2024-03-15`."""
    return [value for part in _JOINERS.split(text) if (value := number(part)) is not None]


def _is_borne(claim: _Claim, words: set[str], figures: _Figures, source: str) -> bool:
    """Whether the source says so, in these words or, of a number, in another spelling."""
    if claim.quoted:
        return False  # looked for later
    if claim.figure is not None:
        return _is_measured(claim.figure, figures[claim.figure.value], source)
    if claim.text in words:
        return True
    parts = _JOINERS.split(claim.text)
    counts = _numbers_in(claim.text)
    simple = all(part.islower() and part.isalpha() for part in parts if number(part) is None)
    return len(counts) == 1 and len(parts) > 1 and simple and bool(figures[counts[0]])


def _is_measured(figure: Figure, standing: set[tuple[str, ...]], source: str) -> bool:
    """Whether a number stands in the source, and with the same unit, currency or month.

    A table says `latency_ms` once and then numbers alone: such a number may have any unit that the
    source names, and no number a unit that it has not.
    """
    if not standing:
        return False
    beside = set(chain.from_iterable(standing))
    return all(
        mark in beside or (() in standing and _names(mark).search(source) is not None)
        for mark in figure.marks
    )


@cache
def _names(unit: str) -> re.Pattern[str]:
    """All spellings of a unit as a word, or as a part of `latency_ms` and `30ms`."""
    spellings = "|".join(map(re.escape, spellings_of(unit)))
    return re.compile(f"(?<![^\\W\\d_])(?:{spellings})(?![^\\W\\d_])")


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
