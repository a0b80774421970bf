"""A log line of a library is one line, and holds no traceback and no text of an exception."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from holdfast.surfaces.proxy.logs import Fields, JsonFormatter, TextFormatter

SECRET = "Key (token)=(ghp_secret) already exists."


def record(message: object, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("asyncpg", logging.ERROR, __file__, 1, message, (), info)


def failed() -> BaseException:
    """An error with a traceback."""
    try:
        int(SECRET)
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_an_error_of_a_library_is_logged_by_its_type_alone(formatter: logging.Formatter) -> None:
    line = formatter.format(record("Failed to restore the pool\nconnection floor", failed()))
    assert "\n" not in line
    assert "Traceback" not in line
    assert SECRET not in line
    assert "Failed to restore the pool" in line
    assert "ValueError" in line


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_a_task_that_nobody_waits_for_tells_nothing_of_its_error(
    formatter: logging.Formatter, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda each: lines.append(formatter.format(each)))

    async def fail() -> None:
        raise ConnectionError(SECRET)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(fail())
        await asyncio.wait([task])
        loop.default_exception_handler(
            {"message": "Task exception was never retrieved", "future": task,
             "exception": task.exception()}
        )  # fmt: skip

    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    try:
        asyncio.run(main())
    finally:
        logger.removeHandler(handler)
    (line,) = lines
    assert SECRET not in line
    assert "Task exception was never retrieved" in line


def test_our_own_lines_keep_their_fields() -> None:
    said = record(Fields(event="request", ms=3.0))
    assert TextFormatter().format(said).endswith(" ERROR event=request ms=3.0")
    assert json.loads(JsonFormatter().format(said))["ms"] == 3.0
