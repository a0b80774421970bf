"""What a request is made of: its tokens by part, for whoever wants to see where they go.

weighing: after record, before session. System text and tools are counted as they are; messages are
told apart by what they are, and share their tokens by their bytes: that costs nothing, and a chart
shows no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.fitting import FitState
from holdfast.store.records import TurnParts
from holdfast.tokens import TokenCount
from holdfast.trim.provenance import edits_of, fold_of
from holdfast.wire import Message
from holdfast.wire.running import RunningNote

_KINDS = ("history", "results", "citations", "summaries", "facts")
_Sizes = tuple[int, ...]


def parts_of(state: FitState, counted: TokenCount) -> TurnParts:
    """The tokens of what goes out, by part; together they are the count."""
    sizes = _SIZES.over(state.sent)
    total = sum(sizes)
    counts = counted.parts
    shares = [counts.messages * size // total if total else 0 for size in sizes]
    by_kind = dict(zip(_KINDS, shares, strict=True))
    by_kind["history"] += counts.messages - sum(shares)
    return TurnParts(header=counts.system + counts.formatting, tools=counts.tools, **by_kind)


def _weighed(sizes: _Sizes, messages: Sequence[Message]) -> _Sizes:
    weights = list(sizes)
    for message in messages:
        if message.role != "system":  # that is counted by itself
            weights[_KINDS.index(_kind(message))] += message.size
    return tuple(weights)


def _kind(message: Message) -> str:
    if fold_of(message) is not None:
        return "summaries"
    actions = {edit.action for edit in edits_of(message)}
    if "assemble" in actions:
        return "facts"
    if actions & {"cite", "shorten"}:
        return "citations"
    return "results" if message.results else "history"


_SIZES: RunningNote[_Sizes] = RunningNote("sizes by part", (0,) * len(_KINDS), _weighed)
