"""Prepare the requests of a session again with other settings, without sending or storing any.

replaying: after holdfast. A separate engine with a store in memory gets the requests in their
order. Its results are counted, priced with the expected state of the vendor's cache, and searched
for text that the model wrote next and could no longer see.

The search compares runs of 24 characters, with all white space as one blank and JSON escapes
decoded. Time and memory are linear in the texts: each is read once, with the runs that the model
will write.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from holdfast.cite import CitePolicy
from holdfast.engine.bill import call_cost, price_of
from holdfast.engine.holdfast import Holdfast
from holdfast.engine.vendor_cache import (
    CallTokens,
    Prefixes,
    cache_lives,
    expected_call,
    policy_of,
)
from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.store.opening import open_memory
from holdfast.store.records import Edit
from holdfast.tokens import TokenCount, count
from holdfast.tokens.prices import Price
from holdfast.wire import Conversation, Message

RUN = 24
"""Characters. Shorter ones are mostly words that two texts have by chance."""
_SUBSTANCE = 12
"""Letters and digits in a run: rules of dashes and indents are nobody's need."""
_ESCAPES = (("\\n", " "), ("\\r", " "), ("\\t", " "), ('\\"', '"'), ("\\/", "/"), ("\\\\", "\\"))


def squeezed(text: str) -> str:
    """A text as it reads."""
    if "\\" in text:
        for escape, meaning in _ESCAPES:
            text = text.replace(escape, meaning)
    return " ".join(text.split())


def strings(value: Any) -> Iterator[str]:
    """The texts in a JSON value; how deep it may be, reading it has bounded."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


class Reuse:
    """The runs that the model writes in each turn, by number, and their places."""

    def __init__(self, turns: Iterable[Sequence[str]]) -> None:
        self.numbers: dict[str, int] = {}
        self.turns = [tuple(self._written(texts)) for texts in turns]
        """The runs of each turn."""
        self.runs = list(self.numbers)
        self._read: dict[str, tuple[int, ...]] = {}

    def _written(self, texts: Sequence[str]) -> Iterator[int]:
        for text in map(squeezed, texts):
            plain = [character.isalnum() for character in text]
            substance = sum(plain[: RUN - 1])
            for n in range(len(text) - RUN + 1):
                substance += plain[n + RUN - 1]
                if substance >= _SUBSTANCE:
                    yield self.numbers.setdefault(text[n : n + RUN], len(self.numbers))
                substance -= plain[n]

    def inside(self, texts: Iterable[str]) -> frozenset[int]:
        """Return the runs that appear in some texts."""
        return frozenset(number for text in texts for number in self._inside(text))

    def _inside(self, text: str) -> tuple[int, ...]:
        numbers = self._read.get(text)
        if numbers is None:
            cached = self.numbers
            words = squeezed(text)
            slices = (words[n : n + RUN] for n in range(len(words) - RUN + 1))
            numbers = self._read[text] = tuple({cached[run] for run in slices if run in cached})
        return numbers


class Sight:
    """The text that the model sees at a time: the count of each run in it."""

    def __init__(self, reuse: Reuse) -> None:
        self._reuse = reuse
        self._times = [0] * len(reuse.numbers)

    def show(self, runs: Iterable[int]) -> None:
        """Let it see a message with these runs."""
        for run in runs:
            self._times[run] += 1

    def hide(self, runs: Iterable[int]) -> None:
        """Take a message with these runs out of its sight."""
        for run in runs:
            self._times[run] -= 1

    def unseen(self, turn: int) -> list[int]:
        """Return the runs of a turn that do not appear in it."""
        return [run for run in self._reuse.turns[turn] if not self._times[run]]


_MOST_WRITTEN = 300_000
"""Characters of answers whose reuse is searched: each begins a run."""
_FOLDS = frozenset({"fold", "shorten", "drop", "assemble"})


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with which requests are prepared again."""

    mode: Literal["fit", "assemble"] = "fit"
    policy: CitePolicy = "auto"
    limit: int = 0
    """Maximum tokens of a request; 0 for the model's limit or that of an assembled turn."""


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """What requests come to in one way."""

    requests: int = 0
    tokens: int = 0
    """Of all requests together."""
    largest: int = 0
    """Of the largest."""
    cost: float | None = None
    """Cost of the input in US dollars, with the vendor's cache; None without a known price."""
    cited: int = 0
    folded: int = 0
    """Requests in which history was folded, or assembled anew."""
    needed: int = 0
    """Messages of which the model wrote something word for word that it could not see then."""
    kept: float = 1.0
    """The share of the previously sent bytes with which a request begins again."""
    refused: int = 0
    """Number of requests that could not be fitted."""


class _SentRequest(NamedTuple):
    """One request in its sent form."""

    asked: Conversation
    sent: Conversation
    counted: TokenCount
    edits: Sequence[Edit] = ()


async def replay(
    engine: Holdfast, requests: Sequence[Conversation], model: str, way: Way | None
) -> ReplayResult:
    """Make the requests of a session ready in a way; None: send them as the client asked."""
    sent_requests: list[_SentRequest | None] = []
    make = _Making(engine, model, way) if way is not None else None
    for request in requests:
        if make is not None:
            sent_requests.append(await make.ready(request))
        else:
            counted = await asyncio.to_thread(
                count, request, model=model, calibration=engine.calibration
            )
            sent_requests.append(_SentRequest(request, request, counted))
    return await asyncio.to_thread(_told, sent_requests, model, time.time())


