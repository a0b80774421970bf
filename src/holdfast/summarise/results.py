"""What is wanted of a content, and what came of it, as values.

results: after asking, before summarizer. It decides which level a budget allows, and writes down by
value what was reached (X05); it asks nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.condense.spans import lines_where
from holdfast.errors import HoldfastError, ModelError, SummarizationError
from holdfast.models.digest import Count, Digest, Quotation, spans_in
from holdfast.models.opening import EXTRACTIVE
from holdfast.models.protocol import CompletionModel
from holdfast.summarise.asking import Draft
from holdfast.summarise.chunking import Chunk
from holdfast.summarise.levels import (
    LADDER,
    Place,
    SummarizationLevel,
    SummarizationResult,
    level_for,
)

SHORT = 24
"""Tokens; a content of no more is not summarised, for a summary could only be longer."""


class Wanted(NamedTuple):
    """What is wanted of a content."""

    content: str
    tokens: int
    level: SummarizationLevel
    context: str
    budget: int | None
    ref: str


def fits_as_it_is(wanted: Wanted) -> bool:
    """Whether nothing has to be done, or nothing can be."""
    if wanted.budget is not None and wanted.tokens > wanted.budget:
        return False
    return wanted.level is SummarizationLevel.RAW or wanted.tokens <= SHORT


def affordable(wanted: Wanted) -> SummarizationLevel:
    """The level that is wanted, or the first tighter one that aims at no more than the budget."""
    level = max(wanted.level, SummarizationLevel.CONDENSED, key=LADDER.index)
    if wanted.budget is None:
        return level
    return max(level, level_for(wanted.tokens, wanted.budget), key=LADDER.index)


def fair_shares(sizes: Sequence[int], budget: int) -> list[int]:
    """A share of a budget for each size: none has less than it needs while another has more."""
    shares = [0] * len(sizes)
    smallest_first = sorted(range(len(sizes)), key=lambda n: (sizes[n], n))
    for waiting, n in enumerate(smallest_first):
        shares[n] = min(sizes[n], budget // (len(sizes) - waiting))
        budget -= shares[n]
    # An empty content needs nothing; where all others have less than a token, nobody is served.
    return [max(share, 1) if not size else share for share, size in zip(shares, sizes, strict=True)]


def unchanged(wanted: Wanted) -> SummarizationResult:
    """The content as it is."""
    return SummarizationResult(
        text=wanted.content,
        level=SummarizationLevel.RAW,
        requested_level=wanted.level,
        tokens_from=wanted.tokens,
        tokens_to=wanted.tokens,
        provider="",
        ref=wanted.ref,
    )


def result_of(
    wanted: Wanted,
    quoted: Digest,
    *,
    level: SummarizationLevel,
    model: CompletionModel | None = None,
    asked: Sequence[Draft] = (),
    last: Sequence[Draft] = (),
) -> SummarizationResult:
    """What was made: of all drafts that were asked for, those of the last level are told."""
    costs = [draft.cost for draft in asked]
    return SummarizationResult(
        text=quoted.text,
        level=level,
        requested_level=wanted.level,
        tokens_from=wanted.tokens,
        tokens_to=quoted.tokens,
        provider=EXTRACTIVE if model is None else model.name,
        model=next((draft.model for draft in last if draft.model), ""),
        cached=bool(asked) and all(draft.cached for draft in asked),
        cost=0.0 if model is None else _summed(costs),
        ref=wanted.ref,
        unsupported=sum(draft.unsupported for draft in last),
        checked=sum(draft.checked for draft in last),
        warnings=_quoted_instead(last),
        places=tuple(
            Place(*span, quotation.where)
            for span, quotation in zip(spans_in(quoted.quotations), quoted.quotations, strict=True)
        ),
    )


def _quoted_instead(drafts: Sequence[Draft]) -> tuple[str, ...]:
    number = sum(draft.quoted for draft in drafts)
    told = f"{number} of {len(drafts)} pieces are quoted: the model made nothing usable of them"
    return (told,) if number else ()


def _summed(costs: Sequence[float | None]) -> float | None:
    """What all calls cost; None if nobody knows the price of one of them."""
    prices = [cost for cost in costs if cost is not None]
    return sum(prices) if len(prices) == len(costs) else None


def with_warnings(result: SummarizationResult, warnings: Sequence[str]) -> SummarizationResult:
    """The same with further warnings."""
    return msgspec.structs.replace(result, warnings=(*result.warnings, *warnings))


def quotations_of(
    drafts: Sequence[Draft], pieces: Sequence[Chunk], content: str, counted: Count
) -> list[Quotation]:
    """The sentences of all drafts, with their places in the whole content."""
    quotations = []
    line, paragraph, read = 1, 0, 0
    for draft, chunk in zip(drafts, pieces, strict=True):
        line += content.count("\n", read, chunk.start)
        read = chunk.start
        for sentence in draft.lines:
            where = lines_where(line + sentence.first, line + sentence.last)
            tokens = counted(sentence.text)
            quotations.append(Quotation(sentence.text, where, paragraph, 0, tokens))
            paragraph += "\n" in sentence.gap
        paragraph += 1
    return quotations


def exhausted(failures: Sequence[ModelError]) -> SummarizationError:
    """What is raised when nobody is left to ask; it says what each provider's last word was."""
    told = "; ".join(f"{error.where}: {error.what}" for error in failures)
    return SummarizationError(
        "All providers exhausted",
        where=told or "no provider is configured",
        fix="See to the providers, or switch summarization_extractive on.",
        failures=tuple(failures),
    )


def check_budget(budget: int | None) -> None:
    """Raise if nothing at all could be said."""
    if budget is not None and not budget >= 1:  # which NaN is not
        raise HoldfastError(
            "a budget of no tokens has room for nothing",
            where="target_budget",
            fix="Give at least 1, or leave the content out.",
        )
