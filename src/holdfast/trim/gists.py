"""The content of a digest: tools, questions and failures of the replaced messages.

A digest is a pure function of the client's messages, of their refs and of their tokens, so that
the same fold has the same bytes after a restart, and a fold of folds is the fold of all. A gist
grows by one piece at a time, and estimates the size of its digest without writing it.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, deque

import msgspec

from holdfast.quoting import FOLDED
from holdfast.trim.anchors import asks
from holdfast.trim.excerpts import error_line, plain, quote, security_line
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import REPLACEMENT, Fold, Part
from holdfast.wire import Message, Text, ToolCall, ToolResult
from holdfast.wire.notes import SingleNote

_QUOTED = 80
_QUOTED_FAILURE = 160
_MOST_QUOTES = 3
_MOST_TOOLS = 8
_MOST_REFS = 6
_LONGEST_NAME = 64
_LONGEST_SUMMARY = 6000
_FRAME_CHARACTERS = 190
"""Characters of a digest with only its place and its ref."""
_REF_CHARACTERS = 36
_CHARACTERS_PER_TOKEN = 3
"""Fewer than texts have as a rule: a digest that is guessed too small would save nothing."""
_TERSE_TOKENS = 40


class _Mention(msgspec.Struct, frozen=True):
    """The text of a digest about one message."""

    tools: tuple[str, ...] = ()
    question: str = ""
    failures: tuple[str, ...] = ()


_NOTHING = _Mention()
_MENTION: SingleNote[_Mention] = SingleNote("mention")


def _mention(message: Message) -> _Mention:
    """Return the text of a digest about one of the client's messages."""
    mention = _MENTION.get(message)
    if mention is None:
        tools, failures = [], []
        for block in message.blocks:
            if isinstance(block, ToolCall):
                tools.append(_tool_name(block.name))
            elif isinstance(block, ToolResult) and (failure := _failure(block)):
                failures.append(failure)
        question = _question(message) if asks(message) else ""
        # Most messages have nothing to mention: they share one value.
        mention = _NOTHING
        if tools or failures or question:
            mention = _Mention(tuple(tools), question, tuple(failures))
        _MENTION.put(message, mention)
    return mention


@functools.lru_cache(maxsize=1024)
def _tool_name(name: str) -> str:
    """A tool's name; also this the client chooses."""
    return plain(name, _LONGEST_NAME)


def _question(message: Message) -> str:
    texts = (b.text for b in message.blocks if isinstance(b, Text) and b.text.strip())
    # A question without words is a picture; then there is nothing to quote.
    text = next(texts, "")
    return quote(text.strip(), _QUOTED) if text else ""


def _failure(result: ToolResult) -> str:
    """The line of a result that must not vanish: an error, or a warning about security (C45)."""
    if result.is_error:
        return quote(result.text.strip().split("\n", 1)[0], _QUOTED_FAILURE)
    data = result.text.encode("utf-8", "replace")
    line = error_line(result.text) or security_line(data).decode("utf-8", "replace")
    return quote(line, _QUOTED_FAILURE) if line else ""


