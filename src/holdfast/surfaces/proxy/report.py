"""Sums of the cost and savings of requests: by model, by session, by day.

All figures come from the store, so that they outlive the process; the command line uses them too.
The module also reports the accuracy of counts and the effect of each kind of edit, and joins the
sessions of one client session, so that lists show it once: its main conversation (several, if it
was compacted or edited), subagents and side requests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal, NamedTuple

import msgspec

from holdfast.store import Scope, Store
from holdfast.store.records import SessionRecord, UsageTotal, summed
from holdfast.tokens.calibration import Calibration

Member = tuple[Scope, SessionRecord]


class SessionGroup(NamedTuple):
    """A client session, or a conversation of a client that sends no id."""

    scope: Scope
    record: SessionRecord
    """Its main conversation that was used last, with the title of the first."""
    members: tuple[Member, ...]
    """All of its sessions, the last used first."""

    @property
    def turns(self) -> int:
        """Requests of its conversations."""
        return sum(record.turns for _, record in self.members if not record.purpose)

    @property
    def conversations(self) -> int:
        """Its conversations, those of subagents included."""
        return sum(not record.purpose for _, record in self.members)

    @property
    def side_requests(self) -> int:
        """Its side requests."""
        return sum(record.turns for _, record in self.members if record.purpose)


def group_sessions(sessions: Iterable[Member]) -> list[SessionGroup]:
    """Return sessions in groups, in the order in which their conversations are given.

    Side requests without any conversation make no group.
    """
    groups: dict[tuple[str, ...], list[Member]] = {}
    for scope, record in sessions:
        own = ("client", record.client_session) if record.client_session else ("", record.session)
        groups.setdefault((scope.user, scope.workspace, *own), []).append((scope, record))
    return [group for members in groups.values() if (group := _group(members)) is not None]


def _group(members: list[Member]) -> SessionGroup | None:
    conversations = [member for member in members if not member[1].purpose]
    if not conversations:
        return None
    main = [member for member in conversations if not member[1].client_agent] or conversations
    scope, record = main[0]
    titles = [each.title for _, each in main if each.title]
    if titles:
        record = msgspec.structs.replace(record, title=titles[-1])
    return SessionGroup(scope, record, tuple(members))


By = Literal["model", "session", "day"]
MOST_SESSIONS = 50
_GROUPED = 1_000
"""Sessions that are joined by client session: one may have dozens of side requests."""


async def report(store: Store, scopes: Sequence[Scope], by: tuple[By, ...]) -> dict[str, Any]:
    """The totals over some scopes, and the rows of each way of summing; of sessions the newest."""
    models = await _usage(store, scopes, "model")
    document: dict[str, Any] = {"totals": row(summed("total", models))}
    for way in by:
        if way == "session":
            sums = await _newest(store, scopes)
        else:
            sums = models if way == "model" else await _usage(store, scopes, way)
        document[f"by_{way}"] = [row(total) for total in sums]
    return document


async def _usage(store: Store, scopes: Sequence[Scope], by: By) -> list[UsageTotal]:
    """Usage over all of them, a row for each name."""
    rows: defaultdict[str, list[UsageTotal]] = defaultdict(list)
    for scope in scopes:
        for total in await store.usage(scope, by=by):
            rows[total.name].append(total)
    return [summed(name, rows[name]) for name in sorted(rows)]


def row(total: UsageTotal) -> dict[str, Any]:
    """A sum with what follows from it: saved is untouched less input, over all calls."""
    fields: dict[str, Any] = msgspec.to_builtins(total)
    return fields | {"saved": total.saved}


def dollars(amount: float) -> str:
    """Return an amount without its sign: in cents from a dollar on, else with four digits or more.

    A small amount keeps its first digit, so that it is not shown as nothing.
    """
    exact = abs(Decimal(str(amount)))
    digits = 2 if exact >= 1 or not exact else max(4, -exact.adjusted())
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,f}"


def about(estimates: int) -> str:
    """Return the mark in front of a figure that is an estimate, if any part of it is."""
    return "≈ " if estimates else ""


def percent(part: float, whole: float) -> str:
    """Return a share of a non-zero total, in percent; a loss is negative.

    Tenths are shown, and never rounded up, if whole percents would overstate: 99.96 % is not
    everything, and a small loss is not zero.
    """
    share = 100 * part / whole
    if 0 < abs(share) < 1 or 99 < share < 100:
        return f"{math.floor(share * 10) / 10:.1f}"
    return f"{share:.0f}"


async def _newest(store: Store, scopes: Sequence[Scope]) -> list[UsageTotal]:
    """Return client sessions, most recently used first, then side requests without one.

    Two tenants may have sessions of the same name.
    """
    used: list[tuple[float, UsageTotal]] = []
    apart: list[UsageTotal] = []
    for scope in scopes:
        by_name = {total.name: total for total in await store.usage(scope, by="session")}
        records = await store.sessions(scope, limit=_GROUPED)
        groups = group_sessions((scope.of(record.session), record) for record in records)
        for group in groups:
            totals = [by_name[at.session] for at, _ in group.members if at.session in by_name]
            if totals:
                newest = max(record.updated_at for _, record in group.members)
                used.append((newest, summed(group.record.session, totals)))
        joined = {at.session for group in groups for at, _ in group.members}
        apart += [
            by_name[record.session]
            for record in records
            if record.session in by_name and record.session not in joined
        ]
    used.sort(key=lambda pair: pair[0], reverse=True)
    rows = [total for _, total in used[:MOST_SESSIONS]]
    return [*rows, summed("side requests", apart)] if apart else rows


class EditTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one kind of edit; each edit counts once, when it was made."""

    action: str
    edits: int = 0
    turns: int = 0
    """Requests in which it was done."""
    from_tokens: int = 0
    to_tokens: int = 0


async def quality(store: Store, scopes: Sequence[Scope]) -> dict[str, Any]:
    """The accuracy of counts by model, and the edits of the sessions last used by their kind."""
    return {
        "accuracy": [row for scope in scopes for row in await _accuracy(store, scope)],
        "edits": msgspec.to_builtins(await _edits(store, scopes)),
    }


async def _accuracy(store: Store, scope: Scope) -> list[dict[str, Any]]:
    data = await store.calibration(scope)
    learnt = Calibration.load(data).accuracy() if data else []
    return [{"tenant": scope.workspace, **msgspec.to_builtins(model)} for model in learnt]


async def _edits(store: Store, scopes: Sequence[Scope]) -> list[EditTotal]:
    totals: dict[str, EditTotal] = {}
    for scope in scopes:
        for record in await store.sessions(scope, limit=MOST_SESSIONS):
            for turn in await store.turns(scope.of(record.session)):
                for action in dict.fromkeys(edit.action for edit in turn.edits):
                    edits = [edit for edit in turn.edits if edit.action == action]
                    total = totals.get(action) or EditTotal(action=action)
                    totals[action] = msgspec.structs.replace(
                        total,
                        edits=total.edits + len(edits),
                        turns=total.turns + 1,
                        from_tokens=total.from_tokens + sum(edit.from_tokens for edit in edits),
                        to_tokens=total.to_tokens + sum(edit.to_tokens for edit in edits),
                    )
    return sorted(totals.values(), key=lambda total: total.to_tokens - total.from_tokens)
