"""statements: SQL from files, in the form that each database takes, and operations that yield it.

A file in sql/ holds the statements of one or more tables. `-- name: by_id` begins a statement,
`-- part: columns` a piece of text that others include as `{columns}`. What the databases need in
different words has one section for each: `-- name: by_id (sqlite)`, `-- name: by_id (postgres)`.
A section without text is nothing to run.

Everything is written once where both take the same text. On loading, these differences go:

| in the file               | SQLite                                  | PostgreSQL       |
|---------------------------|-----------------------------------------|------------------|
| `holdfast.facts`          | `facts`                                 | `holdfast.facts` |
| `owner`                   | `owner`                                 | `username`       |
| `:workspace`              | `?1`                                    | `$1`             |
| `id IN :ids`              | `id IN (SELECT value FROM json_each(?))` | `id = ANY ($3)`  |

`:workspace`, `:owner` and `:session` are always those of the scope that a statement is called with:
no caller can forget them. All other values are given by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from importlib import resources
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from holdfast.store.scope import Scope

DatabaseKind = Literal["sqlite", "postgres"]
Values = dict[str, Any]

_T = TypeVar("_T")
_P = ParamSpec("_P")

_SECTION = re.compile(r"^-- (name|part): (\w+)(?: \((sqlite|postgres)\))?\n", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_PART = re.compile(r"\{(\w+)\}")
# Text in quotes is left alone, and so are casts (`::text`).
_PARAMETER = re.compile(r"'[^']*'|(?P<list>\bIN )?(?<!:):(?P<name>\w+)")
_PLACEHOLDERS: dict[DatabaseKind, tuple[str, str]] = {
    "sqlite": ("?{}", "IN (SELECT value FROM json_each(?{}))"),
    "postgres": ("${}", "= ANY (${})"),
}
"""For a value, and for the condition that a column is in a list."""
_OF_SCOPE = {"workspace": "workspace", "owner": "user", "session": "session"}
"""Parameters that the scope gives, and its attribute for each."""


class BoundText(NamedTuple):
    """The text of a statement for one database, and how its values are put in order."""

    sql: str
    of_scope: Callable[[Scope], tuple[Any, ...]]
    of_values: Callable[[Values], tuple[Any, ...]]
    lists: tuple[int, ...]
    """Places of values that are lists."""

    def bind(self, scope: Scope, values: Values, encode: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Return the values in the order of the parameters; `encode` is applied to lists."""
        bound = self.of_scope(scope) + self.of_values(values)
        if not self.lists:
            return bound
        encoded = list(bound)
        for place in self.lists:
            encoded[place] = encode(bound[place])
        return tuple(encoded)


class Statement:
    """A statement of the store."""

    __slots__ = ("_count", "_name", "postgres", "sqlite")

    def __init__(self, name: str, sqlite: str, postgres: str) -> None:
        self._name = name
        self.sqlite = _bound_text(sqlite, "sqlite")
        self.postgres = _bound_text(postgres, "postgres")
        self._count = len({*_names(sqlite), *_names(postgres)} - _OF_SCOPE.keys())

    def __repr__(self) -> str:
        return f"<Statement {self._name}>"

    def __call__(self, scope: Scope, /, **values: Any) -> Call:
        """Return the call with these values: an operation yields it, and is sent the rows."""
        if len(values) != self._count:  # one that is missing is noticed when it is bound
            raise TypeError(f"{self._name} takes {self._count} values, not {len(values)}")
        return Call(self, scope, values, None)

    def many(self, scope: Scope, rows: Iterable[Values]) -> Call:
        """Return the call that runs the statement once for each row; it is sent no rows."""
        return Call(self, scope, {}, list(rows))


class Call(NamedTuple):
    """A statement, and the values to run it with."""

    statement: Statement
    scope: Scope
    values: Values
    many: list[Values] | None
    """Values of several runs."""


