"""JSON values as text: one line per value, and passages for a tree of any size.

Strings appear without quotes and escapes, so that text quoted by a question or an answer is found:
`title: Fix "it"; user.login: ann`. Every scalar is in a passage, complete if it is no longer than a
passage. Work is linear in the size of the value, at any depth of nesting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.condense.condenser import Passage
from holdfast.document import Document, Number, windows
from holdfast.document import step as child_path

PASSAGE_CHARS = 700
"""A passage is at most about this long, so that a citation has room for two."""
MANY_ROWS = 10_000
TOGETHER_CHARS = 300
"""Above this number, rows share a passage up to this size: one passage for each of a hundred
thousand `{"a":1}` would take thirty times their memory."""
_AT_ONCE = 4_000
"""Numbers that are written together: the text of each alone takes fifty bytes."""
_DEEPEST = 48
"""Below this nesting, values are listed without their structure."""
_UNCUT = 1 << 62
_LABEL_CHARS = 60
_LABELS = "full_name name title label subject number key id slug login Name Title Id _id".split()
_NUMBERS = {int, Number}
_PLAIN = {int, str, Number}
_WORDS = {True: "true", False: "false", None: "null"}

Place = tuple[Any, ...]
"""The place of a value: () for the root, else the place of its parent, the step, the parent."""


def scalar(value: Any) -> str:
    """The text of a string, number, boolean or null; an empty string shows as two quotes."""
    kind = type(value)
    if kind is str or kind is Number:
        return value or '""'
    return str(value) if kind is int else _WORDS[value]


def line(value: Any) -> str:
    """A value of any shape as one text."""
    return _Cutter(None).text(value, ()) or ""


def path_of(place: Place, root: str = "$") -> str:
    """Write a place as a JSON path."""
    steps: list[str] = []
    while place:
        place, step, _ = place
        steps.append(child_path("", step))
    return root + "".join(reversed(steps))


def span(first: int, last: int, path: str) -> str:
    """Name rows of an array, counted from 1."""
    return f"rows {first}-{last} of {path}"


def tree_passages(value: Any, path: str = "$", first: int = 0) -> list[Passage]:
    """Cut a value into passages; the index of its first element may be another than 0."""
    cutter = _Cutter(path, first)
    text = cutter.text(value, ())
    if text is not None:
        cutter.out.append(Passage(_unbraced(text, value), path))
    return cutter.out


def document_passages(document: Document) -> list[Passage]:
    """Cut all of a document into passages; one that is not held whole, a part at a time."""
    if document.is_whole:
        return tree_passages(document.value)
    passages: list[Passage] = []
    for path, first, value, _, total in windows(document):
        if type(value) is list and type(value[0]) is dict:
            passages += row_passages(value, path, first, total=total)
        else:
            passages += tree_passages(value, path, first)
    return passages


def row_passages(
    rows: Sequence[Any], path: str = "$", begin: int = 0, *, total: int = 0
) -> list[Passage]:
    """One passage for each row, more for a long one; of very many, short ones together.

    The first row may have another index than 0, as one of more rows.
    """
    cutter = _Cutter(path)
    joined, out = cutter.text, cutter.out
    least = TOGETHER_CHARS if max(total, len(rows)) > MANY_ROWS else 0
    texts: list[str] = []
    size, first, end = 0, begin, begin + len(rows) - 1
    for index, row in enumerate(rows, begin):
        at = len(out)
        text = joined(row, ((), index, rows))
        if text is not None:
            texts.append(_unbraced(text, row))
            size += len(text)
        if texts and (size >= least or text is None or index == end):
            last = first + len(texts)
            where = f"{path}[{first}]" if len(texts) == 1 else span(first + 1, last, path)
            out.insert(at, Passage("\n".join(texts), where))
            texts, size = [], 0
        if not texts:
            first = index + 1
    return out


def _unbraced(text: str, value: Any) -> str:
    return text[1:-1] if type(value) is dict and value else text


def prose_passages(text: str, where: str) -> Iterator[Passage]:
    """A long text in parts, cut where a paragraph, a sentence or a word ends."""
    begin = 0
    while len(text) - begin > PASSAGE_CHARS:
        end = _cut(text, begin, begin + PASSAGE_CHARS)
        yield Passage(text[begin:end].strip(), where)
        begin = end
    if remaining := text[begin:].strip():
        yield Passage(remaining, where)


def around_passages(found: Document) -> list[Passage]:
    """Return the prose around the JSON of a document."""
    return [part for text in found.around for part in prose_passages(text, "$")]


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Every scalar with the last key above it, in order, however deep; no recursion."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        key, item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((key, child) for child in reversed(item))
        else:
            yield key, item


def _cut(text: str, begin: int, end: int) -> int:
    half = (begin + end) // 2
    for mark in ("\n\n", "\n", ". ", " "):
        at = text.rfind(mark, half, end)
        if at > 0:
            return at + len(mark)
    return end


class _Cutter:
    """Converts values to text; long values become separate passages.

    Without a path nothing is cut.
    """

    def __init__(self, path: str | None, first: int = 0) -> None:
        self.root = path or "$"
        self.first = first
        """The index of the first element, where the root is part of an array."""
        self.limit = PASSAGE_CHARS if path else _UNCUT
        self.out: list[Passage] = []

    def text(self, value: Any, place: Place, depth: int = 0) -> str | None:
        """The text of a value; None if it was too long and became passages."""
        kind = type(value)
        if kind is dict or kind is list:
            if not value:  # a megabyte may be nothing else
                return "{}" if kind is dict else "[]"
            if depth >= _DEEPEST:
                return self._deep(value, place)
            if kind is dict:
                return self._object(value, place, depth)
            return self._array(value, place, depth)
        text = scalar(value)
        if len(text) <= self.limit:
            return text
        where = path_of(place, self.root)
        prefix = f"{where}{_label(place)}: "
        self.out.extend(Passage(prefix + part.text, where) for part in prose_passages(text, where))
        return None

    def _object(self, value: dict[str, Any], place: Place, depth: int) -> str | None:
        at = len(self.out)
        limit = self.limit
        # Plain objects and scalars take a fast path: most of the time is spent here.
        if _PLAIN.issuperset(map(type, value.values())):
            joined = "; ".join([f"{key}: {item}" for key, item in value.items()])
            if len(joined) <= limit:
                return "{" + joined + "}"
        parts: list[str] = []
        keys: list[str] = []
        size = 0
        for key, item in value.items():
            kind = type(item)
            text: str | None
            if kind is int or ((kind is str or kind is Number) and len(item) <= limit):
                text = item
            elif kind is bool or item is None:
                text = _WORDS[item]
            else:
                text = self.text(item, (place, key, value), depth + 1)
                if text is None:
                    continue
            part = f"{key}: {text}"
            size += len(part) + 2
            parts.append(part)
            keys.append(key)
        if size <= limit and len(self.out) == at:
            return "{" + "; ".join(parts) + "}"
        self.out[at:at] = self._groups(parts, keys, place, value)
        return None

    def _groups(
        self, parts: list[str], keys: list[str], place: Place, value: dict[str, Any]
    ) -> list[Passage]:
        """Fields of one object, links last, in as few passages as hold them."""
        parent = path_of(place, self.root)
        head = f"{parent}{_label((place, None, value))}: "
        order = sorted(range(len(parts)), key=lambda i: _is_link(value[keys[i]]))
        groups: list[Passage] = []
        for group in _packed([len(part) for part in parts], order, self.limit):
            where = parent if len(group) > 1 else child_path(parent, keys[group[0]])
            groups.extend(_within(head + "; ".join(parts[i] for i in group), where))
        return groups

    def _array(self, value: list[Any], place: Place, depth: int) -> str | None:
        at = len(self.out)
        if _PLAIN.issuperset(map(type, value)) and "" not in value:
            if _NUMBERS.issuperset(map(type, value)):
                return self._numbers(value, place)
            joined = ", ".join(map(str, value))
            if len(joined) <= self.limit:
                return f"[{joined}]"
        texts: list[str] = []
        begin = 0 if place else self.first
        size, first = 0, begin
        for index, item in enumerate(value, begin):
            text = self.text(item, (place, index, value), depth + 1)
            if text is None:
                self._flush(texts, first, place)
                texts, size, first = [], 0, index + 1
                continue
            if size and size + len(text) > self.limit:
                self._flush(texts, first, place)
                texts, size, first = [], 0, index
            texts.append(text)
            size += len(text) + 2
        if len(self.out) == at:
            return "[" + ", ".join(texts) + "]"
        self._flush(texts, first, place)
        return None

    def _numbers(self, value: list[Any], place: Place) -> str | None:
        """Numbers hold no commas, so that a series is cut in its text, not one by one."""
        runs = (value[at : at + _AT_ONCE] for at in range(0, len(value), _AT_ONCE))
        text = ", ".join([", ".join(map(str, run)) for run in runs])
        if len(text) <= self.limit:
            return f"[{text}]"
        path = path_of(place, self.root)
        head = f"{path}{_label(place)}: "
        begin, first = 0, 0 if place else self.first
        while begin < len(text):
            end = text.find(", ", begin + self.limit)
            end = len(text) if end < 0 else end
            part = text[begin:end]
            last = first + part.count(", ") + 1
            self.out.append(Passage(head + part, span(first + 1, last, path)))
            begin, first = end + 2, last
        return None

    def _flush(self, texts: list[str], first: int, place: Place) -> None:
        if not texts:
            return
        path = path_of(place, self.root)
        last = first + len(texts)
        where = child_path(path, first) if len(texts) == 1 else span(first + 1, last, path)
        head = f"{path}{_label(place)}: " if len(texts) > 1 else f"{where}{_label(place)}: "
        self.out.append(Passage(head + ", ".join(texts), where))

    def _deep(self, value: Any, place: Place) -> str | None:
        parts = [f"{key}: {scalar(item)}" if key else scalar(item) for key, item in leaves(value)]
        if sum(map(len, parts)) + 2 * len(parts) <= self.limit:
            return "; ".join(parts)
        where = path_of(place, self.root)
        for group in _packed([len(part) for part in parts], range(len(parts)), self.limit):
            self.out.extend(_within("; ".join(parts[i] for i in group), where))
        return None


def _within(text: str, where: str) -> Iterator[Passage]:
    """One passage, unless keys or lone values of monstrous length made it too long."""
    if len(text) <= 3 * PASSAGE_CHARS:
        yield Passage(text, where)
    else:
        yield from prose_passages(text, where)


def _packed(sizes: list[int], order: Sequence[int], limit: int) -> Iterator[list[int]]:
    group: list[int] = []
    size = 0
    for index in order:
        if group and size + sizes[index] > limit:
            yield group
            group, size = [], 0
        group.append(index)
        size += sizes[index] + 2
    if group:
        yield group


def _is_link(value: Any) -> bool:
    return type(value) is str and value.startswith(("https://", "http://"))


def _label(place: Place) -> str:
    """The name of the nearest object around a place that has one, in brackets."""
    while place:
        place, _, holder = place
        if type(holder) is dict:
            for key in _LABELS:
                name = holder.get(key)
                if type(name) in (str, int) and 0 < len(str(name)) <= _LABEL_CHARS:
                    return f" ({name})"
    return ""
