"""compare: the command that compares answers from a full history and from assembled turns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.assemble.comparison import QUERIES, SIMILAR, Comparison
from holdfast.assemble.comparison import compare as compared
from holdfast.assemble.requests import message_text
from holdfast.engine import Holdfast
from holdfast.models.embedding import recall_embedder
from holdfast.settings import Settings
from holdfast.store.opening import open_memory
from holdfast.wire import read

from ._context import OUTPUT, CommandContext, shared_options
from ._input import limits_of, read_body
from ._output import counted, one_line, table


@shared_options(*OUTPUT)
def compare(
    context: CommandContext,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…", help="Requests with long histories; - reads standard input."
        ),
    ],
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            help="A question to ask; the default is four questions of different kinds.",
        ),
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", min=200, help="Maximum tokens of an assembled turn.")
    ] = 3_000,
) -> None:
    """Compare answers from the full history with answers from assembled turns.

    The offline model answers. It quotes its context, so a different answer means that the assembled
    turn lacks something it would have quoted. Nothing is stored. The exit code is 1 if an answer
    differs.

    \b
    Examples:
      holdfast memory compare request.json
      holdfast memory compare chat.json --question "Which database did we choose?" --budget 2000
    """
    settings = context.settings
    rows: list[tuple[str, Comparison]] = []
    for file in files:
        history = _history(file, settings)
        answers = asyncio.run(_compared(history, question or list(QUERIES), budget, settings))
        rows += [(Path(file).name, each) for each in answers]
    data = [{"file": name, **_described(each)} for name, each in rows]
    context.emit(data, lambda console: _draw(console, rows))
    if not all(each.is_alike for _, each in rows):
        raise typer.Exit(1)


def _history(file: str, settings: Settings) -> list[dict[str, Any]]:
    conversation = read(read_body(file, limits_of(settings)), limits=limits_of(settings))
    return [
        {"role": message.role, "content": words}
        for message in conversation.messages
        if message.role in ("user", "assistant") and (words := message_text(message))
    ]


async def _compared(
    history: list[dict[str, Any]], questions: list[str], budget: int, settings: Settings
) -> list[Comparison]:
    engine = Holdfast(open_memory()).with_parts(embedder=recall_embedder(settings))
    await engine.remember("compared", history)
    await engine.facts.extract(history, session="compared")

    async def assembling(query: str) -> Any:
        return await engine.assemble(session="compared", user_turn=query, token_budget=budget)

    return [await compared(history, query, assembling) for query in questions]


def _draw(console: Console, rows: list[tuple[str, Comparison]]) -> None:
    numbers = ("full", "assembled", "saved", "similarity")
    right = [Column(name, justify="right") for name in numbers]
    answers = [_row(name, each) for name, each in rows]
    console.print(table("file", "question", "intent", *right, rows=answers))
    alike = sum(each.is_alike for _, each in rows)
    console.print(f"{alike} of {counted(len(rows), 'answer')} alike (similarity over {SIMILAR}).")


def _row(name: str, each: Comparison) -> list[object]:
    return [
        name,
        one_line(each.query),
        each.intent,
        f"{each.full_tokens:,}",
        f"{each.assembled_tokens:,}",
        f"{each.reduction:.0%}",
        f"{each.similarity:.3f}",
    ]


def _described(each: Comparison) -> dict[str, Any]:
    described: dict[str, Any] = msgspec.to_builtins(each)
    return {**described, "reduction": round(each.reduction, 4), "alike": each.is_alike}
