"""Strategies that shorten a conversation; each is a small object with the same interface.

A strategy reduces the tokens of pieces; it never changes an anchor, and gets a target instead of a
limit. Ours are chains of states, from which the target selects one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Literal, Protocol

from holdfast.errors import SettingsError
from holdfast.trim.chains import Chain, Cut, CutChain, FoldChain, InTurn, TrimState, states
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.summaries import transcript
from holdfast.wire import Message

_LONGEST_TOKEN = 6
"""Characters; few texts have more for each token."""
Summarise = Callable[[str, int], str]
"""(text, maximum tokens) → a short account of it, such as a model writes."""


class ContextStrategy(Protocol):
    """A way to make a conversation shorter."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def description(self) -> str:
        """A description in one sentence."""

    def should_trim(self, tokens: float, limit: float) -> bool:
        """Return whether this strategy applies to a conversation of this size."""

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> TrimState:
        """Bring the pieces to at most `target` tokens, or as near as it can."""

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        """How many tokens a trim would save at the most, before an emergency."""


class ChainStrategy(ABC):
    """A strategy whose states do not depend on the target: larger targets never keep less."""

    name = ""
    description = ""

    def should_trim(self, tokens: float, limit: float) -> bool:
        return tokens > limit

    @abstractmethod
    def chain(self, pieces: list[Piece], bench: Bench) -> Chain:
        """All that it may do, step by step."""

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> TrimState:
        return next(states(self.chain(pieces, bench), target))


class _Folding(ChainStrategy):
    """Folds the oldest runs of pieces that may go, outside a head and a tail that stay."""

    name = "fold"
    description = "Replaces the oldest exchanges by one digest for each run."

    def __init__(self, head: int = 0, tail: int = 4) -> None:
        self.head = head
        self.tail = tail

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        return sum(pieces[n].tokens for n in self._free(pieces))

    def chain(self, pieces: list[Piece], bench: Bench) -> Chain:
        return FoldChain(TrimState(pieces, ()), self._free(pieces), bench)

    def _free(self, pieces: Sequence[Piece]) -> list[int]:
        stop, question = tail_of(pieces, self.tail)
        free = range(min(self.head, stop), stop)
        return [n for n in free if n != question and not pieces[n].anchored]


def tail_of(pieces: Sequence[Piece], least: int) -> tuple[int, int | None]:
    """Return the start of a tail of at least `least` pieces, and the question kept before it.

    A turn is a question and all that follows up to the next. A tail begins with a turn; of a turn
    that would more than double it (a hundred calls after one question), only the question is kept.
    """
    start = max(0, len(pieces) - least)
    if start in (0, len(pieces)) or pieces[start].asks:
        return start, None
    for n in range(start - 1, -1, -1):
        if pieces[n].fold is not None:
            break  # if the question is in there, it is quoted
        if pieces[n].asks:
            return (n, None) if start - n <= least else (start, n)
    return start, None


def _summary(summarise: Summarise, text: str, most: int) -> str:
    try:
        return str(summarise(text, most)).strip()[: most * _LONGEST_TOKEN]
    except Exception:  # noqa: BLE001 - another's code, perhaps over a network: we fold without it
        return ""


class FoldStrategy(_Folding):
    """Replaces the oldest exchanges by a digest; keeps the last ones whole."""


PROFILES: dict[str, tuple[int, int]] = {
    "chat": (3, 5),
    "lean": (1, 8),
    "coding": (2, 10),
    "research": (2, 6),
}
"""Exchanges kept at the head and at the tail, by kind of conversation."""


class FrozenHeadsTailsStrategy(_Folding):
    """Keeps the first and the last exchanges, and folds the middle."""

    name = "heads_tails"
    description = "Keeps the first and the last exchanges, and folds the middle."

    def __init__(
        self,
        profile: Literal["chat", "lean", "coding", "research"] = "chat",
        head: int | None = None,
        tail: int | None = None,
    ) -> None:
        if profile not in PROFILES:
            raise SettingsError(
                "there is no profile of this name",
                where="profile",
                fix=f"Use one of {', '.join(PROFILES)}.",
            )
        default_head, default_tail = PROFILES[profile]
        super().__init__(
            default_head if head is None else head, default_tail if tail is None else tail
        )


