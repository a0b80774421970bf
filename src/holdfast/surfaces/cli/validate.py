"""validate: the command that checks a request against its provider's rules and repairs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

import holdfast
from holdfast.errors import WireError
from holdfast.wire import RULES, Limits, Violation

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
from ._output import Output, remark, table


@shared_options(*OUTPUT)
def validate(
    context: CommandContext,
    file: FileArgument,
    dialect: DialectOption = None,
    model: ModelOption = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Write the repaired request; list the changes on stderr."),
    ] = False,
    write: WriteOption = None,
) -> None:
    """Check a request against its provider's rules.

    The exit code is 1 if the request breaks a rule; with --repair, if it still does afterwards.

    \b
    Examples:
      holdfast request validate request.json
      holdfast request validate --output json request.json
      holdfast request validate --repair request.json > repaired.json
    """
    if write and not repair:
        raise typer.BadParameter("--write needs --repair")
    settings = context.settings
    limits = limits_of(settings)
    body = read_body(file, limits)
    if repair:
        _repair(body, dialect, model, limits, write)
    else:
        read_as = dialect or _detected(body, limits)
        violations = holdfast.validate(body, read_as, model, limits=limits)
        _report(Output(settings), violations, read_as, detected=dialect is None)


def _detected(body: bytes, limits: Limits) -> str | None:
    """Return the dialect of the body, or None if validate is to report why there is none."""
    try:
        return holdfast.wire.detect(body, limits=limits)
    except WireError:
        return None


def violation_table(violations: list[Violation]) -> Table:
    """Return a table of violations with the source of each rule."""
    return table(
        Column("rule", style="red", no_wrap=True),
        Column("path", min_width=24, overflow="fold"),
        "what is wrong",
        "source",
        rows=((v.rule, v.path, v.message, RULES[v.rule].source) for v in violations),
    )


def _report(
    out: Output, violations: list[Violation], dialect: str | None, *, detected: bool
) -> None:
    def draw(console: Console) -> None:
        if violations:
            console.print(violation_table(violations))
        else:
            console.print(Text(f"valid ({dialect})" if detected else "valid", "green"))

    out.emit(
        {
            "valid": not violations,
            "dialect": dialect,
            "violations": [
                {
                    "rule": v.rule,
                    "path": v.path,
                    "message": v.message,
                    "source": RULES[v.rule].source,
                }
                for v in violations
            ],
        },
        draw,
    )
    if violations:
        raise typer.Exit(1)


def _repair(
    body: bytes, dialect: str | None, model: str | None, limits: Limits, write: Path | None
) -> None:
    repaired = holdfast.repair(body, dialect, model, limits=limits)
    write_body(repaired.body, write)
    for action in repaired.actions:
        remark(f"repaired {action.rule} at {action.path}: {action.message}")
    for violation in repaired.left:
        remark(f"not repaired: {violation.rule} at {violation.path}: {violation.message}")
    if repaired.left:
        raise typer.Exit(1)
