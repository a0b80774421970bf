"""Edits of pieces: fold them into a digest, shorten their results, remove them.

Removed content is passed to the bench, which names its ref; content that the bench refuses is
kept. Each change is an `Edit` on the message that replaces the content.

Each sent tool result is paired with the client's text for it. A message may contain other results
than the client's version of it: answers of hidden calls were restored into it, or a repair removed
a result without a call. Gemini's results may also return in another order and under other ids. A
wrong pair would cut another result into this place.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.store.records import Edit, EditAction
from holdfast.store.refs import DIGITS, REF, canonical, digest
from holdfast.trim.anchors import MARK
from holdfast.trim.excerpts import middle_cut
from holdfast.trim.gists import Gist
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import (
    ADDED,
    REPLACEMENT,
    Fold,
    Replacement,
    edits_of,
    fold_of,
    originals_of,
    own_of,
    refs_of,
)
from holdfast.trim.summaries import (
    CHARACTERS_PER_TOKEN,
    has_room,
    parts_of,
    quotations,
)
from holdfast.wire import DIALECTS, Block, Entry, Message, Text, ToolResult
from holdfast.wire.message import result_texts
from holdfast.wire.strict import encode, splice

_Texts = Sequence[tuple[ToolResult, Block, str]]


class ResultText(NamedTuple):
    """A text of a sent tool result, and the original that it shows."""

    result: ToolResult
    block: Block
    """The block that a replacement of the text belongs to."""
    text: str
    whole: str
    """The client's text; the same text if the result is not the client's own."""


def results_with_originals(message: Message) -> list[ResultText]:
    """Return the texts of a message's results, each with its original."""
    texts = list(result_texts(message))
    original = own_of(message)
    if original is message:
        return [ResultText(result, block, text, text) for result, block, text in texts]
    theirs = list(result_texts(original))
    if _ids(texts) == _ids(theirs) and not _is_rejoined(message):
        wholes = [text for _, _, text in theirs]
    else:
        wholes = _paired(texts, theirs)
    return [
        ResultText(result, block, text, whole)
        for (result, block, text), whole in zip(texts, wholes, strict=True)
    ]


def _is_rejoined(message: Message) -> bool:
    """Return whether the order of the results may not be the client's."""
    return any(edit.action == "rejoin" for edit in edits_of(message))


def _ids(texts: _Texts) -> list[str]:
    return [result.call_id for result, _, _ in texts]


def _paired(shown: _Texts, theirs: _Texts) -> list[str]:
    """Return the original of each text: by the call that it answers, else by its content."""
    by_id: defaultdict[str, deque[str]] = defaultdict(deque)
    for result, _, text in theirs:
        by_id[result.call_id].append(text)
    numbers = Counter(_ids(shown))
    sure = {name for name in by_id if name and numbers[name] == len(by_id[name])}
    by_content = _ByContent([text for name in by_id if name not in sure for text in by_id[name]])
    return [
        by_id[result.call_id].popleft() if result.call_id in sure else by_content.original(text)
        for result, _, text in shown
    ]


class _ByContent:
    """Finds the text that a result shows, complete or by its ref."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._by_digits: dict[str, tuple[str, str]] | None = None

    def original(self, shown: str) -> str:
        """Return the text that is shown; what shows none of them is its own original."""
        if not self._texts or shown in self._texts:
            return shown
        if self._by_digits is None:
            digests = ((digest(canonical(text)), text) for text in self._texts)
            self._by_digits = {sha256[:DIGITS]: (sha256, text) for sha256, text in digests}
        for ref in REF.finditer(shown):
            sha256, text = self._by_digits.get(ref[2][:DIGITS], ("", ""))
            if sha256.startswith(ref[2]):
                return text
        return shown


_LEAST_CUT = 120
"""Characters; to cut less than this out of a text is not worth the mark it leaves."""


def edited(action: EditAction, what: str, why: str, old: Sequence[Piece], new: Piece) -> Edit:
    """Return the edit of some pieces, and record it on the piece that replaces them."""
    before = sum(piece.fold.tokens if piece.fold else piece.tokens for piece in old)
    refs = (ref for message in new.messages for ref in refs_of(message))
    edit = Edit(
        action=action,
        what=what,
        why=why,
        where=where(old[0].start, old[-1].stop),
        from_tokens=round(before),
        to_tokens=round(new.tokens),
        ref_id=next(refs, ""),
        start=old[0].start,
        stop=old[-1].stop,
    )
    before_it = {id(message) for piece in old for message in piece.messages}
    for message in new.messages:
        replacement = REPLACEMENT.get(message)
        if replacement is not None and id(message) not in before_it:
            REPLACEMENT.put(
                message, msgspec.structs.replace(replacement, edits=(*replacement.edits, edit))
            )
    return edit


def where(start: int, stop: int) -> str:
    """Messages in the client's numbers, for reports."""
    return f"message {start}" if stop - start == 1 else f"messages {start} to {stop - 1}"


