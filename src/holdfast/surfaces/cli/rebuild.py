"""rebuild: the command that writes a past request as the client sent it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.engine import Holdfast
from holdfast.store import Store

from ._context import TENANT, CommandContext, shared_options
from ._input import WriteOption, write_body


@shared_options(*TENANT)
def rebuild(
    context: CommandContext,
    session: Annotated[
        str,
        typer.Argument(
            metavar="SESSION", help="A session that `holdfast stats --by session` lists."
        ),
    ],
    turn: Annotated[
        int, typer.Argument(metavar="TURN", min=1, help="The number of the turn; the first is 1.")
    ],
    write: WriteOption = None,
) -> None:
    """Write the request of a turn as the client sent it, byte for byte.

    It is rebuilt from the request that was sent to the provider, the recorded edits and the stored
    originals, and compared with the hash of the client's bytes.

    \b
    Examples:
      holdfast rebuild 6f1c0d2e4b5a4c1f8e7d6c5b4a392817 12 > asked.json
      holdfast rebuild my-session 1 --write asked.json
    """

    async def work(opened: Store) -> bytes:
        scopes = await context.scopes(opened)
        for scope in scopes:
            if await opened.session(scope.of(session)) is not None:
                return await Holdfast(opened, scope).session(session).rebuild(turn)
        return await Holdfast(opened, scopes[0]).session(session).rebuild(turn)

    write_body(context.run(work), write)
