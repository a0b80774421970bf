"""input: the request body a command works on, from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import HoldfastError, LimitError
from holdfast.settings import Settings
from holdfast.wire import Limits

from ._output import remark

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A request body as JSON; - reads standard input.")
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        help="openai-chat, openai-responses, anthropic, gemini, converse or cohere; "
        "detected if left out.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="The model, for rules that depend on it; else the body's own."),
]
WriteOption = Annotated[
    Path | None, typer.Option("--write", metavar="PATH", help="Write the body here, not to stdout.")
]


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the settings put on a body."""
    return Limits(max_body_bytes=settings.max_body_bytes)


def read_body(file: str, limits: Limits) -> bytes:
    """Return the bytes of FILE, or just enough of them to show that they are too many."""
    most = limits.max_body_bytes + 1
    try:
        if file == "-":
            return sys.stdin.buffer.read(most)
        with Path(file).open("rb") as source:
            return source.read(most)
    except OSError as error:
        raise HoldfastError(
            f"cannot read the file: {error.strerror}",
            where=file,
            fix="Check its name, or use - for standard input.",
        ) from error


def read_content(file: str, settings: Settings) -> bytes:
    """Return a content whole, or say that it is too large."""
    content = read_body(file, limits_of(settings))
    if len(content) > settings.max_body_bytes:
        raise LimitError(
            f"the content has more than {settings.max_body_bytes:,} bytes",
            where=file,
            fix="Raise the setting max_body_bytes.",
        )
    return content


def read_text(file: str, settings: Settings) -> str:
    """Return a content as text, and say beside the result what of it is none."""
    content = read_content(file, settings)
    try:
        return content.decode()
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
        remark(
            f"{file}: is not UTF-8; what is no text is read and stored as \N{REPLACEMENT CHARACTER}"
        )
        return text


def write_body(body: bytes, path: Path | None) -> None:
    """Write the very bytes to the path, or to standard output."""
    if path is None:
        sys.stdout.buffer.write(body)
        if sys.stdout.isatty():
            sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()
        return
    try:
        path.write_bytes(body)
    except OSError as error:
        raise HoldfastError(
            f"cannot write the file: {error.strerror}",
            where=str(path),
            fix="Choose another place with --write.",
        ) from error
