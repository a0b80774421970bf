"""Ways to make a conversation shorter; each is a small object of one shape.

strategies: after pieces. A strategy turns pieces into fewer tokens' worth of pieces; it never
touches an anchor, and it does not know limits: it is told a target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Literal, Protocol

import msgspec

from holdfast.errors import SettingsError
from holdfast.store.records import Action, Edit
from holdfast.trim.edits import digest, fold, shorten_results, transcript
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.standing import STAND, refs_of

_LONGEST_TOKEN = 6
"""Characters; few texts have more for each token."""
Summarise = Callable[[str, int], str]
"""(what was said, most tokens) → a short account of it, such as a model writes."""


class Trimmed(msgspec.Struct, frozen=True):
    """What a strategy made of the pieces."""

    pieces: list[Piece]
    edits: tuple[Edit, ...]

    @property
    def tokens(self) -> float:
        """What the pieces cost together."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def removed_count(self) -> int:
        """How many messages digests stand for."""
        return sum(piece.fold.messages for piece in self.pieces if piece.fold is not None)

    @property
    def tokens_saved(self) -> int:
        """What all edits together took away."""
        return sum(made.from_tokens - made.to_tokens for made in self.edits)

    @property
    def anchors_preserved(self) -> tuple[str, ...]:
        """Where the exchanges stand that hold anchors, in the client's units."""
        return tuple(_where([piece]) for piece in self.pieces if piece.anchored)

    @property
    def summary(self) -> str:
        """What the digests say."""
        folds = [piece.fold for piece in self.pieces if piece.fold is not None]
        return "\n".join(digest(made) for made in folds)


