"""The tokens of a request by part, for charts.

weighing: after record, before session. System text and tools are counted; the tokens of messages
are divided by kind in proportion to their bytes, which costs nothing and is exact enough for a
chart.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.fitting import FitState
from holdfast.store.records import TurnParts
from holdfast.tokens import TokenCount
from holdfast.trim.provenance import edits_of, fold_of
from holdfast.wire import Message
from holdfast.wire.prefix_values import PrefixNote

_KINDS = ("history", "results", "citations", "summaries", "facts")
_Sizes = tuple[int, ...]


def parts_of(state: FitState, counted: TokenCount) -> TurnParts:
    """Return the tokens of the sent request by part; together they are the count."""
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


_SIZES: PrefixNote[_Sizes] = PrefixNote("sizes by part", (0,) * len(_KINDS), _weighed)
