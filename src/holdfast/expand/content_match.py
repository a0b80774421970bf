"""Measure how well one content answers a question, and quote the passages that answer it.

content_match: after query. It searches like the option `query`. The returned counts show how rare
the question's terms are in this content, so that a caller can compare several contents with each
other and with the text that a model sees already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.fields import fields
from holdfast.condense.kinds import condenser_for
from holdfast.condense.places import labelled, short_place, without_path
from holdfast.condense.quoted_lines import MARKUP, asks_for_line, quoted_line
from holdfast.expand.content import OpenContent
from holdfast.expand.expansion import Count
from holdfast.expand.query import as_it_stands
from holdfast.privacy import Policy, apply, find
from holdfast.quoting import fenced, item
from holdfast.search.passages import hits_by_text, rank
from holdfast.search.query import Term, terms

_MOST_CANDIDATES = 3
"""Maximum fields, and maximum passages, among which the best is chosen. A line that the question
quotes counts as a field."""
_NEAR_BEST = 0.8
"""Minimum share of the best passage's score for another passage to be quoted too."""
_FIELD_SHARE = 0.3
"""Minimum share for a field that the question names. For 339 questions on recorded tool results 0.3
quotes the answer 327 times in 90 tokens; with fields as passages it is 321 times in 158."""
_PATH_SIGN = re.compile(r"[.\[/]")
_QUOTED_STEP = re.compile(r'\["([\w-]{1,80})"\]')
_LEAST_CHARACTERS = 80
"""Minimum characters of an excerpt."""


class ContentMatch(msgspec.Struct, frozen=True, kw_only=True):
    """How well a content matches a question. Terms are numbered in the order of `terms`."""

    passages: int
    """Number of passages that the content has."""
    holders: tuple[int, ...]
    """For each term, the number of passages that hold it."""
    best: tuple[tuple[int, ...], ...]
    """For each of the best passages, the terms that it holds."""
    quotation: str = ""
    """The answering passages under their ref; empty if there is none or none fits."""
    names_field: bool = False
    """Whether the question names a field of the content exactly, and the field is quoted."""

    def __repr__(self) -> str:
        return f"<ContentMatch of {self.passages} passages, {len(self.best)} candidates>"


class MatchRules(msgspec.Struct, frozen=True, kw_only=True):
    """How the passages of a content are quoted."""

    note: str
    """Text after the ref in the first line."""
    max_tokens: int = 300
    privacy: Policy = "mask"


def match_content(
    ref_id: str, data: bytes, kind: str, question: str, rules: MatchRules, count: Count
) -> ContentMatch:
    """Return how well a content matches a question, with a quotation.

    Raises:
        PrivacyError: The policy is to refuse, and the content holds something of that kind.
    """
    opened = OpenContent(data, kind)
    # Before it is cut, because half of a secret is not recognised.
    visible = apply(rules.privacy, opened.text, find(opened.text))
    if visible is not opened.text:
        opened = OpenContent(visible.encode(), kind)
    condenser = condenser_for(opened.source, kind)
    passages = condenser.passages(opened.source)
    query_terms = terms(question)
    named = fields(opened.source, question)[:_MOST_CANDIDATES]
    line = quoted_line(opened.source, question) if condenser.kind not in MARKUP else None
    if line is not None:
        named = [Passage(line.text, line.where)]
    ranked = [passages[each.index] for each in rank(question, passages)[:_MOST_CANDIDATES]]
    candidates = [*named, *(as_it_stands(opened, passage) for passage in ranked)]
    if not candidates:
        return ContentMatch(passages=len(passages), holders=(0,) * len(query_terms), best=())
    best = _held_terms(query_terms, list(map(_with_place, candidates)))
    in_best = {n for term_numbers in best for n in term_numbers}
    in_passages = hits_by_text(query_terms, list(map(_with_place, passages)))
    # No passage may have the path of a field: passages name the place of a complete object.
    holders = tuple(max(len(hits), n in in_best) for n, hits in enumerate(in_passages))
    worths = term_worths(query_terms, holders, len(passages))
    scores = [sum(worths[n] for n in term_numbers) for term_numbers in best]
    # A field that the question names is the answer; a passage only contains it.
    least = _NEAR_BEST * max(scores)
    chosen = [n for n in range(len(named)) if scores[n] >= _FIELD_SHARE * max(scores)]
    exact = {n for n, term in enumerate(query_terms) if term.exact}
    names_field = any(exact.intersection(best[n]) for n in chosen)
    chosen = chosen or [n for n, score in enumerate(scores) if score >= least]
    # The best one is last, because small models answer from the last text.
    chosen.sort(key=lambda n: (scores[n], -n))
    quoted = [candidates[n] for n in chosen[-_MOST_CANDIDATES:]]
    quotation = _quoted(ref_id, quoted, question, rules, count)
    return ContentMatch(
        passages=len(passages),
        holders=holders,
        best=best,
        quotation=quotation,
        names_field=names_field,
    )


def term_worths(wanted: Sequence[Term], holders: Sequence[int], passages: int) -> list[float]:
    """Return the weight of each term; rare terms have the highest weight.

    A term without any match counts as rare, because the question is then about something else. A
    quotation or a path without a match counts nothing, because its words are separate terms.
    """
    return [
        term.weight * math.log(1 + passages / (number + 0.5))
        if number
        else (0.0 if has_own_words(term) else term.weight * math.log(1 + passages / 3))
        for term, number in zip(wanted, holders, strict=True)
    ]


def has_own_words(term: Term) -> bool:
    """Return whether a term is a quotation or a path, whose words are separate terms.

    False for a date, a number or an id: without a match the question is about another one.
    """
    if " " in term.form:
        return term.exact
    first, *steps = _PATH_SIGN.split(term.form)
    # Ids are steps of paths too, as in `variants.4068787148.price`; no date begins with a letter.
    names = [first, *(step for step in steps if not (first.isalpha() and step.isdigit()))]
    digits = sum(character.isdigit() for name in names for character in name)
    return term.exact and digits < 2 and bool(steps)


def _with_place(passage: Passage) -> str:
    """Return a passage behind its place, with ids in a path as a question writes them."""
    place = _QUOTED_STEP.sub(r".\1", passage.where)
    return f"{place}: {passage.text}"


def _is_line(passage: Passage) -> bool:
    return short_place(passage.where).startswith("line ")


def _held_terms(wanted: Sequence[Term], texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    by_term = [frozenset(hits) for hits in hits_by_text(wanted, texts)]
    return tuple(
        tuple(n for n, hits in enumerate(by_term) if at in hits) for at in range(len(texts))
    )


def _quoted(
    ref_id: str, passages: Sequence[Passage], question: str, rules: MatchRules, count: Count
) -> str:
    """Return passages under their ref within the token limit; empty if they do not fit.

    Fences around the content keep its lines apart from the lines of Holdfast.
    """
    characters = rules.max_tokens * 4 // len(passages)
    while characters >= _LEAST_CHARACTERS:
        texts = [excerpt(without_path(each), question, characters)[0] for each in passages]
        # The number of a line that the question asks for would be taken for the answer.
        is_asked_line = len(passages) == 1 and asks_for_line(question)
        places = ["" if is_asked_line and _is_line(each) else each.where for each in passages]
        content = fenced("\n".join(map(item, map(labelled, texts, places))))
        quotation = f"[{ref_id} · {rules.note}]\n{content}"
        if count(quotation) <= rules.max_tokens:
            return quotation
        characters = characters * 3 // 4
    return _quoted(ref_id, passages[1:], question, rules, count) if len(passages) > 1 else ""
