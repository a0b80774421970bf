"""Cuts and citations of long user texts, only if nothing else may be removed.

Some clients have no tool results: aider puts all its files into one user message, smolagents the
observations of its tools. Such a text may be larger than the window, and then the choice is
between its middle and no answer at all. The beginning and the end are kept, a ref opens the
original, and text that the user marked is not changed. Each shorter text is written from the
original, never from a shorter one.

A document that a user pasted with a question is cited for that question, which is not changed. A
citation shows more than the document's two ends. Both steps are the same for every budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.document.pasted import TextSpan, document_in, question_in
from holdfast.store.records import Edit
from holdfast.trim.anchors import MARK
from holdfast.trim.documents import DocumentRequest
from holdfast.trim.edits import edited
from holdfast.trim.excerpts import middle_cut
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import REPLACEMENT, Replacement, is_ours, own_of, refs_of
from holdfast.wire import DIALECTS, Message, Text
from holdfast.wire.notes import KeyedNote
from holdfast.wire.strict import encode, splice

Rewrite = Callable[[str, str, Sequence[str]], tuple[str, str]]
"""Maps a current text, its original and all originals of the message to a ref and a new text.
Without a ref the text is kept."""


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
    # Measured alone, a piece may cost more than in its place.
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
    for block, original in zip(blocks, wholes, strict=True):
        ref, text = rewrite(block.text, original, wholes)
        if ref and len(text) < len(block.text):
            span = splice(span, block.slot, encode(dialect.content(block, text)))
            refs.append(ref)
    if not refs:
        return message
    shorter = Message(span, message.role, dialect)
    replacement = REPLACEMENT.get(message) or Replacement((message,))
    # The ref of the content removed now comes first: an edit names the first ref of its content.
    named = tuple(dict.fromkeys((*refs, *refs_of(message))))
    REPLACEMENT.put(shorter, msgspec.structs.replace(replacement, refs=named))
    return shorter


LEAST_TEXT = 1000
"""Characters that are kept of a text: a question and its reason, or the head and tail of a file.
Anchors are always kept, and with less than this one would be a mere name."""
LONG_TEXT = 4000
"""Longer texts are cut to this before digests are removed. Digests are a line each, and the only
hint where removed content can be opened: smolagents' models lost their way without them."""
_SHARE = (7, 10)
"""What stays from one length to the next: as a rule at most a third more than must go is cut."""
_LEAST_CUT = 120
"""Characters; to cut less than this out of a text is not worth the mark it leaves."""
CHARACTERS_PER_TOKEN = 16
"""More than texts have on average: one with more characters for each token that fits is not tried.
A message of 31 MB was cut, written and counted 13 times before it came near the limit."""
_CUTTABLE = frozenset(("first_user_message", "latest_user_message", "latest_tool_result"))
"""Anchors by their place. System text, rules and the user's own anchors are complete or an error;
results may be in one message with text."""


def by_age(pieces: Sequence[Piece]) -> list[int]:
    """The pieces whose texts may be cut, the oldest first and the latest question last."""
    places = [n for n, piece in enumerate(pieces) if _may_be_cut(piece)]
    return sorted(places, key=lambda n: _is_latest_question(pieces[n]))


