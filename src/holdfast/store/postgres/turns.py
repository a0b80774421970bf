"""turns: what was said, turn by turn: the statements of the shelf on PostgreSQL.

after database, before shelf. Words are a `tsvector` of the content's beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.store.pack import pack, unpack
from holdfast.store.postgres.database import Connection
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.transfer import RememberedLine
from holdfast.store.turn_shelf import IndexedTurn, Remembered

_MOST_INDEXED = 200_000
"""Characters of a turn whose words can be searched; a tsvector has room for a megabyte."""

_COMMON: LiteralString = "5000"
"""Turns that are looked at of a word: where more hold it, it says little. To rank all that hold any
word of a question took ten seconds among a million turns, for common words are in most of them."""
_MOST_WORDS: LiteralString = "40"
"""Of a question: the longest, which are rarer than the short."""

_COLUMNS: LiteralString = "id, session, role, at, name, number, tokens, sha256, size, codec, data"
_INDEXED: LiteralString = "place, session, role, name, number, at, maker, indexed"

LOCK: LiteralString = """
SELECT pg_advisory_xact_lock(hashtextextended(
    length($1)::text || ':' || $1 || ' ' || length($2)::text || ':' || $2, 72))
"""
"""Turns of one user are numbered and counted one after the other, so that places come in order."""

FIRST: LiteralString = """
SELECT print, id FROM holdfast.remembered WHERE workspace = $1 AND username = $2 AND session = $3
ORDER BY number, place LIMIT $4
"""
LAST: LiteralString = """
SELECT print, id FROM holdfast.remembered WHERE workspace = $1 AND username = $2 AND session = $3
ORDER BY number DESC, place DESC LIMIT $4
"""
THERE: LiteralString = """
SELECT id FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND session = $3 AND id = ANY ($4::text[])
"""
LAST_NUMBER: LiteralString = """
SELECT coalesce(max(number), 0) FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND session = $3
"""
ADD: LiteralString = """
INSERT INTO holdfast.remembered (
    workspace, username, id, session, number, role, name, at, tokens, print, maker, indexed,
    sha256, size, codec, data, words)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
        to_tsvector('english', $17))
ON CONFLICT DO NOTHING
RETURNING id
"""
MAKE_ANEW: LiteralString = """
UPDATE holdfast.remembered SET maker = $5, indexed = $6
WHERE workspace = $1 AND username = $2 AND session = $3 AND id = $4 AND maker <> $5
RETURNING id
"""
NOTE: LiteralString = """
INSERT INTO holdfast.remembered_changes AS c (workspace, username, added, removed)
VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace, username) DO UPDATE
SET added = c.added + excluded.added, removed = c.removed + excluded.removed
"""
CHANGES: LiteralString = """
SELECT added, removed FROM holdfast.remembered_changes WHERE workspace = $1 AND username = $2
"""
INDEXED: LiteralString = f"""
SELECT {_INDEXED} FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND place > $3 ORDER BY place LIMIT $4
"""  # noqa: S608 - constants
WITH_WORDS: LiteralString = f"""
WITH asked AS MATERIALIZED (
    -- A word as a query: in quotes, where a quote and a backslash within it stand twice.
    SELECT $$'$$ || regexp_replace(word, $$(['\\\\])$$, $$\\1\\1$$, 'g') || $$'$$ AS word
    FROM unnest(tsvector_to_array(to_tsvector('english', $4))) AS word
    ORDER BY length(word) DESC, word LIMIT {_MOST_WORDS}
), holding AS MATERIALIZED (
    SELECT place, count(*) OVER (PARTITION BY word) AS turns
    FROM asked, LATERAL (
        SELECT place FROM holdfast.remembered
        WHERE workspace = $1 AND username = $2 AND $3 IN ('', session) AND words @@ word::tsquery
        LIMIT {_COMMON}
    ) AS of_word
), likely AS (
    SELECT place, sum(1.0 / turns) AS worth FROM holding
    GROUP BY place ORDER BY worth DESC, place LIMIT $5
)
SELECT {_INDEXED} FROM likely JOIN holdfast.remembered USING (place) ORDER BY worth DESC, place
"""  # noqa: S608 - constants
TURNS: LiteralString = f"""
SELECT place, {_COLUMNS} FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND place = ANY ($3::bigint[])
"""  # noqa: S608 - constants
RECENT: LiteralString = f"""
SELECT {_COLUMNS} FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND session = $3 AND ($4 = 0 OR number < $4)
ORDER BY number DESC, place DESC LIMIT $5
"""  # noqa: S608 - constants
SELECT: LiteralString = f"""
SELECT place, {_COLUMNS} FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND place > $3
  AND ($4::text[] IS NULL OR id = ANY ($4::text[])) AND ($5::text IS NULL OR session = $5)
  AND ($6::double precision IS NULL OR at < $6) AND ($7::double precision IS NULL OR at >= $7)
ORDER BY place LIMIT $8
"""  # noqa: S608 - constants
FORGET: LiteralString = """
DELETE FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 AND place = ANY ($3::bigint[])
RETURNING place
"""
OF_SESSION: LiteralString = """
WITH gone AS (
    DELETE FROM holdfast.remembered WHERE workspace = $1 AND username = $2 AND session = $3
    RETURNING 1
), noted AS (
    UPDATE holdfast.remembered_changes SET removed = removed + 1
    WHERE workspace = $1 AND username = $2 AND EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone
"""
ALL: LiteralString = f"""
SELECT {_COLUMNS}, print, maker, indexed FROM holdfast.remembered
WHERE workspace = $1 AND username = $2 ORDER BY place
"""  # noqa: S608 - constants


async def remove(connection: Connection, scope: Scope, places: Sequence[int]) -> int:
    """Remove turns without a trace; return how many there were."""
    who = (scope.workspace, scope.user)
    await connection.execute(LOCK, *who)
    gone = await connection.fetch(FORGET, *who, list(places))
    if gone:
        await connection.execute(NOTE, *who, 0, 1)
    return len(gone)


def opened(row: Any) -> Remembered | None:
    """A row as a turn; None if it is not what was said."""
    content = unpack(row["codec"], row["data"], size=row["size"], sha256=row["sha256"])
    if content is None:
        return None
    return Remembered(
        id=row["id"],
        session=row["session"],
        role=row["role"],
        content=content.decode("utf-8", "surrogatepass"),
        at=row["at"],
        name=row["name"],
        number=row["number"],
        tokens=row["tokens"],
    )


def indexed(row: Any) -> IndexedTurn:
    """A row as what recall needs of it."""
    fields = {name: row[name] for name in IndexedTurn.__struct_fields__ if name != "index"}
    return IndexedTurn(**fields, index=row["indexed"])


def lines_of(row: Any) -> list[RememberedLine]:
    """A row as a line of an export; none of a damaged one."""
    turn = opened(row)
    made = (row["print"], row["maker"], row["indexed"])
    return [] if turn is None else [RememberedLine.of(turn, *made)]


def values(scope: Scope, turn: Remembered, made: tuple[str, str, bytes]) -> tuple[object, ...]:
    """A turn as the values of `ADD`; `made` is its print, and maker and index."""
    data = turn.content.encode("utf-8", "surrogatepass")
    packed = pack(data)
    return (
        *(scope.workspace, scope.user, turn.id, turn.session, turn.number, turn.role, turn.name),
        *(turn.at, turn.tokens, *made, digest(data), len(data), packed.codec, packed.data),
        turn.content[:_MOST_INDEXED],
    )
