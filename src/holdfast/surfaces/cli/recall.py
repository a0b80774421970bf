"""recall: the commands that find or remove remembered turns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.memory import Passage, RecallResult
from holdfast.models.embedding import recall_embedder
from holdfast.store import Store
from holdfast.store.turn_store import RememberedTurn

from ._context import OUTPUT, WORKSPACE, CommandContext, YesOption, shared_options
from ._output import counted, one_line, remark, remark_removal, table


@shared_options(*WORKSPACE, *OUTPUT)
def recall(
    context: CommandContext,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to look for, in plain words.")
    ],
    session: Annotated[str, typer.Option("--session", help="Search only this session.")] = "",
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Maximum tokens of the text.")
    ] = 1000,
    k: Annotated[int | None, typer.Option("--most", min=1, help="Maximum turns.")] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print the text that a model would be shown.")
    ] = False,
    reindex: Annotated[
        bool,
        typer.Option(
            "--reindex", help="First index again the turns that another embedder indexed."
        ),
    ] = False,
) -> None:
    """Find the turns that a question needs, with scores and places.

    Turns come from `Holdfast.remember`, or from the proxy in the mode assemble. The column `why`
    names the signals that raised or lowered a turn's score.

    \b
    Examples:
      holdfast memory recall "when does my first sprint end?"
      holdfast memory recall "what did I decide about the database?" --budget 3000 --text
    """
    if not question.strip():
        raise HoldfastError("the question is empty", fix='Write: holdfast memory recall "QUESTION"')

    async def work(opened: Store) -> RecallResult:
        embedder = recall_embedder(context.settings)
        engine = Holdfast(opened, context.scope).with_parts(embedder=embedder)
        if reindex:
            remark(f"Indexed {counted(await engine.memory.reindex(), 'turn')} again.")
        return await engine.recall(question, session=session or None, k=k, token_budget=budget)

    recalled = context.run(work)
    if text:
        typer.echo(recalled.text, nl=False)
        return
    context.emit(msgspec.to_builtins(recalled), lambda console: _draw(console, recalled))


@shared_options(*WORKSPACE, *OUTPUT)
def forget(
    context: CommandContext,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[TURN]...", help="Ids of turns.")
    ] = None,
    session: Annotated[
        str, typer.Option("--session", help="Only this session; alone: all of its turns.")
    ] = "",
    yes: YesOption = False,
) -> None:
    """Remove remembered turns for good, by id or by session, and the facts made only from them.

    Without --yes it lists the turns that it would remove.

    \b
    Examples:
      holdfast memory forget turn_9f2c4e1ab07d3358
      holdfast memory forget --session nightly --yes
    """
    if not ids and not session:
        raise HoldfastError(
            "no turns are named", where="holdfast memory forget", fix="Give ids or --session NAME."
        )

    async def work(opened: Store) -> list[RememberedTurn]:
        engine = Holdfast(opened, context.scope)
        return await engine.forget_turns(ids=ids or None, session=session or None, preview=not yes)

    turns = context.run(work)

    def draw(console: Console) -> None:
        rows = [
            [turn.id, turn.session, _when(turn.at), turn.name or turn.role, one_line(turn.content)]
            for turn in turns
        ]
        if rows:
            console.print(table("turn", "session", "when", "who", "said", rows=rows))

    context.emit([msgspec.to_builtins(turn) for turn in turns], draw)
    remark_removal(len(turns), "turn", is_done=yes)


def _draw(console: Console, recalled: RecallResult) -> None:
    if not recalled.passages:
        remark("No turn matches." if recalled.turns else "No turns are remembered here yet.")
        return
    by_score = sorted(recalled.passages, key=lambda passage: -passage.score)
    columns = (Column("score", justify="right"), "when", "session", "turn", "who", "said", "why")
    console.print(table(*columns, rows=map(_row, by_score)))
    console.print(
        f"{len(recalled.passages):,} of {counted(recalled.turns, 'turn')}, "
        f"{recalled.tokens:,} of {recalled.budget:,} tokens."
    )


def _row(passage: Passage) -> list[object]:
    strongest = ", ".join(f"{name} {value:+.1f}" for name, value in passage.signals.items())
    who = passage.name or passage.role
    text = one_line(passage.text)
    turn = one_line(passage.turn_id)
    why = one_line(strongest)
    return [f"{passage.score:.2f}", _when(passage.at), passage.session, turn, who, text, why]


def _when(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return ""
