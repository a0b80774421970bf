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
    """A log message made of fields; as text it is key=value."""

    def __str__(self) -> str:
        return " ".join(f"{name}={_plain(value)}" for name, value in self.items())


def _plain(value: object) -> str:
    if isinstance(value, int):  # most fields of a line are counts
        return str(value)
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class JsonFormatter(logging.Formatter):
    """Writes each record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level and fields."""
        said = record.msg if isinstance(record.msg, Fields) else {"event": record.getMessage()}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": at, "level": record.levelname.lower(), **said})


def warn(text: str) -> None:
    """Log a warning that Python or a library gave."""
    log.warning(Fields(event="warning", text=text.removeprefix("holdfast: ")))


def configure(how: Literal["text", "json"], *, debug: bool = False) -> None:
    """Write what Holdfast logs to standard error; with `debug`, its looks at contexts too."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if how == "json" else text)
    logging.basicConfig(handlers=[handler])
    logging.getLogger("holdfast").setLevel(logging.DEBUG if debug else logging.INFO)
