"""recall: what was said, found again by a question; or forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.memory import Passage, Recalled
from holdfast.models.embedding import recall_embedder
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.turn_shelf import Remembered

from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store


def recall(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to look for, in plain words.")
    ] = "",
    session: Annotated[str, typer.Option("--session", help="Only of this session.")] = "",
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Tokens of the text at most.")
    ] = 1000,
    k: Annotated[int | None, typer.Option("--most", min=1, help="Turns at most.")] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print the text that a model would be shown.")
    ] = False,
    forget: Annotated[
        str, typer.Option("--forget", metavar="IDS", help="Forget these turns instead: id,id,…")
    ] = "",
    forget_session: Annotated[
        bool, typer.Option("--forget-session", help="Forget all turns of --session instead.")
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be forgotten; nothing is.")
    ] = False,
    reindex: Annotated[
        bool,
        typer.Option(
            "--reindex", help="First read again what was remembered with another embedder."
        ),
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Find what was said: the turns that a question needs, with their scores and where they stand.

    Turns come from `Holdfast.remember`. Signals say what raised or lowered a turn's score.

    \b
    Examples:
      holdfast recall "when does my first sprint end?"
      holdfast recall "what did I decide about the database?" --budget 3000 --text
      holdfast recall --forget turn_9f2c4e1ab07d3358 --preview
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    scope = Scope(user, workspace)
    out = Output(settings)
    if forget or forget_session:
        ids = [id_.strip() for id_ in forget.split(",") if id_.strip()] or None
        _forget(settings, out, scope, ids=ids, session=session or None, preview=preview)
        return
    if not question.strip():
        raise HoldfastError("there is no question", fix='Write: holdfast recall "QUESTION"')

    async def work(opened: Store) -> Recalled:
        engine = Holdfast(opened, scope)
        engine.embedder = recall_embedder(settings)
        if reindex:
            remark(f"{await engine.memory.reindex():,} turns were read again.")
        return await engine.recall(question, session=session or None, k=k, token_budget=budget)

    recalled = with_store(settings, work)
    if text:
        typer.echo(recalled.text, nl=False)
        return
    out.emit(msgspec.to_builtins(recalled), lambda console: _draw(console, recalled))


def _draw(console: Console, recalled: Recalled) -> None:
    if not recalled.passages:
        remark("Nothing was recalled." if recalled.turns else "Nothing was remembered here yet.")
        return
    by_score = sorted(recalled.passages, key=lambda passage: -passage.score)
    columns = (Column("score", justify="right"), "when", "session", "turn", "who", "said", "why")
    console.print(table(*columns, rows=map(_row, by_score)))
    console.print(
        f"{len(recalled.passages):,} of {recalled.turns:,} turns, "
        f"{recalled.tokens:,} of {recalled.budget:,} tokens."
    )


def _row(passage: Passage) -> list[object]:
    strongest = ", ".join(f"{name} {value:+.1f}" for name, value in passage.signals.items())
    who = passage.name or passage.role
    said = one_line(passage.text)
    turn = one_line(passage.turn_id)
    why = one_line(strongest)
    return [f"{passage.score:.2f}", _when(passage.at), passage.session, turn, who, said, why]


def _when(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return ""


def _forget(
    settings: Settings,
    out: Output,
    scope: Scope,
    *,
    ids: list[str] | None,
    session: str | None,
    preview: bool,
) -> None:
    async def work(opened: Store) -> list[Remembered]:
        return await Holdfast(opened, scope).forget_turns(ids=ids, session=session, preview=preview)

    turns = with_store(settings, work)

    def draw(console: Console) -> None:
        rows = [
            [turn.id, turn.session, _when(turn.at), turn.name or turn.role, one_line(turn.content)]
            for turn in turns
        ]
        if rows:
            console.print(table("turn", "session", "when", "who", "said", rows=rows))
        done = "would be forgotten" if preview else "forgotten, without a trace"
        remark(f"{len(turns):,} {'turn' if len(turns) == 1 else 'turns'} {done}.")

    out.emit([msgspec.to_builtins(turn) for turn in turns], draw)
