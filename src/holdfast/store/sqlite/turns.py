"""turns: what was said, turn by turn, in SQL: the shelf on SQLite.

turns: after driver, before sessions. Each function is a job for a connection, inside of a
transaction. Words stand in an index of their own, from which a turn is taken by giving it the very
words that it was given; those lie in the turn's content, so that nothing is kept twice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from holdfast.store import rules, turn_shelf
from holdfast.store.pack import Packed, pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.transfer import RememberedLine
from holdfast.store.turn_shelf import (
    Changes,
    IndexedTurn,
    Known,
    NewTurn,
    Remembered,
    SessionEnds,
    TurnFilter,
)

_COLUMNS = "id, session, role, at, name, number, tokens, sha256, size, codec, CAST(data AS BLOB)"
_INDEXED = "place, session, role, name, number, at, maker, CAST(indexed AS BLOB)"
_MINE = "workspace = ? AND owner = ?"
_MOST_INDEXED = 200_000
"""Characters of a turn whose words can be searched."""


class Body(NamedTuple):
    """A content as it will lie on disk."""

    sha256: str
    size: int
    packed: Packed


def body_of(content: str) -> Body:
    """Pack a content; lone surrogates, which texts of a conversation may hold, are kept."""
    data = content.encode("utf-8", "surrogatepass")
    return Body(digest(data), len(data), pack(data))


def _who(scope: Scope) -> tuple[str, str]:
    return (scope.workspace, scope.user)


# What FTS5 takes for one word, and no more: it would look for the two of "it's" as a phrase, and an
# index without places refuses that. It knows fewer letters beyond the first plane than Python does.
_PART = re.compile(r"[^\W_\U00010000-\U0010ffff]+")


def _searched(content: str) -> str:
    return content[:_MOST_INDEXED].encode("utf-8", "replace").decode()


def _scope_word(scope: Scope) -> str:
    """One word for whose a turn is."""
    name = f"{len(scope.workspace)}:{scope.workspace}{scope.user}"
    return "s" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _opened(row: tuple[Any, ...]) -> Remembered | None:
    id_, session, role, at, name, number, tokens, sha256, size, codec, data = row
    content = unpack(codec, data, size=size, sha256=sha256)
    if content is None:
        return None
    return Remembered(
        id=id_,
        session=session,
        role=role,
        content=content.decode("utf-8", "surrogatepass"),
        at=at,
        name=name,
        number=number,
        tokens=tokens,
    )


def _indexed(rows: Iterable[tuple[Any, ...]]) -> list[IndexedTurn]:
    names = IndexedTurn.__struct_fields__
    return [IndexedTurn(**dict(zip(names, row, strict=True))) for row in rows]


def known(db: apsw.Connection, scope: Scope, turns: Sequence[NewTurn]) -> list[Known]:
    """Which of these messages lie here."""
    key = (*_who(scope), scope.session)
    first, last = (
        _pairs(
            db.execute(
                f"SELECT print, id FROM remembered WHERE {_MINE} AND session = ?"  # noqa: S608
                f" ORDER BY number {way}, place {way} LIMIT ?",
                (*key, len(turns)),
            )
        )
        for way in ("ASC", "DESC")
    )
    there = {turn.id for turn in turns if turn.id and _place(db, scope, turn.id) is not None}
    ends = SessionEnds(first, last[::-1], _last_number(db, scope), there)
    return turn_shelf.known_in(scope.session, turns, ends)


def _pairs(rows: Iterable[Any]) -> list[tuple[str, str]]:
    return [(print_, id_) for print_, id_ in rows]


def _last_number(db: apsw.Connection, scope: Scope) -> int:
    number: int = db.execute(
        f"SELECT coalesce(max(number), 0) FROM remembered WHERE {_MINE} AND session = ?",  # noqa: S608
        (*_who(scope), scope.session),
    ).get
    return number


def _place(db: apsw.Connection, scope: Scope, id_: str) -> int | None:
    place: int | None = db.execute(
        f"SELECT place FROM remembered WHERE {_MINE} AND id = ? AND session = ?",  # noqa: S608
        (*_who(scope), id_, scope.session),
    ).get
    return place


def add(db: apsw.Connection, scope: Scope, turns: Sequence[NewTurn], bodies: Sequence[Body]) -> int:
    """Put turns behind the last of the session; each comes with its body."""
    number = _last_number(db, scope)
    added = remade = 0
    for turn, body in zip(turns, bodies, strict=True):
        place = _place(db, scope, turn.id)
        if place is not None:
            remade += _make_anew(db, place, turn)
            continue
        added += 1
        remembered = turn_shelf.turn_of(scope, turn, number + added)
        _insert(db, scope, remembered, body, (turn.print, turn.maker, turn.index))
    _note(db, scope, added, min(remade, 1))
    return added


def _make_anew(db: apsw.Connection, place: int, turn: NewTurn) -> int:
    """Give a known turn the index of another maker; 1 if it had not got it."""
    db.execute(
        "UPDATE remembered SET maker = ?, indexed = ? WHERE place = ? AND maker <> ?",
        (turn.maker, turn.index, place, turn.maker),
    )
    return int(db.changes())


def _insert(
    db: apsw.Connection,
    scope: Scope,
    turn: Remembered,
    body: Body,
    made: tuple[str, str, bytes],
) -> None:
    db.execute(
        "INSERT INTO remembered (workspace, owner, id, session, number, role, name, at, tokens,"
        " print, maker, indexed, sha256, size, codec, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(*_who(scope), turn.id, turn.session, turn.number, turn.role, turn.name, turn.at),
            *(turn.tokens, *made, body.sha256, body.size, body.packed.codec, body.packed.data),
        ),
    )
    db.execute(
        "INSERT INTO remembered_words (rowid, scope, words) VALUES (?, ?, ?)",
        (db.last_insert_rowid(), _scope_word(scope), _searched(turn.content)),
    )


def _note(db: apsw.Connection, scope: Scope, added: int, removed: int) -> None:
    if added or removed:
        db.execute(
            "INSERT INTO remembered_changes (workspace, owner, added, removed) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET added = added + excluded.added,"
            " removed = removed + excluded.removed",
            (*_who(scope), added, removed),
        )


def changes(db: apsw.Connection, scope: Scope) -> Changes:
    """How often the turns changed."""
    row = db.execute(
        f"SELECT added, removed FROM remembered_changes WHERE {_MINE}",  # noqa: S608
        _who(scope),
    ).fetchone()
    return Changes(*(row or ()))


def indexed(db: apsw.Connection, scope: Scope, after: int, limit: int) -> list[IndexedTurn]:
    """Indexes in the order of remembering."""
    return _indexed(
        db.execute(
            f"SELECT {_INDEXED} FROM remembered"  # noqa: S608
            f" WHERE {_MINE} AND place > ? ORDER BY place LIMIT ?",
            (*_who(scope), after, limit),
        )
    )


def with_words(
    db: apsw.Connection, scope: Scope, words: Sequence[str], limit: int
) -> list[IndexedTurn]:
    """Indexes of turns that hold any of these words, the likeliest first."""
    parts = dict.fromkeys(part for word in words for part in _PART.findall(_searched(word)))
    quoted = [f'"{part}"' for part in parts]
    if not quoted:
        return []
    return _indexed(
        db.execute(
            f"SELECT {_INDEXED} FROM ("  # noqa: S608
            "SELECT rowid, rank AS worth FROM remembered_words WHERE remembered_words MATCH ?"
            " ORDER BY rank LIMIT ?) AS matching"
            " JOIN remembered AS r ON r.place = matching.rowid"
            f" WHERE {_MINE} AND ? IN ('', r.session) ORDER BY worth",
            (
                f"scope : {_scope_word(scope)} AND words : ({' OR '.join(quoted)})",
                # Those of other sessions are among them.
                limit if not scope.session else 4 * limit,
                *_who(scope),
                scope.session,
            ),
        )
    )[:limit]


def turns(db: apsw.Connection, scope: Scope, places: Sequence[int]) -> dict[int, Remembered]:
    """The turns at these places."""
    rows = db.execute(
        f"SELECT r.place, r.{_COLUMNS} FROM json_each(?) AS wanted"  # noqa: S608 - it has an id too
        " CROSS JOIN remembered AS r ON r.place = wanted.value"
        f" WHERE {_MINE}",
        (json.dumps(list(places)), *_who(scope)),
    )
    opened = ((place, _opened(tuple(row))) for place, *row in rows)
    return {place: turn for place, turn in opened if turn is not None}


def recent(db: apsw.Connection, scope: Scope, limit: int, before: int) -> list[Remembered]:
    """The last turns of the session in order."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM remembered WHERE {_MINE} AND session = ?"  # noqa: S608
        " AND (? = 0 OR number < ?) ORDER BY number DESC, place DESC LIMIT ?",
        (*_who(scope), scope.session, before, before, max(limit, 0)),
    )
    return [turn for row in rows if (turn := _opened(row)) is not None][::-1]


