"""mcp: the commands that run the MCP server or gateway and manage its servers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console

from holdfast.engine.tool_calls import ServerReport, reported
from holdfast.errors import HoldfastError, SettingsError
from holdfast.settings import environment_for_programs
from holdfast.store import Store
from holdfast.tokens.files import replace_file

from ._context import OUTPUT, WORKSPACE, CommandContext, shared_options
from ._groups import CommandGroup
from ._output import one_line, printable, remark, table
from ._text import print_text

if TYPE_CHECKING:
    from holdfast.surfaces.mcp.config import ServerSpec
    from holdfast.surfaces.mcp.server_trial import CallTrial, ServerTrial


app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)

ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", help="The list of servers, in the format of MCP hosts."
    ),
]
_EXAMPLE_ARGUMENTS = '\'{"text": "Hello"}\''
_DEFAULT_FILE = "mcp.json"


@app.callback(invoke_without_command=True)
@shared_options(*WORKSPACE)
def _mcp(
    context: CommandContext,
    call: typer.Context,
    config: ConfigOption = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve hosts over HTTP at /mcp instead of stdio.")
    ] = False,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on; any but 127.0.0.1 needs a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=1, max=65_535, help="Port to listen on.")
    ] = 8788,
    every: Annotated[
        bool, typer.Option("--all", help="Show hosts all tools of all servers.")
    ] = False,
    directory: Annotated[
        bool, typer.Option("--directory", help="Show hosts the directory, however few the tools.")
    ] = False,
) -> None:
    """Run the MCP server, or with --config a gateway to other MCP servers.

    The MCP server offers Holdfast's own tools: cite, expand_ref, search, recall, facts, count and
    fit. The gateway lets a model find and call the tools of many servers through two small tools,
    or lists them all if they are few. Long results become citations that expand_ref opens.

    \b
    Serve own tools:      holdfast mcp
    Run the gateway:      holdfast mcp --config mcp.json
    Serve several hosts:  holdfast mcp --config mcp.json --http --port 8788
    Add to Claude Code:   claude mcp add holdfast -- holdfast mcp --config ~/mcp.json
    List the servers:     holdfast mcp list --config mcp.json
    Accept changed tools: holdfast tools accept --server github --preview
    """
    if call.invoked_subcommand is not None:
        return
    if every and directory:
        raise HoldfastError(
            "the tools can be listed in one way only", fix="Give --all or --directory."
        )
    listing: Literal["all", "directory", "auto"] = (
        "all" if every else "directory" if directory else "auto"
    )
    settings, scope = context.settings, context.scope
    specs = _specs(config) if config else None
    from holdfast.surfaces.mcp import server_runner  # noqa: PLC0415 - the SDK takes 2 s to load

    if http:
        server_runner.check_address(host, settings)  # before the address is announced
        remark(f"Holdfast serves MCP at http://{host}:{port}/mcp")
        serving = server_runner.serve_http(settings, specs, scope, listing, host=host, port=port)
    else:
        serving = server_runner.serve_pipe(settings, specs, scope, listing)
    asyncio.run(serving)


@app.command(name="list")
@shared_options(*WORKSPACE, *OUTPUT)
def list_servers(
    context: CommandContext,
    config: ConfigOption = None,
) -> None:
    """List the servers with their state, the tokens of their tools, and their calls.

    A tool is `changed` if its server now gives another definition than the accepted one: see
    `holdfast tools accept`.

    \b
    Examples:
      holdfast mcp list --config mcp.json
      holdfast mcp list --config mcp.json --output json | jq '.[] | select(.state == "failed")'
    """
    specs = _specs(config)

    async def work(opened: Store) -> list[ServerReport]:
        return await reported(opened, context.scope)

    reports = {report.server: report for report in context.run(work)}
    rows = [_row(spec, reports.get(spec.name, ServerReport(server=spec.name))) for spec in specs]

    def draw(console: Console) -> None:
        columns = ("server", "by", "target", "state", "tools", "tokens", "calls", "saved")
        console.print(table(*columns, rows=map(_cells, rows)))

    context.emit(rows, draw)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The name to give the server.")],
    target: Annotated[
        list[str],
        typer.Argument(metavar="URL | COMMAND...", help="The URL or the program of the server."),
    ],
    config: ConfigOption = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME=VALUE",
            help="An environment variable; ${VAR} is replaced at start.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", metavar="NAME: VALUE", help="A request header; ${VAR} is replaced at start."
        ),
    ] = None,
) -> None:
    """Add a server to the list, or replace the one of this name.

    \b
    Examples:
      holdfast mcp add time -- uvx mcp-server-time
      holdfast mcp add github https://api.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
    """
    from holdfast.surfaces.mcp.config import (  # noqa: PLC0415
        build_entry,
        parse_config,
        with_server,
    )

    path = Path(config or _DEFAULT_FILE).expanduser().resolve()
    entry = build_entry(target, _pairs(env, "="), _pairs(header, ":"))
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
    remark(f"Added {name} to {path}. Test it: holdfast mcp test {name} --config {path}")
    for spec in specs:
        if spec.name == name and spec.fault:
            remark(f"It cannot be used yet: {spec.fault}.")


@app.command(name="test")
@shared_options(*WORKSPACE, *OUTPUT)
def try_one(
    context: CommandContext,
    name: Annotated[str, typer.Argument(help="The name of the server.")],
    config: ConfigOption = None,
) -> None:
    """Start a server, list its tools, and report problems.

    The first lines that the server writes to standard error are printed.

    \b
    Examples:
      holdfast mcp test time --config mcp.json
    """
    from holdfast.surfaces.mcp.server_trial import try_server  # noqa: PLC0415 - the SDK loads for 2 s

    settings = context.settings
    spec, scope = _named(config, name), context.scope
    tried: ServerTrial = asyncio.run(try_server(spec, settings, scope, remark))

    def draw(console: Console) -> None:
        remark(f"{tried.version or name}, protocol {tried.protocol}, {tried.seconds:.1f} s")
        cells = (
            (printable(tool.name), f"{tool.tokens:,}", ", ".join(tool.flags),
             one_line(tool.description[:200]))
            for tool in tried.tools
        )  # fmt: skip
        console.print(table("tool", "tokens", "suspect", "description", rows=cells))

    context.emit(msgspec.to_builtins(tried), draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def call(
    context: CommandContext,
    name: Annotated[str, typer.Argument(help="The name of the server.")],
    tool: Annotated[str, typer.Argument(help="The tool to call.")],
    arguments: Annotated[str, typer.Argument(help="The arguments as a JSON object.")] = "{}",
    config: ConfigOption = None,
) -> None:
    """Call a tool through the gateway, as a host would; a long result is stored and cited.

    \b
    Examples:
      holdfast mcp call time get_current_time '{"timezone": "Europe/Berlin"}'
    """
    from holdfast.surfaces.mcp.server_trial import call_tool  # noqa: PLC0415 - the SDK loads for 2 s

    settings = context.settings
    try:
        decoded = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        decoded = None
    if not isinstance(decoded, dict):
        raise HoldfastError(
            "the arguments are not a JSON object",
            where="ARGUMENTS",
            fix=f"Quote them, such as {_EXAMPLE_ARGUMENTS}; {{}} means no arguments.",
        )
    spec, scope = _named(config, name), context.scope
    answered: CallTrial = asyncio.run(call_tool(spec, settings, scope, tool, decoded, remark))
    context.emit(answered.result, lambda console: print_text(console, answered.text))
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
            "there is no server with this name",
            where=config or _DEFAULT_FILE,
            fix=f"Use one of: {', '.join(specs)}." if specs else "Add it with `holdfast mcp add`.",
        )
    if specs[name].fault:
        raise SettingsError(specs[name].fault, where=name, fix="Correct its entry.")
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


def _pairs(texts: list[str] | None, sign: str) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        key, separator, value = text.partition(sign)
        if not separator or not key.strip():
            raise HoldfastError("a name and a value are needed", fix=f"Write NAME{sign}VALUE.")
        pairs[key.strip()] = value.strip() if sign == ":" else value
    return pairs
