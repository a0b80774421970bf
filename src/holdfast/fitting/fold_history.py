"""Reduction of a request that is too large: rarely, and in one large step.

First the older results are replaced by citations, all at once; if that is not enough, the oldest
history is folded. The sequence of ever smaller requests does not depend on the limit, which only
decides where to stop: a larger one never keeps less.

Results that were kept on arrival are the largest part of a full window, and a citation keeps more
of them than a digest. One after the other they would invalidate the provider's cache again and
again (clearing results little by little costs 1.01 to 1.10 of leaving them, recorded agents); so
they are cited together. Content that the model works on is kept: the last exchanges, and readings
of files edited in them. The selection depends on the conversation alone, not on the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

import msgspec

from holdfast.cite import CitingRules, is_long
from holdfast.fitting.cite_results import PlannedResult, ResultCitations
from holdfast.fitting.draft import Draft
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.pointers import pointed, without_unnamed
from holdfast.fitting.policy import SHORT, Arrival, Decision, rule_for
from holdfast.fitting.reads import CiteRequest, PendingReads, Steps, citations_of
from holdfast.fitting.tool_offers import offer, offer_in_front
from holdfast.fitting.uses import scalars, use_of
from holdfast.tokens import TokenCount
from holdfast.trim.anchors import AnchorPreservationManager, asks
from holdfast.trim.chains import TrimState
from holdfast.trim.documents import DocumentCitations, DocumentRequest, UnreadDocumentsError
from holdfast.trim.engine import ContextOptimizationEngine
from holdfast.trim.long_texts import question_of
from holdfast.trim.pieces import Bench, pieces_of
from holdfast.trim.provenance import Told, own_of
from holdfast.trim.strategies import STRATEGIES
from holdfast.wire import Conversation, Message
from holdfast.wire.message import result_texts
from holdfast.wire.rules.rule import check_at

RECENT = 8
"""Last exchanges whose results stay: the agent works with them. A choice, not learnt."""
LEAST_SAVED = 100
"""Tokens that a citation must save. An early result that hardly gives anything would move the
place where the prefix breaks to the front of the request."""

_EDITED = Decision("whole", "a file that the agent has edited in the last exchanges")
_GIVES_WAY = Decision("cite", "older than the last exchanges, and the window is nearly full")
_FILE = re.compile(r"[\w.-]{1,100}\.\w{1,10}\b")


def cite_older(draft: Draft, options: FitOptions, originals: Originals) -> Steps[Draft]:
    """Put citations in the place of the older results; return the same draft if none may go."""
    rules = options.rules
    edited = _edited_files(draft.now)
    citing = ResultCitations(draft, rules, originals, least_saved=LEAST_SAVED)
    for n in _older(draft.now, options):
        planned = _planned_older(citing, n, edited, rules)
        if planned:
            yield from citing.replace(n, planned)
    return citing.draft()


def _planned_older(
    citing: ResultCitations, n: int, edited: Set[str], rules: CitingRules
) -> list[PlannedResult]:
    """Decide about the results of an older message."""
    message = pointed(citing.messages[n])
    results = citing.long_results(n)
    decisions = [_older_decision(each.arrival, message, edited, rules) for each in results]
    return citing.planned(n, results, decisions)


def _older_decision(
    arrival: Arrival, message: Message, edited: Set[str], rules: CitingRules
) -> Decision:
    """Return whether an older result is cited; files edited in the last exchanges stay."""
    if rule_for(arrival.tool, rules) == "never" or not is_long(arrival.text, rules):
        return SHORT
    if not edited.isdisjoint(_files(arrival.arguments)):
        return _EDITED
    return _GIVES_WAY if _is_own(arrival.text, message) else SHORT


def _is_own(text: str, message: Message) -> bool:
    """Return whether a result is as the client sent it: a shortened one was cited before."""
    own = own_of(message)
    if own is message:
        return True
    is_own = any(text == words for _, _, words in result_texts(own))
    own.let_texts_go()  # it was cited: nobody looks at it again
    return is_own


def _older(now: Conversation, options: FitOptions) -> list[int]:
    """Return the messages before the last exchanges that are no anchors."""
    recent = now.exchanges[-RECENT:]
    stop = recent[0].start if recent else 0
    anchors = AnchorPreservationManager(options.anchors).identify(now.messages)
    anchored = {anchor.index for anchor in anchors}
    return [n for n in range(stop) if n not in anchored]


def _edited_files(now: Conversation) -> set[str]:
    """Return the names of files that were edited in the last exchanges."""
    calls = (call for e in now.exchanges[-RECENT:] for m in e.messages for call in m.calls)
    edits = (call for call in calls if use_of(call.name, call.arguments) == "edit")
    return {name for call in edits for name in _files(call.arguments)}


def _files(arguments: object) -> Iterator[str]:
    """Yield the names of files in a call's arguments, without folders: paths may differ."""
    for words in scalars(arguments):
        yield from _FILE.findall(words)


