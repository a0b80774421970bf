"""Answers that may be given again. A damaged one counts as missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.store import answer_store, rules
from holdfast.store.answer_store import MOST_CANDIDATES, AnswerStore, Candidate, StoredAnswer
from holdfast.store.operations import pages
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.transfer import PAGE, AnswerLine, Page

TABLES = ("answers",)
"""Tables whose removed rows are overwritten."""
_NEWEST = 2**62
"""Above the number of every answer."""

_sql = load("answers")


class SqlAnswerStore(AnswerStore):
    """Stored answers in a database."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner = runner
        self._clock = clock

    async def put(self, scope: Scope, answer: StoredAnswer) -> None:
        """Store an answer in the place of one with its id."""
        answer_store.check(answer)
        values = _values(answer)

        def work() -> Operation[None]:
            # Removed and added, not changed, so that its number marks it as the newest.
            yield _sql.forget(scope, ids=[answer.id])
            yield from _add(scope, values)

        await self._runner.write(work)

    async def get(self, scope: Scope, id_: str) -> StoredAnswer | None:
        """Return the answer of this id."""
        now = self._clock()

        def work() -> Operation[StoredAnswer | None]:
            rows = yield _sql.get(scope, id=id_, now=now)
            return _answer(rows[0]) if rows else None

        return await self._runner.fetch(work)

    async def candidates(self, scope: Scope, signature: str, embedder: str) -> list[Candidate]:
        """Return the newest answers of a signature."""
        now = self._clock()

        def work() -> Operation[list[Candidate]]:
            rows = yield _sql.candidates(
                scope, signature=signature, embedder=embedder, now=now, limit=MOST_CANDIDATES
            )
            return [Candidate(id_, vector) for id_, vector in rows]

        return await self._runner.fetch(work)

    async def hit(self, scope: Scope, id_: str) -> None:
        """Note that an answer was given again."""
        now = self._clock()

        def work() -> Operation[None]:
            yield _sql.hit(scope, id=id_, now=now)

        await self._runner.write_one(work)

    async def latest(
        self, scope: Scope, *, ref: str = "", limit: int = 100, before: str = ""
    ) -> list[StoredAnswer]:
        """Return the answers stored last."""

        def work() -> Operation[list[StoredAnswer]]:
            below = _NEWEST
            if before:
                numbers = yield _sql.number(scope, id=before)
                if not numbers:
                    raise rules.no_place_to_go_on(before)
                below = numbers[0][0]
            rows = yield _sql.latest(scope, below=below, ref=ref, limit=max(limit, 0))
            return [answer for answer in map(_answer, rows) if answer is not None]

        return await self._runner.fetch(work)

    async def forget(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove answers without a trace; return how many there were."""

        def work() -> Operation[int]:
            return len((yield _sql.forget(scope, ids=rules.distinct(ids))))

        return await self._runner.remove(TABLES, work)


def _values(answer: StoredAnswer) -> Values:
    content = answer_store.written(answer)
    packed = pack(content)
    return {
        "id": answer.id,
        "signature": answer.signature,
        "embedder": answer.embedder,
        "vector": answer.vector,
        "created_at": answer.created_at,
        "expires_at": answer.expires_at,
        "hits": answer.hits,
        "last_hit_at": answer.last_hit_at,
        "refs": list(answer.refs),
        "sha256": digest(content),
        "size": len(content),
        "codec": packed.codec,
        "data": packed.data,
    }


def _answer(row: Row) -> StoredAnswer | None:
    """Return the answer of a row; None if it is damaged."""
    _, id_, signature, session, embedder, vector, created_at, expires_at, *uses = row
    hits, last_hit_at, refs, sha256, size, codec, data = uses
    content = unpack(codec, data, size=size, sha256=sha256)
    if content is None:
        return None
    prompt, answer = answer_store.read(content)
    return StoredAnswer(
        id=id_,
        prompt=prompt,
        signature=signature,
        answer=answer,
        refs=tuple(rules.json_list(refs)),
        vector=vector,
        embedder=embedder,
        session=session,
        created_at=created_at,
        expires_at=expires_at,
        hits=hits,
        last_hit_at=last_hit_at,
    )


def _add(scope: Scope, values: Values) -> Operation[bool]:
    """Write an answer unless there is one with its id; return whether there was none."""
    is_new = bool((yield _sql.add(scope, **values)))
    if is_new and values["refs"]:
        yield _sql.add_refs(scope, id=values["id"], refs=values["refs"])
    return is_new


def restore(scope: Scope, answer: StoredAnswer) -> Operation[bool]:
    """Write an exported answer unless there is one with its id; return whether there was none."""
    return (yield from _add(scope.of(answer.session), _values(answer)))


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the answers after a number; damaged ones are left out."""
    rows = yield _sql.page(scope, after=after or 0, limit=PAGE)
    exported = [AnswerLine(each) for row in rows if (each := _answer(row)) is not None]
    return [*exported], pages.last_key(rows)


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Remove damaged answers, unless they were stored again meanwhile; return their damages."""
    rows = await pages.damaged_rows(runner, scope, 0, _damaged, _remove_damaged)
    return [answer_store.damaged(sha256) for *_, sha256, _, _, _ in rows]


def _damaged(scope: Scope, after: int) -> Operation[pages.RowPage]:
    rows = yield _sql.page(scope, after=after, limit=PAGE)
    return [row for row in rows if _answer(row) is None], pages.last_key(rows)


def _remove_damaged(scope: Scope, rows: Sequence[Row]) -> Operation[None]:
    yield _sql.remove_damaged.many(
        scope,
        ({"id": id_, "sha256": sha256, "data": data} for _, id_, *_, sha256, _, _, data in rows),
    )


def remove_expired(scope: Scope, now: float) -> Operation[None]:
    """Remove the answers that have expired."""
    yield _sql.remove_expired(scope, now=now)
