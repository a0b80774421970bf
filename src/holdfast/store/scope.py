"""The scope of every call of a store: whose records it may read and change."""

from __future__ import annotations

import msgspec

from holdfast.errors import StoreError

_MOST_CHARACTERS = 200


class Scope(msgspec.Struct, frozen=True):
    """A user in a workspace, and the current session.

    Nothing is shared across users or workspaces. Sessions of one user and workspace see each
    other's refs, so that yesterday's citations can be opened today; `session` is the owner of new
    records, and limits the calls about one session.
    """

    user: str = "local"
    workspace: str = "default"
    session: str = ""

    def __post_init__(self) -> None:
        for name in ("user", "workspace", "session"):
            value = getattr(self, name)
            if (not value and name != "session") or len(value) > _MOST_CHARACTERS or "\0" in value:
                raise StoreError(
                    f"the {name} of a scope is empty, too long or holds a zero character",
                    where=f"scope.{name}",
                    fix=f"Give 1 to {_MOST_CHARACTERS} characters.",
                )

    def of(self, session: str) -> Scope:
        """The same user and workspace, in another session."""
        return Scope(self.user, self.workspace, session)
