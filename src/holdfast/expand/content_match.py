"""How well one content answers a question, and a quotation of the passages that do.

content_match: after asking. It searches as the option `query` does. The counts that it returns say
how much the question's terms tell in this content, so that a caller can compare several contents
with each other and with the text that a model sees already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.fields import fields
from holdfast.condense.kinds import condenser_for
from holdfast.condense.places import labelled, without_path
from holdfast.condense.quoted_lines import MARKUP, quoted_line
from holdfast.expand.asking import as_it_stands
from holdfast.expand.expansion import Count
from holdfast.expand.opened import Opened
from holdfast.privacy import Policy, apply, find
from holdfast.quoting import fenced, item
from holdfast.search.passages import hits_by_text, rank
from holdfast.search.query import Term, terms

_MOST_CANDIDATES = 3
"""Fields, and as many passages, among which the best is looked for. A line that the question
quotes counts as a field."""
_NEAR_BEST = 0.8
"""Share of the best passage's worth that another must have to be quoted beside it."""
_FIELD_SHARE = 0.3
"""The same for a field that the question names, beside passages. Over 339 questions on recorded
tool results 0.3 quotes the answer 327 times in 90 tokens; fields as passages 321 times in 158."""
_LEAST_CHARACTERS = 80
"""A shorter excerpt of a passage says nothing."""


class ContentMatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a content has to do with a question. Terms are numbered as `terms` lists them."""

    passages: int
    """Number of passages that the content has."""
    holders: tuple[int, ...]
    """For each term, the number of passages that hold it."""
    best: tuple[tuple[int, ...], ...]
    """For each of the best passages, the terms that it holds."""
    quotation: str = ""
    """The passages that answer, under their ref; empty if none does or if none fits."""
    names_field: bool = False
    """Whether the question names a field of the content as it is written, and that is quoted."""

    def __repr__(self) -> str:
        return f"<ContentMatch of {self.passages} passages, {len(self.best)} candidates>"


class MatchRules(msgspec.Struct, frozen=True, kw_only=True):
    """How the passages of a content are quoted."""

    note: str
    """Our words behind the ref."""
    max_tokens: int = 300
    privacy: Policy = "mask"


def match_content(
    ref_id: str, data: bytes, kind: str, question: str, rules: MatchRules, count: Count
) -> ContentMatch:
    """Return what a content has to do with a question.

    Raises:
        PrivacyError: The policy is to refuse, and the content holds something of that kind.
    """
    opened = Opened(data, kind)
    # Before it is cut: half of a secret is not recognised as one.
    visible = apply(rules.privacy, opened.text, find(opened.text))
    if visible is not opened.text:
        opened = Opened(visible.encode(), kind)
    condenser = condenser_for(opened.source, kind)
    passages = condenser.passages(opened.source)
    wanted = terms(question)
    named = fields(opened.source, question)[:_MOST_CANDIDATES]
    line = quoted_line(opened.source, question) if condenser.kind not in MARKUP else None
    if line is not None:
        named = [Passage(line.text, line.where)]
    ranked = [passages[each.index] for each in rank(question, passages)[:_MOST_CANDIDATES]]
    candidates = [*named, *(as_it_stands(opened, passage) for passage in ranked)]
    if not candidates:
        return ContentMatch(passages=len(passages), holders=(0,) * len(wanted), best=())
    best = _held_terms(wanted, list(map(_with_place, candidates)))
    in_best = {n for held in best for n in held}
    in_passages = hits_by_text(wanted, list(map(_with_place, passages)))
    # The path of a field may stand in no passage: these name the place of a whole object.
    holders = tuple(max(len(hits), n in in_best) for n, hits in enumerate(in_passages))
    worths = term_worths(wanted, holders, len(passages))
    scores = [sum(worths[n] for n in held) for held in best]
    # A field that the question names is the answer alone; a passage only holds it somewhere.
    least = _NEAR_BEST * max(scores)
    chosen = [n for n in range(len(named)) if scores[n] >= _FIELD_SHARE * max(scores)]
    exact = {n for n, term in enumerate(wanted) if term.exact}
    names_field = any(exact.intersection(best[n]) for n in chosen)
    chosen = chosen or [n for n, score in enumerate(scores) if score >= least]
    # The best one stands last: small models answer from what they read last.
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
    """Return how much each term tells about a passage that holds it: rare ones tell most.

    A term that stands nowhere counts as rare, for then the question is about something else. A
    quotation or a path that stands nowhere counts nothing: its words are terms of their own.
    """
    return [
        term.weight * math.log(1 + passages / (number + 0.5))
        if number
        else (0.0 if has_own_words(term) else term.weight * math.log(1 + passages / 3))
        for term, number in zip(wanted, holders, strict=True)
    ]


def has_own_words(term: Term) -> bool:
    """Return whether a term is a quotation or a path, whose words are terms of their own.

    A date, a number or an id is none: where it stands nowhere, the question is about another.
    """
    if " " in term.form:
        return term.exact
    digits = sum(character.isdigit() for character in term.form)
    return term.exact and digits < 2 and any(sign in term.form for sign in ".[/")


def _with_place(passage: Passage) -> str:
    return f"{passage.where}: {passage.text}"


def _held_terms(wanted: Sequence[Term], texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    by_term = [frozenset(hits) for hits in hits_by_text(wanted, texts)]
    return tuple(
        tuple(n for n, hits in enumerate(by_term) if at in hits) for at in range(len(texts))
    )


def _quoted(
    ref_id: str, passages: Sequence[Passage], question: str, rules: MatchRules, count: Count
) -> str:
    """Return passages under their ref within the token limit; empty if they do not fit.

    The content stands between fences, so that no line of it can pass for ours.
    """
    characters = rules.max_tokens * 4 // len(passages)
    while characters >= _LEAST_CHARACTERS:
        texts = [excerpt(without_path(each), question, characters)[0] for each in passages]
        paired = list(zip(texts, passages, strict=True))
        shown = fenced("\n".join(item(labelled(text, each.where)) for text, each in paired))
        quotation = f"[{ref_id} · {rules.note}]\n{shown}"
        if count(quotation) <= rules.max_tokens:
            return quotation
        characters = characters * 3 // 4
    return _quoted(ref_id, passages[1:], question, rules, count) if len(passages) > 1 else ""
