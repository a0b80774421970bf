"""store: the commands that list, check, clean up, copy and move stored data."""

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
from holdfast.store import Scope, Store
from holdfast.store.opening import FILE_NAME
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import CleanupResult, Damage, ErasedRecords, StoreStats
from holdfast.store.rules import MEMORY_URL

from ._context import OUTPUT, STORE, TENANT, WORKSPACE, CommandContext, shared_options
from ._groups import CommandGroup
from ._input import unreadable
from ._output import counted, remark, table
from ._progress import Progress
from .erase import described, erase, fail_to_overwrite
from .refs import refs

_CHUNK = 4_000_000

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _store() -> None:
    """List, check, clean up, erase and copy stored data.

    \b
    List contents:     holdfast store refs
    Show the size:     holdfast store stats
    Check the data:    holdfast store verify
    Remove old data:   holdfast store gc --retain-days 90
    Erase for good:    holdfast store erase --tenant key-3f1c09a4b7d25e8f90a1b2c3
    Back up all data:  holdfast store backup copy.db
    Move records:      holdfast store export mine.jsonl; holdfast store import mine.jsonl

    The store is holdfast.db in the data folder, unless --store or the setting store_url names
    another. Commands read all tenants of the proxy; --tenant selects one.
    """


app.command()(refs)


@app.command()
@shared_options(*TENANT, *OUTPUT)
def stats(
    context: CommandContext,
) -> None:
    """Show how much data the store holds.

    `size` is the size of the originals; `stored` is the space they take, compressed and with each
    content stored once.

    \b
    Examples:
      holdfast store stats
      holdfast store stats --store sqlite:///copy.db --output json
    """

    async def work(opened: Store) -> tuple[str, StoreStats]:
        scopes = await context.scopes(opened)
        return opened.url, _summed([await opened.stats(scope) for scope in scopes])

    url, figures = context.run(work)

    def draw(console: Console) -> None:
        rows = [(name, _amount(name, value)) for name, value in _numbers(figures).items()]
        kinds = [(f"  {kind}", f"{count:,}") for kind, count in figures.by_kind.items()]
        console.print(table("store", url, rows=[*rows[:1], *kinds, *rows[1:]]))

    context.emit({"store": url, **msgspec.to_builtins(figures)}, draw)


def _summed(parts: list[StoreStats]) -> StoreStats:
    """Return the sum of the figures of several tenants."""
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
@shared_options(*STORE, "user", *OUTPUT)
def tenants(
    context: CommandContext,
) -> None:
    """List the tenants that have records, most recently used first.

    The proxy separates requests by API key. A tenant `key-…` is named by a keyed hash of its key;
    `default` holds the records that were stored without a key.

    \b
    Examples:
      holdfast store tenants
      holdfast stats --tenant "$(holdfast store tenants --output json | jq -r '.[0].tenant')"
    """

    async def work(opened: Store) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for scope in await context.scopes(opened):
            full = await opened.stats(scope)
            rows.append({"tenant": scope.workspace, "sessions": full.sessions,
                         "turns": full.turns, "refs": full.refs})  # fmt: skip
        return rows

    tenant_rows = context.run(work)

    def draw(console: Console) -> None:
        rows = [[str(value) for value in row.values()] for row in tenant_rows]
        console.print(table(*tenant_rows[0], rows=rows))

    context.emit(tenant_rows, draw)


@app.command()
@shared_options(*TENANT, *OUTPUT)
def verify(
    context: CommandContext,
) -> None:
    """Read all stored contents and compare them with their hashes.

    A damaged content is marked and never served again; storing the same content again repairs it.
    The exit code is 1 if anything is damaged.

    \b
    Examples:
      holdfast store verify
      holdfast store verify --output json | jq .damaged
    """
    read = 0

    async def work(opened: Store) -> list[Damage]:
        nonlocal read
        damaged: list[Damage] = []
        with Progress("Reading content") as progress_line:
            for scope in await context.scopes(opened):
                before = read

                def progress(done: int, total: int, before: int = before) -> None:
                    nonlocal read
                    read = before + done
                    progress_line(read, before + total)

                damaged += await opened.verify(scope, progress)
        return damaged

    damages = context.run(work)

    def draw(console: Console) -> None:
        if damages:
            rows = [(d.sha256[:16], d.why, ", ".join(d.refs) or "a message") for d in damages]
            console.print(table("content", "what is wrong", "refs", rows=rows))
        else:
            console.print(f"All contents and messages match their hashes ({read:,} read).")

    context.emit({"read": read, "damaged": msgspec.to_builtins(damages)}, draw)
    if damages:
        remark(
            "Store the originals again to repair them, or restore them from an export or backup."
        )
        raise typer.Exit(1)


