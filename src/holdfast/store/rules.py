"""rules: after records. What all stores decide in the same way, without knowing any of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from holdfast.errors import DamagedContentError, RefCollisionError, StoreConflictError, StoreError
from holdfast.store.records import (
    Content,
    Damage,
    SessionRecord,
    State,
    StoreStats,
    Turn,
    UsageTotal,
    sum_dollars,
)
from holdfast.store.refs import KIND, RefName, digest, parse
from holdfast.store.scope import Scope

MEMORY_URL = "memory:"
"""The URL of every store in memory."""
MOST_SUMMARY_CHARACTERS = 500
SECRET_BYTES = 32
"""Of the key of a store: as many as SHA-256 gives."""
DAMAGE = "the content does not match its hash"
"""Why a record is set apart."""
SUMMARY_DAMAGE = "a summary did not match its hash; it was removed, and will be made again"
MOST_KEY_CHARACTERS = 500

# Made once: `json.loads` and `json.dumps` make new ones for each call that has an option.
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_DECODER = json.JSONDecoder(strict=False)

_Row = TypeVar("_Row")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def check_content(content: Content) -> None:
    """Raise unless hash, name and data of a content belong together."""
    name = parse(content.ref_id)
    if digest(content.data) != content.sha256:
        problem = "the hash of a content is not that of its data"
    elif not KIND.fullmatch(content.kind):
        problem = "the kind of a content is no name"
    elif name is None or name.kind != content.kind or not content.sha256.startswith(name.digits):
        problem = "the ref of a content does not name its kind and hash"
    elif len(content.summary) > MOST_SUMMARY_CHARACTERS:
        problem = f"the summary of a content has more than {MOST_SUMMARY_CHARACTERS} characters"
    else:
        return
    raise StoreError(problem, fix="Make contents with refs.ref_id and refs.digest.")


def check_turn(
    scope: Scope, session: SessionRecord, messages: Mapping[str, bytes | memoryview]
) -> None:
    """Raise unless the record is the scope's session, and every message matches its hash."""
    check_session(scope)
    if session.session != scope.session:
        raise StoreError("the record is of another session than the scope", where="scope.session")
    if any(digest(data) != sha256 for sha256, data in messages.items()):
        raise StoreError("the hash of a message is not that of its bytes", where="messages")


def check_session(scope: Scope) -> None:
    """Raise unless the scope names a session."""
    if not scope.session:
        raise StoreError(
            "the scope names no session", where="scope.session", fix="Use scope.of(session)."
        )


def check_gist(gist: str) -> None:
    """Raise unless a text can be the summary of a ref."""
    if len(gist) > MOST_SUMMARY_CHARACTERS:
        raise StoreError(
            f"the summary of a content has more than {MOST_SUMMARY_CHARACTERS} characters",
            fix="Cut it before it is stored.",
        )


def check_key(key: str) -> None:
    """Raise unless a key can name a summary or a job."""
    if not key or len(key) > MOST_KEY_CHARACTERS or "\0" in key:
        raise StoreError(
            "a key is empty, too long or holds a zero character",
            fix=f"Give 1 to {MOST_KEY_CHARACTERS} characters, such as a hash.",
        )


def check_number(number: int, last: int) -> None:
    """Raise unless a turn directly follows the last."""
    if number <= last:
        raise StoreConflictError(
            f"the session has a turn {number} already",
            where="turn.number",
            fix="Read the session again and number the turn behind its last.",
        )
    if number != last + 1:
        raise StoreConflictError(
            f"turn {number} would leave a gap behind turn {last}",
            where="turn.number",
            fix="Read the session again and number the turn behind its last.",
        )


def count_sessions(records: Iterable[SessionRecord]) -> int:
    """Return how many sessions a person would count.

    The conversations of one client session are one, and side requests are none.
    """
    conversations = [record for record in records if not record.purpose]
    ids = {record.client_session for record in conversations} - {""}
    return len(ids) + sum(not record.client_session for record in conversations)


def closed(session: str, now: float) -> SessionRecord:
    """The record of a session that ends without a turn."""
    return SessionRecord(session=session, created_at=now, updated_at=now, closed_at=now)


def filled(known: Content, again: Content) -> Content:
    """Return a known content, completed by a later one."""
    return msgspec.structs.replace(
        known,
        summary=known.summary or again.summary,
        compressed=known.compressed or again.compressed,
        tokens=known.tokens or again.tokens,
        meta=known.meta or again.meta,
        flags=known.flags or again.flags,
    )


def hashes_of(turn: Turn) -> set[str]:
    """Return every hash in a turn: sent, replaced, hidden and summarised messages."""
    sent_hashes = () if turn.sent is None else (*turn.sent.added, turn.sent.frame)
    originals = (sha256 for standing in turn.standings for sha256 in standing.originals)
    undone = (patch.name for patch in turn.patches)
    return {
        sha256 for sha256 in (*sent_hashes, *originals, *undone, turn.hidden, turn.told) if sha256
    }


def hash_range(name: RefName) -> tuple[str, str]:
    """The least and the greatest hash that a name may mean."""
    return name.digits, name.digits.ljust(64, "f")


