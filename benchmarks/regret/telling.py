"""Tell a recorded conversation under a rule: what was hidden and needed, and what it all cost.

telling: after rules. Where the model is about to write a run that it cannot see, and that stood in
a result or in words of the user's, it first fetches it: one more call, whose result stays in the
conversation from then on, as it would. Its own earlier words are no need: it repeats habits. Costs
are input tokens of plain price, those of the calls that fetch included.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.regret.recording import Recording
from benchmarks.regret.reuse import texts_of
from benchmarks.regret.rules import Again, Entry, Piece, Rule, Sent
from holdfast.engine.session_replay import Sight
from holdfast.errors import HoldfastError
from holdfast.wire import Message

PRICES = {"Anthropic": (0.1, 1.25), "OpenAI": (0.1, 1.0), "gpt-4o": (0.5, 1.0)}
"""Shares of the price of plain input: read from the vendor's cache, and not read from it.

OpenAI's since gpt-5; gpt-4o has the dearest cache, and is what `benchmarks replay` reckons with.
"""
LEAST_CACHED = 1_024
"""Tokens: shorter prefixes are cached by neither vendor."""
_TRIES = 3
"""How often one message is fetched in one turn: its parts may stand on several pages."""


class Need(NamedTuple):
    """A run that the model wrote and could not see."""

    turn: int
    place: int
    """Where in the client's history it stood."""
    origin: int
    """The turn that brought it."""
    run: str


class Outcome(NamedTuple):
    """One conversation under a rule."""

    sums: Counter[str]
    needs: list[Need]


def costs(tokens: float, same: float) -> dict[str, float]:
    """What a request costs of which so many tokens stood at the beginning of the one before."""
    cached = same if same >= LEAST_CACHED else 0.0
    return {
        vendor: cached * reading + (tokens - cached) * writing
        for vendor, (reading, writing) in PRICES.items()
    }


def untouched(recording: Recording, turns: int) -> Counter[str]:
    """What the first turns cost if nothing is changed, as if any request fitted."""
    frame, *each = recording.tokens
    tokens = iter(each)
    total: Counter[str] = Counter()
    before, now = 0.0, frame
    for turn in recording.turns[:turns]:
        now += sum(next(tokens) for _ in turn.added)
        total.update(costs(now, before))
        before = now
        now += sum(next(tokens) for _ in turn.answer)
    return total


def tell(recording: Recording, rule: Rule, window: int, *, fetches: bool = True) -> Outcome:
    """Tell a conversation to its end, or until a request is refused.

    Without `fetches` the model does without what it cannot see, and says the same.
    """
    telling = _Telling(recording, rule, window)
    sums, needs = telling.sums, telling.needs
    for number, turn in enumerate(recording.turns):
        for value in turn.added:
            telling.add(value, number)
            sums["results"] += value["role"] == "tool"
        try:
            telling.ask()
            for need, again in telling.missing(number):
                needs.append(need)
                if fetches:
                    telling.fetch(again, number)
        except HoldfastError:
            sums["refused"] += 1
            break
        for value in turn.answer:
            telling.add(value, number)
        sums["turns"] += 1
    sums["calls"] = len(needs)
    sums["needs"] = len({need.place for need in needs})
    sums["next"] = len({need.place for need in needs if need.origin == need.turn})
    sums.update({f"{vendor}, untouched": cost for vendor, cost in
                 untouched(recording, sums["turns"]).items()})  # fmt: skip
    return Outcome(sums, needs)


class _Telling:
    """A conversation on its way: the client's history, what the vendor saw last, and the sums."""

    def __init__(self, recording: Recording, rule: Rule, window: int) -> None:
        self.sums: Counter[str] = Counter(conversations=1)
        self.needs: list[Need] = []
        self._reuse = recording.reuse
        self._rule = rule
        self._window = window
        self._history: list[Entry] = []
        self._origins: defaultdict[int, list[int]] = defaultdict(list)
        """Where in the history each run stands that came from outside."""
        self._sight = Sight(recording.reuse)
        self._shown: list[frozenset[int]] = []
        """The runs in each message that went out last."""
        self._last: Sent | None = None

    def add(self, value: dict[str, Any], turn: int) -> None:
        """Add a message to the client's history."""
        if value["role"] in ("tool", "user"):
            for run in self._reuse.inside(texts_of(value)):
                self._origins[run].append(len(self._history))
        self._append(value, turn)

    def _append(self, value: dict[str, Any], turn: int) -> None:
        self._history.append(Entry(value, json.dumps(value).encode(), turn))

    def fetch(self, again: Again, turn: int) -> None:
        """Have the model fetch something, and ask it once more. What it brings is no origin."""
        for value in again:
            self._append(value, turn)
        self.ask()

    def ask(self) -> None:
        """Send the history under the rule, and see what the vendor charges and the model sees."""
        sent = self._rule.send(self._history)
        last, self._last = self._last, sent
        alike, same = 0, 0.0
        if last is not None and last.frame == sent.frame:
            alike = _alike(last.pieces, sent.pieces)
            same = sent.frame_tokens + sum(piece.tokens for piece in sent.pieces[:alike])
        self._look(sent.pieces, alike)
        self.sums.update(costs(sent.tokens, same))
        self.sums.update(requests=1, cited=sent.cited, rewrites=sent.rewrites,
                         over=sent.tokens > self._window)  # fmt: skip
        if last is not None and not sent.rewrites:
            self.sums.update(quiet=1, kept=same / last.tokens)  # type: ignore[call-overload]

    def _look(self, pieces: Sequence[Piece], alike: int) -> None:
        for runs in self._shown[alike:]:
            self._sight.hide(runs)
        del self._shown[alike:]
        for piece in pieces[alike:]:
            self._shown.append(self._reuse.inside(piece.texts()))
            self._sight.show(self._shown[-1])

    def missing(self, turn: int) -> Iterator[tuple[Need, Again]]:
        """What the answer of a turn needs and the model cannot see, until nothing is missing."""
        tries: Counter[int] = Counter()
        while True:
            places = {
                self._origins[run][-1]: run
                for run in reversed(self._sight.unseen(turn))
                if run in self._origins
            }
            place = next((place for place in places if tries[place] < _TRIES), None)
            if place is None:
                return
            tries[place] += 1
            run = self._reuse.runs[places[place]]
            again = self._rule.reopen(self._history, place, run)
            if again is not None:
                yield Need(turn, place, self._history[place].turn, run), again


def _alike(before: Sequence[Piece], now: Sequence[Piece]) -> int:
    """How many messages two requests begin with alike."""
    pairs = zip(before, now, strict=False)
    differing = (n for n, (a, b) in enumerate(pairs) if not _same(a.message, b.message))
    return next(differing, min(len(before), len(now)))


def _same(a: object, b: object) -> bool:
    if isinstance(a, Message) and isinstance(b, Message):
        return a is b or bytes(a.span) == bytes(b.span)
    return a == b
