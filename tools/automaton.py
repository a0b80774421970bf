r"""A regular expression for `re` as an automaton: which sign can be taken behind which, and where.

automaton: before linear. Each place of the pattern that takes a sign is a leaf; from leaf to leaf
leads what takes none, under a condition on the two signs around it (`\b`, `$`, a look at one sign,
the end of a possessive repeat). Everything is taken too wide rather than too narrow, except for
what says that a match is certain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, NamedTuple

Items = Sequence[tuple[Any, Any]]

_SPELT_OUT = 8
"""Repeats up to here are written out, longer ones are loops."""
_MOST_PATHS = 100_000
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_SIGNS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_SAMPLES = [chr(code) for code in range(256)] + list(
    "\u0131\u017f\u212a\u03a9\u0663\u4e2d\u2028\u3000\ud800\U0001f600\u20ac\u2026"
)
"""Signs of every kind that a class can name; those that a pattern itself names come on top."""


class TooManyPathsError(Exception):
    """A pattern has more ways through it than can be looked at."""


class _Edge(NamedTuple):
    """A way between two nodes that takes no sign, under a condition on the signs around it."""

    to: int
    may: int
    """Pairs of signs, before and behind, between which it may be gone."""
    must: int
    """Those between which it surely can be."""
    bound: int = 0
    """How often it may be gone, where it leads back and that is limited."""


class Leaf(NamedTuple):
    """A place of the pattern that takes one sign."""

    signs: int
    """Classes of signs, as bits."""
    entry: int
    exit: int
    text: str


class Automaton:
    """A pattern as steps between its leaves."""

    def __init__(self, pattern: str | bytes, flags: int, *, restarts: bool, whole: bool) -> None:
        self._is_bytes = isinstance(pattern, bytes)
        self._flags = flags
        self.restarts = restarts
        tree = _parser.parse(pattern, flags & ~sre.SRE_FLAG_DEBUG)
        self._groups: dict[int, Items] = {}
        self._atomic = _has_atoms(tree)
        self._classify(tree)
        self._steps_after: dict[tuple[int, int, int], int] = {}
        self._edges: list[list[_Edge]] = []
        self.leaves: list[Leaf] = []
        start = self._node()
        if restarts:  # a leaf that takes any sign, as often as it likes
            before, start = start, self._leaf(self._any_sign, start, "the start")
            self._link(start, before)
        end = self._build(tree, start, flags)
        self._accept = self._node()
        ending = self.behind(1 << self._count) if whole else self._all
        self._edges[end].append(_Edge(self._accept, ending, ending))
        self._connect()

    # --- signs -----------------------------------------------------------------------------------

    def _classify(self, tree: Items) -> None:
        """Put signs that no leaf tells apart into one class."""
        leaves = {(str(item), flags): (item, flags) for item, flags in _leaves(tree, self._flags)}
        if any(op in (sre.AT, sre.ASSERT, sre.ASSERT_NOT) for op, _ in _all_items(tree)):
            for probe in (r"\n", r"\w"):
                item = _parser.parse(probe)[0]
                leaves[probe, 0] = item, self._flags & ~re.IGNORECASE
        signs = [chr(code) for code in range(256)] if self._is_bytes else self._samples(tree)
        kinds: dict[tuple[bool, ...], int] = {}
        members: list[str] = []
        tests = [self._test(item, flags) for item, flags in leaves.values()]
        for sign in signs:
            kind = tuple(test(sign) for test in tests)
            if kinds.setdefault(kind, len(kinds)) == len(members):
                members.append(sign)
        self._count = len(members)
        self.width = self._count + 1  # before the first sign and behind the last there is none
        self._any_sign = (1 << self._count) - 1
        self._all = (1 << self.width * self.width) - 1
        self.row = (1 << self.width) - 1
        self._sets = {
            key: sum(test(sign) << n for n, sign in enumerate(members))
            for key, test in zip(leaves, tests, strict=True)
        }

    def _samples(self, tree: Items) -> list[str]:
        named = set(_SAMPLES)
        for op, argument in _all_items(tree):
            for kind, value in argument if op is sre.IN else [(op, argument)]:
                for code in {sre.LITERAL: [value], sre.NOT_LITERAL: [value]}.get(
                    kind, value if kind is sre.RANGE else []
                ):
                    around = range(max(0, code - 1), min(sys.maxunicode, code + 1) + 1)
                    named.update(map(chr, around))
        return sorted(named)

    def _test(self, item: tuple[Any, Any], flags: int) -> Callable[[str], bool]:
        """Whether a leaf takes a sign: asked of `re` itself."""
        compiled = _one_sign(item, flags, is_bytes=self._is_bytes)
        if self._is_bytes:
            return lambda sign: compiled.match(sign.encode("latin-1")) is not None
        return lambda sign: compiled.match(sign) is not None

    def _set(self, item: tuple[Any, Any], flags: int) -> int:
        return self._sets[str(item), flags]

    def before(self, signs: int) -> int:
        """Pairs whose first is one of some signs."""
        return sum(self.row << n * self.width for n in range(self.width) if signs >> n & 1)

    def behind(self, signs: int) -> int:
        """Pairs whose second is one of some signs."""
        return sum(signs << n * self.width for n in range(self.width))

    # --- the automaton ---------------------------------------------------------------------------

    def _node(self) -> int:
        self._edges.append([])
        return len(self._edges) - 1

    def _link(self, at: int, to: int, may: int = -1, must: int | None = None) -> None:
        may = self._all if may == -1 else may
        must = may if must is None else must
        # Where a group commits itself, what an assertion would have let through may be lost.
        if self._atomic and must != self._all:
            must = 0
        self._edges[at].append(_Edge(to, may, must))

    def _leaf(self, signs: int, at: int, text: str) -> int:
        end = self._node()
        self.leaves.append(Leaf(signs, at, end, text))
        return end

    def _build(self, items: Items, at: int, flags: int) -> int:
        for op, argument in items:
            if op in _SIGNS:
                own = self._node()
                self._link(at, own)
                at = self._leaf(self._set((op, argument), flags), own, _named(op, argument))
            elif op in _REPEATS:
                at = self._repeat(op, argument, at, flags)
            else:
                at = self._other(op, argument, at, flags)
        return at

    def _other(self, op: Any, argument: Any, at: int, flags: int) -> int:
        end = self._node()
        if op is sre.SUBPATTERN:
            group, added, removed, inner = argument
            self._groups[group] = inner
            self._link(self._build(inner, at, (flags | added) & ~removed), end)
        elif op is sre.ATOMIC_GROUP:
            inner = list(argument)
            if len(inner) == 1 and inner[0][0] is sre.MAX_REPEAT:
                return self._repeat(sre.POSSESSIVE_REPEAT, inner[0][1], at, flags)
            self._link(self._build(inner, at, flags), end)
        elif op is sre.BRANCH:
            for branch in argument[1]:
                self._link(self._build(branch, at, flags), end)
        elif op is sre.AT:
            may, must = self._at(argument, flags)
            self._link(at, end, may, must)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            direction, inner = argument
            self._look(op is sre.ASSERT, direction, inner, (at, end), flags)
        elif op is sre.GROUPREF:
            self._again(self._groups.get(argument, ()), at, end, flags)
        elif op is sre.GROUPREF_EXISTS:
            for branch in argument[1:]:
                self._link(self._build(branch or (), at, flags), end)
        elif op is not sre.FAILURE:
            raise NotImplementedError(op)
        return end

    def _repeat(self, op: Any, argument: Any, at: int, flags: int) -> int:
        least, most, body = argument
        if most is not sre.MAXREPEAT and most <= _SPELT_OUT:
            end = self._node()
            for n in range(most):
                if n >= least:
                    self._link(at, end)
                at = self._build(body, at, flags)
            self._link(at, end)
            return end
        # The first of several is apart: only behind it can a match end.
        apart = min(least, _SPELT_OUT)
        if apart and len(list(_leaves(body, flags))) > _SPELT_OUT:
            apart -= 1
        for _ in range(apart):
            at = self._build(body, at, flags)
        leaving = self._all
        if op is sre.POSSESSIVE_REPEAT and most is sre.MAXREPEAT:
            leaving = self.behind(self.row & ~self._sure(body, flags))
        entry, end = self._node(), self._node()
        self._link(at, entry)
        last = self._build(body, entry, flags)
        bound = 0 if most is sre.MAXREPEAT else most
        self._edges[last].append(_Edge(entry, self._all, self._all, bound))
        self._edges[last].append(_Edge(end, leaving, leaving))
        if least <= apart:
            self._edges[at].append(_Edge(end, leaving, leaving))
        return end

    def _sure(self, body: Items, flags: int) -> int:
        """Signs that a body surely takes: a possessive repeat is not left before one of them."""
        items = list(body)
        if len(items) != 1:
            return 0
        op, argument = items[0]
        if op in _SIGNS:
            return self._set((op, argument), flags)
        if op in _REPEATS and argument[0] <= 1:
            return self._sure(argument[2], flags)
        if op is sre.SUBPATTERN:
            return self._sure(argument[3], (flags | argument[1]) & ~argument[2])
        if op is sre.BRANCH:
            signs = 0
            for branch in argument[1]:
                signs |= self._sure(branch, flags)
            return signs
        return 0

    def _at(self, where: Any, flags: int) -> tuple[int, int]:
        nothing = 1 << self._count
        if where is sre.AT_BEGINNING_STRING:
            pairs = self.before(nothing)
            return pairs, pairs
        if where is sre.AT_END_STRING:
            pairs = self.behind(nothing)
            return pairs, pairs
        newline, word = self._sets[r"\n", 0], self._sets[r"\w", 0]
        if where is sre.AT_BEGINNING:
            pairs = self.before(nothing | (newline if flags & re.MULTILINE else 0))
            return pairs, pairs
        if where is sre.AT_END:
            pairs = self.behind(nothing | newline)
            return pairs, pairs if flags & re.MULTILINE else self.behind(nothing)
        others = self.row & ~word
        boundary = self.before(word) & self.behind(others) | self.before(others) & self.behind(word)
        pairs = boundary if where is sre.AT_BOUNDARY else self._all & ~boundary
        return pairs, pairs

    def _look(
        self, is_wanted: bool, direction: int, body: Items, ends: tuple[int, int], flags: int
    ) -> None:
        at, end = ends
        sides = self.behind if direction > 0 else self.before
        items = list(body)
        if len(items) == 1 and items[0][0] in _SIGNS:
            signs = self._set(items[0], flags)
            self._link(at, end, sides(signs if is_wanted else self.row & ~signs))
            return
        may = self._all
        if direction > 0:  # backwards `re` looks over a fixed number of signs
            first = items[0] if items else (None, None)
            if is_wanted and first[0] in _SIGNS:
                may = self.behind(self._set(first, flags))
            aside = self._node()
            self._link(at, aside)
            self._build(items, aside, flags)  # it ends there: nothing goes on from a look ahead
        self._link(at, end, may, 0)

    def _again(self, body: Items, at: int, end: int, flags: int) -> None:
        """What a group took once more; if that may be long, anything."""
        items = list(body)
        signs = self._any_sign
        if len(items) == 1 and items[0][0] in _SIGNS:
            signs = self._set(items[0], flags)
        else:
            self._link(at, end)
        own = self._node()
        self._link(at, own)
        last = self._leaf(signs, own, "a group again")
        self._link(last, end)
        if signs == self._any_sign:
            self._link(last, own)

    def _connect(self) -> None:
        """From leaf to leaf: the pairs of signs between which one follows the other."""
        entries = {leaf.entry: n for n, leaf in enumerate(self.leaves)}
        size = len(self.leaves)
        self.hard: list[dict[int, int]] = [{} for _ in range(size)]
        """Without the ways back of bounded repeats."""
        self.soft: list[dict[int, int]] = [{} for _ in range(size)]
        self.double: list[dict[int, int]] = [{} for _ in range(size)]
        """Pairs between which several ways lead from one to the other."""
        self.ends = [0] * size
        self.surely: list[dict[int, int]] = [{} for _ in range(size)]
        self.bounds: list[dict[int, int]] = [{} for _ in range(size)]
        paths = 0
        for n, leaf in enumerate(self.leaves):
            pending = [(leaf.exit, self._all, self._all, 0, frozenset({leaf.exit}))]
            while pending:
                node, may, must, bound, passed = pending.pop()
                paths += 1
                if paths > _MOST_PATHS:
                    raise TooManyPathsError
                if node == self._accept:
                    self.ends[n] |= must
                target = entries.get(node)
                if target is not None:
                    self._follow(n, target, may, must, bound)
                    continue
                for edge in self._edges[node]:
                    both = may & edge.may
                    if both and edge.to not in passed:
                        times = max(bound, 1) * edge.bound or bound
                        way = (edge.to, both, must & edge.must, times, passed | {edge.to})
                        pending.append(way)

    def _follow(self, n: int, target: int, may: int, must: int, bound: int) -> None:
        may &= self.before(self.leaves[n].signs) & self.behind(self.leaves[target].signs)
        if not may:
            return
        soft, double = self.soft[n], self.double[n]
        double[target] = double.get(target, 0) | soft.get(target, 0) & may
        soft[target] = soft.get(target, 0) | may
        self.surely[n][target] = self.surely[n].get(target, 0) | must
        if bound:
            self.bounds[n][target] = max(bound, self.bounds[n].get(target, 0))
        else:
            self.hard[n][target] = self.hard[n].get(target, 0) | may


# --- parsed patterns -----------------------------------------------------------------------------


_compiled_leaves: dict[tuple[str, int, bool], re.Pattern[Any]] = {}


def _one_sign(item: tuple[Any, Any], flags: int, *, is_bytes: bool) -> re.Pattern[Any]:
    key = (str(item), flags, is_bytes)
    if key not in _compiled_leaves:
        state = _parser.State()
        state.flags = flags & ~re.VERBOSE
        state.str = b"" if is_bytes else ""
        _compiled_leaves[key] = _compiler.compile(_parser.SubPattern(state, [item]), flags)
    return _compiled_leaves[key]


def _inner(item: tuple[Any, Any], flags: int) -> Iterator[tuple[Items, int]]:
    op, argument = item
    if op is sre.SUBPATTERN:
        yield argument[3], (flags | argument[1]) & ~argument[2]
    elif op in _REPEATS:
        yield argument[2], flags
    elif op is sre.BRANCH:
        yield from ((branch, flags) for branch in argument[1])
    elif op in (sre.ASSERT, sre.ASSERT_NOT):
        yield argument[1], flags
    elif op is sre.ATOMIC_GROUP:
        yield argument, flags
    elif op is sre.GROUPREF_EXISTS:
        yield from ((branch, flags) for branch in argument[1:] if branch)


def _leaves(items: Items, flags: int) -> Iterator[tuple[tuple[Any, Any], int]]:
    for item in items:
        if item[0] in _SIGNS:
            yield item, flags
        for inner, own in _inner(item, flags):
            yield from _leaves(inner, own)


def _all_items(items: Items) -> Iterator[tuple[Any, Any]]:
    for item in items:
        yield item
        for inner, _ in _inner(item, 0):
            yield from _all_items(inner)


def _has_atoms(tree: Items) -> bool:
    """Whether a group commits itself to more than a run of signs."""
    for op, argument in _all_items(tree):
        if op is sre.ATOMIC_GROUP:
            return True
        if op is sre.POSSESSIVE_REPEAT:
            body = list(argument[2])
            if len(body) != 1 or body[0][0] not in _SIGNS:
                return True
    return False


def _named(op: Any, argument: Any) -> str:
    """A leaf in a few words, for people who look for it in the pattern."""
    if op is sre.LITERAL:
        return chr(argument)
    if op is sre.ANY:
        return "."
    if op is sre.NOT_LITERAL:
        return f"[^{chr(argument)}]"
    parts = []
    for kind, value in argument:
        if kind is sre.NEGATE:
            parts.append("^")
        elif kind is sre.RANGE:
            parts.append(f"{chr(value[0])}-{chr(value[1])}")
        elif kind is sre.CATEGORY:
            name = str(value).rpartition("_")[2].lower()[0]
            parts.append("\\" + (name.upper() if "NOT" in str(value) else name))
        else:
            parts.append(chr(value))
    return f"[{''.join(parts)}]"


def bits(number: int) -> Iterator[int]:
    """The places of the ones in a number."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
