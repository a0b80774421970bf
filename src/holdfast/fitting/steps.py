"""The steps of fitting, from the client's request to the bytes that are sent.

Earlier decisions are replayed with each request, byte for byte, so that the provider's prompt
cache stays valid; history is folded rarely, in one large step. Read `fit_steps` from top to
bottom: each step takes a draft and returns one, with its edits. A step that needs a content read
yields it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.fitting.cite_results import cite_arrivals, expansion_tool
from holdfast.fitting.draft import Draft
from holdfast.fitting.final_turn import cannot_fit, ended
from holdfast.fitting.fold_history import FoldResult, fold
from holdfast.fitting.found_tools import goes_on
from holdfast.fitting.in_place import shorten_in_place, shortens_in_place, uses_tools
from holdfast.fitting.measure import Measure
from holdfast.fitting.open_ahead import open_ahead, without_openings
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.reads import Steps
from holdfast.fitting.replay import take_up
from holdfast.fitting.restore import keeping, put_back
from holdfast.fitting.state import FitState, Fitted, added, untold_in
from holdfast.fitting.thinking_blocks import unbind
from holdfast.fitting.tool_directory import defer, unclaimed_tokens
from holdfast.fitting.tool_offers import (
    ask_for_usage,
    go_on_recalling,
    offer_in_time,
    plan_offer,
    takes_tool,
)
from holdfast.tokens import TokenCount
from holdfast.tokens.counter import Correction
from holdfast.wire import write
from holdfast.wire.bound_thinking import BINDING
from holdfast.wire.responses import HiddenTurn

_SHOWING = ("cite", "fold", "shorten", "open")
"""Edits that leave a visible ref. A pointer to earlier lines may show none."""


class Basis(NamedTuple):
    """Values that all steps of one request share."""

    draft: Draft
    """The request with the edits of earlier requests replayed."""
    options: FitOptions
    state: FitState | None
    """The session's last request, if this one continues it."""
    measure: Measure
    originals: Originals
    asked_count: TokenCount
    """The count of the request as the client asked it."""


def basis_of(
    body: object,
    options: FitOptions,
    state: FitState | None,
    hidden: Sequence[HiddenTurn],
    calibration: Correction | None,
) -> Basis:
    """Read a request, replay the edits of earlier ones, and count it."""
    if options.offer_expand == "never":
        options = msgspec.structs.replace(options, opens=False)
    originals = Originals(options.rules)
    draft = take_up(body, options, state, hidden, originals)
    measure = Measure.of(draft.asked, options, calibration)
    if state is not None and not goes_on(state, draft.asked, options, measure.model):
        state, draft = None, take_up(draft.asked, options, None, hidden, originals)
    # Before any citation: a cited result releases its texts, and would be parsed again.
    asked_count = measure.count(draft.asked)
    return Basis(draft, options, state, measure, originals, asked_count)


def fit_steps(basis: Basis) -> Steps[Fitted]:
    """Make a request fit; raise BudgetExceededError if it cannot be."""
    draft, options, state, measure, originals, asked_count = basis
    if options.whole:
        options, draft = keeping(options), put_back(draft, options.whole, measure)
    draft = defer(draft, options, state, measure, originals)
    unclaimed = unclaimed_tokens(draft, options, measure)
    shortens = shortens_in_place(draft, options, state)
    offers = takes_tool(draft.now) and (uses_tools(draft.asked) or not shortens)
    if not offers:
        options = msgspec.structs.replace(options, opens=False)
    opener = expansion_tool(draft.asked)[0] if options.opens else ""
    rules = msgspec.structs.replace(options.rules, opener=opener)
    options = msgspec.structs.replace(options, rules=rules)
    offer = plan_offer(draft, options, state, measure)
    if options.cites and not shortens:
        draft = yield from cite_arrivals(draft, options, measure, originals, offer.cost)
    draft, shows = offer_in_time(draft, options, state, offer)
    draft = go_on_recalling(draft, options, state)
    if shortens:
        folded = shorten_in_place(draft, measure, options, originals)
        options = msgspec.structs.replace(options, opens=False)  # its edits show no refs
    else:
        floor = state.floor if state is not None and draft.known else 0
        summaries = state.told if state is not None else {}
        folded = yield from fold(draft, measure, options, floor, originals, summaries)
        if folded.must_end and (closed := without_openings(draft)) is not draft:
            folded = yield from fold(closed, measure, options, floor, originals, summaries)
        folded = yield from open_ahead(folded, options, measure)
    final = False
    if options.ends and folded.must_end:
        last = ended(folded, measure, originals, debug=options.debug)
        final = last is not None
        folded = last or folded
    if not folded.fits:
        raise cannot_fit(folded, measure, originals)
    if draft.asked.dialect in BINDING:
        folded = unbind(folded, state, measure)
    return _fitted(
        folded,
        options,
        state,
        originals,
        limit=measure.most,
        asked_count=asked_count,
        unclaimed=unclaimed,
        final=final,
        shows=shows,
    )


def _fitted(  # noqa: PLR0913 - all that was found out, once
    folded: FoldResult,
    options: FitOptions,
    state: FitState | None,
    originals: Originals,
    *,
    limit: int,
    asked_count: TokenCount,
    unclaimed: int,
    final: bool,
    shows: bool,
) -> Fitted:
    draft = folded.draft
    has_refs = any(edit.ref_id for edit in draft.edits if edit.action in _SHOWING)
    if options.reports_usage:
        draft = ask_for_usage(draft, new=state is None)
    return Fitted(
        body=write(draft.now, state.sent if state is not None else None),
        count=folded.counted,
        limit=limit,
        edits=draft.edits,
        state=FitState(
            asked=draft.asked,
            sent=draft.now,
            origins=draft.origins,
            frame_edits=draft.frame_edits,
            floor=folded.floor,
            refs=options.opens and (shows or has_refs),
            **_awaited(draft, state),
        ),
        # Messages sent before contain only refs that were stored then.
        contents=originals.contents(added(draft.now), draft.edits),
        asked_count=asked_count,
        unclaimed=unclaimed,
        final=final,
        decisions=draft.decisions,
    )


def _awaited(draft: Draft, state: FitState | None) -> dict[str, Any]:
    """Return the outstanding summaries, and the finished ones among them."""
    summaries = state.told if state is not None and draft.known else {}
    untold = state.untold if state is not None and draft.known else ()
    if any(edit.action in ("fold", "drop") for edit in draft.edits):
        untold = untold_in(draft.now.messages)  # of 100,000 messages not with each request
    return {"untold": untold, "told": {ref: summaries[ref] for ref in untold if ref in summaries}}
