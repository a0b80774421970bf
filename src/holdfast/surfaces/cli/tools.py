"""tools: the tools of the toolbox: list, search, show, add, accept what changed, forget."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Column

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, ToolError
from holdfast.store import Scope
from holdfast.store.tool_shelf import StoredTool

from ._engine import looking, with_engine
from ._input import limits_of, read_body
from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption

app = typer.Typer(
    help="List tools, search them, show a schema, add definitions, accept changes, forget.",
    no_args_is_help=True,
)
ServerOption = Annotated[str | None, typer.Option("--server", help="Only those of this server.")]
NameArgument = Annotated[str, typer.Argument(help="Its name; a server's may stand before: a__b.")]


@app.command("list")
def list_(
    server: ServerOption = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only those that wait to be accepted.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List the tools, by server and name, with what each costs in a request.

    \b
    Examples:
      holdfast tools list --server github
      holdfast tools list --changed --output json
    """
    settings = looking(output, color, store)
    tools = with_engine(settings, Scope(user, workspace), lambda engine: engine.toolbox.all(server))
    if changed:
        tools = [tool for tool in tools if _state(tool)]

    def draw(console: Console) -> None:
        if not tools:
            remark("There are no such tools.")
            return
        console.print(_drawn(tools))
        remark(f"{len(tools):,} tools, {sum(tool.tokens for tool in tools):,} tokens of schemas.")

    Output(settings).emit([_built(tool) for tool in tools], draw)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What is to be done.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 10,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Find the tools that a request may need, the best first.

    \b
    Examples:
      holdfast tools search "open an issue about the crash"
    """
    settings = looking(output, color, store)

    async def work(engine: Holdfast) -> list[tuple[StoredTool, float]]:
        hits = await engine.toolbox.search(query, limit)
        return [(await engine.toolbox.tool(hit.name, hit.server), hit.score) for hit in hits]

    hits = with_engine(settings, Scope(user, workspace), work)

    def draw(console: Console) -> None:
        if not hits:
            remark("No tool has anything of that.")
            return
        columns = ("server", "tool", "score", "tokens", Column("what for", ratio=1))
        rows = [
            (tool.server, tool.name, f"{score:.3f}", f"{tool.tokens:,}", one_line(tool.intent))
            for tool, score in hits
        ]
        console.print(table(*columns, rows=rows))

    Output(settings).emit([{**_built(tool), "score": score} for tool, score in hits], draw)


@app.command()
def show(
    name: NameArgument,
    server: ServerOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show a tool's definition as it was pinned; and beside it what its server says now.

    \b
    Examples:
      holdfast tools show github__create_issue
    """
    settings = looking(output, color, store)
    tool = with_engine(
        settings, Scope(user, workspace), lambda engine: engine.toolbox.tool(name, server)
    )
    told = {
        **_built(tool),
        "definition": orjson.loads(tool.definition),
        "offered": orjson.loads(tool.offered) if tool.offered else None,
    }

    def draw(console: Console) -> None:
        console.print(_drawn([tool]))
        console.print_json(orjson.dumps(told["definition"]).decode(), ensure_ascii=True)
        if tool.offered:
            remark("Its server says now, and nobody has accepted:")
            console.print_json(orjson.dumps(told["offered"]).decode(), ensure_ascii=True)

    Output(settings).emit(told, draw)


@app.command()
def add(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Definitions as JSON; - reads standard input.")
    ],
    server: Annotated[str, typer.Option("--server", help="Whose tools they are.")] = "",
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Take in definitions in the shape of MCP, OpenAI, Anthropic or Gemini; or a whole request.

    New ones are pinned. What is said otherwise of a tool that is pinned waits to be accepted.

    \b
    Examples:
      holdfast tools add tools.json --server github
      holdfast tools add - < request.json
    """
    settings = looking(output, color, store)
    limits = limits_of(settings)
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
        raise ToolError("this is no JSON", where=file, fix="Give a list of definitions.") from None
    registered = with_engine(
        settings,
        Scope(user, workspace),
        lambda engine: engine.toolbox.register(definitions, server=server),
    )
    told: dict[str, Any] = {
        name: list(getattr(registered, name))
        for name in ("added", "unchanged", "changed", "renamed", "warned")
    }
    told["refused"] = [refused._asdict() for refused in registered.refused]

    def draw(console: Console) -> None:
        rows = [(what, str(len(names)), one_line(", ".join(map(str, names[:20]))))
                for what, names in told.items() if names and what != "refused"]  # fmt: skip
        rows += [("refused", "1", one_line(f"{name}: {why}")) for name, why in registered.refused]
        console.print(table("what", "tools", Column("which", ratio=1), rows=rows))
        if registered.changed or registered.renamed:
            remark("What changed waits: holdfast tools list --changed, then accept.")

    Output(settings).emit(told, draw)


@app.command()
def accept(
    name: NameArgument,
    server: ServerOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Take over what a server says of a tool now, or its new name.

    \b
    Examples:
      holdfast tools show github__search
      holdfast tools accept github__search
    """
    settings = looking(output, color, store)
    tool = with_engine(
        settings, Scope(user, workspace), lambda engine: engine.toolbox.accept(name, server)
    )
    Output(settings).emit(_built(tool), lambda console: console.print(_drawn([tool])))


@app.command()
def forget(
    name: Annotated[str, typer.Argument(help="A tool's name.")] = "",
    server: ServerOption = None,
    all_: Annotated[bool, typer.Option("--all", help="All tools.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Forget them; else they are shown.")] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Forget a tool, those of a server, or all. Without --yes it only shows which would go.

    \b
    Examples:
      holdfast tools forget github__search --yes
      holdfast tools forget --server github
    """
    if not name and server is None and not all_:
        raise HoldfastError(
            "it is not said which tools are meant",
            where="NAME",
            fix="Give a name, --server or --all.",
        )
    settings = looking(output, color, store)
    meant = with_engine(
        settings,
        Scope(user, workspace),
        lambda engine: engine.toolbox.forget(name or None, server, preview=not yes),
    )

    def draw(console: Console) -> None:
        if not meant:
            remark("There are no such tools.")
            return
        console.print(_drawn(meant))
        remark(f"{len(meant):,} forgotten." if yes else f"{len(meant):,} would go: add --yes.")

    Output(settings).emit({"removed": yes, "tools": [_built(tool) for tool in meant]}, draw)


def _state(tool: StoredTool) -> str:
    """What waits to be accepted."""
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
