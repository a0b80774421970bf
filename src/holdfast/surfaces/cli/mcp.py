"""mcp: the engine as an MCP server, the gateway before others, and a look at what is behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console

from holdfast.engine.tool_calls import ServerReport, reported
from holdfast.errors import HoldfastError, SettingsError
from holdfast.settings import Settings, environment_for_programs
from holdfast.store import Scope, Store
from holdfast.tokens.files import replace_file

from ._output import ColorOption, Output, OutputOption, one_line, printable, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store
from ._text import print_text

if TYPE_CHECKING:
    from holdfast.surfaces.mcp.config import ServerSpec
    from holdfast.surfaces.mcp.trying import Answered, Tried

app = typer.Typer(rich_markup_mode=None)

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="The list of servers, as MCP hosts write it."),
]
_EXAMPLE_ARGUMENTS = '\'{"text": "Hello"}\''
_DEFAULT_FILE = "mcp.json"


@app.callback(invoke_without_command=True)
def _mcp(
    context: typer.Context,
    config: ConfigOption = None,
    http: Annotated[
        bool, typer.Option("--http", help="Listen for hosts over HTTP, at /mcp.")
    ] = False,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on; others than 127.0.0.1 need a token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Port.")] = 8788,
    every: Annotated[bool, typer.Option("--all", help="List all tools of all servers.")] = False,
    directory: Annotated[
        bool, typer.Option("--directory", help="List the directory, however few tools there are.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
) -> None:
    """Run the MCP server, or with --config the gateway in front of other MCP servers.

    Without --config the engine's own tools are served: cite, expand_ref, search, recall, facts,
    count and fit. With it, tools of the servers are found and called through two small ones, or
    listed whole if they are few; long results come back as citations that expand_ref opens.

    \b
    The engine as tools:     holdfast mcp
    In front of servers:     holdfast mcp --config mcp.json
    For several hosts:       holdfast mcp --config mcp.json --http --port 8788
    In Claude Code:          claude mcp add holdfast -- holdfast mcp --config ~/mcp.json
    What is behind it:       holdfast mcp list --config mcp.json
    """
    if context.invoked_subcommand is not None:
        return
    settings = Settings.load(store_url=store)
    if every and directory:
        raise HoldfastError("tools are listed in one way", fix="Give --all or --directory.")
    listing: Literal["all", "directory", "auto"] = (
        "all" if every else "directory" if directory else "auto"
    )
    specs = _specs(config) if config else None
    from holdfast.surfaces.mcp import running  # noqa: PLC0415 - the SDK takes 2 s to load

    scope = Scope(user, workspace)
    if http:
        remark(f"Holdfast serves MCP at http://{host}:{port}/mcp")
        serving = running.serve_http(settings, specs, scope, listing, host=host, port=port)
    else:
        serving = running.serve_pipe(settings, specs, scope, listing)
    asyncio.run(serving)


@app.command(name="list")
def list_servers(
    config: ConfigOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List the servers with how they are, what their tools cost, and what their calls came to.

    Tools whose definitions are others than those that were pinned are `changed`: see
    `holdfast mcp accept`.

    \b
    Examples:
      holdfast mcp list --config mcp.json
      holdfast mcp list --config mcp.json --output json | jq '.[] | select(.state == "failed")'
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    specs = _specs(config)

    async def work(opened: Store) -> list[ServerReport]:
        return await reported(opened, Scope(user, workspace))

    reports = {report.server: report for report in with_store(settings, work)}
    rows = [_row(spec, reports.get(spec.name, ServerReport(server=spec.name))) for spec in specs]

    def draw(console: Console) -> None:
        columns = ("server", "by", "target", "state", "tools", "tokens", "calls", "saved")
        console.print(table(*columns, rows=map(_cells, rows)))

    Output(settings).emit(rows, draw)


@app.command()
def accept(
    name: Annotated[str, typer.Argument(help="Which server.")],
    tools: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL]...", help="Which tools; else all.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what holds, and what would.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Take over what a server says of its tools now; until then the pinned definitions hold.

    \b
    Examples:
      holdfast mcp accept github --preview
      holdfast mcp accept github search_issues
    """
    from holdfast.models.embedding import tool_embedder  # noqa: PLC0415 - as the next
    from holdfast.surfaces.mcp.pins import is_waiting, waiting  # noqa: PLC0415
    from holdfast.toolbox.box import Toolbox  # noqa: PLC0415 - numpy takes 80 ms to load

    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(opened: Store) -> list[dict[str, Any]]:
        toolbox = Toolbox(opened, Scope(user, workspace), embedder=tool_embedder(settings))
        if tools:
            offers = [await toolbox.tool(tool, name) for tool in tools]
        else:
            offers = [stored for stored in await toolbox.all(name) if is_waiting(stored)]
        if not preview:
            for stored in offers:
                await toolbox.accept(stored.name, name)
        return [waiting(stored) for stored in offers]

    rows = with_store(settings, work)

    def draw(console: Console) -> None:
        verb = "waits" if preview else "is in force now"
        for row in rows:
            before = f", renamed from {row['renamed_from']}" if row["renamed_from"] else ""
            text = msgspec.json.encode({"pinned": row["pinned"], "offered": row["offered"]})
            print_text(console, f"{row['tool']}{before}, {verb}:\n{text.decode()}")
        if not rows:
            remark("Nothing waits to be accepted.")

    Output(settings).emit(rows, draw)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What the server is called.")],
    target: Annotated[
        list[str], typer.Argument(metavar="URL | COMMAND...", help="An address, or a program.")
    ],
    config: ConfigOption = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable; ${VAR} is filled in later."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME: VALUE", help="A header; ${VAR} too."),
    ] = None,
) -> None:
    """Add a server to the list, or put another in its place.

    \b
    Examples:
      holdfast mcp add time -- uvx mcp-server-time
      holdfast mcp add github https://api.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
    """
    from holdfast.surfaces.mcp.config import (  # noqa: PLC0415
        entry_of,
        parse_config,
        with_server,
    )

    path = Path(config or _DEFAULT_FILE).expanduser().resolve()
    entry = entry_of(target, _pairs(env, "="), _pairs(header, ":"))
    try:
        after = with_server(path.read_bytes() if path.exists() else b"", name, entry)
        specs = parse_config(after, str(path), environment_for_programs())
        replace_file(path, after)  # for its owner alone: it may come to hold secrets
    except OSError as error:
        raise SettingsError(
            f"the list of servers cannot be written: {error.strerror}",
            where=str(path),
            fix="Name another file with --config.",
        ) from error
    remark(f"{path} names {name} now. Try it: holdfast mcp test {name} --config {path}")
    for spec in specs:
        if spec.name == name and spec.fault:
            remark(f"It cannot be used yet: {spec.fault}.")