class Gist:
    """The content of a digest for a run of pieces."""

    def __init__(self) -> None:
        self.tokens = 0.0
        self.pieces: list[Piece] = []
        self.originals: list[Message] = []
        self.refs: dict[str, None] = {}
        self.parts: list[Part] = []
        """Those of the digests in it, as they were."""
        self._costs: list[float] = []
        self._tools: Counter[str] = Counter()
        self._tool_characters = 0
        self._questions: deque[str] = deque(maxlen=_MOST_QUOTES)
        self._question_count = 0
        self._failures: deque[str] = deque(maxlen=_MOST_QUOTES)
        self._failure_count = 0
        self._summaries: list[str] = []

    def add(self, piece: Piece) -> None:
        """Go on with the next piece."""
        self.pieces.append(piece)
        self.tokens += piece.tokens
        self._costs.append(piece.tokens if piece.fold is None else piece.fold.tokens)
        if piece.fold is not None:
            self.parts.extend(piece.fold.parts)
            self.refs.update(dict.fromkeys(piece.fold.refs))
            self._summaries.extend(filter(None, [piece.fold.summary]))
        for message in piece.messages:
            replacement = REPLACEMENT.get(message)
            if replacement is None:
                self._mention(message)
                continue
            if replacement.fold is None:
                self.refs.update(dict.fromkeys(replacement.refs))
            for original in replacement.originals:
                self._mention(original)
                original.let_texts_go()  # another message is in its place: it is not read again

    def _mention(self, original: Message) -> None:
        self.originals.append(original)
        mention = _mention(original)
        if mention is _NOTHING:
            return
        for name in mention.tools:
            if name not in self._tools and len(self._tools) < _MOST_TOOLS:
                self._tool_characters += len(name) + 8
            self._tools[name] += 1
        if mention.question:
            self._questions.append(mention.question)
            self._question_count += 1
        self._failures.extend(mention.failures)
        self._failure_count += len(mention.failures)

    @property
    def is_one_digest(self) -> bool:
        """Whether a fold of it would put a digest in the place of the same digest."""
        return len(self.pieces) == 1 and self.pieces[0].fold is not None

    @property
    def guess(self) -> float:
        """About how many tokens its digest has, without writing it."""
        characters = _FRAME_CHARACTERS + self._tool_characters
        characters += sum(map(len, self._questions)) + sum(map(len, self._failures))
        characters += sum(map(len, self._summaries))
        characters += _REF_CHARACTERS * (1 + min(_MOST_REFS, len(self.refs)))
        return characters / _CHARACTERS_PER_TOKEN

    @property
    def terse_guess(self) -> float:
        """The same for its terse digest."""
        quoted = sum(map(len, self._failures)) + sum(map(len, list(self._questions)[-1:]))
        return _TERSE_TOKENS + quoted / _CHARACTERS_PER_TOKEN

    @property
    def start(self) -> int:
        """Index of the first of the client's messages in it."""
        return self.pieces[0].start

    @property
    def stop(self) -> int:
        """Index after the last one."""
        return self.pieces[-1].stop

    def fold(self, ref: str, summary: str = "", parts: tuple[Part, ...] = ()) -> Fold:
        """Return the fold of its digest; without a new summary, earlier ones are kept."""
        summary = plain(summary or " ".join(self._summaries), _LONGEST_SUMMARY)
        # Sums of sums differ in the last digit: the same fold must come out of any order.
        tokens = round(math.fsum(self._costs), 6)
        return Fold(self.start, self.stop, tokens, summary, ref, tuple(self.refs), parts)

    def digest(self, fold: Fold, bench: Bench, *, terse: bool = False, quotations: str = "") -> str:
        """Return the text that replaces the run: the same for the same messages and quotations."""
        opens = bool(fold.ref_id and bench.opener)
        way = f'Open them: {bench.opener}("{fold.ref_id}").' if opens else ""
        if terse:
            parts = [f"{FOLDED}messages {fold.start} to {fold.stop - 1}."]
            parts.extend(filter(None, [self._asked(1), self._failed(), way]))
            return " ".join(parts) + "]"
        parts = [
            f"{FOLDED}messages {fold.start} to {fold.stop - 1} of this conversation, "
            f"{fold.messages} messages, about {fold.tokens:.0f} tokens."
        ]
        if self._tools:
            most_called = sorted(self._tools.items(), key=lambda item: (-item[1], item[0]))
            tools_text = ", ".join(
                f"{name} {number}x" for name, number in most_called[:_MOST_TOOLS]
            )
            parts.append(f"Tools called: {tools_text}.")
        parts.extend(filter(None, [self._asked(_MOST_QUOTES), self._failed()]))
        if fold.summary:
            parts.append(f"In short: {fold.summary}")
        if quotations:
            paths = ", each with its path in the ref" if opens else ""
            parts.append(f"Summed up by a model{paths}: {quotations}.")
        parts.extend(filter(None, [way]))
        if opens and fold.refs:
            parts.append("Results among them: " + ", ".join(fold.refs[:_MOST_REFS]) + ".")
        return " ".join(parts) + "]"

    def _asked(self, most: int) -> str:
        """Return the latest questions.

        If an answer follows the digest, its question is the last one here.
        """
        if not self._questions:
            return ""
        latest = list(self._questions)[-most:]
        of = f", {self._question_count} times, the last" if self._question_count > most else ""
        return f"The user asked{of}: " + "; ".join(latest) + "."

    def _failed(self) -> str:
        if not self._failures:
            return ""
        more = self._failure_count - len(self._failures)
        more_text = f", and {more} more before" if more else ""
        return "Errors and warnings among them: " + "; ".join(self._failures) + more_text + "."
