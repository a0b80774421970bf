"""Write the texts of a user anew, shorter: what they were stays behind a ref, and is on record.

rewriting: after edits, before long_texts and pasted, which say what stands in a text's place. Each
text is written from the original, never from a shorter one: a ref leads to what the user sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.trim.anchors import MARK
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.standing import STAND, Stand, is_ours, own_of, refs_of
from holdfast.wire import DIALECTS, Message, Text
from holdfast.wire.strict import encode, splice

Rewrite = Callable[[str, str, Sequence[str]], tuple[str, str]]
"""From a text as it stands, its original and all originals of the message: a ref and a new text.
Without a ref it stays as it is."""


def texts_of(message: Message) -> list[Text]:
    """The texts of a message that may be cut."""
    if message.role != "user" or is_ours(message) or MARK.get(message):
        return []
    return [block for block in message.blocks if isinstance(block, Text)]


def rewrite_texts(piece: Piece, bench: Bench, rewrite: Rewrite) -> Piece | None:
    """A piece with its texts written anew where that is shorter; None if none is."""
    messages = tuple(_rewritten(message, bench, rewrite) for message in piece.messages)
    if messages == piece.messages:  # messages compare by identity
        return None
    shorter = msgspec.structs.replace(piece, messages=messages)
    # Measured alone, a piece may cost more than where it stands.
    share = bench.measure(shorter) / max(1.0, bench.measure(piece))
    return msgspec.structs.replace(shorter, tokens=piece.tokens * share)


def _rewritten(message: Message, bench: Bench, rewrite: Rewrite) -> Message:
    dialect = DIALECTS[bench.dialect]
    blocks = texts_of(message)
    wholes = [block.text for block in own_of(message).blocks if isinstance(block, Text)]
    if len(blocks) != len(wholes):
        return message
    span = message.span
    refs: list[str] = []
    for block, whole in zip(blocks, wholes, strict=True):
        ref, text = rewrite(block.text, whole, wholes)
        if ref and len(text) < len(block.text):
            span = splice(span, block.slot, encode(dialect.content(block, text)))
            refs.append(ref)
    if not refs:
        return message
    shorter = Message(span, message.role, dialect)
    stand = STAND.get(message) or Stand((message,))
    # The ref of what leaves now comes first: an edit names the first ref of what it made.
    named = tuple(dict.fromkeys((*refs, *refs_of(message))))
    STAND.put(shorter, msgspec.structs.replace(stand, refs=named))
    return shorter
