"""Proves of a regular expression for `re` that no text makes it slow, or says why it cannot.

`re` tries one way after the other, from one place of the text after the other. That takes time in
proportion to the text if only so many of those tries can be at the same step of the pattern at the
same place: if the automaton, with a loop in front that stands for `search`, has no step that two
ways lead back to over the same signs (Weber and Seidl, 1991; recheck looks for the same). What can
end a match wherever it stands does not count: it never fails, and the next try begins behind it.

Everything is taken too wide rather than too narrow: a pattern may be linear and not be proven. A
repeat with an upper bound counts as a loop of its own kind: it costs a factor, not a square.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from tools.automaton import Automaton, Leaf, TooManyPathsError, bits

Steps = list[dict[int, int]]
"""By leaf: those that follow it, with the pairs of signs between which they do."""

PROVEN, BOUNDED, UNPROVEN = "proven", "bounded", "unproven"
MOST_FACTOR = 3_000
"""Of steps for each sign of the text: more is no bound that a server can live with."""
_RESTARTING = frozenset({"search", "finditer", "findall", "split", "sub", "subn"})


class Verdict(NamedTuple):
    """What is known of a pattern."""

    proof: str
    factor: int = 1
    """Steps for each sign of the text that its bounded repeats may take."""
    why: str = ""
    """Of one that is not proven: the repeats that get in each other's way."""


def judge(pattern: str | bytes, flags: int, methods: frozenset[str]) -> Verdict:
    """Whether a pattern, used by some methods of `re`, takes time in proportion to its text."""
    try:
        verdicts = [
            _Proof(pattern, flags, restarts=restarts, whole=whole).verdict()
            for restarts, whole in {(m in _RESTARTING, m == "fullmatch") for m in methods}
        ]
    except TooManyPathsError:
        return Verdict(UNPROVEN, why="too many ways through it")
    order = (PROVEN, BOUNDED, UNPROVEN)
    return max(verdicts, key=lambda verdict: (order.index(verdict.proof), verdict.factor))


