"""Statements are written once, and reach each database in its own form."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from holdfast.store import Scope
from holdfast.store.statements import load, parse

HERE = Scope("ann", "blue", "s1")
SOURCE = Path(str(resources.files("holdfast.store")))
FILES = sorted(file.stem for file in (SOURCE / "sql").glob("*.sql"))


def as_is(value: object) -> object:
    return value


def test_both_databases_take_the_same_text_in_their_own_form() -> None:
    text = """
-- name: some
-- a remark
SELECT id, ':no value', id::text FROM holdfast.facts
WHERE owner = :owner AND workspace = :workspace AND id IN :ids AND kind = :kind AND id <> :kind
"""
    some = parse("x", text).some
    assert some.sqlite[0].sql.split("\n") == [
        "SELECT id, ':no value', id::text FROM facts",
        "WHERE owner = ?2 AND workspace = ?1 AND id IN (SELECT value FROM json_each(?3))"
        " AND kind = ?4 AND id <> ?4",
    ]
    assert some.postgres[0].sql.split("\n") == [
        "SELECT id, ':no value', id::text FROM holdfast.facts",
        "WHERE username = $2 AND workspace = $1 AND id = ANY ($3) AND kind = $4 AND id <> $4",
    ]
    values = some(HERE, kind="log", ids=["a", "b"]).values
    assert some.sqlite[0].bind(HERE, values, len) == ("blue", "ann", 2, "log")


def test_a_database_may_have_its_own_text_and_its_own_parameters() -> None:
    text = """
-- part: end (sqlite)
rowid = :row
-- part: end (postgres)
ctid = :place
-- name: some
DELETE FROM t WHERE session = :session AND {end}
"""
    some = parse("x", text).some
    values = some(HERE, row=1, place="(0,1)").values
    assert some.sqlite[0].bind(HERE, values, as_is) == ("s1", 1)
    assert some.postgres[0].bind(HERE, values, as_is) == ("s1", "(0,1)")


def test_a_call_that_lacks_a_value_or_has_one_too_many_is_refused() -> None:
    some = parse("x", "-- name: some\nSELECT :a, :b\n").some
    with pytest.raises(TypeError):
        some(HERE, a=1)
    with pytest.raises(TypeError):
        some(HERE, a=1, b=2, c=3)
    with pytest.raises(KeyError):
        some.sqlite[0].bind(HERE, some(HERE, a=1, c=2).values, as_is)


def test_a_statement_for_one_database_only_is_refused() -> None:
    with pytest.raises(ValueError, match="one database only"):
        parse("x", "-- name: some (sqlite)\nSELECT 1\n")


@pytest.mark.parametrize("name", FILES)
def test_every_statement_is_used(name: str) -> None:
    code = "\n".join(file.read_text("utf-8") for file in SOURCE.rglob("*.py"))
    used = set(re.findall(r"\b_?\w*sql\.(\w+)", code))
    assert set(load(name).by_name) <= used


def test_a_statement_may_be_several_on_one_database_or_none_at_all() -> None:
    text = """
-- name: some (sqlite)
UPDATE t SET a = :a;
SELECT a FROM t WHERE owner = :owner
-- name: some (postgres)
"""
    some = parse("x", text).some
    assert [each.sql for each in some.sqlite] == [
        "UPDATE t SET a = ?1",
        "SELECT a FROM t WHERE owner = ?1",
    ]
    assert some.postgres == ()


def test_rows_are_inserted_together_where_nothing_else_of_the_statement_has_values() -> None:
    text = """
-- name: plain
INSERT INTO t (owner, a, b) VALUES (:owner, :a, :b) ON CONFLICT DO NOTHING
-- name: other
INSERT INTO t (owner, a) VALUES (:owner, :a) ON CONFLICT DO UPDATE SET a = :a
"""
    some = parse("x", text)
    several = some.plain.sqlite[0].several
    assert several is not None
    assert several(2) == (
        "INSERT INTO t (owner, a, b) VALUES (?1, ?2, ?3), (?4, ?5, ?6) ON CONFLICT DO NOTHING"
    )
    assert some.other.sqlite[0].several is None


def test_a_part_takes_a_word() -> None:
    text = """
-- part: sum
CAST(sum(@) AS bigint)
-- name: some
SELECT {sum cost}, {sum size} FROM t
"""
    some = parse("x", text).some
    assert (
        some.sqlite[0].sql == "SELECT CAST(sum(cost) AS bigint), CAST(sum(size) AS bigint) FROM t"
    )