LEAST_GAIN = 0.2
"""Share of the limit. A fold that would save less waits until it must, and older results give way
without one only if as much is free then up to the high-water mark: each step costs one request
without the vendor's cache."""

_TIGHT = 0.05
"""Share of the limit: with less room than this left, a next result could hardly be shown."""

shared_engine = ContextOptimizationEngine()


class FoldResult(NamedTuple):
    """A request after folding."""

    draft: Draft
    counted: TokenCount
    floor: int
    """Tokens after the last fold."""
    fits: bool = True
    exhausted: bool = False
    """Whether nothing more may leave and there is hardly any room."""
    trimmed: TrimState | None = None
    """The remaining pieces, if some were removed."""

    @property
    def must_end(self) -> bool:
        """Whether it does not fit, or has no room for another result."""
        now = self.draft.now
        in_a_loop = bool(now.messages) and bool(now.messages[-1].results)
        return not self.fits or (self.exhausted and bool(now.tools) and in_a_loop)


def fold(
    draft: Draft,
    measure: Measure,
    options: FitOptions,
    floor: int,
    originals: Originals,
    told: Told,
) -> Steps[FoldResult]:
    """Fold a request to its limit if that is possible, and then as low as it pays.

    Models' summaries in `told` are quoted when their messages are folded again; they are no reason
    to fold.
    """
    counted = measure.count(draft.now)
    size = measure.size(counted)
    target = options.low_water * measure.most
    went_on = 0 < draft.known < len(draft.now.messages)  # a repeated request is sent unchanged
    high = size > options.high_water * measure.most
    gain = size - max(floor, round(target))
    # Where nobody set a limit, the client may shorten its history itself before the model's window
    # overflows, as coding agents do. A fold before that writes the cache anew and may never pay.
    is_due = went_on and high and gain > LEAST_GAIN * measure.most and not measure.by_bound
    if not is_due and measure.fits(counted):
        return FoldResult(draft, counted, floor)
    offered = offer(without_unnamed(draft), options, new=True)  # what leaves has a ref
    cited = offered
    if options.cites:
        cited = yield from cite_older(offered, options, originals)
    smallest = FoldResult(cited, measure.count(cited.now), floor, fits=False)
    enough = (options.high_water - LEAST_GAIN) * measure.most
    if len(cited.edits) > len(offered.edits) and measure.size(smallest.counted) <= enough:
        return smallest._replace(fits=True)
    unfolded = offer_in_front(cited, options)
    documents = _Documents(unfolded, options, originals) if options.cites else None
    while True:
        steps = _steps(unfolded, measure, options, target, originals, told, documents=documents)
        try:
            folded = _descend(steps, smallest, measure)
            break
        except UnreadDocumentsError as unread:
            assert documents is not None  # noqa: S101 - only they raise it
            yield from documents.read(unread.requests)
    if folded.draft.edits in (cited.edits, unfolded.edits) and measure.fits(counted):
        return FoldResult(draft, counted, floor)  # there is nothing that may go, and no need to
    return folded


def _descend(steps: Iterator[FoldResult], smallest: FoldResult, measure: Measure) -> FoldResult:
    """Return the first of ever smaller requests that fits, else the last one.

    It is exhausted if it fits only just, and no later one leaves more room either.
    """
    for folded in steps:
        smallest = folded
        if measure.fits(folded.counted):
            break
    size = measure.size(smallest.counted)
    room = (1 - _TIGHT) * measure.most
    least = size
    if size > room:  # is that all, or would the next request find more to fold?
        least = min([size, *(measure.size(later.counted) for later in steps)])
    return smallest._replace(fits=size <= measure.most, floor=size, exhausted=least > room)


