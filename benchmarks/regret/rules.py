"""The rules that are compared: each takes a client's history and gives what the model is sent.

rules: after recording. Ours is the engine itself, with its state, turn by turn, as the proxy drives
it. LangChain's is its own class where it is installed. Anthropic's runs on its servers: it is
written here by hand from its documentation (context editing, clear_tool_uses_20250919).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import holdfast
from benchmarks.regret.recording import MODEL, Recording
from benchmarks.regret.reuse import place_of, texts_of
from holdfast.cite.citation import count
from holdfast.expand import ExpandOptions, expand
from holdfast.expand.tool import NAME
from holdfast.fitting import HIGH_WATER, FitOptions, FitState, fit_request
from holdfast.store.records import Content, Edit
from holdfast.trim.provenance import refs_of
from holdfast.wire import Message
from tests.surfaces.proxy.replaying import FOLDING

TRIGGER, KEEP = 100_000, 3
"""The defaults of both clearing rules: input tokens, and results that stay."""
_CLEARED = "[cleared]"


class Piece(NamedTuple):
    """A message as the model is sent it."""

    message: object
    """Equal to another if its bytes are."""
    texts: Callable[[], Iterable[str]]
    """What it says, read when it is asked for: most of a request stood in the one before."""
    tokens: float


class Sent(NamedTuple):
    """A request as the model is sent it."""

    frame: bytes
    frame_tokens: float
    pieces: list[Piece]
    cited: int
    """Results that were taken out with this request."""
    rewrites: bool
    """Whether it changes on purpose what went out before: a fold, a batch of citations."""

    @property
    def tokens(self) -> float:
        return self.frame_tokens + sum(piece.tokens for piece in self.pieces)


class Entry(NamedTuple):
    """A message in the client's history."""

    value: dict[str, Any]
    encoded: bytes
    turn: int
    """In which turn it came."""


Again = tuple[dict[str, Any], dict[str, Any]]
"""A call that fetches something once more, and its result."""


class Rule(Protocol):
    """One conversation under a rule."""

    def send(self, history: Sequence[Entry]) -> Sent:
        """The request of the next turn."""

    def reopen(self, history: Sequence[Entry], place: int, run: str) -> Again | None:
        """What brings back a run that stood in a message; None if nothing does."""


def call_of(name: str, arguments: str, number: int) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"id": f"again_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result_of(text: str, number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"again_{number}", "content": text}


# --- ours -----------------------------------------------------------------------------------------


class Engine:
    """The engine with its state; what leaves a request is kept, as a store would."""

    def __init__(self, recording: Recording, options: FitOptions) -> None:
        head = json.dumps(recording.frame).encode()
        self._head = head[:-1] + b', "messages": ['
        self._options = options
        self._state: FitState | None = None
        self._contents: dict[str, Content] = {}

    def send(self, history: Sequence[Entry]) -> Sent:
        body = self._head + b", ".join(entry.encoded for entry in history) + b"]}"
        before = 0 if self._state is None else len(self._state.asked.messages)
        fitted = fit_request(body, self._options, state=self._state)
        self._state = fitted.state
        self._contents.update((content.ref_id, content) for content in fitted.contents)
        tokens = fitted.count.message_tokens
        sent = fitted.state.sent
        pieces = [
            Piece(message, partial(_texts, message), each)
            for message, each in zip(sent.messages, tokens, strict=True)
        ]
        return Sent(
            frame=sent.frame.hollow,
            frame_tokens=fitted.tokens - sum(tokens),
            pieces=pieces,
            cited=sum(edit.action == "cite" for edit in fitted.edits),
            rewrites=any(_rewrites(edit, before) for edit in fitted.edits),
        )

    def reopen(self, history: Sequence[Entry], place: int, run: str) -> Again | None:
        for ref in self._refs(place):
            content = self._contents[ref]
            span = place_of(run, content.data.decode())
            if span is not None:
                around = f"characters {span[0]}-{span[1]}"
                call = call_of(NAME, json.dumps({"ref_id": ref, "around": around}), len(history))
                return call, result_of(_opened(content, around), len(history))
        return None

    def _refs(self, place: int) -> Iterator[str]:
        """The refs behind which a message may stand: first that of what stands in its place."""
        assert self._state is not None
        for message, (start, stop) in zip(
            self._state.sent.messages, self._state.origins, strict=True
        ):
            if start <= place < stop:
                yield from (ref for ref in refs_of(message) if ref in self._contents)
        yield from reversed(self._contents)


