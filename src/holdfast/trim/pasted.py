"""Cite the document that a user pasted beside a question; the question stays as it was written.

pasted: after edits, before emergency. It is done only where nothing else may go: what the user says
is the last to change, and of what was pasted a citation for the question shows more than its two
ends. Both steps of it are the same for every budget.
"""

from __future__ import annotations

import msgspec

from holdfast.document.pasted import Span, document_in, question_in
from holdfast.store.records import Edit
from holdfast.trim.edits import edited
from holdfast.trim.long_texts import texts_of
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.standing import STAND, Stand, own_of, refs_of
from holdfast.wire import DIALECTS, Message, Text
from holdfast.wire.notes import KeyedNote
from holdfast.wire.strict import encode, splice

LEAST_DOCUMENT = 4000
"""Characters; of a shorter one a citation would hardly save anything."""
_QUESTION: KeyedNote[str] = KeyedNote("question", most=1, lasting=False)

ROOMS = (2000, 400)
"""Tokens that a citation may take: first as much as the longest may have, then the usual size."""


def question_of(message: Message) -> str:
    """What a user's message asks: its words without the documents among them.

    Of a document every word would count as one of the question; and the question is the same
    whether the document was cited since or not.
    """
    own = own_of(message)
    question = _QUESTION.get(own, "")
    if question is None:
        texts = (block.text for block in own.blocks if isinstance(block, Text))
        question = _QUESTION.put(own, "", "\n".join(map(question_in, texts)))
    return question


def cite_documents(piece: Piece, bench: Bench, most: int) -> tuple[Piece, Edit] | None:
    """Cite what was pasted into the texts of a piece, each in at most so many tokens.

    None if there is nothing that may leave.
    """
    messages = tuple(_cited(message, bench, most) for message in piece.messages)
    if messages == piece.messages:  # messages compare by identity
        return None
    shorter = msgspec.structs.replace(piece, messages=messages)
    # Measured alone, a piece may cost more than where it stands.
    share = bench.measure(shorter) / max(1.0, bench.measure(piece))
    shorter = msgspec.structs.replace(shorter, tokens=piece.tokens * share)
    what = "cited a document in a user's message"
    return shorter, edited("cite", what, "nothing else may go", [piece], shorter)


def _cited(message: Message, bench: Bench, most: int) -> Message:
    if bench.cite is None:
        return message
    dialect = DIALECTS[bench.dialect]
    shown = texts_of(message)
    wholes = [block.text for block in own_of(message).blocks if isinstance(block, Text)]
    if len(shown) != len(wholes):
        return message
    span = message.span
    refs: list[str] = []
    for block, whole in zip(shown, wholes, strict=True):
        start, stop = _document(whole, wholes)
        if stop - start < LEAST_DOCUMENT:
            continue
        beside = [whole[:start], whole[stop:], *(text for text in wholes if text is not whole)]
        question = "\n".join(filter(None, map(str.strip, beside)))
        ref, citation = bench.cite(whole[start:stop], question, most)
        text = f"{whole[:start]}{citation}{whole[stop:]}"
        if ref and len(text) < len(block.text):
            span = splice(span, block.slot, encode(dialect.content(block, text)))
            refs.append(ref)
    if not refs:
        return message
    cited = Message(span, message.role, dialect)
    stand = STAND.get(message) or Stand((message,))
    # The ref of what is cited now comes first: an edit names the first ref of what it made.
    named = tuple(dict.fromkeys((*refs, *refs_of(message))))
    STAND.put(cited, msgspec.structs.replace(stand, refs=named))
    return cited


def _document(whole: str, wholes: list[str]) -> Span:
    """Where the document stands in a text; with the question in a text beside it, all of it is."""
    document = document_in(whole)
    if document.size or len(wholes) == 1 or 2 * len(whole) <= sum(map(len, wholes)):
        return document
    return Span(0, len(whole))