class ContextStrategy(Protocol):
    """A way to make a conversation shorter."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def description(self) -> str:
        """What it does, in a sentence."""

    def should_trim(self, tokens: float, limit: float) -> bool:
        """Whether a conversation of so many tokens is one for this strategy."""

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> Trimmed:
        """Bring the pieces to at most `target` tokens, or as near as it can."""

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        """How many tokens a trim would save at the most."""


def edited(action: Action, what: str, why: str, old: Sequence[Piece], new: Piece) -> Edit:
    """Say what was done to pieces; what stands in their place knows it too."""
    before = sum(piece.fold.tokens if piece.fold else piece.tokens for piece in old)
    refs = (ref for message in new.messages for ref in refs_of(message))
    edit = Edit(
        action=action,
        what=what,
        why=why,
        where=_where(old),
        from_tokens=round(before),
        to_tokens=round(new.tokens),
        ref_id=next(refs, ""),
        start=old[0].start,
        stop=old[-1].stop,
    )
    before_it = {id(message) for piece in old for message in piece.messages}
    for message in new.messages:
        stand = STAND.get(message)
        if stand is not None and id(message) not in before_it:
            STAND.put(message, msgspec.structs.replace(stand, edits=(*stand.edits, edit)))
    return edit


def _folded_edit(run: Sequence[Piece], digest_piece: Piece) -> Edit:
    return edited("fold", "folded into a digest", "the oldest that may go", run, digest_piece)


def shortened_edit(why: str, old: Piece, new: Piece) -> Edit:
    """Say that results were cut."""
    return edited("shorten", "cut the middle of a tool result", why, [old], new)


def _where(pieces: Sequence[Piece]) -> str:
    first, last = pieces[0].start, pieces[-1].stop - 1
    return f"message {first}" if first == last else f"messages {first} to {last}"


class _Folding:
    """Folds the oldest runs of pieces that may go, outside a head and a tail that stay."""

    name = "fold"
    description = "Replaces the oldest exchanges by one digest for each run."

    summarise: Summarise | None = None
    summary_tokens = 300

    def __init__(self, head: int = 0, tail: int = 4) -> None:
        self.head = head
        self.tail = tail

    def should_trim(self, tokens: float, limit: float) -> bool:
        return tokens > limit

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        free = self._free(pieces)
        return sum(piece.tokens for n, piece in enumerate(pieces) if n in free)

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> Trimmed:
        free = self._free(pieces)
        excess = sum(piece.tokens for piece in pieces) - target
        chosen: set[int] = set()
        for n in sorted(free):
            if excess <= 0:
                break
            # Folding a digest again saves nothing by itself, but joins it with what follows.
            excess -= pieces[n].tokens
            chosen.add(n)
        return self._fold_runs(pieces, chosen, bench)

    def _free(self, pieces: Sequence[Piece]) -> set[int]:
        stop = len(pieces) - self.tail
        return {n for n in range(self.head, stop) if not pieces[n].anchored}

    def _fold_runs(self, pieces: list[Piece], chosen: set[int], bench: Bench) -> Trimmed:
        made: list[Piece] = []
        edits = []
        n = 0
        while n < len(pieces):
            run = []
            while n in chosen:
                run.append(pieces[n])
                n += 1
            if run and not (len(run) == 1 and run[0].fold):
                folded = self._folded(run, bench)
                if folded is not None:
                    edits.append(_folded_edit(run, folded))
                    run = [folded]
            made.extend(run)
            if n < len(pieces):
                made.append(pieces[n])
                n += 1
        return Trimmed(made, tuple(edits))

    def _folded(self, run: list[Piece], bench: Bench) -> Piece | None:
        """The digest of a run; None if none is shorter than the run itself."""
        before = sum(piece.tokens for piece in run)
        summaries: tuple[str, ...] = ("",)
        if self.summarise is not None and before >= 2 * self.summary_tokens:
            summaries = (_summary(self.summarise, transcript(run), self.summary_tokens), "")
        for summary in summaries:
            folded = fold(run, bench, summary=summary)
            tokens = bench.measure(folded)
            if tokens < before:
                return msgspec.structs.replace(folded, tokens=tokens)
        return None


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
        default_head, default_tail = PROFILES[profile]
        super().__init__(
            default_head if head is None else head, default_tail if tail is None else tail
        )


class ProgressiveStrategy:
    """Shortens tool results, the more the longer ago they were needed.

    Age is counted in the model's calls: two calls ago a result is cut to 300 characters, five
    calls ago to one line.
    """

    name = "progressive"
    description = "Shortens old tool results: the older, the shorter."

    def __init__(self, middle_age: int = 2, old_age: int = 5) -> None:
        self.middle_age = middle_age
        self.old_age = old_age

    def should_trim(self, tokens: float, limit: float) -> bool:
        return tokens > limit

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        return sum(p.tokens * 0.8 for p in pieces if p.kind == "tool" and not p.anchored)

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> Trimmed:
        calls_after = _calls_after(pieces)
        excess = sum(piece.tokens for piece in pieces) - target
        made = list(pieces)
        edits = []
        for n, piece in enumerate(pieces):
            if excess <= 0:
                break
            if piece.anchored or piece.kind != "tool" or calls_after[n] < self.middle_age:
                continue
            old = calls_after[n] >= self.old_age
            shorter = shorten_results(piece, bench, 80 if old else 300, one_line=old)
            if shorter is None:
                continue
            if shorter.tokens < piece.tokens:
                why = f"{calls_after[n]} calls ago"
                edits.append(shortened_edit(why, piece, shorter))
                excess -= piece.tokens - shorter.tokens
                made[n] = shorter
        return Trimmed(made, tuple(edits))


def _calls_after(pieces: Sequence[Piece]) -> list[int]:
    """How often the model was called after each piece."""
    after = 0
    made = []
    for piece in reversed(pieces):
        made.append(after)
        after += piece.kind in ("tool", "assistant")
    return made[::-1]


class SummarizationStrategy(_Folding):
    """Shortens old results first, then folds what is older still.

    A digest is extracted, unless `summarise` is given: then it is what that says of the folded
    messages, in about `summary_tokens`. If it fails, the digest is extracted.
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

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> Trimmed:
        # Where most must go, the oldest half of it goes at once: its results would be cut in vain.
        total = sum(piece.tokens for piece in pieces)
        halfway = (total + target) / 2
        first = Trimmed(pieces, ())
        if target < 0.5 * total:
            first = super().trim(pieces, halfway, bench)
        second = ProgressiveStrategy().trim(first.pieces, target, bench)
        if second.tokens <= target:
            return Trimmed(second.pieces, first.edits + second.edits)
        third = super().trim(second.pieces, target, bench)
        return Trimmed(third.pieces, first.edits + second.edits + third.edits)


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
