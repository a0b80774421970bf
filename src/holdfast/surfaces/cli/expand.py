"""expand: the command that prints part of a stored content."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from holdfast.engine import Holdfast
from holdfast.errors import DamagedContentError, ExpandError, StoreError
from holdfast.expand import ExpandOptions, Expansion
from holdfast.store import Scope, Store

from ._context import OUTPUT, TENANT, CommandContext, shared_options
from ._input import write_body
from ._text import print_text


@shared_options(*TENANT, *OUTPUT)
def expand(
    context: CommandContext,
    ref: Annotated[str, typer.Argument(metavar="REF", help="The ref that a citation names.")],
    lines: Annotated[
        str | None,
        typer.Option("--lines", help="Lines such as 40-80, 40- or 40; -20 for the last 20."),
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", min=1, help="A page; the first is 1.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", help="A JSON path, such as $.items[3].name.")
    ] = None,
    fields: Annotated[
        str | None, typer.Option("--fields", help="Columns or keys, such as id,owner.name.")
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", min=0, help="Number of rows or lines to skip.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of rows or lines.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="A regular expression (RE2).")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", help="A question; prints the passages that answer it.")
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around", help="A line number, a place or words to show the surroundings of."
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="Maximum tokens, 100 to 8000; the default is 1000."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the whole original to stdout, byte for byte.")
    ] = False,
) -> None:
    """Print part of a stored content, as a model would read it with the tool expand_ref.

    Without options it prints the first page. A note at the end names the rest and how to open
    it. The exit code is 1 if the content has no such part.

    \b
    Examples:
      holdfast expand ref:log:9f2c4e1ab07d3358 --lines 40-80
      holdfast expand ref:json_rows:09ab12cd34ef5678 --fields id,total --offset 100 --limit 20
      holdfast expand ref:log:9f2c4e1ab07d3358 --query "why did the build fail?"
      holdfast expand ref:html:77aa12cd34ef5678 --raw > page.html
    """
    values = {
        "lines": lines, "page": page, "path": path, "fields": fields, "offset": offset,
        "limit": limit, "pattern": pattern, "query": query, "around": around,
        "max_tokens": max_tokens,
    }  # fmt: skip
    if raw:
        _no_options(values)
        write_body(_original(context, ref), None)
        return
    options = ExpandOptions.parse(values)

    async def work(opened: Store) -> Expansion:
        scope = await _holding(context, opened, ref)
        expansion = await Holdfast(opened, scope).expand_ref(ref, options)
        if expansion.reason:
            await _check_there(opened, scope, ref, expansion.reason)
        return expansion

    expansion = context.run(work)
    context.emit(
        {"ref": ref, **msgspec.to_builtins(expansion)},
        lambda console: print_text(console, expansion.text),
    )
    if expansion.reason:
        raise typer.Exit(1)


def _no_options(values: dict[str, Any]) -> None:
    named = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]
    if named:
        raise ExpandError(
            f"--raw and {named[0]} cannot be combined",
            where="options",
            fix="Leave one of them out: --raw prints the complete original.",
        )


async def _holding(context: CommandContext, opened: Store, ref: str) -> Scope:
    """Return the tenant that has the ref, or else any tenant, where the lookup fails."""
    scopes = await context.scopes(opened)
    for scope in scopes[:-1]:
        if await opened.info(scope, ref) is not None:
            return scope
    return scopes[-1]


def _original(context: CommandContext, ref: str) -> bytes:
    async def work(opened: Store) -> bytes:
        scope = await _holding(context, opened, ref)
        stored = await opened.get(scope, ref)
        if stored is not None:
            return stored.data
        missed = await Holdfast(opened, scope).expand_ref(ref)
        raise _not_there(ref, missed.reason)

    return context.run(work)


async def _check_there(opened: Store, scope: Scope, ref: str, reason: str) -> None:
    """Raise if it is the whole content that is missing, not the part."""
    info = await opened.info(scope, ref)
    if info is not None and info.state == "damaged":
        raise DamagedContentError(
            reason, where=info.ref_id, fix="Store the original again with `holdfast cite`."
        )
    if info is None or info.state == "removed":
        raise _not_there(ref, reason)


def _not_there(ref: str, reason: str) -> StoreError:
    return StoreError(
        reason, where=ref[:100], fix="`holdfast store refs` lists what can be opened."
    )
