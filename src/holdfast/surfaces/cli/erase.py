"""erase: remove a session, a tenant or everything from the store, for good."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.console import Console

from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.records import Erased

from ._output import ColorOption, Output, OutputOption, remark
from ._store import DEFAULT, StoreOption, UserOption, scopes_of, with_store


def erase(
    session: Annotated[str, typer.Option("--session", help="This session, of any tenant.")] = "",
    tenant: Annotated[
        str, typer.Option("--tenant", "--workspace", help="All that this tenant has.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="All that anybody has.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Remove a session, a tenant or everything, for good.

    That is every record: requests, originals, citations, remembered turns, facts, answers, tools,
    journals. Then the files of the database are overwritten, also while a proxy uses them. On
    PostgreSQL each table is written anew, and locked meanwhile. There is no way back. Backups,
    exports and the log of a PostgreSQL server are not touched.

    The exit code is 1 if nothing was there to erase, or if bytes may be left in the files.

    \b
    Examples:
      holdfast store erase --session nightly
      holdfast store erase --tenant key-3f1c09a4b7d25e8f90a1b2c3 --yes
      holdfast store erase --all
    """
    if everything == bool(session or tenant):
        raise HoldfastError(
            "it is not said what is to be erased",
            where="holdfast store erase",
            fix="Give --session NAME, --tenant NAME or --all.",
        )
    settings = Settings.load(output=output, color=color, store_url=store)
    if not yes:
        _ask(_meant(session, tenant))

    async def work(opened: Store) -> tuple[Erased, bool]:
        if everything:
            erased = await opened.erase_all()
        elif session:
            scopes = await scopes_of(opened, user, tenant)
            erased = await _erase_session(opened, scopes, session)
        else:
            erased = await opened.erase(Scope(user, tenant))
        return erased, await opened.scrub(whole=True)

    erased, is_overwritten = with_store(settings, work)

    def draw(console: Console) -> None:
        console.print(
            f"Erased {erased.sessions:,} sessions with {erased.turns:,} requests, "
            f"{erased.refs:,} refs and {erased.records:,} other records."
        )

    Output(settings).emit({**msgspec.to_builtins(erased), "overwritten": is_overwritten}, draw)
    if not erased and (session or tenant):
        remark("There was nothing of that name: `holdfast stats --by session` lists sessions.")
        raise typer.Exit(1)
    if not is_overwritten:
        fail_to_overwrite()


def fail_to_overwrite() -> NoReturn:
    """Say that removed bytes may be left, and exit with 1, so that scripts do not go on."""
    remark(
        "The records are removed, but their bytes may be left in the database's files: another "
        "process read an older state, or the disk has no room for a second copy. Run "
        "`holdfast store gc --overwrite` later."
    )
    raise typer.Exit(1)


async def _erase_session(store: Store, scopes: list[Scope], session: str) -> Erased:
    erased = Erased()
    for scope in scopes:
        record = await store.session(scope.of(session))
        refs = await store.delete_session(scope.of(session))
        if record is not None:
            erased += Erased(sessions=1, turns=record.turns)
        erased += Erased(refs=refs)
    return erased


def _meant(session: str, tenant: str) -> str:
    if session:
        return f"session {session} of {f'tenant {tenant}' if tenant else 'every tenant'}"
    return f"everything of tenant {tenant}" if tenant else "everything of everybody"


def is_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


def _ask(what: str) -> None:
    if not is_terminal():
        raise HoldfastError(
            "nobody can be asked whether to erase", where="standard input", fix="Add --yes."
        )
    if not typer.confirm(f"Erase {what}? There is no way back.", err=True):
        remark("Nothing was erased.")
        raise typer.Exit(1)
