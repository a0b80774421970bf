"""Attacks on a regular expression, derived from the expression itself, and the growth of its time.

As `recheck` does, each repeat of a pattern is pumped: after its prefix, with its own text, before a
suffix that fails. The same pieces are also alternated, halved, nested and nearly matched. Time is
CPU time, so that a busy machine changes nothing.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]
from tools.linear import PROVEN
from tools.patterns import ARGUED, Use, inventory, proof

ROOT = Path(__file__).parents[2]

Items = Sequence[tuple[Any, Any]]

SIZES = (50_000, 100_000, 200_000)
SHORT_SIZES = (4_000, 8_000, 16_000)
MOST_GROWTH = 8.0
"""Of the largest size against the smallest, a quarter of it: 4 is exact, 16 is the square."""
LINEAR_GROWTH = 6.0
"""Up to here it is linear beyond doubt, though one of the two was measured only once."""
SHARE = 4e-8
"""Seconds a character below which time is not compared: 2 ms for 50,000. The square of that many
steps takes a hundred times as long on any machine."""
MOST_SHARE = 1e-5
"""Seconds per character above which a pattern is slow at any growth: it is compared with `SLOWEST`,
which a busy machine slows equally. A pattern that fails at each place of a text cannot be
interrupted."""
SLOWEST = re.compile("«([^»\n]{3,300})»")
"""The slowest kind of pattern that is allowed: 300 steps a character, 7e-6 seconds."""
MOST_TIMES = 5
"""How often the time of `SLOWEST` a pattern may take."""
FLOOR = 0.02
"""Seconds that are no attack at any size here: memory that grows makes them uneven."""
LONGEST = 120
"""Seconds of CPU after which an unfinished attack counts as successful: a pattern that is not
`_is_slow` has been measured at every size by then, three times."""
SHORT_LONGEST = 30
"""In the short form, whose texts are a twelfth as long. A pattern of 300 steps a sign takes
one second of it on a quiet machine, and took three on a busy one."""
GLIMPSE_LONGEST = 1
"""For a tenth of the smallest text, which takes milliseconds unless the time is exponential."""
_OFTEN = 8
"""Repeats with a lower bound are no repeats to an attacker."""
_PROBES = " \t\n\r,.:;/\\\"'`<>()[]{}=-_+*#|&%$@!?~^019abzAZé中\0\xa0"
_TAILS = ("", "\0", "\n", "!")
_MOST_LETTERS = 10
_MOST_BODIES = 4


class Attack(NamedTuple):
    """A text of any size."""

    head: str
    pump: str
    second: str
    """The pumped text of the second half."""
    tail: str

    def text(self, size: int) -> str:
        """Return the text of about `size` characters."""
        room = max(0, size - len(self.head) - len(self.tail))
        if not self.second:
            return self.head + self.pump * (room // len(self.pump)) + self.tail
        half = room // 2
        first = self.pump * (half // len(self.pump))
        return self.head + first + self.second * (half // len(self.second)) + self.tail


# --- attacks -------------------------------------------------------------------------------------


def attacks(pattern: str | bytes, flags: int = 0, *, thorough: bool = True) -> list[Attack]:
    """What could make a pattern slow."""
    shape = _Shape(_tree(pattern, flags))
    forms: dict[Attack, None] = {}
    tails = [*(_TAILS if thorough else _TAILS[:2]), *shape.refusals()]
    for prefix, bodies in shape.repeats():
        for body in bodies:
            for tail in tails:
                forms[Attack(prefix, body, "", tail)] = None
                forms[Attack("", prefix + body, "", tail)] = None
            if prefix:
                forms[Attack("", prefix, body, "\0")] = None
        if len(bodies) > 1:
            forms[Attack(prefix, "".join(bodies), "", "\0")] = None
    whole = shape.sample
    for near in (whole, whole[:-1], whole[1:]):
        if near:
            forms[Attack("", near, "", "\0")] = None
    letters = shape.alphabet[: _MOST_LETTERS if thorough else 6]
    for letter in letters:
        forms[Attack("", letter, "", "\0")] = None
    for first, second in product(letters, letters) if thorough else ():
        if first != second:
            forms[Attack("", first + second, "", "\0")] = None
            forms[Attack("", first, second, "\0")] = None
    return [attack for attack in forms if attack.pump]


def _tree(pattern: str | bytes, flags: int) -> Items:
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    try:
        # RE2 writes the end of the text otherwise.
        return list(_parser.parse(text.replace(r"\z", r"\Z"), flags & ~re.LOCALE & ~re.ASCII))
    except re.error:
        return [(sre.LITERAL, ord(sign)) for sign in dict.fromkeys(text)]


class _Shape:
    """The parts of a parsed pattern."""

    def __init__(self, tree: Items) -> None:
        self._tree = tree
        self._own = list(dict.fromkeys(self._literals(tree)))
        self.alphabet = list(
            dict.fromkeys([*self._own, *(c for i in self._leaves(tree) for c in self._choices(i))])
        )
        self.sample = self._text(tree)

    def repeats(self) -> list[tuple[str, list[str]]]:
        """Return each repeat: its prefix, and the texts that it may repeat."""
        return list(self._repeats(self._tree, ""))

    def refusals(self) -> list[str]:
        """Return the texts of assertions: `(?!.*mini)` fails when such a text comes last."""
        texts = [self._text(item[1][1]) for item in self._assertions(self._tree)]
        return list(dict.fromkeys(text for text in texts if text))[:2]

    def _assertions(self, items: Items) -> Iterator[tuple[Any, Any]]:
        for item in items:
            op, argument = item
            if op in (sre.ASSERT, sre.ASSERT_NOT):
                yield item
            inner = argument[1] if op is sre.BRANCH else _inner(item)
            for part in [argument[2]] if op in _REPEATS else inner:
                yield from self._assertions(part)

    def _repeats(self, items: Items, prefix: str) -> Iterator[tuple[str, list[str]]]:
        for item in items:
            op, argument = item
            if op in _REPEATS:
                _, most, body = argument
                if most is sre.MAXREPEAT or most > _OFTEN:
                    yield prefix, self._bodies(body)
                yield from self._repeats(body, prefix)
            elif op is sre.BRANCH:
                for branch in argument[1]:
                    yield from self._repeats(branch, prefix)
            else:
                for inner in _inner(item):
                    yield from self._repeats(inner, prefix)
            prefix += self._text([item])

    def _bodies(self, body: Items) -> list[str]:
        """Some texts that a repeat could take once."""
        texts: list[str] = [self._text(body)]
        for variant in range(1, _MOST_BODIES):
            texts.append(self._text(body, variant))
        for item in body:  # each alternative, and each class, alone
            if item[0] is sre.BRANCH:
                texts += [self._text(branch) for branch in item[1][1]]
            texts += self._choices(item)
        return [text for text in dict.fromkeys(texts) if text][: 2 * _MOST_BODIES]

    def _text(self, items: Items, variant: int = 0) -> str:
        """A short text that the items take."""
        return "".join(self._piece(item, variant) for item in items)

    def _piece(self, item: tuple[Any, Any], variant: int) -> str:
        op, argument = item
        if op in _REPEATS:
            least: int = argument[0]
            body: Items = argument[2]
            return self._text(body, variant) * max(min(least, 64), variant > 1)
        if op is sre.BRANCH:
            branches = argument[1]
            return self._text(branches[variant % len(branches)], variant)
        if op in (sre.ASSERT, sre.ASSERT_NOT, sre.AT):
            return ""
        if inner := _inner(item):
            return self._text(inner[0], variant)
        choices = self._choices(item)
        return choices[variant % len(choices)] if choices else ""

    def _choices(self, item: tuple[Any, Any]) -> list[str]:
        """Return characters that match an item, first those in the pattern itself."""
        op, argument = item
        if op is sre.LITERAL:
            return [chr(argument)]
        if op is sre.ANY:
            return [*self._own[:2], "a"]
        if op is sre.NOT_LITERAL:
            return [sign for sign in (*self._own, "a", " ") if sign != chr(argument)][:3]
        if op is not sre.IN:
            return []
        chosen = [sign for sign in (*self._own, *_PROBES) if _is_in(argument, sign)]
        return list(dict.fromkeys(chosen))[:_MOST_BODIES]

    def _literals(self, items: Items) -> Iterator[str]:
        for op, argument in self._leaves(items):
            if op is sre.LITERAL:
                yield chr(argument)
            elif op is sre.IN:
                yield from (chr(code) for kind, code in argument if kind is sre.LITERAL)

    def _leaves(self, items: Items) -> Iterator[tuple[Any, Any]]:
        for item in items:
            op, argument = item
            inner = argument[1] if op is sre.BRANCH else _inner(item)
            if op in _REPEATS:
                inner = [argument[2]]
            for part in inner:
                yield from self._leaves(part)
            if not inner:
                yield item


_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def _inner(item: tuple[Any, Any]) -> list[Items]:
    """The sequences inside a group or an assertion."""
    op, argument = item
    if op is sre.SUBPATTERN:
        return [argument[-1]]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [argument[1]]
    if op is sre.ATOMIC_GROUP:
        return [argument]
    if op is sre.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part]
    return []


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def _is_in(parts: Items, sign: str) -> bool:
    negated = parts[0][0] is sre.NEGATE
    for kind, value in parts:
        if (
            (kind is sre.LITERAL and ord(sign) == value)
            or (kind is sre.RANGE and value[0] <= ord(sign) <= value[1])
            or (kind is sre.CATEGORY and re.match(_CATEGORIES[value], sign))
        ):
            return not negated
    return negated


# --- time ----------------------------------------------------------------------------------------


def _runner(use: Use, method: str) -> Callable[[str | bytes], object]:
    function = getattr(use.compiled, method)
    if method == "finditer":
        return lambda text: deque(function(text), maxlen=0)
    if method in ("sub", "subn"):
        nothing: str | bytes = b"" if isinstance(use.pattern, bytes) else ""
        return lambda text: function(nothing, text)
    run: Callable[[str | bytes], object] = function
    return run


def _seconds(run: Callable[[str | bytes], object], text: str | bytes, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        begin = time.thread_time()
        run(text)
        best = min(best, time.thread_time() - begin)
    return best


def _growth(
    use: Use, method: str, attack: Attack, sizes: Sequence[int], longest: int
) -> list[float]:
    """Seconds at each size, if an attack works; else nothing."""
    run = _runner(use, method)

    def measure(size: int, times: int) -> float:
        text = attack.text(size)
        return _seconds(run, text.encode() if isinstance(use.pattern, bytes) else text, times)

    # Most attacks do nothing: a tenth of the smallest size shows that, and keeps the campaign
    # short.
    glimpse = sizes[0] // 10
    _allow(GLIMPSE_LONGEST)
    if measure(glimpse, 1) < SHARE * glimpse:
        return []
    _allow(longest)
    # Most others are slow and linear: the largest size once, compared with the best of the
    # smallest, shows that at a third of the cost. Growing times are measured carefully.
    smallest = measure(sizes[0], 1)
    if smallest < SHARE * sizes[0]:
        return []
    if not _is_slow(smallest, sizes[0]):
        smallest = min(smallest, measure(sizes[0], 2))
        if measure(sizes[-1], 1) < LINEAR_GROWTH * smallest:
            return []
    for _ in range(3):  # a growth that is noise does not come three times
        seconds: list[float] = []
        for size in sizes:
            seconds.append(measure(size, 3))
            if _is_slow(seconds[-1], size):
                return seconds
        if seconds[-1] < max(MOST_GROWTH * seconds[0], FLOOR):
            return []
    return seconds


def _search_slowest(text: str | bytes) -> object:
    return SLOWEST.search(str(text))


def _is_slow(seconds: float, size: int) -> bool:
    """Return whether a pattern was slower than any of ours may be on this machine under its current
    load.
    """
    if seconds <= MOST_SHARE * size:
        return False
    return seconds > MOST_TIMES * _seconds(_search_slowest, "«" * size, 3)


# --- a process that may be killed ----------------------------------------------------------------


def _allow(seconds: int) -> None:
    """Let the kernel end this process after a number of seconds of CPU."""
    allowed = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))


class Attempt(NamedTuple):
    """One attack by one method, and its result."""

    number: int
    """Of the pattern among all."""
    place: str
    method: str
    attack: Attack
    seconds: tuple[float, ...] = ()
    """At each size, where the attack works; nothing before it is known."""

    def __str__(self) -> str:
        times = ", ".join(f"{seconds:.3f}" for seconds in self.seconds) or "did not return"
        return f"{self.place} {self.method} on {self.attack}: {times}"


_SAMPLED = 90
"""The short form attacks one of this number of proven patterns, the campaign all."""


BUDGET = 0.75
"""Seconds of the processor for one pattern that is proven, in the campaign: what cannot be slow
is attacked by a sample, drawn by the pattern's own name, so that the campaign ends."""
UNPROVEN_BUDGET = 15.0
"""For one with a bound or a reason: nearly all attacks on it are tried."""


