"""Shorten a request to its limit without refs, for models that can open none.

Parts are chosen in trim/in_place.py. A request is shortened only if it does not fit. A conversation
that grows is shortened further than that, so that its next turns keep their prefix and the
provider's cache.

Decide whether the model of a request can open refs; if not, the request is shortened in place.
`shortens_in_place` is the only place that decides this. The proxy could add `expand_ref` to a
request without tools and answer its calls itself, but only models that are prompted to call tools
use it: aider's models answer with edits of files, and the models of smolagents' CodeAgent answer
with Python for an interpreter that has no `expand_ref`. Servers refuse tools, too: vLLM answers 400
unless it was started with a parser for tool calls, and Ollama answers 400 for models whose template
has no tools.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from itertools import count as count_from

from holdfast.expand.tool_search import offered_pair
from holdfast.expand.turn_recall import recall_tool
from holdfast.fitting.cite_results import openers
from holdfast.fitting.draft import Draft
from holdfast.fitting.fold_history import FoldResult, keeps_rules
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.state import FitState
from holdfast.trim.anchors import AnchorPreservationManager
from holdfast.trim.in_place import InPlace
from holdfast.trim.pieces import Bench, pieces_of
from holdfast.trim.provenance import edits_of, originals_of
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.tool_choice import chosen_tools
from holdfast.wire.tools import offered_tools

ROOM = 0.25
"""Share of the room for older contents that is freed in a conversation that grows, so that its next
turns fit unchanged. Each time costs one request without the provider's cache. A fold frees more, as
its contents can be opened."""
_GUESSES = 4
"""Attempts to guess the number of parts by their sizes, before the range is halved."""
_LEAVING_OUT = frozenset({"shorten", "drop"})


def shorten_in_place(
    draft: Draft, measure: Measure, options: FitOptions, originals: Originals
) -> FoldResult:
    """Return the longest version of the request that fits, or the shortest if none does."""
    counted = measure.count(draft.now)
    if measure.fits(counted):
        return FoldResult(draft, counted, 0)
    went_on = 0 < draft.known < len(draft.now.messages)
    restored = tuple(o for message in draft.now.messages for o in _originals(message))
    states = _States(draft.with_messages(restored), measure, options, originals)
    smallest = states.at(states.most)
    size = measure.size(smallest.counted)
    if size > measure.most:
        return smallest._replace(fits=False)
    target = measure.most
    if went_on:
        target -= round(ROOM * (measure.most - size))
    return states.largest_within(target) or smallest


def _originals(message: Message) -> tuple[Message, ...]:
    """Return the client's messages for one that was shortened in place before.

    The next question may need other parts.
    """
    edits = edits_of(message)
    if edits and all(edit.action in _LEAVING_OUT for edit in edits):
        return originals_of(message)
    return (message,)


class _States:
    """Ever shorter versions of one request, each counted on first use."""

    def __init__(
        self, draft: Draft, measure: Measure, options: FitOptions, originals: Originals
    ) -> None:
        self._draft = draft
        self._measure = measure
        counted = measure.count(draft.now)
        anchors = AnchorPreservationManager(options.anchors).identify(draft.now.messages)
        bench = Bench(
            dialect=draft.now.dialect,
            measure=lambda piece: measure.tokens(draft.now, piece.messages),
            keep=originals.keep,
            keep_run=originals.keep_run,
        )
        self._parts = InPlace(pieces_of(draft.now, counted, anchors, draft.origins), bench)
        self._size = measure.size(counted)
        self._gone = [0.0, *accumulate(self._parts.sizes)]
        self._seen: dict[int, FoldResult] = {}

    @property
    def most(self) -> int:
        """Maximum number of parts that can be left out."""
        return len(self._gone) - 1

    def at(self, number: int) -> FoldResult:
        """Return the request without its first `number` parts in the order of removal."""
        if number not in self._seen:
            trimmed = self._parts.state(number)
            messages = tuple(message for piece in trimmed.pieces for message in piece.messages)
            smaller = self._draft.with_messages(messages, *trimmed.edits)
            counted = self._measure.count(smaller.now)
            self._seen[number] = FoldResult(smaller, counted, 0, trimmed=trimmed)
        return self._seen[number]

    def largest_within(self, target: int) -> FoldResult | None:
        """Return the longest valid version of at most `target` tokens; None if there is none."""
        number = self._fewest(target)
        step = 1
        while number < self.most and not self._is_valid(number):
            number, step = min(self.most, number + step), 2 * step
        return self.at(number) if self._is_valid(number) else None

    def _fewest(self, target: int) -> int:
        """Return the minimum number of parts to leave out."""
        low, high = 0, self.most  # without `low` parts it is too large, without `high` it is not
        least: float = self._size - target
        for tries in count_from():
            if high - low <= 1:
                return high
            guess = bisect_left(self._gone, least) if tries < _GUESSES else (low + high) // 2
            number = min(max(guess, low + 1), high - 1)
            size = self._measure.size(self.at(number).counted)
            if size <= target:
                high = number
            else:
                low = number
            least = self._gone[number] + size - target
        return high

    def _is_valid(self, number: int) -> bool:
        return keeps_rules(self._draft.now, self.at(number).draft.now, self._measure.model)


def shortens_in_place(draft: Draft, options: FitOptions, state: FitState | None) -> bool:
    """Return whether a request is shortened in place because its model can open no ref.

    That is so if neither the request nor its history has tools, or if the request forbids all tools
    but the client's own. A user who disables `expand_ref`, or configures a model for summaries, has
    chosen to fold. A request that continues one with refs keeps them: without these edits the bytes
    sent before would change.
    """
    chose_folding = options.offer_expand == "never" or options.summary_tokens > 0
    if not options.in_place or chose_folding or openers(draft.asked):
        return False
    if draft.known and state is not None and _shows_refs(state):
        return False
    return not uses_tools(draft.asked) or not _may_choose(draft.asked)


def uses_tools(request: Conversation) -> bool:
    """Return whether the client offers functions, or its history has tool calls."""
    if any(not tool.hosted for tool in offered_tools(request)):
        return True
    return _CALLS.over(request)


def _shows_refs(state: FitState) -> bool:
    """Return whether the last request sent had refs, or tools that Holdfast added."""
    return state.refs or recall_tool(state.sent)[1] or offered_pair(state.sent) is not None


def _may_choose(request: Conversation) -> bool:
    """Return whether the model may call a tool that the client does not name."""
    choice = DIALECTS[request.dialect].params(request.rest).get("tool_choice")
    if choice not in (None, "auto", "required"):
        return False
    names = {tool.name for tool in request.tools}
    # Gemini has a list of the tools that may be called; Converse has all tools in that place.
    return request.dialect == "converse" or names.isdisjoint(chosen_tools(request))


def _any_calls(calls: bool, messages: Sequence[Message]) -> bool:
    return calls or any(message.calls for message in messages)


_CALLS: PrefixNote[bool] = PrefixNote("calls", False, _any_calls)
