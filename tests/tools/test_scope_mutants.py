"""The tool of `make scopes`: each scope condition is dropped once, and nothing else."""

from __future__ import annotations

import apsw
import pytest
from tools.scope_mutants import mutants_of


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM answers WHERE workspace = ? AND owner = ? AND id = ?",
         ["DELETE FROM answers WHERE (? IS NOT NULL) AND owner = ? AND id = ?",
          "DELETE FROM answers WHERE workspace = ? AND (? IS NOT NULL) AND id = ?"]),
        ("UPDATE t SET session = $4 WHERE username = $2",
         ["UPDATE t SET session = $4 WHERE ($2::text IS NOT NULL)"]),
        ("SELECT 1 WHERE (r.workspace, r.sha256) = (c.workspace, c.sha256)",
         ["SELECT 1 WHERE (r.sha256 = c.sha256)"]),
        ("SELECT 1 FROM t WHERE $3 IN ('', session)",
         ["SELECT 1 FROM t WHERE ($3::text IS NOT NULL)"]),
        ("SELECT 1 FROM t WHERE workspace = ANY ($1::text[])",
         ["SELECT 1 FROM t WHERE ($1::text[] IS NOT NULL)"]),
        ("SELECT 1 FROM a JOIN b ON a.owner = b.owner",
         ["SELECT 1 FROM a JOIN b ON (1 = 1)"]),
        ("INSERT INTO t (workspace, owner) VALUES (?, ?)"
         " ON CONFLICT DO UPDATE SET session = excluded.session", []),
        ("SELECT * FROM contents WHERE id = ?", []),
    ],
)  # fmt: skip
def test_each_condition_is_dropped_once(statement: str, expected: list[str]) -> None:
    assert [mutant.mutated for mutant in mutants_of(statement)] == expected


def test_a_mutant_takes_the_same_parameters() -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE t (workspace, owner, session, id)")
    statement = "SELECT id FROM t WHERE workspace = ? AND owner = ? AND ? IN ('', session)"
    mutants = mutants_of(statement)
    assert len(mutants) == 3
    for mutant in mutants:
        db.execute(mutant.mutated, ("w", "o", "s")).fetchall()
