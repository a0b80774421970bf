"""Put back what someone asked to have whole, and keep it so.

What was hidden is decided once and stands; only a person can have it otherwise, and says so by the
names of the client's messages. From then on they go out as the client wrote them: no citation, and
no fold as long as there is anything else to fold.
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
"""What can be put back: the edits after which the model sees less than the client sent."""
_PRIORITY = 85
"""Below what is being answered, above the rules and the first question: it was asked for last."""


def name_of(message: Message) -> str:
    """What a message of the client is known by, whatever its cache marks do."""
    return fingerprint(message).hex()


def is_kept(message: Message, whole: frozenset[str]) -> bool:
    """Whether someone asked to have a message whole."""
    return name_of(own_of(message)) in whole


def keeping(options: FitOptions) -> FitOptions:
    """The same options, with what is to stay whole among what folding keeps."""

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
    """The request with the client's own messages in the place of what hid them.

    What the provider would refuse then stays as it is: thinking or calls that the client never saw
    may hang on it.
    """
    messages: list[Message] = []
    edits: list[Edit] = []
    known = 0
    for n, message in enumerate(draft.now.messages):
        start, stop = draft.origins[n]
        originals = draft.asked.messages[start:stop]
        if n < draft.known and _hides(message) and _all_named(originals, whole):
            edits.append(_edit(draft, message, originals, start, measure))
            messages.extend(originals)
        else:
            messages.append(message)
        known = len(messages) if n < draft.known else known
    if not edits:
        return draft
    restored = draft.with_messages(tuple(messages), *edits)
    if validate(restored.now, model=measure.model) and not validate(draft.now, model=measure.model):
        return draft
    return msgspec.structs.replace(restored, known=known)


def _hides(message: Message) -> bool:
    """Whether the model sees less than the client sent in the place of a message."""
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
    """The client's messages that a ref stands for in what was sent; none if it stands nowhere."""
    for message, (start, stop) in zip(state.sent.messages, state.origins, strict=True):
        refs = {*refs_of(message), *(edit.ref_id for edit in edits_of(message))}
        if ref in refs and _hides(message):
            return tuple(map(name_of, state.asked.messages[start:stop]))
    return ()


def hidden_again(state: FitState, whole: frozenset[str]) -> frozenset[str]:
    """Those of the messages wanted whole that are hidden in what is sent."""
    hiding = (message for message in state.sent.messages if _hides(message))
    return whole.intersection(name_of(old) for message in hiding for old in originals_of(message))