class _Proof(Automaton):
    """What is known of one pattern, used in one way."""

    def verdict(self) -> Verdict:
        """What can be proven."""
        hard, soft = _loops(self.hard), _loops(self.soft)
        self._safe = self._never_failing()
        for loop in soft:
            if leaf := self._doubled(loop):
                return Verdict(UNPROVEN, why=f"`{leaf.text}` can be repeated in two ways")
        for first, second in self._crossed(hard, self.hard):
            texts = (self.leaves[first].text, self.leaves[second].text)
            return Verdict(UNPROVEN, why="`{}` and `{}` take the same signs".format(*texts))
        factor = self._factor(soft)
        if factor > MOST_FACTOR:
            return Verdict(UNPROVEN, factor, why="the bounds of its repeats multiply")
        return Verdict(BOUNDED if factor > 1 else PROVEN, factor)

    def _never_failing(self) -> set[tuple[int, int]]:
        """Leaves and signs behind which a match is certain, whatever follows."""
        safe = {(n, sign) for n, leaf in enumerate(self.leaves) for sign in bits(leaf.signs)}
        safe = {state for state in safe if not (self.restarts and state[0] == 0)}
        while failing := {state for state in safe if not self._succeeds(*state, safe)}:
            safe -= failing
        # A step behind one that cannot fail may fail: then the match ends there, a step before.
        before: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for n, leaf in enumerate(self.leaves):
            for last, to in product(bits(leaf.signs), self.soft[n]):
                ends = self.ends[n] >> last * self.width
                for sign in bits(self._pairs(n, to, last)):
                    # An empty match before the first sign brings nobody further.
                    could_end = ends >> sign & 1 and not (self.restarts and n == 0)
                    before.setdefault((to, sign), set()).update(() if could_end else {(n, last)})
        while near := {state for state, all_of in before.items() if all_of <= safe} - safe:
            safe |= near
        return safe

    def _succeeds(self, n: int, sign: int, safe: set[tuple[int, int]]) -> bool:
        row = self.ends[n] >> sign * self.width & self.row
        for target, must in self.surely[n].items():
            follows = must >> sign * self.width & self.leaves[target].signs
            row |= sum(1 << each for each in bits(follows & ~row) if (target, each) in safe)
        return row == self.row

    def _doubled(self, loop: frozenset[int]) -> Leaf | None:
        """A leaf that two ways inside a loop lead back to, over the same signs: exponential."""
        if not self._is_divided(loop):
            return None
        for n in loop:
            for sign in bits(self.leaves[n].signs):
                if (n, sign) in self._safe:
                    continue
                pending = [(n, n, sign, False)]
                passed = set(pending)
                while pending:
                    one, other, last, apart = pending.pop()
                    for to, also in product(self.soft[one], self.soft[other]):
                        if to not in loop or also not in loop:
                            continue
                        both = self._pairs(one, to, last) & self._pairs(other, also, last)
                        twice = self.double[one].get(to, 0) if one == other and to == also else 0
                        for following in bits(both):
                            if (to, following) in self._safe or (also, following) in self._safe:
                                continue
                            pair = last * self.width + following
                            parts = apart or to != also or bool(twice >> pair & 1)
                            state = (to, also, following, parts)
                            if state == (n, n, sign, True):
                                return self.leaves[n]
                            if state not in passed:
                                passed.add(state)
                                pending.append(state)
        return None

    def _is_divided(self, loop: frozenset[int]) -> bool:
        """Whether some leaf of a loop is followed by the same sign in two ways."""
        for n in loop:
            taken = 0
            for to in loop & self.soft[n].keys():
                pairs = self.soft[n][to] & self.behind(self.leaves[to].signs)
                if pairs & (taken | self.double[n].get(to, 0)):
                    return True
                taken |= pairs
        return False

    def _pairs(self, n: int, to: int, sign: int, steps: Steps | None = None) -> int:
        """Signs with which one leaf follows another, behind a sign."""
        pairs = (self.soft if steps is None else steps)[n].get(to, 0)
        return int(pairs >> sign * self.width & self.leaves[to].signs)

    def _crossed(self, loops: list[frozenset[int]], steps: Steps) -> Iterator[tuple[int, int]]:
        """Leaves of two loops such that the first can be left for the second at every turn."""
        signs_of = {loop: self._signs(loop) for loop in loops}
        failing = {loop: self._signs(loop, but=self._safe) for loop in loops}
        for first, second in product(loops, loops):
            common = signs_of[first] & failing[second]
            if not common or (first is second and not self._is_divided(first)):
                continue
            if not self._reach(first, common) & second:
                continue
            for n, m in product(first, second):
                signs = self.leaves[n].signs & self.leaves[m].signs
                for sign in bits(signs):
                    if (
                        n != m
                        and (m, sign) not in self._safe
                        and self._crosses(n, m, sign, first, second, steps)
                    ):
                        yield n, m
                        break

    def _crosses(
        self,
        n: int,
        m: int,
        sign: int,
        first: frozenset[int],
        second: frozenset[int],
        steps: Steps,
    ) -> bool:
        """Whether some signs lead from n to n, from n to m, and from m to m."""
        begin = (n, m, sign)
        reached: dict[tuple[int, int, int], int] = {begin: 1 << n}
        pending = [begin]
        while pending:
            state = pending.pop()
            one, other, last = state
            between = reached[state]
            for to, also in product(steps[one], steps[other]):
                if to not in first or also not in second:
                    continue
                both = self._pairs(one, to, last, steps) & self._pairs(other, also, last, steps)
                for following in bits(both):
                    if (also, following) in self._safe:
                        continue  # once there, a match is certain, and nothing else is tried
                    leaves = self._stepped(between, last, following)
                    state = (to, also, following)
                    if leaves & ~reached.get(state, 0):
                        reached[state] = reached.get(state, 0) | leaves
                        pending.append(state)
            if reached[begin] >> m & 1:
                return True
        return False

    def _stepped(self, leaves: int, sign: int, following: int) -> int:
        after = 0
        for n in bits(leaves):
            after |= self._after(n, sign, following)
        return after

    def _after(self, n: int, sign: int, following: int) -> int:
        key = (n, sign, following)
        leaves = self._steps_after.get(key)
        if leaves is None:
            pair = sign * self.width + following
            leaves = sum(
                1 << to
                for to, pairs in self.soft[n].items()
                if pairs >> pair & 1 and self.leaves[to].signs >> following & 1
            )
            self._steps_after[key] = leaves
        return leaves

    def _signs(self, loop: frozenset[int], but: Container[tuple[int, int]] = ()) -> int:
        signs = 0
        for n in loop:
            own = self.leaves[n].signs
            signs |= sum(1 << sign for sign in bits(own) if (n, sign) not in but)
        return signs

    def _reach(self, leaves: frozenset[int], signs: int) -> set[int]:
        """What can be reached from some leaves over some signs alone."""
        pairs = self.before(signs) & self.behind(signs)
        reached, pending = set(leaves), list(leaves)
        while pending:
            for to, steps in self.soft[pending.pop()].items():
                if to not in reached and steps & pairs and self.leaves[to].signs & signs:
                    reached.add(to)
                    pending.append(to)
        return reached

    def _factor(self, loops: list[frozenset[int]]) -> int:
        """How often bounded repeats can be tried for one sign of the text, at most."""
        loop_of = {n: loop for loop in loops for n in loop}
        crossings = {(loop_of[n], loop_of[m]) for n, m in self._crossed(loops, self.soft)}
        if any(first is second for first, second in crossings):
            return MOST_FACTOR + 1  # bounds inside bounds that get in each other's way

        @cache
        def heaviest(loop: frozenset[int]) -> int:
            others = [heaviest(second) for first, second in crossings if first is loop]
            return self._weight(loop) * max(others, default=1)

        return max((heaviest(first) for first, _ in crossings), default=1)

    def _weight(self, loop: frozenset[int]) -> int:
        bounds = [self.bounds[n].get(m, 0) for n in loop for m in loop]
        return max([1, *bounds])


def _loops(steps: Steps) -> list[frozenset[int]]:
    """The strongly connected parts that have a way back."""
    reach: list[int] = [sum(1 << to for to in each) for each in steps]
    for middle in range(len(steps)):  # Warshall, with sets as bits
        through = reach[middle]
        for n, reached in enumerate(reach):
            if reached >> middle & 1:
                reach[n] = reached | through
    parts: dict[int, set[int]] = {}
    for n, reached in enumerate(reach):
        if reached >> n & 1:
            mutual = sum(1 << m for m in bits(reached) if reach[m] >> n & 1)
            parts.setdefault(mutual, set()).add(n)
    return [frozenset(part) for part in parts.values()]
