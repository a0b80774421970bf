"""Replay a recorded session through the engine as the proxy runs it, and price every request.

Where the model is about to write a run of characters that stood in a tool result or in the user's
words and stands nowhere in what it was sent, it opens the ref first: one more call, whose result
stays in the conversation. `benchmarks regret` measures needs in the same way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.regret.reuse import place_of
from benchmarks.worse.prompt_cache import Prices, SentCache, SentRequest, UntouchedCache
from benchmarks.worse.sessions import Message, RecordedSession, Turn
from benchmarks.worse.sight import ModelSight
from holdfast.cite.citation import count as count_text
from holdfast.engine import Holdfast
from holdfast.engine.options import fit_options
from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.expand import ExpandOptions, expand
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, Fitted
from holdfast.settings import Settings
from holdfast.store.opening import open_memory
from holdfast.store.records import Edit
from holdfast.tokens.counter import message_tokens
from holdfast.trim.provenance import refs_of
from holdfast.upstream.tool_finder import lazy_rules
from tests.fitting.test_citing import in_dialect
from tests.surfaces.proxy.replaying import FOLDING

MOST_SHARE, MOST_TOKENS = 0.02, 80
"""A request may grow by so much, whichever is larger, before anything is opened."""
_TRIES = 3
"""How often one message is opened in one turn: its parts may stand on several pages."""
_HIDING = FOLDING | {"cite", "repeat", "assemble"}
_OUTPUT = 5.0
"""Price of an output token in tokens of input: 5 with Claude, 8 with GPT-5, 4 with others."""


class Growth(msgspec.Struct, frozen=True):
    """A request that has more tokens than the client asked."""

    turn: int
    asked: int
    sent: int

    @property
    def tokens(self) -> int:
        """Tokens more than were asked."""
        return self.sent - self.asked

    @property
    def share(self) -> float:
        """The same as a share of what was asked."""
        return self.tokens / max(1, self.asked)

    @property
    def excess(self) -> float:
        """How often it is what is allowed; above 1 is too much."""
        return self.tokens / max(MOST_TOKENS, MOST_SHARE * self.asked)


class SessionCost(msgspec.Struct, frozen=True, kw_only=True):
    """One session, with us and without."""

    id: str
    source: str
    dialect: str
    model: str
    requests: int
    calls: int
    """Requests that only opened something."""
    needs: int
    """Messages that were hidden and needed."""
    cost: float
    untouched: float
    asked: int
    """Input tokens of all requests as the client sent them."""
    sent: int
    first: int
    """Input tokens of the first request as the client sent it."""
    edits: dict[str, int]
    late: int
    """Requests in which the tool came late, which rewrites the prefix."""
    breaks: int
    """Other requests without a fold that do not begin with all of the request before."""
    refused: bool
    above: int
    """Requests that grew by more than is allowed, before anything was opened."""
    worst: Growth

    @property
    def ratio(self) -> float:
        """Cost as a share of the untouched session's."""
        return self.cost / self.untouched if self.untouched else 1.0


def proxy_options(session: RecordedSession, settings: Settings) -> FitOptions:
    """The options with which the proxy fits the requests of such a session."""
    return msgspec.structs.replace(
        fit_options(settings),
        dialect=session.dialect,
        model=session.model,
        limit=settings.request_limit or None,
        lazy=lazy_rules(settings, (), session.dialect),
        reports_usage=True,
    )


async def replay(session: RecordedSession, settings: Settings) -> SessionCost:
    """Send every turn of a session and return what it cost."""
    replayed = _Replay(session, settings)
    for number, turn in enumerate(session.turns):
        if not await replayed.turn(number, turn):
            break
    return replayed.result()


