"""input: the options and functions that read a request, content or text."""

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
    str, typer.Argument(metavar="FILE", help="A request as JSON; - reads standard input.")
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
    typer.Option("--model", help="The model; the default is the one that the request names."),
]
WriteOption = Annotated[
    Path | None,
    typer.Option("--write", metavar="PATH", help="Write to this file instead of stdout."),
]


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the settings set for a request body."""
    return Limits(max_body_bytes=settings.max_body_bytes)


def read_body(file: str, limits: Limits) -> bytes:
    """Return the bytes of a file; of one that is too large, one byte more than allowed."""
    most = limits.max_body_bytes + 1
    try:
        if file == "-":
            return sys.stdin.buffer.read(most)
        with Path(file).open("rb") as source:
            return source.read(most)
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(file: str, error: OSError) -> HoldfastError:
    """Return the error for a file that cannot be read."""
    return HoldfastError(
        f"cannot read the file: {error.strerror}",
        where=file,
        fix="Check its name, or use - for standard input.",
    )


def read_content(file: str, settings: Settings) -> bytes:
    """Return a complete content, or raise a LimitError if it is too large."""
    content = read_body(file, limits_of(settings))
    if len(content) > settings.max_body_bytes:
        raise LimitError(
            f"the content has more than {settings.max_body_bytes:,} bytes",
            where=file,
            fix="Raise the setting max_body_bytes.",
        )
    return content


def read_text(file: str, settings: Settings) -> str:
    """Return a content as text, with a remark if it is not valid UTF-8."""
    content = read_content(file, settings)
    try:
        return content.decode()
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
        remark(
            f"{file}: is not UTF-8; invalid bytes are read and stored as \N{REPLACEMENT CHARACTER}"
        )
        return text


def write_body(body: bytes, path: Path | None) -> None:
    """Write the exact bytes to the path, or to standard output."""
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
            fix="Choose another file with --write.",
        ) from error
