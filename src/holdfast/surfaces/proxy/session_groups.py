"""Joins the sessions of one client session, so that lists show it once.

session_groups: before report and the dashboard. Pure. A client session holds its main conversation
(several, if it was compacted or edited), subagents and side requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from holdfast.store import Scope
from holdfast.store.records import SessionRecord

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