def select(
    db: apsw.Connection, scope: Scope, wanted: TurnFilter, limit: int, after: int
) -> list[tuple[int, Remembered]]:
    """Turns that a filter means, in the order of remembering."""
    ids = None if wanted.ids is None else json.dumps(wanted.ids)
    rows = db.execute(
        f"SELECT place, {_COLUMNS} FROM remembered"  # noqa: S608
        " WHERE workspace = :workspace AND owner = :owner AND place > :after"
        " AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))"
        " AND (:session IS NULL OR session = :session)"
        " AND (:before IS NULL OR at < :before) AND (:since IS NULL OR at >= :since)"
        " ORDER BY place LIMIT :limit",
        {
            **{"workspace": scope.workspace, "owner": scope.user, "after": after, "ids": ids},
            **{"session": wanted.session, "before": wanted.before, "since": wanted.since},
            "limit": max(limit, 0),
        },
    )
    return [(place, turn) for place, *row in rows if (turn := _opened(tuple(row))) is not None]


def forget(db: apsw.Connection, scope: Scope, places: Sequence[int]) -> int:
    """Remove turns without a trace."""
    rows = db.execute(
        "SELECT DISTINCT r.place FROM json_each(?) AS wanted CROSS JOIN remembered AS r"  # noqa: S608
        f" ON r.place = wanted.value WHERE {_MINE}",
        (json.dumps(list(places)), *_who(scope)),
    )
    return _remove(db, scope, [place for (place,) in rows])


