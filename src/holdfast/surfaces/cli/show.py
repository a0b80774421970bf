"""show: the command that prints a request as a table of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text as RichText

from holdfast import read
from holdfast.wire import (
    Block,
    Conversation,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

from ._context import OUTPUT, CommandContext, shared_options
from ._input import DialectOption, FileArgument, limits_of, read_body
from ._output import Output, counted, printable, table

FIRST_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message, in numbers and a few words."""

    index: int
    exchange: int
    kind: str
    role: str
    blocks: str
    characters: int
    first_words: str


@shared_options(*OUTPUT)
def show(
    context: CommandContext,
    file: FileArgument,
    dialect: DialectOption = None,
    text: Annotated[
        bool,
        typer.Option("--text", help="Include the first words of messages in piped output too."),
    ] = False,
) -> None:
    """Show the messages of a request and how they group into exchanges.

    A tool call and its results are one exchange: they are kept, moved or removed together.

    \b
    Examples:
      holdfast request show request.json
      cat request.json | holdfast request show - | jq .messages
    """
    settings = context.settings
    limits = limits_of(settings)
    out = Output(settings)
    conversation = read(read_body(file, limits), dialect, limits=limits)
    rows = list(rows_of(conversation))
    with_text = text or (out.in_terminal and not out.as_json)

    def draw(console: Console) -> None:
        console.print(heading(conversation))
        console.print(message_table(rows, with_text=with_text))

    out.emit(_data(conversation, rows, with_text=with_text), draw)


def rows_of(conversation: Conversation) -> Iterator[MessageRow]:
    """Describe each message of the conversation."""
    for number, exchange in enumerate(conversation.exchanges, 1):
        for index, message in enumerate(exchange.messages, exchange.start):
            yield MessageRow(
                index=index,
                exchange=number,
                kind=exchange.kind,
                role=message.role,
                blocks=", ".join(_name(block) for block in message.blocks),
                characters=sum(len(_text(block)) for block in message.blocks),
                first_words=_first_words(message),
            )


def heading(conversation: Conversation) -> RichText:
    """Return a line with the dialect, model and sizes of the conversation."""
    parts = [
        conversation.dialect,
        conversation.model or "no model named",
        counted(len(conversation.messages), "message"),
        counted(len(conversation.exchanges), "exchange"),
        counted(len(conversation.tools), "tool"),
        "a system prompt" if conversation.system else "no system prompt",
    ]
    return RichText(printable(" · ".join(parts)))


def message_table(rows: list[MessageRow], *, with_text: bool) -> Table:
    """Return a table of messages, with as many of their first words as the width allows."""
    columns: list[Column | str] = [
        Column("#", justify="right", no_wrap=True),
        Column("exchange", justify="right", no_wrap=True),
        Column("role", no_wrap=True),
        Column("blocks", max_width=24),
        Column("characters", justify="right", no_wrap=True),
    ]
    cells: list[tuple[object, ...]] = [
        (row.index, row.exchange, row.role, row.blocks, f"{row.characters:,}") for row in rows
    ]
    if with_text:
        columns.append(Column("first words", no_wrap=True, overflow="ellipsis", ratio=1))
        cells = [(*cell, row.first_words) for cell, row in zip(cells, rows, strict=True)]
    drawn = table(*columns, rows=cells)
    drawn.expand = with_text
    return drawn


def _data(
    conversation: Conversation, rows: list[MessageRow], *, with_text: bool
) -> dict[str, object]:
    messages = [asdict(row) for row in rows]
    if not with_text:
        for message in messages:
            del message["first_words"]
    return {
        "dialect": conversation.dialect,
        "model": conversation.model,
        "system_characters": sum(len(_text(block)) for block in conversation.system),
        "tools": [tool.name for tool in conversation.tools],
        "messages": messages,
    }


def _name(block: Block) -> str:
    match block:
        case ToolCall(name=name):
            return f"call {name}"
        case ToolResult(is_error=True):
            return "failed result"
        case ToolResult():
            return "result"
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case Media(kind=kind):
            return kind
        case _:
            return block.type if isinstance(block, Opaque) else "other"


def _text(block: Block) -> str:
    match block:
        case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
            return text
        case ToolCall(arguments=arguments):
            return arguments if isinstance(arguments, str) else json.dumps(arguments)
        case _:
            return ""


def _first_words(message: Message) -> str:
    words = " ".join(" ".join(_text(block)[:200] for block in message.blocks).split())
    return words if len(words) <= FIRST_CHARACTERS else words[: FIRST_CHARACTERS - 1] + "…"
