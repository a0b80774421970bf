"""Cite the document that a user pasted beside a question; the question stays as it was written.

pasted: after rewriting, before emergency. It is done only where nothing else may go: what the user
says is the last to change, and of what was pasted a citation for the question shows more than its
two ends. Both steps of it are the same for every budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.document.pasted import Span, document_in, question_in
from holdfast.store.records import Edit
from holdfast.trim.edits import edited
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.rewriting import rewrite_texts
from holdfast.trim.standing import own_of
from holdfast.wire import Message, Text
from holdfast.wire.notes import KeyedNote

LEAST_DOCUMENT = 4000
"""Characters; of a shorter one a citation would hardly save anything."""
_QUESTION: KeyedNote[str] = KeyedNote("question", most=1, lasting=False, holds_text=True)

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
    if bench.cite is None:
        return None
    cite = bench.cite

    def cited(_: str, whole: str, wholes: Sequence[str]) -> tuple[str, str]:
        start, stop = _document(whole, wholes)
        if stop - start < LEAST_DOCUMENT:
            return "", ""
        beside = [whole[:start], whole[stop:], *(text for text in wholes if text is not whole)]
        question = "\n".join(filter(None, map(str.strip, beside)))
        ref, citation = cite(whole[start:stop], question, most)
        return ref, f"{whole[:start]}{citation}{whole[stop:]}"

    shorter = rewrite_texts(piece, bench, cited)
    if shorter is None:
        return None
    what = "cited a document in a user's message"
    return shorter, edited("cite", what, "nothing else may go", [piece], shorter)


def _document(whole: str, wholes: Sequence[str]) -> Span:
    """Where the document stands in a text; with the question in a text beside it, all of it is."""
    document = document_in(whole)
    if document.size or len(wholes) == 1 or 2 * len(whole) <= sum(map(len, wholes)):
        return document
    return Span(0, len(whole))
