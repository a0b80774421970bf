"""refs: the stored contents, the newest first."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.settings import Settings
from holdfast.store import RefInfo, Scope

from ._output import ColorOption, Output, OutputOption, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store

_SUMMARY_CHARACTERS = 60
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def refs(
    kind: Annotated[str, typer.Option("--kind", help="Only refs of this kind: log, html, …")] = "",
    session: Annotated[str, typer.Option("--session", help="Only refs of this session.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 20,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List what was stored last: what it is, how long it is, whether it can still be opened.

    Flags name the kinds of secrets and personal data in a content; they are never shown.

    \b
    Examples:
      holdfast refs
      holdfast refs --kind log --limit 100
      holdfast refs --output json | jq -r '.[].ref_id'
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    scope = Scope(user, workspace, session)
    found = with_store(settings, lambda opened: opened.refs(scope, kind=kind, limit=limit))

    def draw(console: Console) -> None:
        if not found:
            remark("Nothing is stored here yet: `holdfast cite FILE` stores a content.")
            return
        names = ("size", "tokens", "age")
        right = [Column(name, justify="right", no_wrap=True) for name in names]
        ref = Column("ref", no_wrap=True)
        now = time.time()
        rows = [_row(info, now) for info in found]
        console.print(table(ref, "kind", *right, "state", "flags", "tool", "summary", rows=rows))

    shown = [{k: v for k, v in _built(info).items() if k != "compressed"} for info in found]
    Output(settings).emit(shown, draw)


def _built(info: RefInfo) -> dict[str, object]:
    built: dict[str, object] = msgspec.to_builtins(info)
    return built


def _row(info: RefInfo, now: float) -> tuple[str, ...]:
    summary = info.summary[:_SUMMARY_CHARACTERS]
    return (
        info.ref_id,
        info.kind,
        f"{info.size:,}",
        f"{info.tokens:,}",
        _age(now - info.created_at),
        info.state,
        ", ".join(info.flags),
        info.meta.get("tool", ""),
        f"{summary}…" if summary != info.summary else summary,
    )


def _age(seconds: float) -> str:
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "now"