def fold(
    pieces: Sequence[Piece], bench: Bench, *, summary: str = "", terse: bool = False
) -> Piece | None:
    """Put one digest in the place of neighbouring pieces; None if they may not be stored.

    A terse digest is a line. Without a new summary, those of the digests among the pieces are kept.
    """
    gist = Gist()
    for piece in pieces:
        gist.add(piece)
    return folded(gist, bench, summary=summary, terse=terse)


def folded(gist: Gist, bench: Bench, *, summary: str = "", terse: bool = False) -> Piece | None:
    """The same for a run whose gist is known."""
    ref = bench.keep_run(gist.originals, gist.tokens)
    if not ref:
        return None
    absorbed = gist.fold(ref, summary, parts_of(gist, bench))
    piece = _digest(gist, absorbed, gist.digest(absorbed, bench, terse=terse), bench)
    return piece if terse else _quoting(gist, absorbed, piece, bench)


def _digest(gist: Gist, absorbed: Fold, text: str, bench: Bench) -> Piece:
    """A message with the text of a digest, as a piece."""
    dialect = DIALECTS[bench.dialect]
    [value] = dialect.compose([Entry("user", (Text(text=text),))])
    message = Message(encode(value), "user", dialect)
    parts = (part.ref_id for part in absorbed.parts)
    refs = tuple(dict.fromkeys((absorbed.ref_id, *parts, *absorbed.refs)))
    REPLACEMENT.put(message, Replacement(tuple(gist.originals), refs=refs, fold=absorbed))
    piece = Piece((message,), absorbed.start, absorbed.stop, 0, "user", fold=absorbed)
    return msgspec.structs.replace(piece, tokens=bench.measure(piece))


def _quoting(gist: Gist, absorbed: Fold, extracted: Piece, bench: Bench) -> Piece:
    """Return the digest with models' summaries of its messages, as far as there is room."""
    if not has_room(gist.tokens, bench.summary_tokens):
        return extracted  # none was set aside
    most = min(extracted.tokens + bench.summary_tokens, gist.tokens)
    for characters in CHARACTERS_PER_TOKEN:
        quoted, number = quotations(
            absorbed, characters * bench.summary_tokens, opens=bool(bench.opener)
        )
        if not quoted:
            break
        quoting = msgspec.structs.replace(absorbed, sentences=number)
        text = gist.digest(quoting, bench, quotations=quoted)
        piece = _digest(gist, quoting, text, bench)
        if piece.tokens <= most:
            return piece
    return extracted


