"""statements: SQL from files, in the form that each database takes, and operations that yield it.

A file in sql/ holds the statements of one or more tables. `-- name: by_id` begins a statement,
`-- part: columns` a piece of text that others include as `{columns}`; `{sum cost}` includes it with
`cost` in the place of `@`. Where the databases need different text, each has its section:
`-- name: by_id (sqlite)`, `-- name: by_id (postgres)`. A section without text is nothing to run.
With `;` a section is several statements, of which the last gives the rows: SQLite has no WITH that
writes.

Everything is written once where both take the same text. On loading, these differences go:

| in the file               | SQLite                                  | PostgreSQL       |
|---------------------------|-----------------------------------------|------------------|
| `holdfast.facts`          | `facts`                                 | `holdfast.facts` |
| `owner`                   | `owner`                                 | `username`       |
| `:workspace`              | `?1`                                    | `$1`             |
| `id IN :ids`              | `id IN (SELECT value FROM json_each(?))` | `id = ANY ($3)`  |

Parameters in `json_each(:ids)` and `:ids::text[]` are lists too.

`:workspace`, `:owner` and `:session` are always those of the scope that a statement is called with:
no caller can forget them. All other values are given by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from importlib import resources
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from holdfast.store.scope import Scope

DatabaseKind = Literal["sqlite", "postgres"]
Values = dict[str, Any]

_T = TypeVar("_T")
_P = ParamSpec("_P")

_SECTION = re.compile(r"^-- (name|part): (\w+)(?: \((sqlite|postgres)\))?\n", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_PART = re.compile(r"\{(\w+)(?: (\w+))?\}")
# Text in quotes is left alone, and so are casts (`::text`).
_PARAMETER = re.compile(
    r"'[^']*'|(?P<list>\bIN |\bjson_each\((?=:\w+\)))?(?<!:):(?P<name>\w+)(?P<array>::\w+\[\])?"
)
_ROW = re.compile(r"(?<=VALUES )\([^()]*\)")
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
    several: Callable[[int], str] | None = None
    """Returns the text that inserts several rows; None if the statement inserts no plain row."""

    def bind(self, scope: Scope, values: Values, encode: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Return the values in the order of the parameters; `encode` is applied to lists."""
        bound = self.of_scope(scope) + self.of_values(values)
        if not self.lists:
            return bound
        encoded = list(bound)
        for place in self.lists:
            encoded[place] = encode(bound[place])
        return tuple(encoded)

    def bind_many(self, scope: Scope, rows: Iterable[Values]) -> list[tuple[Any, ...]]:
        """Return the values of several runs, in which there are no lists."""
        of_scope, of_values = self.of_scope(scope), self.of_values
        return [of_scope + of_values(values) for values in rows]


class Statement:
    """A statement of the store."""

    __slots__ = ("_count", "_name", "postgres", "sqlite")

    def __init__(self, name: str, sqlite: str, postgres: str) -> None:
        self._name = name
        self.sqlite = _bound_texts(sqlite, "sqlite")
        self.postgres = _bound_texts(postgres, "postgres")
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
        """Run an operation that writes; its changes are durable when this returns."""

    async def note(
        self, begin: Callable[_P, Operation[None]], *args: _P.args, **kwargs: _P.kwargs
    ) -> None:
        """Run an operation that writes, without waiting for it and without raising its failure."""

    async def noted(self) -> None:
        """Wait until earlier notes are written."""

    async def compute(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run work that takes time and no database, such as compression, beside the event loop."""

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
        self.__dict__.update(statements)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Statement:
            """Return a statement."""


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
        for each, parts_by_name in parts.items():
            if database in (None, each):
                target = parts_by_name if kind == "part" else texts[each]
                target[key] = _included(plain, parts_by_name)
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


def _included(text: str, parts: dict[str, str]) -> str:
    return _PART.sub(lambda match: parts[match[1]].replace("@", match[2] or ""), text)


def _bound_texts(text: str, database: DatabaseKind) -> tuple[BoundText, ...]:
    statements = map(str.strip, text.split(";"))
    return tuple(_bound_text(statement, database) for statement in statements if statement)


def _bound_text(text: str, database: DatabaseKind) -> BoundText:
    names = _names(text)
    lists: set[int] = set()

    def numbered(match: re.Match[str]) -> str:
        if not match["name"]:
            return match[0]
        place = names.index(match["name"])
        if match["list"] or match["array"]:
            lists.add(place)
        plain, of_list = _PLACEHOLDERS[database]
        if match["list"] == "IN ":
            return of_list.format(place + 1)
        return (match["list"] or "") + plain.format(place + 1) + (match["array"] or "")

    if database == "sqlite":
        text = text.replace("holdfast.", "")
    else:
        # Not in the name of a parameter.
        text = re.sub(r"(?<!:)\bowner\b", "username", text)
    sql = _PARAMETER.sub(numbered, text)
    scoped = [_OF_SCOPE[name] for name in names if name in _OF_SCOPE]
    own_names = [name for name in names if name not in _OF_SCOPE]
    several = _several(sql, len(names)) if database == "sqlite" and not lists else None
    return BoundText(sql, _of_scope(scoped), _of_values(own_names), tuple(sorted(lists)), several)


def _several(sql: str, width: int) -> Callable[[int], str] | None:
    """Return a function that makes the text for several rows of `width` values each."""
    match = _ROW.search(sql)
    if match is None or "?" in sql[: match.start()] + sql[match.end() :]:
        return None
    before, row, after = sql[: match.start()], match[0], sql[match.end() :]

    @cache
    def text(rows: int) -> str:
        every = (
            re.sub(r"\?(\d+)", lambda place: f"?{int(place[1]) + number * width}", row)  # noqa: B023
            for number in range(rows)
        )
        return before + ", ".join(every) + after

    return text


def _of_scope(attributes: list[str]) -> Callable[[Scope], tuple[Any, ...]]:
    if len(attributes) > 1:
        return attrgetter(*attributes)
    if not attributes:
        return lambda _: ()
    value_of = attrgetter(*attributes)
    return lambda scope: (value_of(scope),)


def _of_values(names: list[str]) -> Callable[[Values], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    if not names:
        return lambda _: ()
    (name,) = names
    return lambda values: (values[name],)
