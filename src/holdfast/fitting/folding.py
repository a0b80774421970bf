"""Make a request smaller that is too large: rarely, and in one large step.

folding: after measure and batch, before fit. First the older results give way to citations, all at
once; if that is not enough, the oldest history is folded. The ladder of ever smaller requests does
not depend on the limit, which only says where to stop: a larger one never keeps less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from holdfast.errors import PrivacyError
from holdfast.fitting.batch import cite_older
from holdfast.fitting.draft import Draft
from holdfast.fitting.leaving import Leaving
from holdfast.fitting.measure import Measure
from holdfast.fitting.offering import offer, offer_in_front
from holdfast.fitting.options import FitOptions
from holdfast.fitting.pointing import without_unnamed
from holdfast.tokens import TokenCount
from holdfast.trim.anchors import AnchorPreservationManager, asks
from holdfast.trim.chains import Trimmed
from holdfast.trim.engine import ContextOptimizationEngine
from holdfast.trim.pasted import question_of
from holdfast.trim.pieces import Bench, pieces_of
from holdfast.trim.standing import Told
from holdfast.trim.strategies import STRATEGIES
from holdfast.wire import Conversation
from holdfast.wire.rules.rule import check_at

LEAST_GAIN = 0.2
"""Share of the limit. A fold that would save less waits until it must, and older results give way
without one only if as much is free then up to the high-water mark: each step costs one request
without the vendor's cache."""

_TIGHT = 0.05
"""Share of the limit: with less room than this left, a next result could hardly be shown."""

shared_engine = ContextOptimizationEngine()


class Folded(NamedTuple):
    """A request, and whether all was done for it that could be."""

    draft: Draft
    counted: TokenCount
    floor: int
    """What the last fold came down to."""
    fits: bool = True
    exhausted: bool = False
    """Nothing more may go, and what is left leaves hardly any room."""
    trimmed: Trimmed | None = None
    """The pieces that are left, where some went."""

    @property
    def must_end(self) -> bool:
        """Whether it does not fit, or only so that another result could not be shown."""
        now = self.draft.now
        in_a_loop = bool(now.messages) and bool(now.messages[-1].results)
        return not self.fits or (self.exhausted and bool(now.tools) and in_a_loop)


def fold(
    draft: Draft,
    measure: Measure,
    options: FitOptions,
    floor: int,
    leaving: Leaving,
    told: Told,
) -> Folded:
    """Bring a request within the limit if folding can, and as low as it is worth while at it.

    What models have `told` of messages that were folded before is quoted where these are folded
    again; it is no reason to fold.
    """
    counted = measure.count(draft.now)
    size = measure.size(counted)
    target = options.low_water * measure.most
    went_on = 0 < draft.known < len(draft.now.messages)  # one sent again goes out as it did
    high = size > options.high_water * measure.most
    gain = size - max(floor, round(target))
    # Where nobody set a limit, the client may shorten its history itself before the model's window
    # overflows, as coding agents do. A fold before that writes the cache anew and may never pay.
    due = went_on and high and gain > LEAST_GAIN * measure.most and not measure.by_bound
    if not due and measure.fits(counted):
        return Folded(draft, counted, floor)
    offered = offer(without_unnamed(draft), options, new=True)  # what leaves has a ref
    cited = cite_older(offered, options, leaving) if options.cites else offered
    smallest = Folded(cited, measure.count(cited.now), floor, fits=False)
    enough = (options.high_water - LEAST_GAIN) * measure.most
    if cited is not offered and measure.size(smallest.counted) <= enough:
        return smallest._replace(fits=True)
    unfolded = offer_in_front(cited, options)
    steps = _steps(unfolded, measure, options, target, leaving, told)
    for folded in steps:
        smallest = folded
        if measure.fits(folded.counted):
            break
    if smallest.draft.edits in (cited.edits, unfolded.edits) and measure.fits(counted):
        return Folded(draft, counted, floor)  # there is nothing that may go, and no need to
    size = measure.size(smallest.counted)
    room = (1 - _TIGHT) * measure.most
    least = size
    if size > room:  # is that all, or would the next request find more to fold?
        least = min([size, *(measure.size(later.counted) for later in steps)])
    return smallest._replace(fits=size <= measure.most, floor=size, exhausted=least > room)