class Outcome(NamedTuple):
    """What became of a campaign."""

    working: list[Attempt]
    """The attacks that worked, at most one for each pattern."""
    patterns: int
    tried: int
    """Of all attacks by all methods: those for which there was time."""
    attacks: int


def attacked(
    uses: Sequence[Use] | None = None,
    *,
    thorough: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Attack some patterns, or all of the package; report successes at once.

    The kernel ends the working process when one attack takes too long, because `re` cannot be
    interrupted. If the same attack takes too long in a second process, it has succeeded, and a
    third one continues after it. A single failure may be a virtual machine that was suspended,
    which counts as CPU time of its processes.
    """
    if uses is None:
        uses = [use for n, use in enumerate(inventory()) if _is_due(n, use, thorough)]
    asked = list(map(_written, uses))
    outcome = Outcome([], 0, 0, 0)
    start = 0
    suspect: Attempt | None = None
    while True:
        command = [sys.executable, "-m", __spec__.name, json.dumps([asked, thorough, start])]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            attempt: Attempt | None = None
            for line in process.stdout:  # a million lines: none is held but the last
                report = json.loads(line)
                if len(report) == 2:
                    tried, attacks = report
                    outcome = Outcome(
                        outcome.working,
                        outcome.patterns + 1,
                        outcome.tried + tried,
                        outcome.attacks + attacks,
                    )
                    continue
                attempt = _attempt(report)
                if attempt.seconds:
                    outcome.working.append(attempt)
                    tell(str(attempt))
        if process.returncode == 0:
            return outcome
        assert process.returncode == -signal.SIGXCPU, process.returncode
        assert attempt is not None
        if attempt != suspect:
            suspect, start = attempt, attempt.number
            continue
        outcome.working.append(attempt)
        tell(str(attempt))
        start = attempt.number + 1


def _attempt(report: Any) -> Attempt:
    number, place, method, attack, seconds = report
    return Attempt(number, place, method, Attack(*attack), tuple(seconds))


def _work(asked: list[Any], thorough: bool, start: int) -> None:
    sizes = SIZES if thorough else SHORT_SIZES
    for number, wanted in enumerate(asked[start:], start):
        use, is_proven = _read(wanted)
        _attack(number, use, sizes, thorough, is_proven=is_proven)


def _written(use: Use) -> list[Any]:
    """Return a pattern for the other process, which need not import the package to find it."""
    assert use.pattern is not None
    is_bytes = isinstance(use.pattern, bytes)
    text = use.pattern.decode("latin-1") if isinstance(use.pattern, bytes) else use.pattern
    flags = use.compiled.flags if use.engine == "re" else 0
    return [use.place, use.engine, text, is_bytes, flags, sorted(use.methods), _is_proven(use)]


def _read(written: list[Any]) -> tuple[Use, bool]:
    """Return a pattern of `_written`, and whether it is proven to be linear."""
    place, engine, text, is_bytes, flags, methods, is_proven = written
    pattern = text.encode("latin-1") if is_bytes else text
    compiled = re.compile(pattern, flags) if engine == "re" else re2.compile(pattern)
    return Use(place, engine, pattern, frozenset(methods), compiled), is_proven


def _is_due(number: int, use: Use, thorough: bool) -> bool:
    # Patterns with an argument see few characters, and are tested at that number, or run only on
    # the match of a pattern that is attacked itself.
    if use.pattern is None or use.place in ARGUED:
        return False
    return thorough or number % _SAMPLED == 0 or not _is_proven(use)


def _is_proven(use: Use) -> bool:
    return use.engine == "re2" or proof(use) == PROVEN


def _attack(
    number: int, use: Use, sizes: Sequence[int], thorough: bool, *, is_proven: bool
) -> None:
    assert use.pattern is not None
    flags = use.compiled.flags if use.engine == "re" else 0
    forms = [
        (attack, method)
        for attack in attacks(use.pattern, flags, thorough=thorough)
        for method in sorted(use.methods)
    ]
    end = math.inf
    if thorough:
        random.Random(use.place).shuffle(forms)
        end = time.process_time() + (BUDGET if is_proven else UNPROVEN_BUDGET)
    tried = 0
    for attack, method in forms:
        if time.process_time() > end:
            break
        tried += 1
        attempt = Attempt(number, use.place, method, attack)
        os.write(1, json.dumps(attempt).encode() + b"\n")
        longest = LONGEST if thorough else SHORT_LONGEST
        if seconds := _growth(use, method, attack, sizes, longest):
            os.write(1, json.dumps(attempt._replace(seconds=tuple(seconds))).encode() + b"\n")
            break
    # The limit is of an attack. What frameworks do when the process ends is none.
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.write(1, json.dumps([tried, len(forms)]).encode() + b"\n")


if __name__ == "__main__":
    _work(*json.loads(sys.argv[1]))
