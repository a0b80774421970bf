"""The ways in which a content can be opened, as a citation offers them.

ways: after options. A way is offered with values that this content has: rows that are there, names
of its own fields, lines that it reaches to; so that the first thing a model tries is no miss.
`query` and `pattern` leave their words to the model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from holdfast.document import Document, Reading, Rows, step
from holdfast.expand.options import DEFAULT_TOKENS, ExpandOptions

_OFFSET, _LIMIT = 10, 5
_FIRST_LINE, _LAST_LINE = 40, 80
_MOST_FIELDS = 2
_LONGEST_NAME = 30
_LONGEST_PATH = 60
_ENDINGS = frozenset('"[]\\')
"""Signs of a name that could seem to end the line in which it is offered."""
_QUERY = 'query="…"'
_PATTERN = 'pattern="…"'


def ways(content: Reading, tokens: int, visible: str) -> list[str]:
    """What to put behind the ref: `offset=10, limit=5`, `fields=["id"]`, `query="…"`.

    Names of the content are offered only if they stand in what may be seen of it.
    """
    structured = [way for way in _structured(content, visible) if way]
    has_pages = tokens > 1.5 * DEFAULT_TOKENS  # other counters may find a third less
    if structured:
        return [*structured, *(["page=2"] if has_pages and len(structured) < 2 else []), _QUERY]
    if content.line_count > 1:
        return [_lines(content), _PATTERN, _QUERY]
    return [*(["page=2"] if has_pages else []), _PATTERN, _QUERY]


def is_example(options: ExpandOptions, content: Reading) -> bool:
    """Return whether options only repeat what a citation of this content offers as examples."""
    parts = []
    if options.path:
        parts.append(f"path={json.dumps(options.path, ensure_ascii=False)}")
    if options.fields:
        parts.append(f"fields={json.dumps(options.fields, ensure_ascii=False)}")
    if options.slice:
        parts.append(f"offset={options.slice.offset}, limit={options.slice.limit}")
    if options.lines:
        parts.append(f'lines="{options.lines[0]}-{options.lines[1]}"')
    return bool(parts) and set(parts) <= set(ways(content, sys.maxsize, content.text))


def _structured(content: Reading, visible: str) -> Iterator[str]:
    document, rows, table = content.document, content.rows, content.table
    if table is not None:
        yield _run(len(table.rows))
        yield _fields(table.columns, visible)
    elif rows is not None and len(rows.members) > 1:
        yield _run(len(rows.members))
        yield _fields(list(_names(content, rows)), visible)
    elif document is not None:
        yield _path(document, visible)


def _run(total: int) -> str:
    return f"offset={min(_OFFSET, total // 2)}, limit={_LIMIT}"


def _lines(content: Reading) -> str:
    last = min(_LAST_LINE, content.line_count)
    return f'lines="{min(_FIRST_LINE, (last + 1) // 2)}-{last}"'


def _names(content: Reading, rows: Rows) -> Iterator[str]:
    """The fields of the first row, without those that the whole has too: these would be meant."""
    if rows.sort != "objects":
        return
    document, first = rows.document, rows.members[0]
    if rows.inner:
        members = document.members(first.value, first.end)
        first = next(member for member in members if member.name == rows.inner)
    whole = content.document
    own = whole.members(whole.root.start, whole.root.end) if whole is not None else []
    taken = {member.name for member in own}
    for member in document.members(first.value, first.end):
        if member.name not in taken:
            yield str(member.name)


def _fields(names: list[str], visible: str) -> str:
    shown = [name for name in names if _is_shown(name, visible)][:_MOST_FIELDS]
    return f"fields={json.dumps(shown, ensure_ascii=False)}" if shown else ""


def _is_shown(name: str, visible: str) -> bool:
    is_short = 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    is_plain = name == name.strip() and _ENDINGS.isdisjoint(name)
    return is_short and is_plain and name in visible


def _path(document: Document, visible: str) -> str:
    """The place of the largest value right under the root."""
    members = document.members(document.root.start, document.root.end)
    if not members:
        return ""
    largest = max(members, key=lambda member: member.end - member.value)
    path = step("$", largest.name)
    name = str(largest.name)
    is_plain = path.isprintable() and _ENDINGS.isdisjoint(name)
    if len(path) > _LONGEST_PATH or not is_plain or name not in visible:
        return 'path="$"'
    return f"path={json.dumps(path, ensure_ascii=False)}"