def _steps(
    draft: Draft,
    measure: Measure,
    options: FitOptions,
    target: float,
    leaving: Leaving,
    told: Told,
) -> Iterator[Folded]:
    """Ever smaller requests, from the first that may reach the target on."""
    counted = measure.count(draft.now)
    anchors = AnchorPreservationManager(options.anchors).identify(draft.now.messages)
    pieces = pieces_of(draft.now, counted, anchors, draft.origins)
    # What is not messages cannot be trimmed, and an upper bound is larger than the count.
    around = counted.tokens - sum(piece.tokens for piece in pieces)
    scale = measure.size(counted) / max(1, counted.tokens)
    bench = Bench(
        dialect=draft.now.dialect,
        measure=lambda piece: measure.tokens(draft.now, piece.messages),
        keep=leaving.keep,
        keep_run=leaving.keep_run,
        cite=_document_citer(draft.now, options, leaving) if options.cites else None,
        opener=options.rules.opener,
        told=told,
        summary_tokens=options.summary_tokens,
    )
    ladder = shared_engine.ladder(
        pieces,
        target=max(0.0, target / scale - around),
        most=max(0.0, measure.most / scale - around),
        bench=bench,
        strategy=options.strategy,
    )
    for trimmed in ladder:
        messages = tuple(message for piece in trimmed.pieces for message in piece.messages)
        smaller = draft.with_messages(messages, *trimmed.edits)
        if keeps_rules(draft.now, smaller.now, measure.model):
            yield Folded(smaller, measure.count(smaller.now), 0, trimmed=trimmed)


def estimated_savings(conversation: Conversation, counted: TokenCount) -> dict[str, int]:
    """Tokens that each strategy could save of a conversation at the most (001-05)."""
    anchors = AnchorPreservationManager().identify(conversation.messages)
    origins = [(n, n + 1) for n in range(len(conversation.messages))]
    pieces = pieces_of(conversation, counted, anchors, origins)
    return {name: round(each.estimate_savings(pieces)) for name, each in STRATEGIES.items()}


def _document_citer(
    now: Conversation, options: FitOptions, leaving: Leaving
) -> Callable[[str, str, int], tuple[str, str]]:
    """Who cites the document in a user's message, for what is said beside it and asked last."""
    latest = next(filter(asks, reversed(now.messages)), None)
    asked_last = "" if latest is None else question_of(latest)

    def cite(document: str, beside: str, room: int) -> tuple[str, str]:
        rules = msgspec.structs.replace(options.rules, room=room)
        words = dict.fromkeys((beside, asked_last))  # they are the same in the latest message
        question = "\n".join(filter(None, words))
        try:
            citation = options.citer(document, question=question, tool="", rules=rules)
        except PrivacyError:
            leaving.refused = True
            return "", ""
        if citation.content is not None:
            leaving.cited(citation.content)
        return citation.ref_id, citation.text

    return cite


def keeps_rules(before: Conversation, after: Conversation, model: str) -> bool:
    """Whether a trim broke no rule: exchanges stay whole, so only what is new is looked at.

    To drop what stood between two messages may bring together what must not stand side by side;
    such a state is passed over, and the next one taken.
    """
    places = {id(message): n for n, message in enumerate(before.messages)}
    now = [places.get(id(message), -1) for message in after.messages]
    touched = [n for n, place in enumerate(now) if place < 0]
    ends = [-1, *now, len(before.messages)]
    seams = [n for n in range(len(ends) - 1) if ends[n] < 0 or ends[n + 1] != ends[n] + 1]
    violations = check_at(after.seen(), after.context(model), touched=touched, seams=seams)
    return next(violations, None) is None
