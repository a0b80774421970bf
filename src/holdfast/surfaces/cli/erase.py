"""erase: the command that deletes a session, a tenant or everything for good."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.console import Console

from holdfast.errors import HoldfastError
from holdfast.store import Scope, Store
from holdfast.store.records import ErasedRecords

from ._context import OUTPUT, STORE, CommandContext, shared_options
from ._output import counted, remark


@shared_options(*STORE, "user", *OUTPUT)
def erase(
    context: CommandContext,
    session: Annotated[
        str, typer.Option("--session", help="Erase this session, whichever tenant it belongs to.")
    ] = "",
    tenant: Annotated[
        str, typer.Option("--tenant", "--workspace", help="Erase everything of this tenant.")
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Erase everything of everybody.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a session, a tenant or everything for good.

    This removes every record: requests, originals, citations, remembered turns, facts, answers,
    tools and journals. Then the files of the database are overwritten, even while a proxy uses
    them. On PostgreSQL each table is rewritten, and locked while that runs. This cannot be undone.
    Backups, exports and the logs of a PostgreSQL server are not changed.

    The exit code is 1 if there was nothing to erase, or if bytes may be left in the files.

    \b
    Examples:
      holdfast store erase --session nightly
      holdfast store erase --tenant key-3f1c09a4b7d25e8f90a1b2c3 --yes
      holdfast store erase --all
    """
    if everything == bool(session or tenant):
        raise HoldfastError(
            "nothing is named to erase",
            where="holdfast store erase",
            fix="Give --session NAME, --tenant NAME or --all.",
        )
    if not yes:
        _ask(_meant(session, tenant))

    async def work(opened: Store) -> tuple[ErasedRecords, bool]:
        if everything:
            erased = await opened.erase_all()
        elif session:
            scopes = await context.scopes(opened, tenant)
            erased = await _erase_session(opened, scopes, session)
        else:
            erased = await opened.erase(Scope(context.scope.user, tenant))
        return erased, await opened.scrub(whole=True)

    erased, is_overwritten = context.run(work)

    def draw(console: Console) -> None:
        console.print(f"Erased {described(erased)}.")

    context.emit({**msgspec.to_builtins(erased), "overwritten": is_overwritten}, draw)
    if not erased and (session or tenant):
        remark("Nothing has that name: `holdfast stats --by session` lists sessions.")
        raise typer.Exit(1)
    if not is_overwritten:
        fail_to_overwrite()


def described(erased: ErasedRecords) -> str:
    """Return the numbers of erased records."""
    sessions, requests = counted(erased.sessions, "session"), counted(erased.turns, "request")
    refs, records = counted(erased.refs, "ref"), counted(erased.records, "other record")
    return f"{sessions} with {requests}, {refs} and {records}"


def fail_to_overwrite() -> NoReturn:
    """Report that removed bytes may be left, and exit with 1, so that scripts stop."""
    remark(
        "The records are deleted, but their bytes may be left in the database's files: another "
        "process was reading an older state, or the disk has no room for a second copy. Run "
        "`holdfast store gc --overwrite` later."
    )
    raise typer.Exit(1)


async def _erase_session(store: Store, scopes: list[Scope], session: str) -> ErasedRecords:
    erased = ErasedRecords()
    for scope in scopes:
        erased += await store.erase_session(scope.of(session))
    return erased


def _meant(session: str, tenant: str) -> str:
    if session:
        return f"session {session} of {f'tenant {tenant}' if tenant else 'every tenant'}"
    return f"everything of tenant {tenant}" if tenant else "everything of everybody"


def is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def _ask(what: str) -> None:
    if not is_terminal():
        raise HoldfastError(
            "standard input is not a terminal, so there is nobody to confirm",
            where="holdfast store erase",
            fix="Add --yes.",
        )
    if not typer.confirm(f"Erase {what}? This cannot be undone.", err=True):
        remark("Nothing was erased.")
        raise typer.Exit(1)