class _Replay:
    """A session on its way through an engine of its own."""

    def __init__(self, session: RecordedSession, settings: Settings) -> None:
        self._recorded = session
        self._options = proxy_options(session, settings)
        self._engine = Holdfast(open_memory(), options=self._options)
        self._session = self._engine.session()
        self._head, self._tail, self._heads = _around(session)
        self._history: list[Message] = []
        self._encoded: list[bytes] = []
        self._opened: set[int] = set()
        """Places in the history of the calls that opened something, and of their results."""
        prices = Prices.of(session)
        self._cache, self._untouched_cache = SentCache(prices), UntouchedCache(prices)
        self._frame = 0.0
        self._sight: ModelSight | None = None
        self._sums: Counter[str] = Counter()
        self._edits: Counter[str] = Counter()
        self._needed: set[tuple[int, int]] = set()
        self._segment = 0
        self._cost = self._untouched = 0.0
        self._first: int | None = None
        self._worst = Growth(0, 0, 0)

    async def turn(self, number: int, turn: Turn) -> bool:
        """Send one turn; return False if it cannot be made to fit."""
        if turn.starts_over:
            self._start_over()
        self._add(turn.added)
        try:
            fitted = await self._fit(turn.at, starts_over=turn.starts_over)
            self._compare(number, fitted, turn)
            await self._open_needs(number, fitted, turn.at)
        except (BudgetExceededError, ContextOptimizationError):
            self._sums["refused"] = 1
            return False
        self._add(turn.answer)
        return True

    def _start_over(self) -> None:
        self._history, self._encoded, self._opened = [], [], set()
        self._segment += 1
        if self._sight is not None:
            self._sight.start_over()

    def _add(self, messages: Sequence[Message]) -> None:
        self._history += messages
        self._encoded += (json.dumps(message).encode() for message in messages)

    async def _fit(self, at: float, *, starts_over: bool = False) -> Fitted:
        """Send the history; the last message has the client's cache mark, where it sets marks."""
        messages = list(self._encoded)
        if self._recorded.dialect == "anthropic":
            messages[-1] = _marked(self._history[-1])
        body = self._head + b", ".join(messages) + self._tail
        fitted = await self._session.fit(body, self._options)
        self._engine.calibration.observe(fitted.count, fitted.count.plain)
        self._edits.update(edit.action for edit in fitted.edits)
        self._cost += self._cache.cost(_request(fitted), at)
        known = len(self._history)
        rewrites = starts_over or any(_rewrites(edit, known) for edit in fitted.edits)
        is_broken = self._cache.is_broken and not rewrites
        is_late = is_broken and any(edit.action == "offer" for edit in fitted.edits)
        self._sums.update(requests=1, late=is_late, breaks=is_broken and not is_late)
        if self._sight is None and any(edit.action in _HIDING for edit in fitted.edits):
            self._sight = ModelSight(self._recorded)
        if self._sight is not None:
            places = [n for n in range(len(self._history)) if n not in self._opened]
            self._sight.look(fitted.state.sent.messages, self._history, places)
        return fitted

    def _compare(self, number: int, fitted: Fitted, turn: Turn) -> None:
        """Price the request as the client sent it, and see by how much ours has grown."""
        asked = fitted.state.asked
        model = self._recorded.model
        opened = tuple(asked.messages[n + self._heads] for n in sorted(self._opened))
        tokens = fitted.untouched - (message_tokens(asked, opened, model, "") if opened else 0)
        if self._first is None:
            self._first = fitted.untouched
            self._frame = tokens - message_tokens(asked, asked.messages[self._heads :], model, "")
        self._untouched += self._untouched_cache.cost(
            tokens, turn.at, starts_over=turn.starts_over, frame=self._frame
        )
        self._sums.update(asked=round(tokens), sent=fitted.tokens)
        growth = Growth(number, round(tokens), fitted.tokens)
        if not opened:
            self._sums["above"] += growth.excess > 1
            self._worst = max(self._worst, growth, key=lambda each: each.excess)

    async def _open_needs(self, number: int, fitted: Fitted, at: float) -> None:
        """Open what the answer of this turn needs and the model cannot see."""
        tries: Counter[int] = Counter()
        while self._sight is not None:
            needs = self._sight.missing(number)
            place = next((place for place in needs if tries[place] < _TRIES), None)
            if place is None:
                return
            tries[place] += 1
            opening = await self._opening(fitted, place, needs[place])
            if opening:
                self._needed.add((self._segment, place))
                fitted = await self._open(opening, at)

    async def _opening(self, fitted: Fitted, place: int, run: str) -> list[Message]:
        """A call that opens the ref which holds a run, and its result; empty if none does."""
        for ref in self._refs(fitted, place + self._heads):
            stored = await self._engine.store.get(self._session.scope, ref)
            span = None if stored is None else place_of(run, stored.data.decode())
            if stored is None or span is None:
                continue
            options = ExpandOptions(around=f"characters {span[0]}-{span[1]}")
            page = expand(ref, stored.data, stored.info.kind, options, count=count_text)
            arguments = json.dumps({"ref_id": ref, "around": options.around})
            return _exchange(self._recorded.dialect, arguments, page.text, self._sums["calls"])
        return []

    @staticmethod
    def _refs(fitted: Fitted, place: int) -> Iterator[str]:
        """The refs behind which a message of the client may stand: its own first."""
        others: list[str] = []
        state = fitted.state
        for message, (start, stop) in zip(state.sent.messages, state.origins, strict=True):
            if start <= place < stop:
                yield from refs_of(message)
            others.extend(refs_of(message))
        yield from reversed(others)

    async def _open(self, opening: list[Message], at: float) -> Fitted:
        first = len(self._history)
        self._add(opening)
        self._opened.update(range(first, len(self._history)))
        self._sums["calls"] += 1
        self._cost += count_text(json.dumps(opening[0])) * _OUTPUT
        return await self._fit(at)

    def result(self) -> SessionCost:
        """What the session came to."""
        sums, recorded = self._sums, self._recorded
        return SessionCost(
            id=recorded.id,
            source=recorded.source,
            dialect=recorded.dialect,
            model=recorded.model,
            requests=sums["requests"],
            calls=sums["calls"],
            needs=len(self._needed),
            cost=self._cost,
            untouched=self._untouched,
            asked=sums["asked"],
            sent=sums["sent"],
            first=self._first or 0,
            edits=dict(self._edits),
            late=sums["late"],
            breaks=sums["breaks"],
            refused=bool(sums["refused"]),
            above=sums["above"],
            worst=self._worst,
        )


