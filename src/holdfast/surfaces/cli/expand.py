"""expand: exactly the part of a stored content that is asked for."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from holdfast.engine import Holdfast
from holdfast.errors import DamagedContentError, ExpandError, StoreError
from holdfast.expand import ExpandOptions, Expansion
from holdfast.settings import Settings
from holdfast.store import Scope, Store

from ._input import write_body
from ._output import ColorOption, Output, OutputOption
from ._store import DEFAULT, StoreOption, TenantOption, UserOption, scopes_of, with_store
from ._text import print_text


def expand(
    ref: Annotated[str, typer.Argument(metavar="REF", help="As a citation names it.")],
    lines: Annotated[
        str | None, typer.Option("--lines", help="40-80, 40-, 40; -20 for the last 20.")
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", min=1, help="The next page: 2, 3, …")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", help="In JSON: $.items[3].name")] = None,
    fields: Annotated[
        str | None, typer.Option("--fields", help="Columns or keys: id,owner.name")
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", min=0, help="Rows, or lines, to skip.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many rows, or lines.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="A regular expression (RE2).")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", help="A question: the passages that answer it.")
    ] = None,
    around: Annotated[
        str | None, typer.Option("--around", help="A line number, place or words.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Most tokens, 100 to 8000; else 1000.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the whole original to stdout, byte for byte.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Open a part of a stored content, as a model would with the tool expand_ref.

    Without options it is the first page. What remains, and how to get it, is said behind it. Exit
    code 1 if the content has no such part.

    \b
    Examples:
      holdfast expand ref:log:9f2c4e1ab07d3358 --lines 40-80
      holdfast expand ref:json_rows:09ab12cd34ef5678 --fields id,total --offset 100 --limit 20
      holdfast expand ref:log:9f2c4e1ab07d3358 --query "why did the build fail?"
      holdfast expand ref:html:77aa12cd34ef5678 --raw > page.html
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    given = {
        "lines": lines, "page": page, "path": path, "fields": fields, "offset": offset,
        "limit": limit, "pattern": pattern, "query": query, "around": around,
        "max_tokens": max_tokens,
    }  # fmt: skip
    if raw:
        _no_options(given)
        write_body(_original(settings, user, tenant, ref), None)
        return
    options = ExpandOptions.parse(given)

    async def work(opened: Store) -> Expansion:
        scope = await _holding(opened, user, tenant, ref)
        expansion = await Holdfast(opened, scope).expand_ref(ref, options)
        if expansion.reason:
            await _check_there(opened, scope, ref, expansion.reason)
        return expansion

    expansion = with_store(settings, work)
    Output(settings).emit(
        {"ref": ref, **msgspec.to_builtins(expansion)},
        lambda console: print_text(console, expansion.text),
    )
    if expansion.reason:
        raise typer.Exit(1)


def _no_options(given: dict[str, Any]) -> None:
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if named:
        raise ExpandError(
            f"--raw and {named[0]} contradict each other",
            where="options",
            fix="Leave one of them out: --raw is the whole original.",
        )


async def _holding(opened: Store, user: str, tenant: str, ref: str) -> Scope:
    """The tenant that has a ref; where none has, any: it says so."""
    scopes = await scopes_of(opened, user, tenant)
    for scope in scopes[:-1]:
        if await opened.info(scope, ref) is not None:
            return scope
    return scopes[-1]


def _original(settings: Settings, user: str, tenant: str, ref: str) -> bytes:
    async def work(opened: Store) -> bytes:
        scope = await _holding(opened, user, tenant, ref)
        stored = await opened.get(scope, ref)
        if stored is not None:
            return stored.data
        missed = await Holdfast(opened, scope).expand_ref(ref)
        raise _not_there(ref, missed.reason)

    return with_store(settings, work)


async def _check_there(opened: Store, scope: Scope, ref: str, reason: str) -> None:
    """Raise if it is the whole content that is missing, not the part."""
    known = await opened.info(scope, ref)
    if known is not None and known.state == "damaged":
        raise DamagedContentError(
            reason, where=known.ref_id, fix="Store the original again with `holdfast cite`."
        )
    if known is None or known.state == "removed":
        raise _not_there(ref, reason)


def _not_there(ref: str, reason: str) -> StoreError:
    return StoreError(reason, where=ref[:100], fix="`holdfast refs` lists what can be opened.")