def lengths(piece: Piece, least: int, most_tokens: float) -> Iterator[int]:
    """Yield the lengths in characters to which a piece's texts may be cut, in descending order.

    Which lengths there are depends on the piece alone. Those far above `most_tokens` are left out:
    a larger limit leaves out fewer, so a larger limit never shows less.
    """
    texts = (text for message in piece.messages for text in texts_of(message))
    most = max((len(block.text) for block in texts), default=0)
    numerator, denominator = _SHARE
    while most > least:
        most = max(least, most * numerator // denominator)
        if most == least or most <= CHARACTERS_PER_TOKEN * most_tokens:
            yield most


class TextCutter:
    """Cuts the middle out of texts; measurements of a text serve the next, shorter cut."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._known: dict[str, tuple[str, TextSpan]] = {}
        """By text: its ref, and the document pasted into it."""

    def shorten(self, piece: Piece, /, *, most: int) -> tuple[Piece, Edit] | None:
        """Cut the middle out of texts longer than `most`; None if none is, or none may leave."""

        def cut(shown: str, whole: str, _: Sequence[str]) -> tuple[str, str]:
            if len(shown) <= most + _LEAST_CUT:
                return "", ""
            ref, document = self._stored(whole)
            return ref, _cut(whole, document, most, ref, self._bench.opener)

        shorter = rewrite_texts(piece, self._bench, cut)
        if shorter is None:
            return None
        what = "cut the middle of a long text"
        return shorter, edited("shorten", what, "nothing else may go", [piece], shorter)

    def _stored(self, whole: str) -> tuple[str, TextSpan]:
        """Return the ref of a text and the span of the document in it, looked for once."""
        ref_and_span = self._known.get(whole)
        if ref_and_span is None:
            data = whole.encode("utf-8", "surrogatepass")
            ref = self._bench.keep("text", data, len(data) / 4)
            ref_and_span = self._known[whole] = ref, document_in(whole)
        return ref_and_span


def _may_be_cut(piece: Piece) -> bool:
    return piece.fold is None and (piece.anchor is None or piece.anchor.type in _CUTTABLE)


def _is_latest_question(piece: Piece) -> bool:
    return piece.anchor is not None and piece.anchor.type == "latest_user_message"


def _cut(whole: str, document: TextSpan, most: int, ref: str, opener: str) -> str:
    """Return a text without its middle, or without that of the document pasted into it."""
    room = most - (len(whole) - document.size)
    if 2 * room < most:
        return middle_cut(whole, most, ref, opener)
    cut = middle_cut(whole[document.start : document.stop], room, ref, opener)
    return f"{whole[: document.start]}{cut}{whole[document.stop :]}"


LEAST_DOCUMENT = 4000
"""Characters; of a shorter one a citation would hardly save anything."""
_QUESTION: KeyedNote[str] = KeyedNote("question", most=1, lasting=False, holds_text=True)

ROOMS = (2000, 400)
"""Tokens that a citation may take: first as much as the longest may have, then the usual size."""


def question_of(message: Message) -> str:
    """Return the question in a user's message: its text without its documents.

    Otherwise every word of a document would count as one of the question; and the question is the
    same, whether the document was cited since or not.
    """
    own = own_of(message)
    question = _QUESTION.get(own, "")
    if question is None:
        texts = (block.text for block in own.blocks if isinstance(block, Text))
        question = _QUESTION.put(own, "", "\n".join(map(question_in, texts)))
    return question


def cite_documents(piece: Piece, bench: Bench, most: int) -> tuple[Piece, Edit] | None:
    """Cite the documents pasted into the texts of a piece, each in at most `most` tokens.

    Returns None if nothing may be removed.
    """
    documents = bench.documents
    if documents is None:
        return None

    def cited(_: str, whole: str, wholes: Sequence[str]) -> tuple[str, str]:
        start, stop = _document(whole, wholes)
        if stop - start < LEAST_DOCUMENT:
            return "", ""
        ref, citation = documents.get(_request(whole, wholes, TextSpan(start, stop), most))
        return ref, f"{whole[:start]}{citation}{whole[stop:]}"

    shorter = rewrite_texts(piece, bench, cited)
    if shorter is None:
        return None
    what = "cited a document in a user's message"
    return shorter, edited("cite", what, "nothing else may go", [piece], shorter)


def document_requests(piece: Piece, most: int) -> Iterator[DocumentRequest]:
    """Yield the documents in a piece that `cite_documents` would cite."""
    for message in piece.messages:
        wholes = [block.text for block in own_of(message).blocks if isinstance(block, Text)]
        for original in wholes if len(texts_of(message)) == len(wholes) else ():
            document = _document(original, wholes)
            if document.size >= LEAST_DOCUMENT:
                yield _request(original, wholes, document, most)


def _request(whole: str, wholes: Sequence[str], document: TextSpan, most: int) -> DocumentRequest:
    start, stop = document
    beside = [whole[:start], whole[stop:], *(text for text in wholes if text is not whole)]
    words = "\n".join(filter(None, map(str.strip, beside)))
    return DocumentRequest(whole[start:stop], words, most)


def _document(whole: str, wholes: Sequence[str]) -> TextSpan:
    """Return the span of the document in a text; all of it, if the question is in another text."""
    document = document_in(whole)
    if document.size or len(wholes) == 1 or 2 * len(whole) <= sum(map(len, wholes)):
        return document
    return TextSpan(0, len(whole))
