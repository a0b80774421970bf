"""A small, forgiving language for places in JSON.

paths: after wrapping. `$.a.b[0]`, `a.b.0`, `a["x y"]`, `[*]`, `[10:20]`, `[-1]`, `..key`
and the pointer `/a/0` are understood; there are no filters and no scripts. A path goes through a
string that holds JSON in any wrapping, as results of MCP servers do. A path that leads nowhere
gives the place where it broke off and what is there instead, for the model; keys are content, so
they are never put into an exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.document.json_text import Document, Node, step
from holdfast.document.wrapping import inside
from holdfast.errors import ExpandError

MOST_MATCHES = 10_000
_MOST_VISITS = 500_000
_MOST_CHARACTERS = 2000
_MOST_STEPS = 100
_MOST_KEYS = 30

_SMALL = 2_000
"""An object of at most so many characters is searched for a key before it is taken apart."""
_PLAIN_VALUE = re.compile(
    r"""\s*:\s*(
        "[^"]*" | [^\s"\[\]{},]++
        | \{ (?: [^"\[\]{}]++ | "[^"]*" )*+ \} | \[ (?: [^"\[\]{}]++ | "[^"]*" )*+ \]
    )""",
    re.VERBOSE,
)
"""A colon and a value with no containers inside, in a text without escapes."""

# Possessive, so that a step is read once; the model writes paths.
_STEP = re.compile(
    r"""\.\.\s*+(?P<deep>[^.\[\]\s"'/]++|\*)
    |\.?\[\s*+(?:(?P<from>-?\d++)?+\s*+:\s*+(?P<to>-?\d++)?+|(?P<index>-?\d++)|(?P<all>\*)
        |"(?P<double>(?:[^"\\]++|\\.)*+)"|'(?P<single>[^']*+)')?+\s*+\]
    |\.?(?P<name>[^.\[\]]++)
    """,
    re.VERBOSE,
)


class Step(NamedTuple):
    """One step of a path."""

    name: str = ""
    """A key, or an index where there is an array."""
    number: int | None = None
    span: tuple[int | None, int | None] | None = None
    """Elements from one to another; `[*]` is all of them."""
    deep: bool = False
    """The name at any depth below."""


class Match(NamedTuple):
    """A value that a path leads to."""

    document: Document
    """The one it stands in: the content, or the JSON inside one of its strings."""
    node: Node


class Broken(NamedTuple):
    """Where a path leads nowhere."""

    at: str
    """The last place it reached."""
    there: str
    """What is there instead, for the model."""


def parse(path: str) -> list[Step]:
    """Take a path apart."""
    path = path.strip()
    if len(path) > _MOST_CHARACTERS:
        raise _refused()
    if path.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
        return _bounded([_named(part) for part in parts if part])
    steps: list[Step] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path.rstrip(".")):
        match = _STEP.match(path, at)
        if match is None or match.end() == at:
            raise _refused()
        steps.append(_step(match))
        at = match.end()
    return _bounded(steps)


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["deep"]:
        return Step(groups["deep"], deep=True)
    if groups["index"]:
        return Step(groups["index"], number=_small(groups["index"]))
    if groups["double"] is not None:
        try:
            return Step(json.loads(f'"{groups["double"]}"', strict=False))
        except ValueError:
            raise _refused() from None
    if groups["single"] is not None:
        return Step(groups["single"])
    name = (groups["name"] or "").strip()
    if name and name != "*":
        return _named(name)
    ends = [None if groups[end] is None else _small(groups[end]) for end in ("from", "to")]
    return Step(span=(ends[0], ends[1]))


def _named(name: str) -> Step:
    whole = re.fullmatch(r"-?\d{1,12}", name)
    return Step(name, number=int(name) if whole else None)


def _small(number: str) -> int:
    return int(number[:13])


def _bounded(steps: list[Step]) -> list[Step]:
    if len(steps) > _MOST_STEPS:
        raise _refused()
    return steps


def _refused() -> ExpandError:
    return ExpandError(
        "the path is not understood",
        where="options.path",
        fix="Write it like $.items[3].name, items[*].id, items[10:20] or /items/3.",
    )


def find(document: Document, path: str) -> tuple[list[Match], Broken | None]:
    """The values that a path leads to, at most `MOST_MATCHES`; or where it broke off."""
    search = _Search()
    matches: list[Match] = []
    for match in search.walk(Match(document, document.root), parse(path)):
        matches.append(match)
        if len(matches) >= MOST_MATCHES:
            break
    return matches, None if matches else search.broken()


class _Search:
    def __init__(self) -> None:
        self._visits = 0
        self._furthest: tuple[int, Match, Step] | None = None
        self._steps = 0

    def walk(self, match: Match, steps: list[Step]) -> Iterator[Match]:
        self._visits += 1
        if self._visits > _MOST_VISITS:
            return
        if not steps:
            yield match
            return
        first, rest = steps[0], steps[1:]
        match = opened(match)
        if first.deep:
            found = False
            for inner in self._below(match, first.name):
                for result in self.walk(inner, rest):
                    found = True
                    yield result
            if not found:
                self._remember(match, first, len(steps))
            return
        reached = False
        for inner, used in _children(match, steps):
            reached = True
            yield from self.walk(inner, steps[used:])
        if not reached:
            self._remember(match, first, len(steps))

    def _below(self, match: Match, name: str) -> Iterator[Match]:
        """Yield the values of a key anywhere below, in the order they stand."""
        document, todo = match.document, [match.node]
        quoted = json.dumps(name, ensure_ascii=False)
        plain = "\\" not in document.text and document.form != "python"
        while todo and self._visits <= _MOST_VISITS:
            node = todo.pop()
            inner = []
            for member in document.members(node.start, node.end):
                self._visits += 1
                child = Node(step(node.path, member.name), member.value, member.end)
                if name in ("*", member.name):
                    yield Match(document, child)
                if document.is_container(member.value, member.end) and (
                    # A container that does not hold the key's text need not be taken apart.
                    name == "*"
                    or not plain
                    or document.text.find(quoted, member.value, member.end) >= 0
                ):
                    inner.append(child)
            todo.extend(reversed(inner))

    def _remember(self, match: Match, missing: Step, left: int) -> None:
        if self._furthest is None or left < self._steps:
            self._furthest, self._steps = (left, match, missing), left

    def broken(self) -> Broken | None:
        if self._furthest is None:
            return None
        _, match, _ = self._furthest
        return Broken(match.node.path, what_is_there(match))


def _children(match: Match, steps: list[Step]) -> Iterator[tuple[Match, int]]:
    """Yield the values that the first step leads to, and how many steps were used for it."""
    document, node = match
    first = steps[0]
    if first.span is not None:
        for member in document.members(node.start, node.end)[slice(*first.span)]:
            yield Match(document, Node(step(node.path, member.name), member.value, member.end)), 1
        return
    if document.kind(node.start, node.end) == "array":
        index, members = first.number, document.members(node.start, node.end)
        if index is not None and -len(members) <= index < len(members):
            member = members[index]
            yield Match(document, Node(step(node.path, member.name), member.value, member.end)), 1
        return
    # A key may hold dots of its own.
    for used in range(1, min(4, len(steps)) + 1):
        if used > 1 and (steps[used - 1].span or steps[used - 1].deep):
            return
        name = first.name if used == 1 else ".".join([one.name for one in steps[:used]])
        span = _lone(document, node, name) or _last(document, node, name)
        if span is not None:
            yield Match(document, Node(step(node.path, name), *span)), used
            return


def _lone(document: Document, node: Node, name: str) -> tuple[int, int] | None:
    """Where the value of a key stands, without taking its object apart; None if in doubt.

    In a text without escapes a name in quotes that a colon follows is a key; with no bracket
    before it, it is a key of this object, and if it stands there once, the only one.
    """
    text, start, end = document.text, node.start, node.end
    if end - start > _SMALL or document.form == "python" or text.find("\\", start, end) >= 0:
        return None  # in quotes of the other sort, Python may print what looks like a key
    quoted = f'"{name}"'
    at = text.find(quoted, start, end)
    if at < 0 or text.find(quoted, at + 1, end) >= 0:
        return None
    if text.find("{", start + 1, at) >= 0 or text.find("[", start, at) >= 0:
        return None
    value = _PLAIN_VALUE.match(text, at + len(quoted), end)
    return value.span(1) if value else None


def _last(document: Document, node: Node, name: str) -> tuple[int, int] | None:
    """The same; the last of equal keys is the one that readers of JSON see."""
    text, start, end = document.text, node.start, node.end
    if end - start > _SMALL and document.form != "python":
        # Of a hundred thousand keys none is read if the name stands nowhere.
        is_plain = text.find("\\", start, end) < 0
        if is_plain and text.find(json.dumps(name, ensure_ascii=False), start, end) < 0:
            return None
    members = reversed(document.members(node.start, node.end))
    return next(((m.value, m.end) for m in members if m.name == name), None)


def opened(match: Match) -> Match:
    """The JSON that a string holds, if it holds some; else the value itself."""
    document, node = match
    inner = inside(document, node.start, node.end)
    if inner is None:
        return match
    return Match(inner, Node(node.path, inner.root.start, inner.root.end))


def what_is_there(match: Match) -> str:
    """What a value is made of, for the model to choose from."""
    document, node = match
    members = document.members(node.start, node.end)
    kind = document.kind(node.start, node.end)
    if kind == "array" and members:
        return f"an array of {len(members):,} elements: [0] to [{len(members) - 1}], or [*]"
    if kind == "object" and members:
        keys = [str(member.name) for member in members]
        more = f" and {len(keys) - _MOST_KEYS:,} more" if len(keys) > _MOST_KEYS else ""
        return f"an object with the keys {', '.join(keys[:_MOST_KEYS])}{more}"
    return f"{'an empty' if kind in ('array', 'object') else 'a'} {kind} without parts"
