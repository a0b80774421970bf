"""Log lines as fields: one line of key=value for people, one JSON object for programs.

logs: before service. Fields are ids and counts; nobody puts content into one.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Literal

log = logging.getLogger("holdfast.proxy")

_PLAIN = re.compile(r"[^\s\"=]*")


class Fields(dict[str, Any]):
    """A log message with fields; as text it is key=value."""

    def __str__(self) -> str:
        return " ".join(f"{name}={_plain(value)}" for name, value in self.items())


def _plain(value: object) -> str:
    if isinstance(value, int):  # most fields of a line are counts
        return str(value)
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record's fields; of a library's record its first line and the type of its error.

    Tracebacks and the lines below the first hold texts of exceptions, and those hold content:
    asyncio quotes the exception of a task that nobody waits for, PostgreSQL the values of a row.
    """
    if isinstance(record.msg, Fields):
        return record.msg
    fields = {"event": record.getMessage().partition("\n")[0]}
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = record.exc_info[0].__name__
    return fields


class TextFormatter(logging.Formatter):
    """Writes each record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's time, level and fields."""
        fields = _fields(record)
        text = str(fields) if isinstance(fields, Fields) else " error=".join(fields.values())
        return f"{self.formatTime(record)} {record.levelname} {text}"


class JsonFormatter(logging.Formatter):
    """Writes each record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's time, level and fields."""
        fields = _fields(record)
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": at, "level": record.levelname.lower(), **fields})


def warn(text: str) -> None:
    """Log a warning that Python or a library gave."""
    log.warning(Fields(event="warning", text=text.removeprefix("holdfast: ")))


def configure(how: Literal["text", "json"], *, debug: bool = False) -> None:
    """Write what Holdfast logs to standard error; with `debug`, its looks at contexts too."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if how == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("holdfast").setLevel(logging.DEBUG if debug else logging.INFO)
