"""Mutants of a SQL statement: each lacks one condition on a scope column.

scope_mutants: before mutate_sql. Pure: text in, texts out. The condition is replaced by one that
always holds and still reads its parameter, so that the statement stays valid and keeps its number
of parameters. Joins with USING are left alone: without a column they are ambiguous, and every test
would notice that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

COLUMNS = "workspace|owner|username|session"
_COLUMN = rf"(?:\w+\.)?(?:{COLUMNS})"
_PARAMETER = r"\?\d*|:\w+|\$\d+"
_COMPARED = re.compile(
    rf"(?<![\w.])\+?{_COLUMN}\s*(?:"
    rf"=\s*(?P<value>(?:{_PARAMETER})(?:::text)?(?![\w:]))"
    rf"|=\s*ANY\s*\((?P<array>\$\d+)(?:::text\[\])?\)"
    rf"|IN\s*\((?:SELECT) value FROM json_each\((?P<json>{_PARAMETER})\)\)"
    rf"|=\s*(?P<other>(?!excluded\.)\w+\.\w+(?:\s*->>\s*\d)?)"
    r")"
)
_IN_SESSION = re.compile(rf"(?P<value>{_PARAMETER})\s+IN\s+\('',\s*(?:\w+\.)?session\)")
_PAIRED = re.compile(r"\((?P<left>\w+\.[\w., ]+)\)\s*=\s*\((?P<right>\w+\.[\w., ]+)\)")
_SCOPED = re.compile(rf"\.(?:{COLUMNS})$")


class Mutant(NamedTuple):
    """A statement without one of its scope conditions."""

    statement: str
    """As the store runs it."""
    condition: str
    """The one that is dropped."""
    number: int
    """Which condition of the statement it is, from 0 on."""
    mutated: str


def mutants_of(statement: str) -> list[Mutant]:
    """Return the mutants of a statement; none if it has no scope condition."""
    changes = sorted(_changes(statement))
    return [
        Mutant(
            statement,
            " ".join(statement[start:stop].split()),
            number,
            statement[:start] + replacement + statement[stop:],
        )
        for number, (start, stop, replacement) in enumerate(changes)
    ]


def _changes(statement: str) -> Iterator[tuple[int, int, str]]:
    assignments = [match.span() for match in _ASSIGNED.finditer(statement)]
    for match in _COMPARED.finditer(statement):
        if any(start <= match.start() < stop for start, stop in assignments):
            continue
        yield (*match.span(), _always(match))
    for match in _IN_SESSION.finditer(statement):
        yield (*match.span(), _reads(match["value"], "text"))
    for match in _PAIRED.finditer(statement):
        yield from _without_pairs(match)


# `SET closed_at = ?, session = excluded.session`: values, not conditions.
_ASSIGNED = re.compile(r"\bSET\b(?:(?!\b(?:WHERE|RETURNING|FROM)\b).)*", re.DOTALL)


def _always(match: re.Match[str]) -> str:
    if match["value"]:
        return _reads(match["value"].partition("::")[0], "text")
    if match["array"]:
        return _reads(match["array"], "text[]")
    if match["json"]:
        return _reads(match["json"], "text")
    return "(1 = 1)"


def _reads(parameter: str, kind: str) -> str:
    cast = f"::{kind}" if parameter.startswith("$") else ""
    return f"({parameter}{cast} IS NOT NULL)"


def _without_pairs(match: re.Match[str]) -> Iterator[tuple[int, int, str]]:
    left = [name.strip() for name in match["left"].split(",")]
    right = [name.strip() for name in match["right"].split(",")]
    for place, name in enumerate(left):
        if _SCOPED.search(name):
            others = [n for n in range(len(left)) if n != place]
            pairs = " AND ".join(f"{left[n]} = {right[n]}" for n in others)
            yield (*match.span(), f"({pairs})")
