"""answers: kept answers on PostgreSQL, and the shelf that makes the calls on them true.

after database, before originals. What is damaged is never given: it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from holdfast.store import answer_shelf, rules
from holdfast.store.answer_shelf import MOST_CANDIDATES, AnswerShelf, Candidate, StoredAnswer
from holdfast.store.pack import pack, unpack
from holdfast.store.postgres import text
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope

_GET: LiteralString = """
SELECT * FROM holdfast.answers
WHERE workspace = $1 AND username = $2 AND id = $3 AND (expires_at IS NULL OR expires_at > $4)
"""

_INSERT: LiteralString = """
INSERT INTO holdfast.answers (
    workspace, username, id, signature, session, refs, embedder, vector, created_at, expires_at,
    hits, last_hit_at, sha256, size, codec, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""

ADD: LiteralString = _INSERT + "ON CONFLICT DO NOTHING RETURNING id"

_CANDIDATES: LiteralString = """
SELECT id, vector FROM holdfast.answers
WHERE workspace = $1 AND username = $2 AND signature = $3 AND embedder = $4 AND embedder <> ''
  AND (expires_at IS NULL OR expires_at > $5)
ORDER BY number DESC LIMIT $6
"""

_HIT: LiteralString = """
UPDATE holdfast.answers SET hits = hits + 1, last_hit_at = $4
WHERE workspace = $1 AND username = $2 AND id = $3
"""

_NUMBER: LiteralString = """
SELECT number FROM holdfast.answers WHERE workspace = $1 AND username = $2 AND id = $3
"""

_LATEST: LiteralString = """
SELECT * FROM holdfast.answers
WHERE workspace = $1 AND username = $2 AND $3 IN ('', session)
  AND ($4::bigint IS NULL OR number < $4) AND ($5 = '' OR refs @> ARRAY[$5])
ORDER BY number DESC LIMIT $6
"""

ALL: LiteralString = """
SELECT * FROM holdfast.answers WHERE workspace = $1 AND username = $2 ORDER BY number
"""

_FORGET: LiteralString = """
DELETE FROM holdfast.answers WHERE workspace = $1 AND username = $2 AND id = ANY ($3)
RETURNING id
"""

OF_SESSION: LiteralString = """
DELETE FROM holdfast.answers WHERE workspace = $1 AND username = $2 AND session = $3
"""

OF_REFS: LiteralString = """
DELETE FROM holdfast.answers
WHERE workspace = $1 AND username = $2 AND refs <> '{}' AND refs && $3::text[]
"""

REMOVE_EXPIRED: LiteralString = """
DELETE FROM holdfast.answers WHERE workspace = $1 AND username = $2 AND expires_at <= $3
"""

_REMOVE: LiteralString = """
DELETE FROM holdfast.answers
WHERE workspace = $1 AND username = $2 AND id = $3 AND sha256 = $4 AND data = $5
"""

_AT_A_TIME = 16


class PostgresAnswers(AnswerShelf):
    """Keeps answers in the database of the store."""

    def __init__(self, database: Database, clock: Callable[[], float], scrubber: Scrubber) -> None:
        self._database = database
        self._scrubber = scrubber
        self._clock = clock

    async def put(self, scope: Scope, answer: StoredAnswer) -> None:
        """Keep an answer."""
        answer_shelf.check(answer)
        row = values(scope, answer)

        async def work(connection: Connection) -> None:
            # Removed and added, not changed: it is the newest from now on, and its number says so.
            await connection.fetch(_FORGET, scope.workspace, scope.user, [answer.id])
            await connection.fetch(ADD, *row)  # who comes first of two at once stays

        await self._database.transact(work)

    async def get(self, scope: Scope, id_: str) -> StoredAnswer | None:
        """The answer of this id."""
        asked = (scope.workspace, scope.user, id_, self._clock())
        rows = await self._database.fetch(_GET, *asked)
        return opened(rows[0]) if rows else None

    async def candidates(self, scope: Scope, signature: str, embedder: str) -> list[Candidate]:
        """The newest answers of a signature."""
        asked = (scope.workspace, scope.user, signature, embedder, self._clock(), MOST_CANDIDATES)
        rows = await self._database.fetch(_CANDIDATES, *asked)
        return [Candidate(row["id"], row["vector"]) for row in rows]

    async def hit(self, scope: Scope, id_: str) -> None:
        """Note that an answer was given again."""
        await self._database.fetch(_HIT, scope.workspace, scope.user, id_, self._clock())

    async def latest(
        self, scope: Scope, *, ref: str = "", limit: int = 100, before: str = ""
    ) -> list[StoredAnswer]:
        """The answers kept last."""
        behind = None
        if before:
            rows = await self._database.fetch(_NUMBER, scope.workspace, scope.user, before)
            if not rows:
                raise rules.no_place_to_go_on(before)
            behind = rows[0]["number"]
        asked = (scope.workspace, scope.user, scope.session, behind, ref, max(limit, 0))
        answers = map(opened, await self._database.fetch(_LATEST, *asked))
        return [answer for answer in answers if answer is not None]

    async def forget(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove answers without a trace."""
        asked = (scope.workspace, scope.user, rules.distinct(ids))
        removed = len(await self._database.fetch(_FORGET, *asked))
        self._scrubber.begin(["answers"] if removed else [])
        return removed


def values(scope: Scope, answer: StoredAnswer) -> tuple[object, ...]:
    """An answer as the values of `ADD`."""
    content = answer_shelf.written(answer)
    packed = pack(content)
    return (
        *(scope.workspace, scope.user, answer.id, answer.signature, scope.session),
        *(list(answer.refs), answer.embedder, answer.vector, answer.created_at, answer.expires_at),
        *(answer.hits, answer.last_hit_at),
        *(digest(content), len(content), packed.codec, packed.data),
    )


def opened(row: Any) -> StoredAnswer | None:
    """A row as an answer; None if it is not what was stored."""
    content = unpack(row["codec"], row["data"], size=row["size"], sha256=row["sha256"])
    if content is None:
        return None
    prompt, answer = answer_shelf.read(content)
    told = ("id", "signature", "session", "vector", "embedder", "created_at", "expires_at", "hits")
    return StoredAnswer(
        prompt=prompt,
        answer=answer,
        refs=tuple(map(text.unescaped, row["refs"])),
        last_hit_at=row["last_hit_at"],
        **{name: row[name] for name in told},
    )


async def unsound(connection: Connection, scope: Scope) -> list[Any]:
    """The rows of answers that are not what was stored."""
    asked = (scope.workspace, scope.user)
    rows = connection.cursor(ALL, *asked, prefetch=_AT_A_TIME)
    return [row async for row in rows if opened(row) is None]


async def remove(database: Database, scope: Scope, rows: Sequence[Any]) -> list[Damage]:
    """Remove damaged answers, unless they were kept anew since."""
    for row in rows:
        key = (scope.workspace, scope.user, row["id"], row["sha256"], row["data"])
        await database.fetch(_REMOVE, *key)
    return [answer_shelf.damaged(row["sha256"]) for row in rows]