@app.command(name="test")
def try_one(
    name: Annotated[str, typer.Argument(help="Which server.")],
    config: ConfigOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Start a server, list its tools, and say what is wrong with it or with them.

    The first lines that the server writes to its error stream are shown as they come.
    """
    from holdfast.surfaces.mcp.trying import try_server  # noqa: PLC0415 - the SDK loads for 2 s

    settings = Settings.load(output=output, color=color, store_url=store)
    spec, scope = _named(config, name), Scope(user, workspace)
    tried: Tried = asyncio.run(try_server(spec, settings, scope, remark))

    def draw(console: Console) -> None:
        remark(f"{tried.version or name}, protocol {tried.protocol}, {tried.seconds:.1f} s")
        cells = (
            (printable(tool.name), f"{tool.tokens:,}", ", ".join(tool.flags),
             one_line(tool.description[:200]))
            for tool in tried.tools
        )  # fmt: skip
        console.print(table("tool", "tokens", "suspect", "what it says", rows=cells))

    Output(settings).emit(msgspec.to_builtins(tried), draw)


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="Which server.")],
    tool: Annotated[str, typer.Argument(help="Which of its tools.")],
    arguments: Annotated[str, typer.Argument(help="Arguments as a JSON object.")] = "{}",
    config: ConfigOption = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Call a tool as a host would through the gateway; a long result is stored and cited.

    \b
    Examples:
      holdfast mcp call time get_current_time '{"timezone": "Europe/Berlin"}'
    """
    from holdfast.surfaces.mcp.trying import call_tool  # noqa: PLC0415 - the SDK loads for 2 s

    settings = Settings.load(output=output, color=color, store_url=store)
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        given = None
    if not isinstance(given, dict):
        raise HoldfastError(
            "the arguments are no JSON object",
            where="ARGUMENTS",
            fix=f"Write them in quotes, such as {_EXAMPLE_ARGUMENTS}, or {{}} for none.",
        )
    spec, scope = _named(config, name), Scope(user, workspace)
    answered: Answered = asyncio.run(call_tool(spec, settings, scope, tool, given, remark))
    Output(settings).emit(answered.result, lambda console: print_text(console, answered.text))
    if answered.is_error:
        raise typer.Exit(1)


def _specs(config: str | None) -> list[ServerSpec]:
    from holdfast.surfaces.mcp.config import read_config  # noqa: PLC0415

    path = Path(config or _DEFAULT_FILE).expanduser()
    return read_config(path, environment_for_programs())


def _named(config: str | None, name: str) -> ServerSpec:
    specs = {spec.name: spec for spec in _specs(config)}
    if name not in specs:
        raise SettingsError(
            "there is no server of this name",
            where=config or _DEFAULT_FILE,
            fix=f"Use one of {', '.join(specs) or 'those that you add'}.",
        )
    if specs[name].fault:
        raise SettingsError(specs[name].fault, where=name, fix="Mend its entry.")
    return specs[name]


def _row(spec: ServerSpec, report: ServerReport) -> dict[str, Any]:
    return {
        "server": spec.name,
        "transport": spec.transport,
        "target": spec.target,
        "state": "off" if spec.fault else report.state or "never started",
        "reason": spec.fault or report.reason,
        "tools": report.tools,
        "tool_tokens": report.tool_tokens,
        "flagged": list(report.flagged),
        "changed": list(report.changed),
        "calls": report.calls,
        "failed": report.failed,
        "cited": report.cited,
        "saved_tokens": report.saved,
    }


def _cells(row: dict[str, Any]) -> list[object]:
    state = f"{row['state']}: {row['reason']}" if row["reason"] else row["state"]
    if row["changed"]:
        state = f"{state}, {len(row['changed'])} changed"
    names = (row["server"], row["transport"], row["target"], state)
    numbers = (row["tools"], row["tool_tokens"], row["calls"], row["saved_tokens"])
    return [*map(printable, names), *(f"{number:,}" for number in numbers)]


def _pairs(given: list[str] | None, sign: str) -> dict[str, str]:
    pairs = {}
    for text in given or ():
        key, found, value = text.partition(sign)
        if not found or not key.strip():
            raise HoldfastError("a name and a value are wanted", fix=f"Write NAME{sign}VALUE.")
        pairs[key.strip()] = value.strip() if sign == ":" else value
    return pairs