Row = Sequence[Any]
Rows = list[Any]
"""Rows, whose columns are counted from 0 on: names of columns differ between databases."""
Operation = Generator[Call, Rows, _T]
"""Yields calls, is sent their rows, and returns a result. It may be run more than once, from its
beginning: it must not change anything outside of itself."""


class Runner(Protocol):
    """A database that runs operations.

    Each takes a function that begins an operation, because a transaction that was in the way of
    another is done again from the beginning.
    """

    async def look(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run an operation of one statement that finds rows by a key: requests wait for it."""

    async def fetch(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run an operation that reads, with one statement or several that need not agree."""

    async def read(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run an operation whose statements all see the same state."""

    async def write(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run an operation that writes; what it wrote is durable."""

    async def write_one(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run an operation of one statement that writes; it needs no transaction around it."""

    async def remove(
        self,
        tables: Sequence[str],
        begin: Callable[_P, Operation[_T]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Write; then have the bytes of removed records overwritten in these tables.

        A result that is false means that nothing was removed.
        """


class Statements:
    """The statements of one file, as attributes."""

    def __init__(self, statements: dict[str, Statement]) -> None:
        self.by_name = statements

    def __getattr__(self, name: str) -> Statement:
        try:
            return self.by_name[name]
        except KeyError:
            raise AttributeError(f"no statement is named {name}") from None


@cache
def load(name: str) -> Statements:
    """Return the statements of the file `sql/NAME.sql`."""
    text = resources.files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    return parse(name, text)


def parse(name: str, text: str) -> Statements:
    """Return the statements in the text of a file."""
    parts: dict[DatabaseKind, dict[str, str]] = {"sqlite": {}, "postgres": {}}
    texts: dict[DatabaseKind, dict[str, str]] = {"sqlite": {}, "postgres": {}}
    pieces = _SECTION.split(text)[1:]
    for kind, key, database, body in zip(*[iter(pieces)] * 4, strict=True):
        plain = _COMMENT.sub("", body).strip()
        for each in parts:
            if database in (None, each):
                target = parts if kind == "part" else texts
                target[each][key] = _PART.sub(lambda match: parts[each][match[1]], plain)  # noqa: B023
    if texts["sqlite"].keys() != texts["postgres"].keys():
        raise ValueError(f"{name}.sql: a statement is written for one database only")
    return Statements(
        {
            key: Statement(f"{name}.{key}", texts["sqlite"][key], texts["postgres"][key])
            for key in texts["sqlite"]
        }
    )


def _names(text: str) -> list[str]:
    """Return the parameters, those of the scope first, then in the order of the text."""
    used = dict.fromkeys(match["name"] for match in _PARAMETER.finditer(text) if match["name"])
    return [name for name in _OF_SCOPE if name in used] + [n for n in used if n not in _OF_SCOPE]


def _bound_text(text: str, database: DatabaseKind) -> BoundText:
    names = _names(text)
    lists: set[int] = set()

    def numbered(match: re.Match[str]) -> str:
        if not match["name"]:
            return match[0]
        place = names.index(match["name"])
        if match["list"]:
            lists.add(place)
        plain, of_list = _PLACEHOLDERS[database]
        return (of_list if match["list"] else plain).format(place + 1)

    if database == "sqlite":
        text = text.replace("holdfast.", "")
    else:
        # Not in the name of a parameter.
        text = re.sub(r"(?<!:)\bowner\b", "username", text)
    sql = _PARAMETER.sub(numbered, text)
    scoped = [_OF_SCOPE[name] for name in names if name in _OF_SCOPE]
    given = [name for name in names if name not in _OF_SCOPE]
    return BoundText(sql, _of_scope(scoped), _of_values(given), tuple(sorted(lists)))


def _of_scope(attributes: list[str]) -> Callable[[Scope], tuple[Any, ...]]:
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda scope: tuple(getattr(scope, name) for name in attributes)


def _of_values(names: list[str]) -> Callable[[Values], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