class _Making:
    """A separate engine for the requests of one session."""

    def __init__(self, engine: Holdfast, model: str, way: Way) -> None:
        rules = msgspec.structs.replace(engine.options.rules, policy=way.policy)
        options = msgspec.structs.replace(
            engine.options, model=model, limit=way.limit or None, rules=rules
        )
        self._way = way
        self._engine = Holdfast(
            open_memory(), options=options, calibration=engine.calibration, workers=engine.workers
        ).with_parts(embedder=engine.parts.embedder, assembling=engine.parts.assembling)
        self._session = self._engine.session()

    async def ready(self, asked: Conversation) -> _SentRequest | None:
        """A request as it would go out; None if it cannot."""
        options = msgspec.structs.replace(self._engine.options, dialect=asked.dialect)
        try:
            if self._way.mode == "assemble":
                budget = self._way.limit or self._engine.parts.assembling.tokens
                options = msgspec.structs.replace(options, limit=None)
                turn = await self._engine.histories.assemble(self._session, asked, options, budget)
                fitted = turn.fitted
            else:
                fitted = await self._session.fit(asked, options)
        except (BudgetExceededError, ContextOptimizationError):
            return None
        return _SentRequest(asked, fitted.state.sent, fitted.count, fitted.edits)


def _told(steps: Sequence[_SentRequest | None], model: str, now: float) -> ReplayResult:
    """What all of them come to."""
    ready = [step for step in steps if step is not None]
    price = price_of(model, now)
    cost, kept_shares, begins = 0.0, 0.0, 0
    for before, step in zip((None, *ready), ready, strict=False):
        shared = _alike(before, step) if before is not None else 0.0
        if before is not None:
            kept_shares, begins = kept_shares + shared / max(1, before.counted.tokens), begins + 1
        if price is not None:
            cost += float(call_cost(price, _expected(price, step, round(shared))))
    return ReplayResult(
        requests=len(ready),
        tokens=sum(step.counted.tokens for step in ready),
        largest=max((step.counted.tokens for step in ready), default=0),
        cost=cost if price is not None else None,
        cited=sum(edit.action == "cite" for step in ready for edit in step.edits),
        folded=sum(any(edit.action in _FOLDS for edit in step.edits) for step in ready),
        needed=_needed(ready),
        kept=min(1.0, kept_shares / begins) if begins else 1.0,
        refused=len(steps) - len(ready),
    )


def _expected(price: Price, step: _SentRequest, same: int) -> CallTokens:
    """Return how the provider bills a request of which it has read `same` tokens before."""
    lives = cache_lives(step.asked)
    return expected_call(step.counted.tokens, same, Prefixes(), policy_of(price), lives)


def _alike(before: _SentRequest, step: _SentRequest) -> float:
    """Tokens that two requests begin with alike: the frame, and messages up to the first other."""
    if before.sent.frame.hollow != step.sent.frame.hollow:
        return 0.0
    messages = step.counted.message_tokens
    frame = step.counted.tokens - sum(messages)
    return frame + sum(messages[: _same_messages(before.sent, step.sent)])


def _same_messages(before: Conversation, after: Conversation) -> int:
    pairs = zip(before.messages, after.messages, strict=False)
    differing = (n for n, (a, b) in enumerate(pairs) if a is not b and a.raw != b.raw)
    return next(differing, min(len(before.messages), len(after.messages)))


# --- what was needed and hidden ------------------------------------------------------------------


def _needed(steps: Sequence[_SentRequest]) -> int:
    """Messages of which something was written in an answer that it was not shown with."""
    reuse = Reuse(_written(steps))
    sight, hashes = Sight(reuse), list[frozenset[int]]()
    places: set[int] = set()
    before: _SentRequest | None = None
    for turn, step in enumerate(steps):
        alike = _same_messages(before.sent, step.sent) if before is not None else 0
        for runs in hashes[alike:]:
            sight.hide(runs)
        del hashes[alike:]
        for message in step.sent.messages[alike:]:
            hashes.append(reuse.inside(strings(message.value)))
            sight.show(hashes[-1])
        if unseen := sight.unseen(turn):
            places |= _origins(reuse, step.asked.messages, set(unseen))
        before = step
    return len(places)


def _origins(reuse: Reuse, messages: Sequence[Message], unseen: set[int]) -> set[int]:
    """The last places at which these runs came from outside: its own words are no need."""
    places: set[int] = set()
    for place in range(len(messages) - 1, -1, -1):
        if not unseen:
            break
        message = messages[place]
        if message.role in ("assistant", "system"):
            continue
        if reused := unseen & reuse.inside(strings(message.value)):
            places.add(place)
            unseen = unseen - reused
    return places


def _written(steps: Sequence[_SentRequest]) -> Iterator[list[str]]:
    """Return the model's text after each request, read from the next one; the last is unknown.

    Of very long answers only the first part is read.
    """
    remaining = _MOST_WRITTEN
    for step, after in pairwise(steps):
        texts: list[str] = []
        for message in after.asked.messages[len(step.asked.messages) :]:
            if message.role != "assistant":
                break
            for text in strings(message.value):
                texts.append(text[:remaining])
                remaining -= len(texts[-1])
        yield texts
    yield []