def _steps(  # noqa: PLR0913 - what a ladder is made with
    draft: Draft,
    measure: Measure,
    options: FitOptions,
    target: float,
    originals: Originals,
    told: Told,
    *,
    documents: DocumentCitations | None,
) -> Iterator[FoldResult]:
    """Yield ever smaller requests, beginning with the first that may reach the target."""
    counted = measure.count(draft.now)
    anchors = AnchorPreservationManager(options.anchors).identify(draft.now.messages)
    pieces = pieces_of(draft.now, counted, anchors, draft.origins)
    # Only messages can be trimmed, and an upper bound is larger than the count.
    around = counted.tokens - sum(piece.tokens for piece in pieces)
    scale = measure.size(counted) / max(1, counted.tokens)
    bench = Bench(
        dialect=draft.now.dialect,
        measure=lambda piece: measure.tokens(draft.now, piece.messages),
        keep=originals.keep,
        keep_run=originals.keep_run,
        documents=documents,
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
            yield FoldResult(smaller, measure.count(smaller.now), 0, trimmed=trimmed)


def estimated_savings(conversation: Conversation, counted: TokenCount) -> dict[str, int]:
    """Tokens that each strategy could save of a conversation at the most (001-05)."""
    anchors = AnchorPreservationManager().identify(conversation.messages)
    origins = [(n, n + 1) for n in range(len(conversation.messages))]
    pieces = pieces_of(conversation, counted, anchors, origins)
    return {name: round(each.estimate_savings(pieces)) for name, each in STRATEGIES.items()}


class _Documents(DocumentCitations):
    """Citations of the documents that users pasted beside their words."""

    def __init__(self, draft: Draft, options: FitOptions, originals: Originals) -> None:
        super().__init__()
        latest = next(filter(asks, reversed(draft.now.messages)), None)
        self._last_question = "" if latest is None else question_of(latest)
        self._draft = draft
        self._rules = options.rules
        self._originals = originals
        self._batch = 1

    def read(self, upcoming: Sequence[DocumentRequest]) -> Steps[None]:
        """Have the next documents cited: each time twice as many as the time before.

        Trimming begins again after each time. One document at a time would take a pass over the
        conversation for each, all of them at once would cite what needs no citation.
        """
        requests = [
            wanted_request
            for wanted_request in dict.fromkeys(upcoming)
            if wanted_request not in self
        ][: self._batch]
        self._batch *= 2
        reads = tuple(map(self._request, requests))
        citations = yield from citations_of(
            PendingReads(reads, self._draft.edits, self._draft.decisions)
        )
        for request, citation in zip(requests, citations, strict=True):
            if citation is None:
                self._originals.refused = True
            elif citation.content is not None:
                self._originals.cited(citation.content)
            ref_and_text = ("", "") if citation is None else (citation.ref_id, citation.text)
            self.put(request, *ref_and_text)

    def _request(self, request: DocumentRequest) -> CiteRequest:
        rules = msgspec.structs.replace(self._rules, room=request.room)
        # The words beside a document are the last question where it is in the latest message.
        words = dict.fromkeys((request.beside, self._last_question))
        question = "\n".join(filter(None, words))
        return CiteRequest(content=request.document, question=question, rules=rules)


def keeps_rules(before: Conversation, after: Conversation, model: str) -> bool:
    """Return whether a trim broke no rule; exchanges are whole, so only new violations count.

    Removing the content between two messages may join messages that must not be adjacent; such a
    state is skipped.
    """
    places = {id(message): n for n, message in enumerate(before.messages)}
    now = [places.get(id(message), -1) for message in after.messages]
    touched = [n for n, place in enumerate(now) if place < 0]
    ends = [-1, *now, len(before.messages)]
    seams = [n for n in range(len(ends) - 1) if ends[n] < 0 or ends[n + 1] != ends[n] + 1]
    violations = check_at(after.seen(), after.context(model), touched=touched, seams=seams)
    return next(violations, None) is None
