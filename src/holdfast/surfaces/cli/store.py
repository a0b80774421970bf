"""store: look after what is kept: how much it is, whether it is sound, what may go, copies."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
import typer
from msgspec.structs import astuple
from rich.console import Console

from holdfast.errors import HoldfastError, StoreError
from holdfast.jobs.sweeping import close_idle
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import Cleaned, Damage, Erased, StoreStats

from ._output import ColorOption, Output, OutputOption, remark, table
from ._store import (
    DEFAULT,
    Progress,
    StoreOption,
    TenantOption,
    UserOption,
    WorkspaceOption,
    scopes_of,
    with_store,
)
from .erase import erase, fail_to_overwrite

_CHUNK = 4_000_000

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _store() -> None:
    """Look after the store: the originals behind refs, sessions and their turns.

    \b
    How full is it?     holdfast store stats
    Is it sound?        holdfast store verify
    Remove what is old: holdfast store gc --retain-days 90
    Erase for good:     holdfast store erase --tenant key-3f1c09a4b7d25e8f90a1b2c3
    Copy it whole:      holdfast store backup copy.db
    Move records:       holdfast store export mine.jsonl; holdfast store import mine.jsonl

    The store is holdfast.db in the data folder, unless --store or the setting store_url names
    another. Commands see the records of all tenants of the proxy: --tenant names one of them.
    """


@app.command()
def stats(
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show how full the store is.

    Size is that of the originals; stored is what they take up, compressed, each content once.

    \b
    Examples:
      holdfast store stats
      holdfast store stats --store sqlite:///copy.db --output json
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(opened: Store) -> tuple[str, StoreStats]:
        scopes = await scopes_of(opened, user, tenant)
        return opened.url, _summed([await opened.stats(scope) for scope in scopes])

    url, figures = with_store(settings, work)

    def draw(console: Console) -> None:
        rows = [(name, _amount(name, value)) for name, value in _numbers(figures).items()]
        kinds = [(f"  {kind}", f"{count:,}") for kind, count in figures.by_kind.items()]
        console.print(table("store", url, rows=[*rows[:1], *kinds, *rows[1:]]))

    Output(settings).emit({"store": url, **msgspec.to_builtins(figures)}, draw)


def _summed(parts: list[StoreStats]) -> StoreStats:
    """How full the store is for several tenants together."""
    kinds: Counter[str] = sum((Counter(part.by_kind) for part in parts), Counter())
    names = [name for name in StoreStats.__struct_fields__ if name != "by_kind"]
    return StoreStats(
        **{name: sum(getattr(part, name) for part in parts) for name in names},
        by_kind=dict(sorted(kinds.items())),
    )


def _numbers(figures: StoreStats) -> dict[str, int]:
    return {k: v for k, v in msgspec.structs.asdict(figures).items() if isinstance(v, int)}


def _amount(name: str, value: int) -> str:
    return f"{value:,} bytes" if name in ("size", "stored") else f"{value:,}"


@app.command()
def tenants(
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List the tenants that have records here, who used the store last first.

    The proxy keeps requests with different API keys apart. A tenant `key-…` is named by a keyed
    hash of its key; `default` is what was stored without one.

    \b
    Examples:
      holdfast store tenants
      holdfast stats --tenant "$(holdfast store tenants --output json | jq -r '.[0].tenant')"
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(opened: Store) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for scope in await scopes_of(opened, user, ""):
            full = await opened.stats(scope)
            rows.append({"tenant": scope.workspace, "sessions": full.sessions,
                         "turns": full.turns, "refs": full.refs})  # fmt: skip
        return rows

    tenant_rows = with_store(settings, work)

    def draw(console: Console) -> None:
        rows = [[str(value) for value in row.values()] for row in tenant_rows]
        console.print(table(*tenant_rows[0], rows=rows))

    Output(settings).emit(tenant_rows, draw)


@app.command()
def verify(
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Read everything once and compare it with its hash.

    What does not match is set apart: it is never served, and storing the same content again
    heals it. Exit code 1 if anything is damaged.

    \b
    Examples:
      holdfast store verify
      holdfast store verify --output json | jq .damaged
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    read = 0

    async def work(opened: Store) -> list[Damage]:
        nonlocal read
        damaged: list[Damage] = []
        with Progress("Reading content") as shown:
            for scope in await scopes_of(opened, user, tenant):
                before = read

                def progress(done: int, total: int, before: int = before) -> None:
                    nonlocal read
                    read = before + done
                    shown(read, before + total)

                damaged += await opened.verify(scope, progress)
        return damaged

    damages = with_store(settings, work)

    def draw(console: Console) -> None:
        if damages:
            rows = [(d.sha256[:16], d.why, ", ".join(d.refs) or "a message") for d in damages]
            console.print(table("content", "what is wrong", "refs", rows=rows))
        else:
            console.print(f"All is well: {read:,} contents and messages match their hashes.")

    Output(settings).emit({"read": read, "damaged": msgspec.to_builtins(damages)}, draw)
    if damages:
        remark("Store the originals again to heal them, or restore them from an export or backup.")
        raise typer.Exit(1)


@app.command()
def gc(
    grace: Annotated[
        float,
        typer.Option("--grace", min=0.0, metavar="SECONDS", help="How long what is old stays."),
    ] = GRACE_SECONDS,
    idle_days: Annotated[
        float | None,
        typer.Option(
            "--idle-days", min=0.0, metavar="DAYS", help="Close sessions unused for so long first."
        ),
    ] = None,
    retain_days: Annotated[
        float | None,
        typer.Option(
            "--retain-days",
            min=0.0,
            metavar="DAYS",
            help="Delete what nobody has used for so long; else the setting retain_days.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Overwrite removed bytes in large databases too; others wait."
        ),
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Remove what is out of date.

    That is content past its time, and what closed sessions left behind. What an open session
    uses stays, and so does all that was written or opened within the grace period. Of what goes,
    the summary remains, so that a model that asks for it can be told.

    The proxy cannot know when a conversation is over: with --idle-days, sessions that nobody has
    used for so long are closed first. One that is taken up again begins anew.

    With --retain-days, or the setting retain_days, sessions that nobody has used for so long are
    deleted with all that is theirs, and so is what belongs to no session and is as old.

    With --overwrite, the exit code is 1 if removed bytes may be left in the database's files.

    \b
    Examples:
      holdfast store gc
      holdfast store gc --idle-days 30
      holdfast store gc --retain-days 90
      holdfast store gc --grace 86400
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    days = settings.retain_days if retain_days is None else retain_days

    async def work(opened: Store) -> tuple[Cleaned, Erased, bool]:
        parts, erased = [], Erased()
        for scope in await scopes_of(opened, user, tenant):
            if days:
                erased += await opened.expire(scope, time.time() - days * 86_400)
            if idle_days is not None:
                await close_idle(opened, scope, time.time() - idle_days * 86_400)
            parts.append(await opened.gc(scope, grace_seconds=grace))
        is_overwritten = await opened.scrub(whole=overwrite)
        gone = Cleaned(*(sum(amounts) for amounts in zip(*map(astuple, parts), strict=True)))
        return gone, erased, is_overwritten

    gone, erased, is_overwritten = with_store(settings, work)

    def draw(console: Console) -> None:
        if days:
            console.print(
                f"Deleted {erased.sessions:,} sessions with {erased.turns:,} requests, "
                f"{erased.refs:,} refs and {erased.records:,} other records."
            )
        console.print(
            f"Removed {gone.refs:,} refs and {gone.contents:,} contents of {gone.bytes:,} bytes."
        )

    report = msgspec.to_builtins(gone)
    if days:
        report["deleted"] = msgspec.to_builtins(erased)
    if overwrite:
        report["overwritten"] = is_overwritten
    Output(settings).emit(report, draw)
    if overwrite and not is_overwritten:
        fail_to_overwrite()


app.command()(erase)


@app.command()
def export(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Where to write; - is standard output.")
    ] = "-",
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
) -> None:
    """Write every record as a line of JSON, to be read by `holdfast store import`.

    Contents are in it, exact: keep the file as private as the store. It appears under its name
    only once it is whole.

    \b
    Examples:
      holdfast store export mine.jsonl
      holdfast store export | zstd > mine.jsonl.zst
    """
    settings = Settings.load(store_url=store)

    async def work(opened: Store) -> int:
        scope = _only(await scopes_of(opened, user, tenant))
        figures = await opened.stats(scope)
        total, done = figures.refs + figures.sessions + figures.turns, 0
        with _target(file) as target, Progress("Writing record") as shown:
            async for line in opened.export(scope):
                target.write(line)
                done += 1
                shown(done, total)
        return done - 1

    records = with_store(settings, work)
    if file != "-":
        remark(f"Wrote {records:,} records to {file}.")


def _only(scopes: list[Scope]) -> Scope:
    """The one tenant there is: lines of several in one file could not be told apart again."""
    if len(scopes) > 1:
        names = ", ".join(scope.workspace for scope in scopes[:5])
        raise StoreError(
            f"{len(scopes)} tenants have records here",
            where="--tenant",
            fix=f"Name one ({names}, …), or copy the whole store with `holdfast store backup`.",
        )
    return scopes[0]


@contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """A file that appears when it is whole, for its owner alone; or standard output."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as target:
                yield target
                target.flush()
                os.fsync(target.fileno())  # after a power cut the name would stand for nothing
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise HoldfastError(
            f"cannot write the file: {error.strerror}", where=file, fix="Choose another place."
        ) from error


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What export wrote; - is stdin.")],
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Read what `holdfast store export` wrote.

    What the store has already stays as it is, so that importing twice does no harm. The records
    belong to --user and --workspace afterwards, whoever exported them.

    \b
    Examples:
      holdfast store import mine.jsonl
      zstd -dc mine.jsonl.zst | holdfast store import - --workspace team
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    scope = Scope(user, workspace)

    async def work(opened: Store) -> int:
        with _source(file) as source:
            return await opened.restore(scope, _lines(source))

    new = with_store(settings, work, creates=True)

    def draw(console: Console) -> None:
        console.print(f"{new:,} records were new.")

    Output(settings).emit({"new": new}, draw)


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as source:
            yield source
    except OSError as error:
        raise HoldfastError(
            f"cannot read the file: {error.strerror}",
            where=file,
            fix="Check its name, or use - for standard input.",
        ) from error


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    done = 0
    with Progress("Reading record") as shown:
        while lines := await asyncio.to_thread(source.readlines, _CHUNK):
            for line in lines:
                done += 1
                shown(done, 0)
                yield line


@app.command()
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A name that is not taken yet.")],
    store: StoreOption = None,
) -> None:
    """Copy the whole store, of all users and workspaces, while it is in use.

    The copy is a store of its own: open it with --store sqlite:///FILE. Stores on PostgreSQL are
    backed up with pg_dump.

    \b
    Examples:
      holdfast store backup holdfast-monday.db
    """
    settings = Settings.load(store_url=store)
    with_store(settings, lambda opened: opened.backup(file), creates=True)
    remark(f"Wrote {file}.")
