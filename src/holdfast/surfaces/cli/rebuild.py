"""rebuild: a client's request as it came, from what was sent for it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.store import Store

from ._input import WriteOption, write_body
from ._store import DEFAULT, StoreOption, TenantOption, UserOption, scopes_of, with_store


def rebuild(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="As `holdfast stats` names it.")
    ],
    turn: Annotated[int, typer.Argument(metavar="TURN", min=1, help="Counted from 1.")],
    write: WriteOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
) -> None:
    """Write the request of a turn as the client sent it, byte for byte.

    It is made from what was sent to the provider, the edits on record and the store, and checked
    against the hash of what came: nothing was lost, and no change was made in silence.

    \b
    Examples:
      holdfast rebuild 6f1c0d2e4b5a4c1f8e7d6c5b4a392817 12 > asked.json
      holdfast rebuild my-session 1 --write asked.json
    """
    settings = Settings.load(store_url=store)

    async def work(opened: Store) -> bytes:
        scopes = await scopes_of(opened, user, tenant)
        for scope in scopes:
            if await opened.session(scope.of(session)) is not None:
                return await Holdfast(opened, scope).session(session).rebuild(turn)
        return await Holdfast(opened, scopes[0]).session(session).rebuild(turn)

    write_body(with_store(settings, work), write)
