"""Messages that a user put back, and that are kept from then on.

Only a person can revoke the decision to hide content, by the names of the client's messages. From
then on they are sent as the client wrote them: not cited, and not folded as long as anything else
can be folded.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.fitting.draft import Draft, where
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.store.records import Edit
from holdfast.trim.anchors import AnchorDefinition
from holdfast.trim.provenance import edits_of, originals_of, own_of, refs_of
from holdfast.wire import Message, validate
from holdfast.wire.places import fingerprint

HIDING = frozenset({"cite", "repeat", "fold", "shorten", "drop"})
"""Edits that can be undone: after them the model sees less than the client sent."""
_PRIORITY = 85
"""Below the question being answered, above the rules and the first question."""


def name_of(message: Message) -> str:
    """Return the name of a client message, which does not depend on its cache marks."""
    return fingerprint(message).hex()


def is_kept(message: Message, whole: frozenset[str]) -> bool:
    """Return whether a user asked to have a message whole."""
    return name_of(own_of(message)) in whole


def keeping(options: FitOptions) -> FitOptions:
    """Return the options with an anchor for the messages that stay whole."""

    def is_whole(message: Message, _: int, __: Sequence[Message]) -> bool:
        return is_kept(message, options.whole)

    anchor = AnchorDefinition(
        type="custom",
        selector=is_whole,
        priority=_PRIORITY,
        description="what someone asked to have whole",
    )
    return msgspec.structs.replace(options, anchors=(*options.anchors, anchor))


def put_back(draft: Draft, whole: frozenset[str], measure: Measure) -> Draft:
    """Return the request with the client's own messages instead of their replacements.

    Replacements that the provider needs are kept: thinking or hidden calls may depend on them.
    """
    messages: list[Message] = []
    edits: list[Edit] = []
    first_new = 0
    for n, message in enumerate(draft.now.messages):
        start, stop = draft.origins[n]
        originals = draft.asked.messages[start:stop]
        if n < draft.known and _hides(message) and _all_named(originals, whole):
            edits.append(_edit(draft, message, originals, start, measure))
            messages.extend(originals)
        else:
            messages.append(message)
        first_new = len(messages) if n < draft.known else first_new
    if not edits:
        return draft
    restored = draft.with_messages(tuple(messages), *edits)
    if validate(restored.now, model=measure.model) and not validate(draft.now, model=measure.model):
        return draft
    return msgspec.structs.replace(restored, known=first_new)


def _hides(message: Message) -> bool:
    """Return whether a sent message shows less than the client's."""
    return any(edit.action in HIDING for edit in edits_of(message))


def _all_named(originals: Sequence[Message], whole: frozenset[str]) -> bool:
    return bool(originals) and all(name_of(original) in whole for original in originals)


def _edit(
    draft: Draft, message: Message, originals: tuple[Message, ...], start: int, measure: Measure
) -> Edit:
    stop = start + len(originals)
    refs = ", ".join(refs_of(message)) or "what was hidden"
    return Edit(
        action="restore",
        what=f"put back {refs}",
        why="someone asked to have it whole from here on",
        where=where(start, stop),
        from_tokens=round(measure.tokens(draft.now, (message,))),
        to_tokens=round(measure.tokens(draft.now, originals)),
        start=start,
        stop=stop,
    )


def names_behind(state: FitState, ref: str) -> tuple[str, ...]:
    """Return the names of the client messages that a ref replaces in the sent request."""
    for message, (start, stop) in zip(state.sent.messages, state.origins, strict=True):
        refs = {*refs_of(message), *(edit.ref_id for edit in edits_of(message))}
        if ref in refs and _hides(message):
            return tuple(map(name_of, state.asked.messages[start:stop]))
    return ()


def hidden_again(state: FitState, whole: frozenset[str]) -> frozenset[str]:
    """Return which of the messages to keep whole are hidden in the sent request."""
    hiding = (message for message in state.sent.messages if _hides(message))
    return whole.intersection(name_of(old) for message in hiding for old in originals_of(message))