def _opened(content: Content, around: str) -> str:
    """What surrounds a place, as much as the tool gives by itself.

    A model knows no characters, but the lines, rows or words to ask for; it gets as much.
    """
    options = ExpandOptions(around=around)
    return expand(content.ref_id, content.data, content.kind, options, count=count).text


def _texts(message: Message) -> Iterator[str]:
    return texts_of(message.value)


def _rewrites(edit: Edit, before: int) -> bool:
    """Return whether an edit changes on purpose what went out before.

    A tool that is offered late does: it comes where the citation saves more than the cache held.
    """
    if edit.action == "offer":
        return before > 0
    return edit.action in FOLDING or (edit.action == "cite" and edit.start < before)


# --- the peers ------------------------------------------------------------------------------------

Clear = Callable[[Sequence[Entry], Sequence[float]], Sequence[int]]
"""Which messages of a history are cleared, given the tokens of each."""


class Clearing:
    """A rule that clears old tool results once a conversation is long."""

    def __init__(self, recording: Recording, clear: Clear) -> None:
        frame = {**recording.frame, "messages": []}
        self._frame = json.dumps(recording.frame).encode()
        self._frame_tokens = holdfast.count(frame, dialect="openai-chat", model=MODEL).tokens
        self._clear = clear
        self._tokens: list[float] = []
        self._cleared: set[int] = set()

    def send(self, history: Sequence[Entry]) -> Sent:
        new = [entry.value for entry in history[len(self._tokens) :]]
        counted = holdfast.count({"messages": new}, dialect="openai-chat", model=MODEL)
        self._tokens += counted.message_tokens
        cleared = set(self._clear(history, [self._frame_tokens, *self._tokens]))
        fresh = cleared - self._cleared
        self._cleared = cleared
        pieces = [
            self._piece(entry, tokens, cleared=n in cleared)
            for n, (entry, tokens) in enumerate(zip(history, self._tokens, strict=True))
        ]
        return Sent(self._frame, self._frame_tokens, pieces, len(fresh), bool(fresh))

    def _piece(self, entry: Entry, tokens: float, *, cleared: bool) -> Piece:
        if not cleared:
            return Piece(entry.encoded, partial(texts_of, entry.value), tokens)
        spared = count(str(entry.value["content"])) - count(_CLEARED)
        return Piece((entry.encoded, _CLEARED), tuple, tokens - spared)

    def reopen(self, history: Sequence[Entry], place: int, run: str) -> Again | None:  # noqa: ARG002
        """The tool is called again, and says the same: there is nothing to open."""
        result = history[place].value
        calls = (c for e in history[:place] for c in e.value.get("tool_calls") or ())
        call = next((c for c in calls if c["id"] == result.get("tool_call_id")), None)
        if call is None:
            return None
        again = call_of(**call["function"], number=len(history))
        return again, result_of(str(result["content"]), len(history))


def clear_tool_uses(window: int) -> Clear:
    """Anthropic's: over the trigger all results but the last three go, oldest first.

    The client's history stays whole and every request is judged anew, so that the set that is
    cleared grows with each call.
    """
    trigger = trigger_for(window)

    def clear(history: Sequence[Entry], tokens: Sequence[float]) -> Sequence[int]:
        if sum(tokens) <= trigger:
            return ()
        return [n for n, entry in enumerate(history) if entry.value["role"] == "tool"][:-KEEP]

    return clear


def trigger_for(window: int) -> int:
    """Theirs, or what leaves room in a window that it would never be reached in."""
    return min(TRIGGER, round(HIGH_WATER * window))


def langchain_clears(window: int) -> Clear:
    """LangChain's own class, with its own way of counting."""
    from langchain.agents.middleware import ClearToolUsesEdit  # noqa: PLC0415
    from langchain_core.messages import convert_to_messages  # noqa: PLC0415
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415

    edit = ClearToolUsesEdit(trigger=trigger_for(window))
    chain: list[Any] = []
    each: list[int] = []

    def clear(history: Sequence[Entry], _tokens: Sequence[float]) -> Sequence[int]:
        new = convert_to_messages([entry.value for entry in history[len(chain) :]])
        chain.extend(new)
        each.extend(count_tokens_approximately([message]) for message in new)
        edited = list(chain)
        edit.apply(edited, count_tokens=lambda _: sum(each))
        return [n for n, message in enumerate(edited) if message is not chain[n]]

    return clear
