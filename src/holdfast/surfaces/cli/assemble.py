"""assemble: the turn that a session's next question would be asked with, part by part."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.assemble import AssembledContext, Intent
from holdfast.engine import Holdfast, assemble_options
from holdfast.models.embedding import recall_embedder
from holdfast.settings import Settings
from holdfast.store import Scope, Store

from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store
from ._text import print_text


def assemble(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Which session goes on.")],
    turn: Annotated[str, typer.Argument(metavar="TURN", help="What the user says next.")],
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Most tokens of the request; else assemble_tokens."),
    ] = None,
    intent: Annotated[
        Intent | None, typer.Option("--intent", help="What the turn is for; else it is detected.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Facts with this tag come first.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print the messages as a model would be shown them.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show the turn that a session's next question would be asked with.

    What was said comes from `Holdfast.remember`, or from the proxy in the mode assemble. Nothing is
    remembered or sent by this.

    \b
    Examples:
      holdfast assemble alfred "What did we decide about the database?"
      holdfast assemble alfred "Plan the release" --budget 2000 --text
      holdfast assemble alfred "When is my flight?" --output json | jq .sources
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(opened: Store) -> AssembledContext:
        engine = Holdfast(opened, Scope(user, workspace))
        engine.embedder = recall_embedder(settings)
        engine.assembler.options = assemble_options(settings)
        return await engine.assemble(
            session=session, user_turn=turn, intent=intent, topic_tags=tag, token_budget=budget
        )

    context = with_store(settings, work)
    if text:
        for message in context.messages:
            typer.echo(f"--- {message['role']}")
            print_text(Output(settings).console, message["content"])
        return
    Output(settings).emit(_described(context), lambda console: _draw(console, context))


def _draw(console: Console, context: AssembledContext) -> None:
    rows = [
        [
            source.part,
            source.id,
            source.fidelity.level,
            f"{source.tokens:,}",
            f"{source.fidelity.tokens_from:,}",
            f"{source.score:.2f}" if source.score else "",
            one_line(context.messages[source.message]["role"]),
            "stale" if source.stale else "",
        ]
        for source in context.sources
    ]
    numbers = (Column("tokens", justify="right"), Column("of", justify="right"))
    columns = (
        "part",
        "stands for",
        "shown",
        *numbers,
        Column("score", justify="right"),
        "role",
        "",
    )
    console.print(table(*columns, rows=rows))
    budget = context.budget
    console.print(f"{budget.used:,} of {budget.limit:,} tokens, intent {context.intent}.")
    for warning in budget.warnings:
        remark(warning)


def _described(context: AssembledContext) -> dict[str, Any]:
    described: dict[str, Any] = msgspec.to_builtins(context)
    return {**described, "tools": context.tools}
