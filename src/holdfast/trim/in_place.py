"""Shorten a conversation in place, with the question in view, where the model can open no ref.

Clients without tools (aider, smolagents' CodeAgent, plain chats) cannot open citations and digests.
So the parts of older contents that match the question least are left out, the oldest first among
equal ones, and a line marks each gap. The order of removal depends on the conversation alone; the
limit decides only the number of parts.

These parts are kept: system text, messages that act by their position, messages that a user marked
or asked to have whole, the words of the latest question, and the newest message. Documents pasted
into the newest message are left out only after all other parts, and the words of the first question
after these.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

import msgspec

from holdfast.document.pasted import TextSpan, documents_in
from holdfast.store.records import Edit
from holdfast.trim.anchors import MARK
from holdfast.trim.chains import TrimState
from holdfast.trim.edits import edited
from holdfast.trim.extracts import TextPart, left_out, parts_of, without
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import REPLACEMENT, Fold, Replacement, originals_of, refs_of
from holdfast.trim.relevance import (
    PartedText,
    is_observation,
    latest_question,
    words_of,
    worth_of_parts,
)
from holdfast.wire import DIALECTS, Block, Entry, Message, Text
from holdfast.wire.message import result_texts
from holdfast.wire.strict import encode, splice_all

WHY = "it must fit, and the model has no tool that opens refs"
_RECENT = 4
"""Exchanges before the newest that are worth more than older ones."""
_MOST_NEWEST = 4
"""Maximum user messages at the end that count as the newest. Some clients send a whole history as
messages of the user, which would never fit if all of them stayed whole."""
_LONGEST_CONTEXT = 600
_WORTH_RECENT = 0.3
_WORTH_RULE = 0.1
"""Added for a message that states a rule; more than this kept small talk with "never" or "don't" in
it instead of the evidence."""


class _TextSlot(NamedTuple):
    """A text of a piece."""

    message: int
    """The index of its message in the piece."""
    block: Block | None
    """Its block; None for a piece without texts, which is left out as a whole or kept."""
    kind: str
    """Kind of content that its original is stored as."""
    text: str
    parts: Sequence[TextPart]
    last_parts: frozenset[int] = frozenset()
    """Parts, by their index, that go only after everything else."""


class _Candidate(NamedTuple):
    """A part that may be left out."""

    piece: int
    slot: int
    part: int


_Shorter = tuple[Piece, Edit] | None
"""A shortened piece and its edit; None if the piece is unchanged."""
_Parts = dict[int, set[int]]
"""Parts of a piece: their numbers, by slot."""


class InPlace:
    """Ever shorter versions of a conversation."""

    def __init__(self, pieces: Sequence[Piece], bench: Bench) -> None:
        self._pieces = pieces
        self._bench = bench
        self._newest = _newest(pieces)
        self._question = latest_question([m for piece in pieces for m in piece.messages])
        self._slots = [list(self._slots_of(n)) for n in range(len(pieces))]
        self._order = self._removal_order()
        self._shortened: dict[tuple[int, int], _Shorter] = {}
        """Shortened pieces, by piece and number of parts that are left out."""
        self._marks: dict[tuple[int, int], _Shorter] = {}
        self._refs: dict[tuple[int, int], str] = {}
        """Refs of the texts that were shortened, by piece and slot."""

    @property
    def sizes(self) -> list[float]:
        """Estimated tokens of each removable part, in the order of removal."""
        return [self._tokens(candidate) for candidate in self._order]

    # --- order of removal -------------------------------------------------------------------------

    def _slots_of(self, n: int) -> Iterator[_TextSlot]:
        piece = self._pieces[n]
        if not _may_change(piece) or (n >= self._newest and piece.kind != "user"):
            return
        has_text = False
        for at, message in enumerate(piece.messages):
            for slot in self._texts_of(n, at, message):
                has_text = True
                yield slot
        if not has_text and not self._keeps_words(n):
            yield _TextSlot(0, None, "", "", (TextPart(0, 0),))

    def _texts_of(self, n: int, at: int, message: Message) -> Iterator[_TextSlot]:
        texts = [block for block in message.blocks if isinstance(block, Text)]
        for block in texts:
            if not block.text.strip():
                continue
            free = _pasted_in(block.text, message, texts) if self._keeps_words(n) else None
            parts = parts_of(block.text, None if self._is_first_question(n) else free)
            last = _outside(parts, free or ()) if self._is_first_question(n) else frozenset()
            yield _TextSlot(at, block, "text", block.text, parts, last)
        for result, holder, text in result_texts(message):
            # An error is left out as a whole or not at all: half of one misleads.
            parts = [TextPart(0, len(text))] if result.is_error else parts_of(text)
            if text.strip():
                yield _TextSlot(at, holder, "tool_result", text, parts)

    def _keeps_words(self, n: int) -> bool:
        """Return whether only the documents in a piece can be left out."""
        anchor = self._pieces[n].anchor
        is_question = anchor is not None and anchor.type in _QUESTIONS
        return n >= self._newest or is_question

    def _is_first_question(self, n: int) -> bool:
        """Return whether a piece is the first question, and a later one has been asked.

        Its words are left out only after everything else. If they always stayed, a conversation
        with a first message larger than the window could never continue.
        """
        piece = self._pieces[n]
        is_first = piece.anchor is not None and piece.anchor.type == "first_user_message"
        is_latest = any(message is self._question for message in piece.messages)
        return is_first and not is_latest and n < self._newest

    def _removal_order(self) -> list[_Candidate]:
        places = [(n, s) for n, slots in enumerate(self._slots) for s in range(len(slots))]
        contexts = [self._context(n) for n in range(len(self._pieces))]
        texts = [
            PartedText(self._slots[n][s].text, self._slots[n][s].parts, contexts[n])
            for n, s in places
        ]
        steps: list[list[tuple[float, _Candidate]]] = [[], [], []]
        for (n, s), worths in zip(
            places, worth_of_parts(texts, words_of(self._question)), strict=True
        ):
            bonus, slot = self._bonus(n), self._slots[n][s]
            for p, worth in enumerate(worths):
                if not slot.parts[p].stays:
                    step = 2 if p in slot.last_parts else int(n >= self._newest)
                    steps[step].append((round(bonus + worth, 6), _Candidate(n, s, p)))
        # Equal ones stay in their order. To compare whole tuples took a call of 36 ms for 30 MB.
        return [candidate for step in steps for _, candidate in sorted(step, key=itemgetter(0))]

    def _context(self, n: int) -> str:
        """Return the call or message that a piece answers, if that is short."""
        piece = self._pieces[n]
        calls = [f"{call.name} {call.arguments}" for m in piece.messages for call in m.calls]
        before = self._pieces[n - 1].messages[-1] if n else None
        # The latest question itself would match best: an agent's first step is no better for it.
        if not calls and before is not None and before is not self._question:
            calls = [block.text for block in before.blocks if isinstance(block, Text)]
        context = "\n".join(calls)
        return context if len(context) <= _LONGEST_CONTEXT else ""

    def _bonus(self, n: int) -> float:
        anchor = self._pieces[n].anchor
        bonus = _WORTH_RECENT if n >= self._newest - _RECENT else 0.0
        if anchor is not None and anchor.type == "instruction_anchor":
            bonus += _WORTH_RULE
        return bonus

    def _tokens(self, candidate: _Candidate) -> float:
        part = self._slots[candidate.piece][candidate.slot].parts[candidate.part]
        piece = self._pieces[candidate.piece]
        return part.size * _rate(piece) if part.size else piece.tokens

    # --- versions ---------------------------------------------------------------------------------

    def state(self, number: int) -> TrimState:
        """Build the version without the first `number` parts in the order of removal."""
        removed: dict[int, _Parts] = {}
        for n, slot, part in islice(self._order, number):
            removed.setdefault(n, {}).setdefault(slot, set()).add(part)
        pieces: list[Piece] = []
        edits: list[Edit] = []
        for start, stop, shorter in self._shorter_pieces(removed):
            if shorter is None:
                pieces.extend(self._pieces[start:stop])
            else:
                pieces.append(shorter[0])
                edits.append(shorter[1])
        return TrimState(pieces, tuple(edits))

    def _shorter_pieces(self, gone: Mapping[int, _Parts]) -> Iterator[tuple[int, int, _Shorter]]:
        """Yield each piece, or run of removed pieces, as (start, stop, replacement)."""
        numbers = range(len(self._pieces))
        for is_out, run in groupby(numbers, key=lambda n: self._is_out(n, gone.get(n, {}))):
            places = list(run)
            if is_out:
                yield from self._runs_without(places[0], places[-1] + 1)
                continue
            for n in places:
                yield n, n + 1, self._without(n, gone[n]) if n in gone else None

    def _runs_without(self, start: int, stop: int) -> Iterator[tuple[int, int, _Shorter]]:
        """Replace a run by a line; pieces that must not be stored stay and split the run."""
        mark = self._mark(start, stop)
        if mark is not None or stop - start == 1:
            yield start, stop, mark
            return
        middle = (start + stop) // 2
        yield from self._runs_without(start, middle)
        yield from self._runs_without(middle, stop)

    def _is_out(self, n: int, gone: _Parts) -> bool:
        """Return whether all removable parts of a piece are left out, and nothing keeps it."""
        if not gone or self._keeps_words(n):
            return False
        removable = sum(not part.stays for slot in self._slots[n] for part in slot.parts)
        return _amount(gone) == removable

    def _without(self, n: int, gone: _Parts) -> _Shorter:
        """Return a piece without parts, which are always the first ones in the order of removal.

        So their number names the version: the parts of 30 MB, kept for each version, were a
        million objects, and to free them held the event loop for 200 ms.
        """
        version = n, _amount(gone)
        if version not in self._shortened:
            self._shortened[version] = self._rewritten(n, gone)
        return self._shortened[version]

    def _rewritten(self, n: int, gone: _Parts) -> _Shorter:
        piece = self._pieces[n]
        texts: dict[int, list[tuple[Block, str, str]]] = {}
        for s in sorted(gone):
            slot = self._slots[n][s]
            ref, text = self._shorter_text(n, s, gone[s])
            if ref and slot.block is not None:
                texts.setdefault(slot.message, []).append((slot.block, text, ref))
        if not texts:
            return None
        messages = tuple(
            _spliced(message, texts[at]) if at in texts else message
            for at, message in enumerate(piece.messages)
        )
        shorter = msgspec.structs.replace(piece, messages=messages)
        # Counted alone, a piece may have more tokens than within the conversation.
        share = self._bench.measure(shorter) / max(1.0, self._bench.measure(piece))
        shorter = msgspec.structs.replace(shorter, tokens=piece.tokens * share)
        what = "left out of a text what bears least on the question"
        return shorter, edited("shorten", what, WHY, [piece], shorter)

    def _shorter_text(self, n: int, s: int, numbers: set[int]) -> tuple[str, str]:
        """Return the ref of a text and its shorter version; no ref if it must not be stored."""
        slot, rate = self._slots[n][s], _rate(self._pieces[n])
        tokens = rate * sum(slot.parts[number].size for number in numbers)
        shorter = without(slot.text, slot.parts, numbers, tokens)
        if len(shorter) >= len(slot.text):
            return "", ""
        if (n, s) not in self._refs:  # once: of 30 MB, to encode and hash takes 100 ms
            data = slot.text.encode("utf-8", "surrogatepass")
            self._refs[n, s] = self._bench.keep(slot.kind, data, rate * len(slot.text))
        return self._refs[n, s], shorter

    def _mark(self, start: int, stop: int) -> _Shorter:
        if (start, stop) not in self._marks:
            self._marks[start, stop] = _line_for(self._pieces[start:stop], self._bench)
        return self._marks[start, stop]


def _amount(parts: _Parts) -> int:
    return sum(map(len, parts.values()))


_QUESTIONS = ("first_user_message", "latest_user_message")
_WHOLE = ("system_message", "custom")
"""Types of anchors of which only documents can be left out, and of which nothing can."""


def _may_change(piece: Piece) -> bool:
    if piece.kind == "system" or any(MARK.get(message) for message in piece.messages):
        return False
    if piece.anchor is None:
        return not piece.anchored  # else it acts by its place
    return piece.anchor.type not in _WHOLE


def _newest(pieces: Sequence[Piece]) -> int:
    """Return the index of the newest messages: after the model's last text, or with its calls."""
    start = len(pieces)
    users = 0
    while start and pieces[start - 1].kind in ("user", "system") and users < _MOST_NEWEST:
        start -= 1
        users += pieces[start].kind == "user"
    return max(0, start - 1) if start == len(pieces) else start