def taken_out(piece: Piece, neighbour: Piece, bench: Bench) -> tuple[Piece, Edit] | None:
    """Let a neighbour replace a piece without any text; return None if it may not be stored.

    The neighbour is sent with the same bytes: only its list of replaced messages grows.
    """
    originals = tuple(o for message in piece.messages for o in originals_of(message))
    absorbed = piece.fold
    ref = absorbed.ref_id if absorbed and absorbed.messages == len(originals) else ""
    if originals and not ref:
        ref = bench.keep_run(originals, piece.tokens)
        if not ref:
            return None
    earlier = [e for m in piece.messages for e in edits_of(m) if e.action == "drop"]
    tokens = absorbed.tokens if absorbed else piece.tokens
    edit = Edit(
        action="drop",
        what="took out a digest" if absorbed else "took out an exchange",
        why="nothing else may go",
        where=where(piece.start, piece.stop),
        from_tokens=round(tokens) + sum(drop.from_tokens for drop in earlier),
        ref_id=ref,
        start=piece.start,
        stop=piece.stop,
    )
    follows = neighbour.start >= piece.stop
    message = neighbour.messages[0 if follows else -1]
    replacement = REPLACEMENT.get(message) or Replacement((message,))
    copy = Message(message.window, message.role, DIALECTS[message.dialect])
    MARK.carry(message, copy)
    mine = replacement.originals
    own = replacement.own + len(originals) if follows else replacement.own
    REPLACEMENT.put(
        copy,
        msgspec.structs.replace(
            replacement,
            originals=(*originals, *mine) if follows else (*mine, *originals),
            edits=(*replacement.edits, edit),
            refs=tuple(dict.fromkeys((*replacement.refs, *filter(None, [ref])))),
            own=ADDED if replacement.is_added else own,
        ),
    )
    messages = (copy, *neighbour.messages[1:]) if follows else (*neighbour.messages[:-1], copy)
    grown = msgspec.structs.replace(
        neighbour,
        messages=messages,
        start=min(piece.start, neighbour.start),
        stop=max(piece.stop, neighbour.stop),
    )
    return grown, edit


def shorten_results(
    piece: Piece, bench: Bench, most: int, *, one_line: bool = False
) -> Piece | None:
    """Cut the middle out of a piece's tool results; None if none is longer than `most`."""
    messages = tuple(_shortened(m, bench, most, one_line=one_line) for m in piece.messages)
    if messages == piece.messages:  # messages compare by identity
        return None
    # Its tokens go with its size, which is near enough to choose by; the result is counted anew.
    share = sum(len(m.raw) for m in messages) / sum(len(m.raw) for m in piece.messages)
    return msgspec.structs.replace(piece, messages=messages, tokens=piece.tokens * share)


def shortened_edit(why: str, old: Piece, new: Piece) -> Edit:
    """Say that results were cut."""
    return edited("shorten", "cut the middle of a tool result", why, [old], new)


def _shortened(message: Message, bench: Bench, most: int, *, one_line: bool) -> Message:
    if not message.results or fold_of(message) is not None:
        return message
    dialect = DIALECTS[bench.dialect]
    before = span = message.span
    refs: list[str] = list(refs_of(message))
    cited = [edit.ref_id for edit in edits_of(message) if edit.action == "cite"]
    for result, block, text, original in results_with_originals(message):
        if len(text) <= most + _LEAST_CUT or result.is_error:
            continue
        ref = ""
        if text != original and _is_cited(original, cited):
            shorter = _first_lines(text)
        else:  # an earlier cut is cut again from the original, which the ref opens
            data = original.encode("utf-8", "surrogatepass")
            ref = bench.keep("tool_result", data, len(data) / 4)
            if not ref:
                continue
            shorter = middle_cut(original, most, ref, bench.opener, one_line=one_line)
        if len(shorter) < len(text):
            span = splice(span, block.slot, encode(dialect.content(block, shorter)))
            refs.extend(filter(None, [ref]))
    if span is before:
        return message
    shortened = Message(span, message.role, dialect)
    replacement = REPLACEMENT.get(message) or Replacement((message,))
    # The ref of the content cut now comes first: an edit names the first ref of its content.
    refs = [*refs[len(refs_of(message)) :], *refs_of(message)]
    REPLACEMENT.put(
        shortened, msgspec.structs.replace(replacement, refs=tuple(dict.fromkeys(refs)))
    )
    MARK.carry(message, shortened)
    return shortened


def _is_cited(whole: str, refs: Sequence[str]) -> bool:
    """Return whether a text was cited, by its ref: another result may begin with the same text."""
    sha256 = digest(canonical(whole)) if refs else ""
    return any(sha256.startswith(ref.rpartition(":")[2]) for ref in refs)


def _first_lines(citation: str) -> str:
    """Return the ref of a citation, and its description."""
    return "\n".join(citation.split("\n", 2)[:2])
