"""Parse and resolve JSON paths, leniently.

Supported are `$.a.b[0]`, `a.b.0`, `a["x y"]`, `[*]`, `[10:20]`, `[-1]`, `..key` and the pointer
`/a/0`, but no filters or scripts. A path continues through a string that holds JSON, as MCP servers
send. A path without a match returns the last place reached and its keys for the model; keys are
content, so an exception never contains them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.document.embedded_json import inside
from holdfast.document.json_text import Document, Node, step
from holdfast.errors import ExpandError

MOST_MATCHES = 10_000
_MOST_VISITS = 500_000
_MOST_CHARACTERS = 2000
_MOST_STEPS = 100
_MOST_KEYS = 30

_SMALL = 2_000
"""Objects up to this many characters are searched for a key before they are split into members."""
_PLAIN_VALUE = re.compile(
    r"""\s*:\s*(
        "[^"]*" | [^\s"\[\]{},]++
        | \{ (?: [^"\[\]{}]++ | "[^"]*" )*+ \} | \[ (?: [^"\[\]{}]++ | "[^"]*" )*+ \]
    )""",
    re.VERBOSE,
)
"""A colon and a value without nested containers, in a text without escapes."""

# Possessive, so that each step is scanned once: the model writes the paths.
_STEP = re.compile(
    r"""\.\.\s*+(?P<deep>[^.\[\]\s"'/]++|\*)
    |\.?\[\s*+(?:(?P<from>-?\d++)?+\s*+:\s*+(?P<to>-?\d++)?+|(?P<index>-?\d++)|(?P<all>\*)
        |"(?P<double>(?:[^"\\]++|\\.)*+)"|'(?P<single>[^']*+)')?+\s*+\]
    |\.?(?P<name>[^.\[\]]++)
    """,
    re.VERBOSE,
)


class PathStep(NamedTuple):
    """One step of a path."""

    name: str = ""
    """A key, or an index if the value is an array."""
    number: int | None = None
    span: tuple[int | None, int | None] | None = None
    """A range of elements; `[*]` is all of them."""
    deep: bool = False
    """Whether the name matches at any depth."""


class PathMatch(NamedTuple):
    """A value that a path leads to."""

    document: Document
    """The document that contains the value: the content, or the JSON inside one of its strings."""
    node: Node


class BrokenPath(NamedTuple):
    """The place where a path stops matching."""

    at: str
    """Path of the last place reached."""
    there: str
    """Description of that place, for the model."""


def parse(path: str) -> list[PathStep]:
    """Parse a path into steps; raise `ExpandError` if it is malformed."""
    path = path.strip()
    if len(path) > _MOST_CHARACTERS:
        raise _path_error()
    if path.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
        return _bounded([_named(part) for part in parts if part])
    steps: list[PathStep] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path.rstrip(".")):
        match = _STEP.match(path, at)
        if match is None or match.end() == at:
            raise _path_error()
        steps.append(_step(match))
        at = match.end()
    return _bounded(steps)


def _step(match: re.Match[str]) -> PathStep:
    groups = match.groupdict()
    if groups["deep"]:
        return PathStep(groups["deep"], deep=True)
    if groups["index"]:
        return PathStep(groups["index"], number=_small(groups["index"]))
    if groups["double"] is not None:
        try:
            return PathStep(json.loads(f'"{groups["double"]}"', strict=False))
        except ValueError:
            raise _path_error() from None
    if groups["single"] is not None:
        return PathStep(groups["single"])
    name = (groups["name"] or "").strip()
    if name and name != "*":
        return _named(name)
    ends = [None if groups[end] is None else _small(groups[end]) for end in ("from", "to")]
    return PathStep(span=(ends[0], ends[1]))


def _named(name: str) -> PathStep:
    index = re.fullmatch(r"-?\d{1,12}", name)
    return PathStep(name, number=int(name) if index else None)


def _small(number: str) -> int:
    return int(number[:13])


def _bounded(steps: list[PathStep]) -> list[PathStep]:
    if len(steps) > _MOST_STEPS:
        raise _path_error()
    return steps


def _path_error() -> ExpandError:
    return ExpandError(
        "the path is not understood",
        where="options.path",
        fix="Write it like $.items[3].name, items[*].id, items[10:20] or /items/3.",
    )


def find(document: Document, path: str) -> tuple[list[PathMatch], BrokenPath | None]:
    """Return the values at a path, at most `MOST_MATCHES`, or where it stops matching."""
    search = _PathSearch()
    matches: list[PathMatch] = []
    for match in search.walk(PathMatch(document, document.root), parse(path)):
        matches.append(match)
        if len(matches) >= MOST_MATCHES:
            break
    return matches, None if matches else search.broken()


class _PathSearch:
    def __init__(self) -> None:
        self._visits = 0
        self._furthest: tuple[int, PathMatch, PathStep] | None = None
        self._steps = 0

    def walk(self, match: PathMatch, steps: list[PathStep]) -> Iterator[PathMatch]:
        self._visits += 1
        if self._visits > _MOST_VISITS:
            return
        if not steps:
            yield match
            return
        first, remaining = steps[0], steps[1:]
        match = resolve_embedded(match)
        if first.deep:
            has_match = False
            for inner in self._below(match, first.name):
                for result in self.walk(inner, remaining):
                    has_match = True
                    yield result
            if not has_match:
                self._remember(match, first, len(steps))
            return
        has_child = False
        for inner, step_count in _children(match, steps):
            has_child = True
            yield from self.walk(inner, steps[step_count:])
        if not has_child:
            self._remember(match, first, len(steps))

    def _below(self, match: PathMatch, name: str) -> Iterator[PathMatch]:
        """Yield the values of a key at any depth, in document order."""
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
                    yield PathMatch(document, child)
                if document.is_container(member.value, member.end) and (
                    # A container without the key's text need not be split.
                    name == "*"
                    or not plain
                    or document.text.find(quoted, member.value, member.end) >= 0
                ):
                    inner.append(child)
            todo.extend(reversed(inner))

    def _remember(self, match: PathMatch, failed_step: PathStep, remaining_steps: int) -> None:
        if self._furthest is None or remaining_steps < self._steps:
            self._furthest, self._steps = (remaining_steps, match, failed_step), remaining_steps

    def broken(self) -> BrokenPath | None:
        if self._furthest is None:
            return None
        _, match, _ = self._furthest
        return BrokenPath(match.node.path, describe_value(match))


def _children(match: PathMatch, steps: list[PathStep]) -> Iterator[tuple[PathMatch, int]]:
    """Yield the values that the first step leads to, with the number of steps consumed."""
    document, node = match
    first = steps[0]
    if first.span is not None:
        for member in document.members(node.start, node.end)[slice(*first.span)]:
            yield (
                PathMatch(document, Node(step(node.path, member.name), member.value, member.end)),
                1,
            )
        return
    if document.kind(node.start, node.end) == "array":
        index, members = first.number, document.members(node.start, node.end)
        if index is not None and -len(members) <= index < len(members):
            member = members[index]
            yield (
                PathMatch(document, Node(step(node.path, member.name), member.value, member.end)),
                1,
            )
        return
    # A key may contain dots.
    for step_count in range(1, min(4, len(steps)) + 1):
        if step_count > 1 and (steps[step_count - 1].span or steps[step_count - 1].deep):
            return
        name = (
            first.name
            if step_count == 1
            else ".".join([path_step.name for path_step in steps[:step_count]])
        )
        span = _only_key_span(document, node, name) or _last_key_span(document, node, name)
        if span is not None:
            yield PathMatch(document, Node(step(node.path, name), *span)), step_count
            return


def _only_key_span(document: Document, node: Node, name: str) -> tuple[int, int] | None:
    """Return the span of a key's value without splitting its object; None if in doubt.

    In a text without escapes, a quoted name followed by a colon is a key. If no bracket precedes
    it, it belongs to this object, and a single occurrence is the only one.
    """
    text, start, end = document.text, node.start, node.end
    if end - start > _SMALL or document.form == "python" or text.find("\\", start, end) >= 0:
        return None  # Python may print the same text inside the other sort of quotes
    quoted = f'"{name}"'
    at = text.find(quoted, start, end)
    if at < 0 or text.find(quoted, at + 1, end) >= 0:
        return None
    if text.find("{", start + 1, at) >= 0 or text.find("[", start, at) >= 0:
        return None
    value = _PLAIN_VALUE.match(text, at + len(quoted), end)
    return value.span(1) if value else None


def _last_key_span(document: Document, node: Node, name: str) -> tuple[int, int] | None:
    """Return the span of a key's last value, which is the one that JSON parsers keep."""
    text, start, end = document.text, node.start, node.end
    if end - start > _SMALL and document.form != "python":
        # Skip a hundred thousand keys if the name does not occur in the object.
        is_plain = text.find("\\", start, end) < 0
        if is_plain and text.find(json.dumps(name, ensure_ascii=False), start, end) < 0:
            return None
    members = reversed(document.members(node.start, node.end))
    return next(((m.value, m.end) for m in members if m.name == name), None)


def resolve_embedded(match: PathMatch) -> PathMatch:
    """Return the JSON inside a string value if there is any, otherwise the value itself."""
    document, node = match
    inner = inside(document, node.start, node.end)
    if inner is None:
        return match
    return PathMatch(inner, Node(node.path, inner.root.start, inner.root.end))


def describe_value(match: PathMatch) -> str:
    """Describe a value's parts, for the model to choose from."""
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