@app.command()
@shared_options(*TENANT, *OUTPUT)
def gc(
    context: CommandContext,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0.0,
            metavar="SECONDS",
            help="Keep what was written or read within this time.",
        ),
    ] = GRACE_SECONDS,
    idle_days: Annotated[
        float | None,
        typer.Option(
            "--idle-days",
            min=0.0,
            metavar="DAYS",
            help="First close sessions that were unused this long.",
        ),
    ] = None,
    retain_days: Annotated[
        float | None,
        typer.Option(
            "--retain-days",
            min=0.0,
            metavar="DAYS",
            help="Delete what was unused this long; the default is the setting retain_days.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Overwrite removed bytes in large databases too; writers wait."
        ),
    ] = False,
) -> None:
    """Remove expired contents and the contents of closed sessions.

    Contents of open sessions stay, and so does everything written or read within --grace. A
    summary of each removed content stays, so that a model that asks for it gets an explanation.

    The proxy cannot know when a conversation ends: --idle-days first closes the sessions that were
    unused this long. A closed session that is used again starts over.

    --retain-days, or the setting retain_days, deletes sessions that were unused this long with
    everything that belongs to them, and equally old data that belongs to no session.

    With --overwrite, the exit code is 1 if removed bytes may be left in the database's files.

    \b
    Examples:
      holdfast store gc
      holdfast store gc --idle-days 30
      holdfast store gc --retain-days 90
      holdfast store gc --grace 86400
    """
    days = context.settings.retain_days if retain_days is None else retain_days

    async def work(opened: Store) -> tuple[CleanupResult, ErasedRecords, bool]:
        parts, erased = [], ErasedRecords()
        for scope in await context.scopes(opened):
            if days:
                erased += await opened.expire(scope, time.time() - days * 86_400)
            if idle_days is not None:
                await close_idle(opened, scope, time.time() - idle_days * 86_400)
            parts.append(await opened.gc(scope, grace_seconds=grace))
        is_overwritten = await opened.scrub(whole=overwrite)
        cleaned = CleanupResult(
            *(sum(amounts) for amounts in zip(*map(astuple, parts), strict=True))
        )
        return cleaned, erased, is_overwritten

    cleaned, erased, is_overwritten = context.run(work)

    def draw(console: Console) -> None:
        if days:
            console.print(f"Deleted {described(erased)}.")
        console.print(
            f"Removed {counted(cleaned.refs, 'ref')} and {counted(cleaned.contents, 'content')} "
            f"({counted(cleaned.bytes, 'byte')})."
        )

    report = msgspec.to_builtins(cleaned)
    if days:
        report["deleted"] = msgspec.to_builtins(erased)
    if overwrite:
        report["overwritten"] = is_overwritten
    context.emit(report, draw)
    if overwrite and not is_overwritten:
        fail_to_overwrite()


app.command()(erase)


@app.command()
@shared_options(*TENANT)
def export(
    context: CommandContext,
    file: Annotated[
        str,
        typer.Argument(metavar="[FILE]", help="The file to write; - writes to standard output."),
    ] = "-",
) -> None:
    """Write every record as a line of JSON for `holdfast store import`.

    The file contains all contents: keep it as private as the store. It appears under its name only
    when it is complete.

    \b
    Examples:
      holdfast store export mine.jsonl
      holdfast store export | zstd > mine.jsonl.zst
    """

    async def work(opened: Store) -> int:
        scope = _only(await context.scopes(opened))
        figures = await opened.stats(scope)
        total, done = figures.refs + figures.sessions + figures.turns, 0
        with _target(file) as target, Progress("Writing record") as progress_line:
            async for line in opened.export(scope):
                target.write(line)
                done += 1
                progress_line(done, total)
        return done - 1

    records = context.run(work)
    if file != "-":
        remark(f"Wrote {counted(records, 'record')} to {file}.")


def _only(scopes: list[Scope]) -> Scope:
    """Return the only tenant, or raise an error: a file with several could not be imported."""
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
    """Yield a private file that appears when it is complete, or standard output."""
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
                os.fsync(target.fileno())  # else the file could be empty after a power cut
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise HoldfastError(
            f"cannot write the file: {error.strerror}", where=file, fix="Choose another file."
        ) from error


@app.command("import")
@shared_options(*WORKSPACE, *OUTPUT)
def import_(
    context: CommandContext,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file that export wrote; - reads standard input."),
    ],
) -> None:
    """Import the records that `holdfast store export` wrote.

    Records that the store already has are not changed, so importing twice does no harm. The
    imported records belong to --user and --workspace.

    \b
    Examples:
      holdfast store import mine.jsonl
      zstd -dc mine.jsonl.zst | holdfast store import - --workspace team
    """
    scope = context.scope

    async def work(opened: Store) -> int:
        with _source(file) as source:
            return await opened.restore(scope, _lines(source))

    new = context.run(work, creates=True)

    def draw(console: Console) -> None:
        console.print(f"Imported {counted(new, 'new record')}.")

    context.emit({"new": new}, draw)


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as source:
            yield source
    except OSError as error:
        raise unreadable(file, error) from error


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    done = 0
    with Progress("Reading record") as progress_line:
        while lines := await asyncio.to_thread(source.readlines, _CHUNK):
            for line in lines:
                done += 1
                progress_line(done, 0)
                yield line


@app.command()
@shared_options(*STORE)
def backup(
    context: CommandContext,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to create; it must not exist.")
    ],
) -> None:
    """Copy the complete store, with all users and workspaces, even while it is in use.

    The copy is a store: open it with --store sqlite:///FILE. Back up PostgreSQL with pg_dump.

    \b
    Examples:
      holdfast store backup holdfast-monday.db
    """

    async def work(opened: Store) -> None:
        if opened.url == MEMORY_URL:  # also if the default file is missing
            raise StoreError(
                "there is no store to back up",
                where=context.settings.store_url or FILE_NAME,
                fix="Name one with --store, or set data_dir to the folder that has it.",
            )
        await opened.backup(file)

    context.run(work)
    remark(f"Wrote {file}.")
