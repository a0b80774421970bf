"""count: the command that counts the tokens of a request, a text or a folder."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column

from holdfast.errors import HoldfastError, ShapeError, WireError
from holdfast.settings import Settings
from holdfast.tokens import TokenCount, prices
from holdfast.tokens import count as count_tokens
from holdfast.tokens.calibration import Calibration
from holdfast.tokens.families import provenance
from holdfast.tokens.files import replace_file
from holdfast.tokens.limits import ModelContextRegistry
from holdfast.tokens.request_reader import read_request
from holdfast.wire import Conversation, Limits

from ._context import OUTPUT, CommandContext, shared_options
from ._input import DialectOption, limits_of, read_body
from ._output import Output, remark, table

LARGEST = 5
_LARGEST_TEXT = 33_554_432
_NOT_TEXT = "not text"
_MOST_REMARKS = 10
"""Limits the remarks about skipped files: a folder of pictures has thousands."""
_LONGEST_NAME = 200
CALIBRATION = "calibration.json"


class CountedFrame(NamedTuple):
    """The context window and the cost of a count."""

    window: int | None
    cost: Decimal | None


@shared_options(*OUTPUT)
def count(
    context: CommandContext,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A request, a text, or a folder of texts; - reads standard input."
        ),
    ],
    dialect: DialectOption = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model; the default is the one that the request names."),
    ] = None,
    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            help="Where the request goes, if not to the vendor: openrouter, groq, ollama, …",
        ),
    ] = "",
    reported: Annotated[
        int | None,
        typer.Option(
            "--reported",
            metavar="N",
            help="Improve later counts with the tokens that the provider reported.",
        ),
    ] = None,
) -> None:
    """Count the input tokens of a request, a text or a folder.

    The real number exceeds the upper bound in at most 1 of 100 cases. The accuracy is exact,
    calibrated or heuristic.

    \b
    Examples:
      holdfast count request.json
      holdfast count notes.md --model claude-sonnet-4-5
      holdfast count src/ --model gpt-5
      holdfast count request.json --reported 1284
    """
    settings = context.settings
    out = Output(settings)
    if file != "-" and Path(file).is_dir():
        _count_folder(Path(file), model or "", out)
    else:
        _count_file(file, dialect, model, platform, reported, settings, out)


def _count_file(
    file: str,
    dialect: str | None,
    model: str | None,
    platform: str,
    reported: int | None,
    settings: Settings,
    out: Output,
) -> None:
    limits = limits_of(settings)
    body = read_body(file, limits)
    conversation = _request(body, dialect, limits)
    folder = settings.data_folder
    calibration = _calibration(folder)
    subject: Conversation | str = conversation or _text(body, file)
    counted = count_tokens(subject, model=model, platform=platform, calibration=calibration)
    if reported is not None:
        _learn(calibration, counted, reported, folder)
    frame = _frame(counted, settings, folder)

    def draw(console: Console) -> None:
        console.print(_parts_table(counted))
        if conversation is not None and len(conversation.messages) > 1:
            console.print()
            console.print(_largest_table(counted, conversation))
        console.print()
        console.print(_summary(counted, frame))

    out.emit(_data(counted, conversation, frame), draw)


def _request(body: bytes, dialect: str | None, limits: Limits) -> Conversation | None:
    """Return the request in a file, or None if it is plain text."""
    try:
        return read_request(body, dialect, limits)
    except WireError as error:
        looks_like_json = body.lstrip()[:1] == b"{"
        if dialect is not None or (looks_like_json and not isinstance(error, ShapeError)):
            raise
    return None


def _text(body: bytes, where: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise HoldfastError(
            "the file is neither a request nor text",
            where=where,
            fix="Give a JSON request body or UTF-8 text.",
        ) from None


def _calibration(folder: Path | None) -> Calibration:
    with suppress(OSError):
        if folder is not None and (folder / CALIBRATION).exists():
            return Calibration.load((folder / CALIBRATION).read_bytes())
    return Calibration()


def _learn(
    calibration: Calibration, counted: TokenCount, reported: int, folder: Path | None
) -> None:
    ignored = calibration.ignored
    calibration.observe(counted, reported)
    if calibration.ignored > ignored:
        remark(f"Reported {reported:,}: ignored, because it is too far from the count.")
        return
    error = (counted.tokens - reported) / reported
    remark(f"Reported {reported:,}: the count is off by {error:+.1%}; saved for later counts.")
    if folder is None:
        return
    try:
        replace_file(folder / CALIBRATION, calibration.dump())
    except OSError as error_:
        raise HoldfastError(
            f"the calibration cannot be saved: {error_.strerror}",
            where=str(folder),
            fix="Set data_dir to a writable folder.",
        ) from error_


def _frame(counted: TokenCount, settings: Settings, folder: Path | None) -> CountedFrame:
    if not counted.model:
        return CountedFrame(None, None)
    lists = prices.load(folder).prices
    registry = ModelContextRegistry(settings, prices=lists)
    try:
        window = registry.known_window(counted.model)
        price = lists.price(counted.model, at=datetime.now(UTC))
    except HoldfastError:  # an id that only its server understands
        return CountedFrame(None, None)
    return CountedFrame(window, price.cost(input_tokens=counted.tokens) if price else None)


# --- drawing -----------------------------------------------------------------------------------


def _parts_table(counted: TokenCount) -> object:
    parts = counted.parts
    rows = [
        ("system", parts.system),
        ("tools", parts.tools),
        ("messages", parts.messages),
        ("formatting", parts.formatting),
        ("total", counted.tokens),
        ("upper bound", counted.upper),
    ]
    number = Column("tokens", justify="right", no_wrap=True)
    return table("part", number, rows=[(name, f"{tokens:,}") for name, tokens in rows])


def _largest(counted: TokenCount, conversation: Conversation) -> list[tuple[int, str, int]]:
    ranked = sorted(enumerate(counted.per_message), key=lambda item: -item[1])[:LARGEST]
    return [(n, conversation.messages[n].role, tokens) for n, tokens in ranked]


def _largest_table(counted: TokenCount, conversation: Conversation) -> object:
    rows = [
        (n, role, f"{tokens:,}", f"{tokens / max(1, counted.tokens):.0%}")
        for n, role, tokens in _largest(counted, conversation)
    ]
    right = [Column(name, justify="right") for name in ("tokens", "share")]
    return table(Column("largest message", justify="right"), "role", *right, rows=rows)


def _summary(counted: TokenCount, frame: CountedFrame) -> str:
    measured = provenance(counted.family)
    rests_on = (
        f" on {measured.records:,} requests" if measured and counted.accuracy != "exact" else ""
    )
    parts = [f"{counted.model or 'no model named'}: {counted.accuracy}{rests_on}"]
    if frame.window:
        parts.append(f"{counted.tokens / frame.window:.1%} of a window of {frame.window:,}")
    if frame.cost is not None:
        parts.append(f"${frame.cost:.6f} of input")
    if counted.note:
        parts.append(counted.note)
    return " · ".join(parts)


def _data(
    counted: TokenCount, conversation: Conversation | None, frame: CountedFrame
) -> dict[str, object]:
    parts = counted.parts
    return {
        "tokens": counted.tokens,
        "upper": counted.upper,
        "accuracy": counted.accuracy,
        "model": counted.model or None,
        "family": counted.family,
        "rests_on": msgspec.to_builtins(provenance(counted.family)),
        "note": counted.note or None,
        "dialect": conversation.dialect if conversation else None,
        "parts": {
            "system": parts.system,
            "tools": parts.tools,
            "messages": parts.messages,
            "formatting": parts.formatting,
        },
        "per_message": list(counted.per_message),
        "window": frame.window,
        "share_of_window": round(counted.tokens / frame.window, 6) if frame.window else None,
        "input_cost_usd": float(frame.cost) if frame.cost is not None else None,
    }


# --- a folder of sources -----------------------------------------------------------------------


def _count_folder(folder: Path, model: str, out: Output) -> None:
    skipped: list[tuple[str, str]] = []

    def skip(error: OSError) -> None:
        # Skip a folder that cannot be read, or that was removed meanwhile.
        skipped.append((_shown(Path(error.filename), folder), error.strerror or "cannot be read"))

    walked = os.walk(folder, onerror=skip)
    paths = sorted(Path(at, name) for at, _, names in walked for name in names)
    paths = [path for path in paths if not _hidden(path, folder) and path.is_file()]
    rows: list[tuple[str, int]] = []
    with Progress(console=Console(stderr=True), transient=True, disable=not out.in_terminal) as bar:
        task = bar.add_task("counting", total=len(paths))
        for path in paths:
            bar.advance(task)
            name = _shown(path, folder)
            try:
                rows.append((name, count_tokens(_text_in(path), model=model).tokens))
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else _NOT_TEXT
                skipped.append((name, reason or "cannot be read"))
    rows.sort(key=lambda row: -row[1])
    total = sum(tokens for _, tokens in rows)

    def draw(console: Console) -> None:
        number = Column("tokens", justify="right", no_wrap=True)
        console.print(table("file", number, rows=[(name, f"{n:,}") for name, n in rows]))
        note = f", {len(skipped)} skipped" if skipped else ""
        console.print(f"\n{len(rows)} files{note}: {total:,} tokens")

    for name, reason in skipped[:_MOST_REMARKS]:
        remark(f"holdfast: skipped {name[:_LONGEST_NAME]}: {reason}")
    if len(skipped) > _MOST_REMARKS:
        more = len(skipped) - _MOST_REMARKS
        remark(f"holdfast: skipped {more} more; --output json lists them all")
    data: dict[str, object] = {
        "tokens": total,
        "model": model or None,
        "skipped": len(skipped),
        "skipped_files": [{"file": name, "reason": reason} for name, reason in skipped],
        "files": [{"file": name, "tokens": tokens} for name, tokens in rows],
    }
    out.emit(data, draw)


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _text_in(path: Path) -> str:
    """Return the text of a file, or raise an OSError with the reason."""
    if path.stat().st_size > _LARGEST_TEXT:
        raise OSError(0, "larger than 32 MB")
    data = path.read_bytes()
    if b"\x00" in data[:8192]:  # binary files may be valid UTF-8
        raise OSError(0, _NOT_TEXT)
    return data.decode()
