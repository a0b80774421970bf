"""convert: the command that translates a request into another provider's dialect."""

from __future__ import annotations

from typing import Annotated

import typer

import holdfast
from holdfast.settings import Settings

from ._input import DialectOption, FileArgument, WriteOption, limits_of, read_body, write_body
from ._output import remark


def convert(
    file: FileArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="openai-chat, openai-responses, anthropic, gemini, converse or cohere.",
        ),
    ],
    dialect: DialectOption = None,
    write: WriteOption = None,
) -> None:
    """Write a request in another provider's dialect.

    Text, tools, calls and results are converted; losses are listed on stderr.

    \b
    Examples:
      holdfast request convert request.json --to anthropic > anthropic.json
      holdfast request convert request.json --to gemini --write gemini.json
    """
    limits = limits_of(Settings.load())
    conversation = holdfast.read(read_body(file, limits), dialect, limits=limits)
    converted = holdfast.convert(conversation, to)
    write_body(converted.body, write)
    for loss in converted.lost:
        remark(f"not converted: {loss.path}: {loss.message}")
