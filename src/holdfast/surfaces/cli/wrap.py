"""wrap: the command that runs a program through a temporary proxy and prints a bill."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import HoldfastError
from holdfast.settings import Settings, environment_for_programs

from ._bill import bill
from ._clients import INSTALLS, Family, pointed, program_environment, upstream_of
from ._context import STORE, CommandContext, shared_options
from ._gemini_cli import signed_in
from ._output import remark
from ._warnings import plain_warnings, silent_logs


@shared_options(*STORE)
def wrap(
    context: CommandContext,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM [ARGS]...",
            help="claude, codex, gemini, opencode, aider, or any command; put -- before options.",
        ),
    ],
    offline: Annotated[
        bool, typer.Option("--offline", help="Answer with the offline model, which only quotes.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Maximum input tokens of a request, for all models."),
    ] = None,
) -> None:
    """Run an agent through Holdfast, then print its cost and the saving.

    A proxy starts on a free port, the program is pointed at it, and both end together. Requests go
    where they would go without Holdfast: to the vendor, or to the address in OPENAI_BASE_URL,
    ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL. The program's own API keys are used. The exit code
    is that of the program.

    \b
    Examples:
      holdfast wrap claude
      holdfast wrap codex -- exec "fix the failing test"
      holdfast wrap aider -- --model gpt-5 main.py
      holdfast wrap -- python my_agent.py

    The store keeps all requests and hidden contents: see `holdfast stats`, or the dashboard of
    `holdfast serve`.
    """
    environment = environment_for_programs()
    executable = shutil.which(command[0])
    if executable is None:
        raise HoldfastError(
            "this program is not installed or not on the PATH",
            where=command[0],
            fix=f"Install it: {INSTALLS[command[0]]}."
            if command[0] in INSTALLS
            else "Give the name of a program or the path to one.",
        )
    context = context.override(request_limit=limit)
    program = Path(command[0]).stem
    client_environment = program_environment(program, environment)
    settings = context.settings if offline else _with_upstreams(context, client_environment)

    from holdfast.surfaces.proxy import beside  # noqa: PLC0415 - other commands start faster

    with _signed_in(program, environment, command[1:]) as variables:

        def program_at(url: str) -> beside.Program:
            target = pointed(program, url, environment)
            words = (executable or "", *target.arguments, *command[1:])
            return beside.Program(words, environment | target.variables | variables)

        warnings: list[str] = []
        try:
            with plain_warnings(warnings.append), silent_logs():
                code, report = asyncio.run(beside.beside(settings, program_at))
        except PermissionError as error:
            raise HoldfastError(
                "this file is not executable", where=command[0], fix="Give a program."
            ) from error
    for line in (*bill(report), *warnings):
        remark(line)
    raise typer.Exit(code)


def _signed_in(
    program: str, environment: Mapping[str, str], arguments: Sequence[str]
) -> AbstractContextManager[dict[str, str]]:
    """Return the variables that let a program sign in as it would without the proxy."""
    if program != "gemini":
        return nullcontext({})
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return signed_in(environment, arguments, in_terminal=in_terminal)


def _with_upstreams(context: CommandContext, environment: Mapping[str, str]) -> Settings:
    """Return the settings with an upstream for every provider."""
    from holdfast.upstream.upstreams import OFFICIAL  # noqa: PLC0415 - see wrap

    settings = context.settings

    def address(family: Family) -> str:
        return settings.upstream(family).url or upstream_of(family, environment) or OFFICIAL[family]

    return context.override(
        upstreams__openai__url=address("openai"),
        upstreams__anthropic__url=address("anthropic"),
        upstreams__gemini__url=address("gemini"),
    ).settings