def _around(session: RecordedSession) -> tuple[bytes, bytes, int]:
    """Return the bytes before and behind the client's messages, and the number of heads."""
    frame = {**session.frame}
    heads = frame.pop(session.list_name, [])
    first = b", ".join(json.dumps(message).encode() for message in heads)
    list_name = json.dumps(session.list_name).encode()
    head = json.dumps(frame).encode()[:-1] + b", " + list_name + b": [" + first
    return head + (b", " if heads else b""), b"]}", len(heads)


def _marked(message: Message) -> bytes:
    """A message of Anthropic's with a cache mark on its last block."""
    *others, last = message["content"]
    content = [*others, {**last, "cache_control": {"type": "ephemeral"}}]
    return json.dumps({**message, "content": content}).encode()


def _request(fitted: Fitted) -> SentRequest:
    tokens = fitted.count.message_tokens
    sent = fitted.state.sent
    return SentRequest(sent.frame.hollow, fitted.tokens - sum(tokens), sent.messages, tokens)


def _rewrites(edit: Edit, known: int) -> bool:
    """Whether an edit changes on purpose what went out before."""
    return edit.action in FOLDING or (edit.action == "cite" and edit.start < known - 1)


def _exchange(dialect: str, arguments: str, text: str, number: int) -> list[Message]:
    """A call of the tool that opens refs, and its result, in a dialect."""
    function = {"name": NAME, "arguments": arguments}
    call = {"id": f"open_{number}", "type": "function", "function": function}
    chat = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": text},
        ],
    }
    body = json.loads(in_dialect(chat, dialect))
    messages: list[Message] = body["input" if dialect == "openai-responses" else "messages"][1:]
    return messages
