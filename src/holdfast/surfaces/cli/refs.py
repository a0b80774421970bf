"""refs: the command that lists stored contents."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast.store import RefInfo, Store

from ._context import OUTPUT, TENANT, CommandContext, shared_options
from ._output import one_line, remark, table
from ._text import age

_WIDE = 110


@shared_options(*TENANT, *OUTPUT)
def refs(
    context: CommandContext,
    kind: Annotated[
        str, typer.Option("--kind", help="List only contents of this kind: log, html, …")
    ] = "",
    session: Annotated[
        str, typer.Option("--session", help="List only contents of this session.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of contents.")] = 20,
) -> None:
    """List stored contents with their refs, newest first.

    Flags name the kinds of secrets and personal data in a content, never their values. Narrow
    terminals show fewer columns.

    \b
    Examples:
      holdfast store refs
      holdfast store refs --kind log --limit 100
      holdfast store refs --output json | jq -r '.[].ref_id'
    """

    async def work(opened: Store) -> list[RefInfo]:
        stored: list[RefInfo] = []
        for scope in await context.scopes(opened):
            stored += await opened.refs(scope.of(session), kind=kind, limit=limit)
        return sorted(stored, key=lambda info: info.created_at, reverse=True)[:limit]

    infos = context.run(work)

    def draw(console: Console) -> None:
        if not infos:
            remark("Nothing is stored yet: `holdfast cite FILE` stores a content.")
            return
        now = time.time()
        names = _COLUMNS if console.width >= _WIDE else _NARROW
        rows = [[_COLUMNS[name](info, now) for name in names] for info in infos]
        console.print(table(*map(_column, names), rows=rows))

    records = [{k: v for k, v in _built(info).items() if k != "compressed"} for info in infos]
    context.emit(records, draw)


def _built(info: RefInfo) -> dict[str, object]:
    built: dict[str, object] = msgspec.to_builtins(info)
    return built


def _column(name: str) -> Column:
    return Column(name, justify="right" if name in _NUMBERS else "left", no_wrap=name != "summary")


_COLUMNS: dict[str, Callable[[RefInfo, float], str | Text]] = {
    "ref": lambda info, _: info.ref_id,
    "kind": lambda info, _: info.kind,
    "size": lambda info, _: f"{info.size:,}",
    "tokens": lambda info, _: f"{info.tokens:,}",
    "age": lambda info, now: age(now - info.created_at),
    "state": lambda info, _: info.state,
    "flags": lambda info, _: ", ".join(info.flags),
    "tool": lambda info, _: info.meta.get("tool", ""),
    "summary": lambda info, _: one_line(info.summary),
}
_NUMBERS = ("size", "tokens", "age")
_NARROW = ("ref", "size", "age", "state", "flags", "summary")
"""The ref names the kind too."""