def _pasted_in(text: str, message: Message, texts: Sequence[Text]) -> list[TextSpan]:
    """Return the documents in a text; it is one itself if the question is in another text."""
    if is_observation(message):
        return []
    documents = documents_in(text)
    is_most = 2 * len(text) > sum(len(block.text) for block in texts)
    return [TextSpan(0, len(text))] if not documents and len(texts) > 1 and is_most else documents


def _outside(parts: Sequence[TextPart], documents: Sequence[TextSpan]) -> frozenset[int]:
    """Return the parts, by their index, that are not in one of the documents, given in order."""
    starts = [document.start for document in documents]
    outside = set()
    for index, part in enumerate(parts):
        before = bisect_right(starts, part.start) - 1
        if before < 0 or part.start >= documents[before].stop:
            outside.add(index)
    return frozenset(outside)


def _rate(piece: Piece) -> float:
    """Estimate the tokens of each character of a piece."""
    return piece.tokens / max(1, sum(message.size for message in piece.messages))


def _spliced(message: Message, texts: Sequence[tuple[Block, str, str]]) -> Message:
    """Return a message with other texts, each given with its block and the ref of its original."""
    dialect = DIALECTS[message.dialect]
    changes = {block.slot: encode(dialect.content(block, text)) for block, text, _ in texts}
    shorter = Message(splice_all(message.span, changes), message.role, dialect)
    refs = dict.fromkeys((*(ref for *_, ref in texts), *refs_of(message)))
    replacement = REPLACEMENT.get(message) or Replacement((message,))
    REPLACEMENT.put(shorter, msgspec.structs.replace(replacement, refs=tuple(refs)))
    return shorter


def _line_for(pieces: Sequence[Piece], bench: Bench) -> _Shorter:
    """Replace pieces by a line; None if they must not be stored."""
    originals = tuple(o for piece in pieces for m in piece.messages for o in originals_of(m))
    tokens = sum(piece.tokens for piece in pieces)
    ref = bench.keep_run(originals, tokens)
    if not ref:
        return None
    dialect = DIALECTS[bench.dialect]
    [value] = dialect.compose([Entry("user", (Text(text=left_out(len(originals), tokens)),))])
    message = Message(encode(value), "user", dialect)
    fold = Fold(pieces[0].start, pieces[-1].stop, tokens, ref_id=ref)
    REPLACEMENT.put(message, Replacement(originals, refs=(ref,), fold=fold))
    line = Piece((message,), fold.start, fold.stop, 0, "user", fold=fold)
    line = msgspec.structs.replace(line, tokens=bench.measure(line))
    what = "left out messages that bear least on the question"
    return line, edited("drop", what, WHY, pieces, line)