def choose(
    name: RefName, rows: Sequence[_Row], key: Callable[[_Row], tuple[str, str]]
) -> _Row | None:
    """The row that a name means, of those whose hash begins with its digits.

    `key` gives a row's ref and hash. A ref in full wins; digits that fit two contents are refused.
    """
    for row in rows:
        if name.kind and key(row)[0] == f"ref:{name.kind}:{name.digits}":
            return row
    if len({key(row)[1] for row in rows}) > 1:
        raise RefCollisionError(
            "the ref fits more than one content", fix="Give more digits of the hash."
        )
    return min(rows, key=key) if rows else None


def collision() -> RefCollisionError:
    """The error for a content whose name another has."""
    return RefCollisionError(
        "another content has the same ref", fix="Make the ref with more digits of the hash."
    )


def damaged(ref: str) -> DamagedContentError:
    """Return the error for damaged content."""
    return DamagedContentError(
        "the stored content does not match its hash",
        where=ref,
        fix="Store the original again, or restore it from a backup.",
    )


def damaged_summary(sha256: str) -> Damage:
    """Return the report of a damaged summary."""
    return Damage(sha256=sha256, why=SUMMARY_DAMAGE, refs=())


def no_place_to_go_on(before: str) -> StoreError:
    """Return the error for a page that starts after an unknown record."""
    return StoreError(
        "there is no such record to go on behind", where=before[:100], fix="Start at the newest."
    )


def expiry(now: float, ttl_seconds: float | None) -> float | None:
    """Return the time at which a content stored now expires."""
    return None if ttl_seconds is None else now + ttl_seconds


def is_over(expires_at: float | None, now: float) -> bool:
    """Whether an end has come."""
    return expires_at is not None and expires_at <= now


def longer(one: float | None, other: float | None) -> float | None:
    """The later of two ends; None never comes."""
    return None if one is None or other is None else max(one, other)


def state_of(*, removed: bool, damage: str | None, expires_at: float | None, now: float) -> State:
    """Return the state of a ref."""
    if removed:
        return "removed"
    if damage is not None:
        return "damaged"
    return "stale" if is_over(expires_at, now) else "fresh"


def total(name: str, turns: Sequence[Turn]) -> UsageTotal:
    """The usage of turns, summed."""
    usages = [turn.usage for turn in turns]
    return UsageTotal(
        name=name,
        turns=len(turns),
        predicted=sum(usage.predicted for usage in usages),
        untouched=sum(usage.untouched for usage in usages),
        input=sum(usage.input for usage in usages),
        cached=sum(usage.cached for usage in usages),
        output=sum(usage.output for usage in usages),
        expansions=sum(usage.expansions for usage in usages),
        expansion_tokens=sum(usage.expansion_tokens for usage in usages),
        cost=sum_dollars(usage.cost for usage in usages),
        saved_cost=sum_dollars(usage.saved_cost for usage in usages),
        failed=sum(usage.failed for usage in usages),
        answered=sum(usage.answered for usage in usages),
        lazy=sum(usage.lazy_saved > 0 for usage in usages),
        lazy_saved=sum(usage.lazy_saved for usage in usages),
        tool_searches=sum(usage.tool_searches for usage in usages),
        tool_calls=sum(usage.tool_calls for usage in usages),
        lazy_calls=sum(usage.lazy_calls for usage in usages),
        cache_written=sum(usage.cache_written for usage in usages),
        cache_written_hour=sum(usage.cache_written_hour for usage in usages),
        demo_cost=sum_dollars(usage.demo_cost for usage in usages),
        demo_saved_cost=sum_dollars(usage.demo_saved_cost for usage in usages),
        unreported=sum(usage.unreported for usage in usages),
        estimated=sum(usage.estimated for usage in usages),
        assumed=sum(usage.assumed for usage in usages),
        unpriced=sum(usage.unpriced for usage in usages),
        overflows=sum(usage.overflows for usage in usages),
    )


def added_stats(parts: Sequence[StoreStats]) -> StoreStats:
    """Return the sum of what several scopes hold."""
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds.update(part.by_kind)
    fields = [field for field in StoreStats.__struct_fields__ if field != "by_kind"]
    sums = {field: sum(getattr(part, field) for part in parts) for field in fields}
    return StoreStats(**sums, by_kind=dict(sorted(kinds.items())))


def day_of(at: float) -> str:
    """The day of a time in UTC, as `2026-01-31`."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def to_json(value: Any) -> str:
    """Text for any value: ASCII, so that no character of a conversation is one too many."""
    with suppress(UnicodeEncodeError):  # a lone surrogate
        data = msgspec.json.encode(value)
        if data.isascii():  # nearly always, and four times as fast as the standard library
            return data.decode()
    return _ENCODER.encode(msgspec.to_builtins(value))


def from_json(text: str, kind: type[_Struct]) -> _Struct:
    """Return the value that `to_json` or the database wrote.

    Text from PostgreSQL may hold control characters: it was unescaped before it is read.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return msgspec.convert(_DECODER.decode(text), kind)


def json_list(text: str | None) -> list[Any]:
    """Return the list in a JSON column: `from_json` without a type."""
    return [] if text is None else _DECODER.decode(text)


def distinct(names: Iterable[str]) -> list[str]:
    """Each once, in order."""
    return list(dict.fromkeys(names))
