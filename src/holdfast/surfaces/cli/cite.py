"""cite: a short citation of a long content, whose original is stored."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from holdfast.cite import Citation
from holdfast.engine import Holdfast, fit_options
from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.refs import KIND

from ._input import read_content
from ._output import ColorOption, Output, OutputOption, remark
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store
from ._text import print_text


def cite(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Any content; - reads standard input.")
    ],
    question: Annotated[
        str | None, typer.Option("--question", help="What the content is wanted for.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="log, json_rows, html, …; found out if left out.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where the content came from.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", min=60, help="Most tokens, also where that is much; else 400."
        ),
    ] = None,
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Store a content and print the citation that takes its place in a conversation.

    The citation says what the content is, quotes what matters for the question, errors first, and
    names the ref that opens the rest. Content of at most 1,000 characters stays as it is, and is
    not stored.

    \b
    Examples:
      holdfast cite build.log
      holdfast cite rows.json --question "which orders are late?"
      curl -s https://example.com | holdfast cite - --url https://example.com
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    if kind is not None and not KIND.fullmatch(kind):
        raise HoldfastError(
            "the kind is no name", where="--kind", fix="Use small letters, digits and _, as in log."
        )
    content = read_content(file, settings)
    scope = Scope(user, workspace, session)

    async def work(opened: Store) -> Citation:
        options = fit_options(settings)
        rules = options.rules
        if max_tokens is not None:
            rules = msgspec.structs.replace(rules, room=max_tokens, most_tokens=max_tokens)
        engine = Holdfast(opened, scope, options=msgspec.structs.replace(options, rules=rules))
        return await engine.cite(content, kind=kind, question=question, source_url=url)

    citation = with_store(settings, work, creates=True)
    Output(settings).emit(_described(citation), lambda console: _draw(console, citation))
    if not citation.ref_id:
        remark("Short enough to stay as it is: nothing was stored.")


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
