"""Let go of thinking that an edit has made invalid.

On models with preserved thinking a thinking block is bound to the exact system, tools and messages
that it was an answer to; the provider refuses the request once something before it has changed.
Thinking may go from a place on, and then all of it must.
"""

from __future__ import annotations

from typing import Any

from holdfast.fitting.draft import because
from holdfast.fitting.fold_history import FoldResult
from holdfast.fitting.measure import Measure
from holdfast.fitting.state import FitState
from holdfast.store.records import Edit
from holdfast.wire import Conversation, Message
from holdfast.wire.bound_thinking import is_bound, without_thinking
from holdfast.wire.places import normal_form, without_marks

_SWITCHED_OFF = Edit(
    action="thinking",
    what="switched thinking off for this request",
    why="a turn that calls tools must begin with its thinking, which is bound to other messages",
    where="$.thinking",
)


def unbind(folded: FoldResult, state: FitState | None, measure: Measure) -> FoldResult:
    """Remove the thinking after the first place that differs from the model's input."""
    draft = folded.draft
    if not is_bound(measure.model, draft.asked.rest):
        return folded
    # The latest thinking answers the last sent request; earlier thinking the client's.
    model_input = state.sent if state is not None and draft.known else draft.asked
    start = _first_change(model_input, draft.now)
    if start is None:
        return folded
    freed = without_thinking(draft.now, start)
    if freed is draft.now:
        return folded
    explain = because(
        "thinking",
        "took out thinking",
        "it is bound to messages before it that have changed",
        lambda messages: measure.tokens(folded.draft.now, messages),
    )
    draft = draft.changed(draft.now.with_messages(freed.messages), explain)
    draft = draft.with_frame(freed, _SWITCHED_OFF)
    return folded._replace(draft=draft, counted=measure.count(draft.now))


def _first_change(seen: Conversation, now: Conversation) -> int | None:
    """The first message that is not as it was seen; None if all that was seen is unchanged."""
    for name in ("system", "tools"):
        if _unmarked(seen.rest.get(name)) != _unmarked(now.rest.get(name)):
            return 0
    for n, (old, new) in enumerate(zip(seen.messages, now.messages, strict=False)):
        is_same = old is new or bytes(old.span) == bytes(new.span)
        if not is_same and _normal(old) != _normal(new):
            return n
    return None if len(now.messages) >= len(seen.messages) else len(now.messages)


def _normal(message: Message) -> Any:
    """Return the signed part of a message: neither cache marks nor the shape of a text."""
    return normal_form(message.parsed, message.dialect)


def _unmarked(value: Any) -> Any:
    """Return system text or tools without cache marks, which providers do not compare."""
    if isinstance(value, str):
        value = [{"type": "text", "text": value}]
    return without_marks(value)
