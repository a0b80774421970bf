"""answers: kept answers, in SQL, and the shelf that makes the calls on them true.

answers: after driver and writer, before store. What is damaged is never given: it is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import apsw

from holdfast.store import answer_shelf, rules
from holdfast.store.answer_shelf import MOST_CANDIDATES, AnswerShelf, Candidate, StoredAnswer
from holdfast.store.pack import Packed, pack, unpack
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.sqlite.driver import Job
from holdfast.store.sqlite.writer import Readers, Writer

_MINE = "workspace = ? AND owner = ?"
_COLUMNS = (
    "id, signature, session, embedder, CAST(vector AS BLOB), created_at, expires_at, hits,"
    " last_hit_at, sha256, size, codec, CAST(data AS BLOB), (SELECT json_group_array(ref_id) FROM"
    " (SELECT ref_id FROM answer_refs WHERE answer = number ORDER BY place))"
)
_T = TypeVar("_T")


class SqliteAnswers(AnswerShelf):
    """Keeps answers in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock

    async def _write(self, job: Job[_T]) -> _T:
        return await self._writer.submit(job)

    async def put(self, scope: Scope, answer: StoredAnswer) -> None:
        """Keep an answer."""
        answer_shelf.check(answer)
        content = answer_shelf.written(answer)
        packed = pack(content)
        await self._write(lambda db: _put(db, scope, answer, content, packed))

    async def get(self, scope: Scope, id_: str) -> StoredAnswer | None:
        """The answer of this id."""
        return await self._readers.read(partial(_get, scope=scope, id_=id_, now=self._clock()))

    async def candidates(self, scope: Scope, signature: str, embedder: str) -> list[Candidate]:
        """The newest answers of a signature."""
        now = self._clock()

        def work(db: apsw.Connection) -> list[Candidate]:
            rows = db.execute(
                f"SELECT id, CAST(vector AS BLOB) FROM answers WHERE {_MINE} AND signature = ?"  # noqa: S608 - constants
                " AND embedder = ? AND embedder <> '' AND (expires_at IS NULL OR expires_at > ?)"
                " ORDER BY number DESC LIMIT ?",
                (*_owner(scope), signature, embedder, now, MOST_CANDIDATES),
            )
            return [Candidate(id_, vector) for id_, vector in rows]

        return await self._readers.read(work)

    async def hit(self, scope: Scope, id_: str) -> None:
        """Note that an answer was given again."""
        now = self._clock()
        await self._write(
            lambda db: db.execute(
                f"UPDATE answers SET hits = hits + 1, last_hit_at = ? WHERE {_MINE} AND id = ?",  # noqa: S608 - constants
                (now, *_owner(scope), id_),
            ).fetchall()
        )

    async def latest(
        self, scope: Scope, *, ref: str = "", limit: int = 100, before: str = ""
    ) -> list[StoredAnswer]:
        """The answers kept last."""
        work = partial(_latest, scope=scope, ref=ref, limit=limit, before=before)
        return await self._readers.read(work)

    async def forget(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove answers without a trace."""
        return await self._writer.remove(lambda db: _remove(db, scope, "id", rules.distinct(ids)))


def _owner(scope: Scope) -> tuple[str, str]:
    return scope.workspace, scope.user


def _get(db: apsw.Connection, scope: Scope, id_: str, now: float) -> StoredAnswer | None:
    row = db.execute(
        f"SELECT {_COLUMNS} FROM answers WHERE {_MINE} AND id = ?"  # noqa: S608 - constants
        " AND (expires_at IS NULL OR expires_at > ?)",
        (*_owner(scope), id_, now),
    ).fetchone()
    return None if row is None else _opened(row)


def _put(
    db: apsw.Connection, scope: Scope, answer: StoredAnswer, content: bytes, packed: Packed
) -> None:
    _remove(db, scope, "id", [answer.id])
    _insert(db, scope, answer, content, packed)


def _insert(
    db: apsw.Connection, scope: Scope, answer: StoredAnswer, content: bytes, packed: Packed
) -> None:
    db.execute(
        "INSERT INTO answers (workspace, owner, id, signature, session, embedder, vector,"
        " created_at, expires_at, hits, last_hit_at, sha256, size, codec, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(*_owner(scope), answer.id, answer.signature, scope.session, answer.embedder),
            *(answer.vector, answer.created_at, answer.expires_at, answer.hits, answer.last_hit_at),
            *(digest(content), len(content), packed.codec, packed.data),
        ),
    )
    number = db.last_insert_rowid()
    db.executemany(
        "INSERT INTO answer_refs (answer, place, ref_id) VALUES (?, ?, ?)",
        [(number, place, ref) for place, ref in enumerate(answer.refs)],
    )


def _opened(row: Sequence[Any]) -> StoredAnswer | None:
    """A row as an answer; None if it is not what was stored."""
    *told, sha256, size, codec, data, refs = row
    content = unpack(codec, data, size=size, sha256=sha256)
    if content is None:
        return None
    id_, signature, session, embedder, vector, created_at, expires_at, hits, last_hit_at = told
    prompt, answer = answer_shelf.read(content)
    return StoredAnswer(
        id=id_,
        prompt=prompt,
        signature=signature,
        answer=answer,
        refs=tuple(json.loads(refs)),
        vector=vector,
        embedder=embedder,
        session=session,
        created_at=created_at,
        expires_at=expires_at,
        hits=hits,
        last_hit_at=last_hit_at,
    )


def _latest(
    db: apsw.Connection, scope: Scope, ref: str, limit: int, before: str
) -> list[StoredAnswer]:
    behind = None
    if before:
        behind = db.execute(
            f"SELECT number FROM answers WHERE {_MINE} AND id = ?",  # noqa: S608 - constants
            (*_owner(scope), before),
        ).get
        if behind is None:
            raise rules.no_place_to_go_on(before)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM answers WHERE {_MINE} AND ? IN ('', session)"  # noqa: S608 - constants
        " AND (? IS NULL OR number < ?) AND (? = '' OR EXISTS"
        " (SELECT 1 FROM answer_refs WHERE answer = number AND ref_id = ?))"
        " ORDER BY number DESC LIMIT ?",
        (*_owner(scope), scope.session, behind, behind, ref, ref, max(limit, 0)),
    )
    return [answer for answer in map(_opened, rows) if answer is not None]


def page(
    db: apsw.Connection, scope: Scope, after: int, limit: int
) -> tuple[list[StoredAnswer], int]:
    """Whole answers behind a number in the order they were kept, and the number to go on behind."""
    rows = list(
        db.execute(
            f"SELECT number, {_COLUMNS} FROM answers WHERE {_MINE} AND number > ?"  # noqa: S608 - constants
            " ORDER BY number LIMIT ?",
            (*_owner(scope), after, limit),
        )
    )
    answers = [_opened(row) for _, *row in rows]
    return [each for each in answers if each is not None], rows[-1][0] if len(rows) == limit else 0


def restore(db: apsw.Connection, scope: Scope, answer: StoredAnswer) -> bool:
    """Keep an exported answer unless there is one with its id; whether there was none."""
    is_new = not db.execute(
        f"SELECT EXISTS (SELECT 1 FROM answers WHERE {_MINE} AND id = ?)",  # noqa: S608 - constants
        (*_owner(scope), answer.id),
    ).get
    if is_new:
        content = answer_shelf.written(answer)
        _insert(db, scope.of(answer.session), answer, content, pack(content))
    return is_new


def unsound(db: apsw.Connection, scope: Scope) -> dict[str, str]:
    """Answers that are not what was stored: their hashes by their ids."""
    rows = db.execute(
        f"SELECT id, codec, CAST(data AS BLOB), size, sha256 FROM answers WHERE {_MINE}",  # noqa: S608 - constants
        _owner(scope),
    )
    return {
        id_: sha256
        for id_, codec, data, size, sha256 in rows
        if unpack(codec, data, size=size, sha256=sha256) is None
    }


def remove_unsound(db: apsw.Connection, scope: Scope, unsound: Mapping[str, str]) -> None:
    """Remove damaged answers, unless others have taken their places since."""
    for id_, sha256 in unsound.items():
        db.execute(
            f"DELETE FROM answers WHERE {_MINE} AND id = ? AND sha256 = ?",  # noqa: S608 - constants
            (*_owner(scope), id_, sha256),
        )


def remove_expired(db: apsw.Connection, scope: Scope, now: float) -> None:
    """Remove what is past its time."""
    db.execute(
        f"DELETE FROM answers WHERE {_MINE} AND expires_at <= ?",  # noqa: S608 - constants
        (*_owner(scope), now),
    )


def remove_of_session(db: apsw.Connection, scope: Scope) -> int:
    """Remove the answers of a session; return how many there were."""
    return _remove(db, scope, "session", [scope.session])


def remove_of_ref(db: apsw.Connection, scope: Scope, ref_id: str) -> None:
    """Remove the answers that were made from a content that goes without a trace."""
    db.execute(
        f"DELETE FROM answers WHERE {_MINE}"  # noqa: S608 - constants
        " AND number IN (SELECT answer FROM answer_refs WHERE ref_id = ?)",
        (*_owner(scope), ref_id),
    )


def _remove(db: apsw.Connection, scope: Scope, column: str, values: Sequence[str]) -> int:
    removed = 0
    for value in values:
        db.execute(
            f"DELETE FROM answers WHERE {_MINE} AND {column} = ?",  # noqa: S608 - constants
            (*_owner(scope), value),
        )
        removed += db.changes()
    return removed
