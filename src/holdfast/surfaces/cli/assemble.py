"""assemble: the command that shows how the next turn of a session would be assembled."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.assemble import AssembledContext, Intent
from holdfast.engine import Holdfast, assemble_options
from holdfast.models.embedding import recall_embedder
from holdfast.store import Store

from ._context import OUTPUT, WORKSPACE, CommandContext, shared_options
from ._output import Output, one_line, remark, table
from ._text import print_text


@shared_options(*WORKSPACE, *OUTPUT)
def assemble(
    context: CommandContext,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session to continue.")],
    turn: Annotated[str, typer.Argument(metavar="TURN", help="The user's next message.")],
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            help="Maximum tokens of the request; the default is the setting assemble_tokens.",
        ),
    ] = None,
    intent: Annotated[
        Intent | None,
        typer.Option("--intent", help="The purpose of the turn; detected if left out."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Prefer facts with this tag.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print the messages as a model would be shown them.")
    ] = False,
) -> None:
    """Show the request that would be assembled for a session's next turn.

    Turns come from `Holdfast.remember`, or from the proxy in the mode assemble. This command stores
    and sends nothing.

    \b
    Examples:
      holdfast memory assemble alfred "What did we decide about the database?"
      holdfast memory assemble alfred "Plan the release" --budget 2000 --text
      holdfast memory assemble alfred "When is my flight?" --output json | jq .sources
    """

    async def work(opened: Store) -> AssembledContext:
        embedder = recall_embedder(context.settings)
        engine = Holdfast(opened, context.scope).with_parts(embedder=embedder)
        engine.assembler.options = assemble_options(context.settings)
        return await engine.assemble(
            session=session, user_turn=turn, intent=intent, topic_tags=tag, token_budget=budget
        )

    assembled = context.run(work)
    if text:
        for message in assembled.messages:
            typer.echo(f"--- {message['role']}")
            print_text(Output(context.settings).console, message["content"])
        return
    context.emit(_described(assembled), lambda console: _draw(console, assembled))


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
        "source",
        "level",
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
