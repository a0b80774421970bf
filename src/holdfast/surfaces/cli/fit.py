"""fit: the command that shortens a request until it fits a limit."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table

from holdfast.engine.options import fit_options
from holdfast.fitting import Fitted, fit_request
from holdfast.fitting import fit as make_fit
from holdfast.fitting.fold_history import estimated_savings
from holdfast.tokens import TokenCount, count
from holdfast.trim import STRATEGIES
from holdfast.trim.strategies import strategy_named
from holdfast.wire import Conversation, Text, ToolResult, read

from ._context import OUTPUT, CommandContext, shared_options
from ._input import (
    DialectOption,
    FileArgument,
    ModelOption,
    WriteOption,
    limits_of,
    read_body,
    write_body,
)
from ._output import Output, printable, remark, table

_WORDS = 48


@shared_options(*OUTPUT)
def fit(
    context: CommandContext,
    file: FileArgument,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="Maximum input tokens; the default is the limit of the model."
        ),
    ] = None,
    output_tokens: Annotated[
        int | None,
        typer.Option("--output-tokens", min=0, help="Tokens to leave free for the answer."),
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help=f"One of auto, {', '.join(STRATEGIES)}.")
    ] = "auto",
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Print the edits, and what each strategy could save; write no request.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print the plan for a session that begins with this request: what is cited, "
            "folded, offered or kept, and why; write no request.",
        ),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the messages before and after side by side.")
    ] = False,
    dialect: DialectOption = None,
    model: ModelOption = None,
    write: WriteOption = None,
) -> None:
    """Shorten a request until it fits a limit, and list the edits on stderr.

    These stay: the system prompt, the first and the latest question, stated rules and the latest
    tool results. Older tool results are shortened first, then exchanges are folded into a digest.

    \b
    Examples:
      holdfast fit request.json --limit 8000 > smaller.json
      holdfast fit request.json --limit 8000 --preview
      holdfast fit request.json --limit 8000 --diff > smaller.json
      holdfast fit request.json --limit 8000 --explain
    """
    settings = context.settings
    if strategy != "auto":
        strategy_named(strategy)  # reject an unknown name even if the request fits as it is
    limits = limits_of(settings)
    conversation = read(read_body(file, limits), dialect, limits=limits)
    if explain:
        options = msgspec.structs.replace(
            fit_options(settings),
            model=model or "",
            limit=limit,
            output=output_tokens,
            strategy=strategy,
        )
        _explain(Output(settings), fit_request(conversation, options))
        return
    before = count(conversation, model=model)
    fitted = make_fit(
        conversation, model=model, limit=limit, output=output_tokens, strategy=strategy
    )
    console = Console(stderr=True, highlight=False, no_color=settings.color == "never")
    _report(console, before.tokens, fitted)
    if diff:
        _diff(console, conversation, fitted)
    if preview:
        console.print(_strategies(conversation, before))
        remark("If a strategy does not save enough, everything but the anchors is folded as well.")
    else:
        write_body(fitted.body, write)


def _explain(out: Output, fitted: Fitted) -> None:
    """Print the plan of a request: each decision with its reason, then the tokens of all."""
    data = {
        "asked_tokens": fitted.untouched,
        "tokens": fitted.tokens,
        "limit": fitted.limit,
        "plan": [msgspec.structs.asdict(entry) for entry in fitted.plan],
    }

    def draw(console: Console) -> None:
        rows = [
            (e.action, e.where, e.what, e.why, f"{e.from_tokens:,}", f"{e.to_tokens or 0:,}")
            for e in fitted.plan
        ]
        right = [Column(name, justify="right") for name in ("tokens", "now")]
        if rows:
            console.print(table("action", "where", "what", "why", *right, rows=rows))
        remark(f"{fitted.untouched:,} → {fitted.tokens:,} tokens, limit {fitted.limit:,}")

    out.emit(data, draw)


def _strategies(conversation: Conversation, counted: TokenCount) -> Table:
    """Return a table of strategies, each with the most that it could save."""
    savings = estimated_savings(conversation, counted)
    rows = [(name, f"{tokens:,}", STRATEGIES[name].description) for name, tokens in savings.items()]
    return table("strategy", Column("saves up to", justify="right"), "what it does", rows=rows)


def _report(console: Console, before: int, fitted: Fitted) -> None:
    if fitted.edits:
        rows = [
            (edit.where, edit.what, edit.why, f"{edit.from_tokens:,}", f"{edit.to_tokens:,}")
            for edit in fitted.edits
        ]
        right = [Column(name, justify="right") for name in ("tokens", "now")]
        console.print(table("where", "what", "why", *right, rows=rows))
    remark(f"{before:,} → {fitted.tokens:,} tokens, limit {fitted.limit:,}")
    for warning in fitted.warnings:
        remark(warning)


def _diff(console: Console, before: Conversation, fitted: Fitted) -> None:
    """Print each sent message beside the messages that it replaces."""
    rows = []
    for message, (start, stop) in zip(
        fitted.state.sent.messages, fitted.state.origins, strict=True
    ):
        is_unchanged = stop - start == 1 and before.messages[start].raw == message.raw
        was = f"{start}" if stop - start == 1 else f"{start} to {stop - 1}"
        old = _words(before, start) if stop - start == 1 else f"({stop - start} messages)"
        new = (
            "="
            if is_unchanged
            else _words(fitted.state.sent, fitted.state.sent.messages.index(message))
        )
        rows.append((was, message.role, old, new))
    console.print(table("#", "role", "before", "after", rows=rows))


def _words(conversation: Conversation, index: int) -> str:
    blocks = conversation.messages[index].blocks
    text = " ".join(b.text for b in blocks if isinstance(b, (Text, ToolResult)))
    words = " ".join(text.split())
    return printable(words[:_WORDS] + "…" if len(words) > _WORDS else words)
