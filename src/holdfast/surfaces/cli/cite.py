"""cite: the command that stores a content and prints its citation."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from holdfast.cite import Citation
from holdfast.engine import Holdfast, fit_options
from holdfast.errors import HoldfastError
from holdfast.store import Store
from holdfast.store.refs import KIND

from ._context import OUTPUT, WORKSPACE, CommandContext, shared_options
from ._input import read_content
from ._output import remark
from ._text import print_text


@shared_options(*WORKSPACE, *OUTPUT)
def cite(
    context: CommandContext,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Any content; - reads standard input.")
    ],
    question: Annotated[
        str | None, typer.Option("--question", help="What the content is needed for.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="log, json_rows, html, …; detected if left out.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where the content came from.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", min=60, help="Maximum tokens of the citation; the default is 400."
        ),
    ] = None,
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
) -> None:
    """Store a content and print the short citation that replaces it in a conversation.

    The citation describes the content, quotes what matters for the question, errors first, and
    names the ref that opens the rest. Content of at most 1,000 characters is printed unchanged and
    not stored.

    \b
    Examples:
      holdfast cite build.log
      holdfast cite rows.json --question "which orders are late?"
      curl -s https://example.com | holdfast cite - --url https://example.com
    """
    if kind is not None and not KIND.fullmatch(kind):
        raise HoldfastError(
            "the kind is not a valid name",
            where="--kind",
            fix="Use lowercase letters, digits and _, as in log.",
        )
    content = read_content(file, context.settings)

    async def work(opened: Store) -> Citation:
        options = fit_options(context.settings)
        if max_tokens is not None:
            rules = options.rules
            rules = msgspec.structs.replace(rules, room=max_tokens, most_tokens=max_tokens)
            options = msgspec.structs.replace(options, rules=rules)
        engine = Holdfast(opened, context.scope.of(session), options=options)
        return await engine.cite(content, kind=kind, question=question, source_url=url)

    citation = context.run(work, creates=True)
    context.emit(_described(citation), lambda console: _draw(console, citation))
    if not citation.ref_id:
        remark("The content is short enough to send as it is, so nothing was stored.")


def _draw(console: Console, citation: Citation) -> None:
    print_text(console, citation.text)
    if citation.ref_id:
        tokens = citation.fidelity
        remark(f"{tokens.from_tokens:,} → {tokens.to_tokens:,} tokens")


def _described(citation: Citation) -> dict[str, Any]:
    return {
        "ref": citation.ref_id or None,
        "kind": citation.kind,
        "from_tokens": citation.fidelity.from_tokens,
        "to_tokens": citation.fidelity.to_tokens,
        "flags": citation.fidelity.flags,
        "excerpts": msgspec.to_builtins(citation.excerpts),
        "text": citation.text,
    }