def drop_of_session(db: apsw.Connection, scope: Scope) -> int:
    """Remove the turns of a session; return how many there were."""
    rows = db.execute(
        f"SELECT place FROM remembered WHERE {_MINE} AND session = ?",  # noqa: S608
        (*_who(scope), scope.session),
    )
    return _remove(db, scope, [place for (place,) in rows])


def _remove(db: apsw.Connection, scope: Scope, places: Sequence[int]) -> int:
    for place in places:
        row = db.execute(f"SELECT {_COLUMNS} FROM remembered WHERE place = ?", (place,)).get  # noqa: S608
        turn = _opened(row)
        if turn is not None:  # of a damaged one nobody knows the words
            db.execute(
                "INSERT INTO remembered_words (remembered_words, rowid, scope, words)"
                " VALUES ('delete', ?, ?, ?)",
                (place, _scope_word(scope), _searched(turn.content)),
            )
        db.execute("DELETE FROM remembered WHERE place = ?", (place,))
    _note(db, scope, 0, min(len(places), 1))
    return len(places)


def unsound(db: apsw.Connection, scope: Scope) -> list[Damage]:
    """Turns that are not what was said: they are never recalled, and go when they are forgotten."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM remembered WHERE {_MINE}", _who(scope))  # noqa: S608
    return [
        Damage(sha256=row[7], why=rules.DAMAGE, refs=()) for row in rows if _opened(row) is None
    ]


def page(
    db: apsw.Connection, scope: Scope, after: int, limit: int
) -> tuple[list[RememberedLine], int]:
    """Whole turns behind a place as lines, and the place to go on behind; 0 at the end."""
    rows = list(
        db.execute(
            f"SELECT {_COLUMNS}, print, maker, CAST(indexed AS BLOB), place FROM remembered"  # noqa: S608
            f" WHERE {_MINE} AND place > ? ORDER BY place LIMIT ?",
            (*_who(scope), after, limit),
        )
    )
    lines = [
        RememberedLine.of(turn, *row[-4:-1])
        for row in rows
        if (turn := _opened(row[:-4])) is not None
    ]
    return lines, rows[-1][-1] if len(rows) == limit else 0


def restore(db: apsw.Connection, scope: Scope, line: RememberedLine) -> bool:
    """Put an exported turn behind all others; whether there was none with its id."""
    if _place(db, scope.of(line.session), line.id) is not None:
        return False
    made = (line.print, line.maker, line.index)
    _insert(db, scope, line.turn, body_of(line.content), made)
    _note(db, scope, 1, 0)
    return True