class ProgressiveStrategy(ChainStrategy):
    """Shortens tool results, the more the longer ago they were needed.

    Age is counted in the model's calls: two calls ago a result is cut to 300 characters, five
    calls ago to one line.
    """

    name = "progressive"
    description = "Shortens old tool results: the older, the shorter."

    def __init__(self, middle_age: int = 2, old_age: int = 5) -> None:
        self.middle_age = middle_age
        self.old_age = old_age

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        return sum(p.tokens * 0.8 for p in pieces if p.kind == "tool" and not p.anchored)

    def chain(self, pieces: list[Piece], bench: Bench) -> Chain:
        cuts = []
        for n, calls in enumerate(_calls_after(pieces)):
            piece = pieces[n]
            if piece.anchored or piece.kind != "tool" or calls < self.middle_age:
                continue
            old = calls >= self.old_age
            cuts.append(Cut(n, 80 if old else 300, f"{calls} calls ago", one_line=old))
        return CutChain(pieces, cuts, bench)


def _calls_after(pieces: Sequence[Piece]) -> list[int]:
    """How often the model was called after each piece."""
    after = 0
    calls = []
    for piece in reversed(pieces):
        calls.append(after)
        after += piece.kind in ("tool", "assistant")
    return calls[::-1]


class SummarizationStrategy(_Folding):
    """Shortens old results first, then folds even older exchanges.

    The digest is extracted, or written by `summarise` in about `summary_tokens`; if that fails, it
    is extracted. A session with a queue calls no model while a request waits: see
    trim/summaries.py.
    """

    name = "summarise"
    description = "Shortens old tool results, then folds the oldest exchanges into a digest."

    def __init__(
        self,
        head: int = 0,
        tail: int = 4,
        *,
        summarise: Summarise | None = None,
        summary_tokens: int = 300,
    ) -> None:
        super().__init__(head, tail)
        self.summarise = summarise
        self.summary_tokens = summary_tokens

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        folded = set(self._free(pieces))
        remaining = [piece for n, piece in enumerate(pieces) if n not in folded]
        return super().estimate_savings(pieces) + ProgressiveStrategy().estimate_savings(remaining)

    def chain(self, pieces: list[Piece], bench: Bench) -> Chain:
        def then(cut: TrimState) -> Chain:
            return FoldChain(
                cut,
                self._free(cut.pieces),
                bench,
                tell=self._tell if self.summarise is not None else None,
                told_tokens=self.summary_tokens,
            )

        return InTurn(ProgressiveStrategy().chain(pieces, bench), then)

    def _tell(self, messages: Sequence[Message]) -> str:
        if self.summarise is None:
            return ""
        return _summary(self.summarise, "\n".join(transcript(messages)), self.summary_tokens)


STRATEGIES: dict[str, ContextStrategy] = {
    strategy.name: strategy
    for strategy in (
        SummarizationStrategy(),
        FoldStrategy(),
        FrozenHeadsTailsStrategy(),
        ProgressiveStrategy(),
    )
}
"""Every strategy, by name."""


ENTRY_POINTS = "holdfast.strategies"
"""The group of entry points under which other packages offer strategies, by name."""


def strategy_named(name: str) -> ContextStrategy:
    """Look a strategy up, also among other packages', or raise SettingsError with our names."""
    for point in entry_points(group=ENTRY_POINTS, name=name) if name not in STRATEGIES else ():
        STRATEGIES[name] = point.load()()
    if name not in STRATEGIES:
        raise SettingsError(
            "there is no strategy of this name",
            where="strategy",
            fix=f"Use one of auto, {', '.join(STRATEGIES)}.",
        )
    return STRATEGIES[name]
