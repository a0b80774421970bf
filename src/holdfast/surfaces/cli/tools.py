"""tools: the commands that list, search and manage tool definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Column

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, ToolError
from holdfast.store.tool_store import StoredTool
from holdfast.surfaces.mcp.catalog import has_pending_change, pending_change

from ._context import OUTPUT, WORKSPACE, CommandContext, YesOption, shared_options
from ._groups import CommandGroup
from ._input import limits_of, read_body
from ._output import one_line, remark, remark_removal, table
from ._text import print_text

if TYPE_CHECKING:
    from holdfast.toolbox.toolbox import Toolbox

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
ServerOption = Annotated[str | None, typer.Option("--server", help="Only tools of this server.")]
NameArgument = Annotated[str, typer.Argument(help="The tool's name, or server__name.")]


@app.callback()
def _tools() -> None:
    """Search and manage the tool definitions that models can find.

    \b
    List them:        holdfast tools list
    Find one:         holdfast tools search "open an issue about the crash"
    Show a schema:    holdfast tools show github__create_issue
    Add definitions:  holdfast tools add tools.json --server github
    Review changes:   holdfast tools accept --server github --preview
    """


@app.command("list")
@shared_options(*WORKSPACE, *OUTPUT)
def list_(
    context: CommandContext,
    server: ServerOption = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only tools with changes that wait for acceptance.")
    ] = False,
) -> None:
    """List tools by server and name, with the tokens of each schema.

    \b
    Examples:
      holdfast tools list --server github
      holdfast tools list --changed --output json
    """
    tools = context.run_engine(lambda engine: engine.toolbox.all(server))
    if changed:
        tools = [tool for tool in tools if _state(tool)]

    def draw(console: Console) -> None:
        if not tools:
            remark("No tools match.")
            return
        console.print(_drawn(tools))
        remark(f"{len(tools):,} tools, {sum(tool.tokens for tool in tools):,} tokens of schemas.")

    context.emit([_built(tool) for tool in tools], draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def search(
    context: CommandContext,
    query: Annotated[str, typer.Argument(help="What the tool should do.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of tools.")] = 10,
) -> None:
    """Find the tools for a task, best match first.

    \b
    Examples:
      holdfast tools search "open an issue about the crash"
    """

    async def work(engine: Holdfast) -> list[tuple[StoredTool, float]]:
        hits = await engine.toolbox.search(query, limit)
        return [(await engine.toolbox.tool(hit.name, hit.server), hit.score) for hit in hits]

    hits = context.run_engine(work)

    def draw(console: Console) -> None:
        if not hits:
            remark("No tools match.")
            return
        columns = ("server", "tool", "score", "tokens", Column("what for", ratio=1))
        rows = [
            (tool.server, tool.name, f"{score:.3f}", f"{tool.tokens:,}", one_line(tool.intent))
            for tool, score in hits
        ]
        console.print(table(*columns, rows=rows))

    context.emit([{**_built(tool), "score": score} for tool, score in hits], draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def show(
    context: CommandContext,
    name: NameArgument,
    server: ServerOption = None,
) -> None:
    """Show the accepted definition of a tool, and the one its server gives now if it differs.

    \b
    Examples:
      holdfast tools show github__create_issue
    """
    tool = context.run_engine(lambda engine: engine.toolbox.tool(name, server))
    described = {
        **_built(tool),
        "definition": orjson.loads(tool.definition),
        "offered": orjson.loads(tool.offered) if tool.offered else None,
    }

    def draw(console: Console) -> None:
        console.print(_drawn([tool]))
        console.print_json(orjson.dumps(described["definition"]).decode(), ensure_ascii=True)
        if tool.offered:
            remark("The server now gives this definition, which is not accepted:")
            console.print_json(orjson.dumps(described["offered"]).decode(), ensure_ascii=True)

    context.emit(described, draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def add(
    context: CommandContext,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Definitions as JSON; - reads standard input.")
    ],
    server: Annotated[str, typer.Option("--server", help="The server that offers the tools.")] = "",
) -> None:
    """Add tool definitions in the format of MCP, OpenAI, Anthropic or Gemini, or from a request.

    New tools are accepted at once. A changed definition of a known tool waits for acceptance.

    \b
    Examples:
      holdfast tools add tools.json --server github
      holdfast tools add - < request.json
    """
    limits = limits_of(context.settings)
    body = read_body(file, limits)
    if len(body) > limits.max_body_bytes:
        raise HoldfastError(
            f"the definitions have more than {limits.max_body_bytes:,} bytes",
            where=file,
            fix="Add them in parts, or raise max_body_bytes.",
        )
    try:
        definitions = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ToolError(
            "the file is not JSON", where=file, fix="Give a list of tool definitions."
        ) from None
    registered = context.run_engine(
        lambda engine: engine.toolbox.register(definitions, server=server),
    )
    outcome: dict[str, Any] = {
        name: list(getattr(registered, name))
        for name in ("added", "unchanged", "changed", "renamed", "warned")
    }
    outcome["refused"] = [refused._asdict() for refused in registered.refused]

    def draw(console: Console) -> None:
        rows = [(what, str(len(names)), one_line(", ".join(map(str, names[:20]))))
                for what, names in outcome.items() if names and what != "refused"]  # fmt: skip
        rows += [("refused", "1", one_line(f"{name}: {why}")) for name, why in registered.refused]
        console.print(table("what", "tools", Column("which", ratio=1), rows=rows))
        if registered.changed or registered.renamed:
            remark("Changes wait for acceptance: see `holdfast tools accept --help`.")

    context.emit(outcome, draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def accept(
    context: CommandContext,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOOL]...", help="Tools whose changes to accept."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", help="The server of the tools; alone: all of its changes."),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show the definitions, and accept nothing.")
    ] = False,
) -> None:
    """Accept the definition that a server gives of a tool now, or its new name.

    Until then models see the definition that was stored first. This protects them from a server
    that changes its tools.

    \b
    Examples:
      holdfast tools accept --server github --preview
      holdfast tools accept search_issues --server github
      holdfast tools accept github__search
    """
    if not names and server is None:
        raise HoldfastError(
            "no tools are named", where="holdfast tools accept", fix="Give names or --server."
        )

    async def work(engine: Holdfast) -> list[dict[str, Any]]:
        toolbox = engine.toolbox
        if names:
            changes = [await toolbox.tool(name, server) for name in names]
        else:
            changes = [
                tool for tool in await _tools_of(toolbox, server) if has_pending_change(tool)
            ]
        if not preview:
            for tool in changes:
                await toolbox.accept(tool.name, tool.server)
        return [pending_change(tool) for tool in changes]

    rows = context.run_engine(work)

    def draw(console: Console) -> None:
        for row in rows:
            state = "not accepted" if preview else "accepted"
            renamed = f", renamed from {row['renamed_from']}" if row["renamed_from"] else ""
            text = orjson.dumps({"pinned": row["pinned"], "offered": row["offered"]}).decode()
            print_text(console, f"{row['tool']}{renamed}, {state}:\n{text}")
        if not rows:
            remark("No changes wait for acceptance.")

    context.emit(rows, draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def forget(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="[TOOL]", help="The tool's name.")] = "",
    server: ServerOption = None,
    all_: Annotated[bool, typer.Option("--all", help="Every tool.")] = False,
    yes: YesOption = False,
) -> None:
    """Remove a tool, the tools of a server, or all tools.

    Without --yes it lists the tools that it would remove.

    \b
    Examples:
      holdfast tools forget github__search --yes
      holdfast tools forget --server github
    """
    if not name and server is None and not all_:
        raise HoldfastError(
            "no tools are named",
            where="holdfast tools forget",
            fix="Give a name, --server or --all.",
        )

    async def work(engine: Holdfast) -> list[StoredTool]:
        if not name:
            await _tools_of(engine.toolbox, server)
        return await engine.toolbox.forget(name or None, server, preview=not yes)

    matches = context.run_engine(work)

    def draw(console: Console) -> None:
        if not matches:
            remark("No tools match.")
            return
        console.print(_drawn(matches))
        remark_removal(len(matches), "tool", is_done=yes)

    context.emit({"removed": yes, "tools": [_built(tool) for tool in matches]}, draw)


async def _tools_of(toolbox: Toolbox, server: str | None) -> list[StoredTool]:
    """Return the tools of a server, or all; raise if a server is named that has none."""
    tools = await toolbox.all(server)
    if not tools and server is not None:
        servers = sorted({tool.server for tool in await toolbox.all() if tool.server})
        raise ToolError(
            "no tools of this server are stored",
            where=f"--server {server}"[:100],
            fix=f"Servers with tools: {', '.join(servers[:20]) or 'none'}.",
        )
    return tools


def _state(tool: StoredTool) -> str:
    """Return the change of a tool that waits for acceptance."""
    return "changed" if tool.offered else f"was {tool.renamed_from}" if tool.renamed_from else ""


def _built(tool: StoredTool) -> dict[str, Any]:
    return {
        "server": tool.server,
        "name": tool.name,
        "tokens": tool.tokens,
        "version": tool.version,
        "hash": tool.hash,
        "intent": tool.intent,
        "warnings": list(tool.warnings),
        "changed": bool(tool.offered),
        "renamed_from": tool.renamed_from,
        "uses": tool.uses,
    }


def _drawn(tools: list[StoredTool]) -> Any:
    columns = ("server", "tool", "tokens", "uses", "waits", "warnings", Column("what for", ratio=1))
    rows = [
        (
            *(one_line(tool.server), one_line(tool.name), f"{tool.tokens:,}", f"{tool.uses:,}"),
            *(_state(tool), ", ".join(tool.warnings), one_line(tool.intent)),
        )
        for tool in tools
    ]
    return table(*columns, rows=rows)
