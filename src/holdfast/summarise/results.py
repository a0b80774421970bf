"""The request for one summary, and the conversion of drafts into a result.

It chooses the level that a budget allows; it calls no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.condense.digest import Count, Digest, Quotation, spans_in
from holdfast.condense.spans import lines_where
from holdfast.errors import HoldfastError, ModelError, SummarizationError
from holdfast.models.opening import EXTRACTIVE
from holdfast.models.protocol import CompletionModel
from holdfast.summarise.chunks import Chunk
from holdfast.summarise.levels import (
    LADDER,
    Place,
    SummarizationLevel,
    SummarizationResult,
    level_for,
)
from holdfast.summarise.piece_summaries import SummaryDraft

SHORT = 24
"""Contents up to this many tokens are not summarised, because a summary would be longer."""


class SummaryRequest(NamedTuple):
    """A content to summarise, with the requested level and budget."""

    content: str
    tokens: int
    level: SummarizationLevel
    context: str
    budget: int | None
    ref: str


def fits_as_it_is(request: SummaryRequest) -> bool:
    """Return whether the content may stay unchanged."""
    if request.budget is not None and request.tokens > request.budget:
        return False
    return request.level is SummarizationLevel.RAW or request.tokens <= SHORT


def affordable(request: SummaryRequest) -> SummarizationLevel:
    """Return the requested level, or the first shorter level whose target is within the budget."""
    level = max(request.level, SummarizationLevel.CONDENSED, key=LADDER.index)
    if request.budget is None:
        return level
    return max(level, level_for(request.tokens, request.budget), key=LADDER.index)


def fair_shares(sizes: Sequence[int], budget: int) -> list[int]:
    """Return a fair share of a budget for each size; none lacks tokens while another has spare."""
    shares = [0] * len(sizes)
    smallest_first = sorted(range(len(sizes)), key=lambda n: (sizes[n], n))
    for served, n in enumerate(smallest_first):
        shares[n] = min(sizes[n], budget // (len(sizes) - served))
        budget -= shares[n]
    # Empty contents need nothing. If a share is less than one token, each content still gets one.
    return [max(share, 1) if not size else share for share, size in zip(shares, sizes, strict=True)]


def unchanged(request: SummaryRequest) -> SummarizationResult:
    """Return the unchanged content as a result."""
    return SummarizationResult(
        text=request.content,
        level=SummarizationLevel.RAW,
        requested_level=request.level,
        tokens_from=request.tokens,
        tokens_to=request.tokens,
        provider="",
        ref=request.ref,
    )


def result_of(
    request: SummaryRequest,
    chosen: Digest,
    *,
    level: SummarizationLevel,
    model: CompletionModel | None = None,
    all_drafts: Sequence[SummaryDraft] = (),
    last_drafts: Sequence[SummaryDraft] = (),
) -> SummarizationResult:
    """Return a digest as a result; costs cover all drafts, checks those of the last level."""
    costs = [draft.cost for draft in all_drafts]
    return SummarizationResult(
        text=chosen.text,
        level=level,
        requested_level=request.level,
        tokens_from=request.tokens,
        tokens_to=chosen.tokens,
        provider=EXTRACTIVE if model is None else model.name,
        model=next((draft.model for draft in last_drafts if draft.model), ""),
        cached=bool(all_drafts) and all(draft.cached for draft in all_drafts),
        cost=0.0 if model is None else _total_cost(costs),
        ref=request.ref,
        unsupported=sum(draft.unsupported for draft in last_drafts),
        checked=sum(draft.checked for draft in last_drafts),
        warnings=_quotation_warnings(last_drafts),
        places=tuple(
            Place(*span, quotation.where)
            for span, quotation in zip(spans_in(chosen.quotations), chosen.quotations, strict=True)
        ),
    )


def _quotation_warnings(drafts: Sequence[SummaryDraft]) -> tuple[str, ...]:
    number = sum(draft.is_quoted for draft in drafts)
    warning = f"{number} of {len(drafts)} pieces are quoted: the model made nothing usable of them"
    return (warning,) if number else ()


def _total_cost(costs: Sequence[float | None]) -> float | None:
    """Return the total cost; None if any price is unknown."""
    prices = [cost for cost in costs if cost is not None]
    return sum(prices) if len(prices) == len(costs) else None


def with_warnings(result: SummarizationResult, warnings: Sequence[str]) -> SummarizationResult:
    """Return the result with additional warnings."""
    return msgspec.structs.replace(result, warnings=(*result.warnings, *warnings))


def quotations_of(
    drafts: Sequence[SummaryDraft], pieces: Sequence[Chunk], content: str, counted: Count
) -> list[Quotation]:
    """Return the sentences of all drafts with their positions in the complete content."""
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
    """Return the error after the last provider failed, with each provider's problem."""
    problems = "; ".join(f"{error.where}: {error.what}" for error in failures)
    return SummarizationError(
        "All providers exhausted",
        where=problems or "no provider is configured",
        fix="See to the providers, or switch summarization_extractive on.",
        failures=tuple(failures),
    )


def check_budget(budget: int | None) -> None:
    """Raise if a budget leaves no room for any text."""
    if budget is not None and not budget >= 1:  # also true for NaN
        raise HoldfastError(
            "a budget of no tokens has room for nothing",
            where="target_budget",
            fix="Give at least 1, or leave the content out.",
        )
