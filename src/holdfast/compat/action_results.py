"""Read an action's result: its content, its small outputs and its code.

Results have the form of the older design, `{"success", "result": {"Params", "Result", "Message"},
"error"}`, with parameters of the form `{"Name", "Type", "Value"}`. Other forms are read as far as
possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.expand.excerpts import SourceType

CONTENT_PARAMS = ("Content", "Results", "Entities")
"""Parameters that are contents at any length."""
_OUTPUTS = ("Both", "Output")
_TYPES = {"Entities": "entity_metadata", "Markdown": "markdown", "Html": "html", "HTML": "html"}
_URLS = ("SourceURL", "SourceUrl", "URL", "Url", "url")
_LONG_ERROR = 8_000
"""Maximum characters of an error message; a longer one is the log of a failure."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_DATABASE = {"database", "db", "sql", "entity", "entities", "record", "records", "table", "schema"}
_SEARCH = {"search", "google", "bing", "perplexity", "tavily"}
_STORAGE = {"file", "files", "storage", "drive", "blob", "bucket", "folder", "document"}
_QUERY = {"query", "queries", "view", "views"}

Result = Mapping[str, Any]
Action = Mapping[str, Any]


class ActionContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an action's result."""

    full_content: str
    content_type: str
    source_url: str | None
    metadata: dict[str, Any]
    names: tuple[str, ...]
    """The names of its sources in the result: parameters, `Message`, `error`."""

    def __repr__(self) -> str:
        return f"<ActionContent {len(self.full_content)} characters of {', '.join(self.names)}>"


def extract_content_from_action_result(
    result: Result, action: Action, threshold: int = 1_000
) -> ActionContent | None:
    """Return the content of a result: its content parameters and any other long value."""
    inner = inner_result(result)
    parts: dict[str, Any] = {}
    for param in _outputs(inner):
        if _is_content(param, threshold):
            parts[_unique_name(str(param.get("Name")), parts)] = param["Value"]
    if len(text_from(inner.get("Message"))) > threshold:
        parts[_unique_name("Message", parts)] = inner["Message"]
    if has_long_error(result):
        parts[_unique_name("error", parts)] = result["error"]
    if not parts:
        return None
    names = tuple(parts)
    value = parts[names[0]] if len(parts) == 1 else parts
    return ActionContent(
        full_content=text_from(value),
        content_type=_content_type(names, value),
        source_url=_source_url(inner, action),
        metadata={"action": action_name_of(action), "params": list(names)},
        names=names,
    )


def detect_source_type(action_name: str) -> SourceType:
    """Return the origin of an action's contents, from the words of its name."""
    words = {word.lower() for word in _WORDS.findall(action_name)}
    if words & _DATABASE:
        return "database"
    if words & _SEARCH:
        return "search"
    if words & _STORAGE:
        return "storage"
    return "database" if words & _QUERY else "web"


def inner_result(result: Result) -> Mapping[str, Any]:
    """Return the action's own result; empty if there is none."""
    inner = result.get("result")
    return inner if isinstance(inner, Mapping) else {}


def _outputs(inner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    params = inner.get("Params")
    parameters = params if isinstance(params, list | tuple) else ()
    return [p for p in parameters if isinstance(p, Mapping) and p.get("Type") in _OUTPUTS]


def _is_content(param: Mapping[str, Any], threshold: int) -> bool:
    value = param.get("Value")
    return value is not None and (
        param.get("Name") in CONTENT_PARAMS or len(text_from(value)) > threshold
    )


def has_long_error(result: Result) -> bool:
    """Return whether the error is too long to keep in the conversation."""
    return len(text_from(result.get("error"))) > _LONG_ERROR


def _unique_name(name: str, parts: Mapping[str, Any]) -> str:
    """Return the name, with a number appended if it is in use."""
    numbered = (f"{name} {n}" for n in range(2, len(parts) + 3))
    return next(n for n in (name, *numbered) if n not in parts)


def output_params(
    result: Result, without_contents_over: int | None = None
) -> tuple[dict[str, Any], ...]:
    """Return the output parameters; with a limit, without contents and longer values."""
    most = without_contents_over
    outputs = _outputs(inner_result(result))
    return tuple(dict(p) for p in outputs if most is None or not _is_content(p, most))


def action_name_of(action: Action) -> str:
    """Return the name of an action."""
    return str(action.get("name", ""))


def result_code_of(result: Result) -> str:
    """Return the result's code, or its success as a code."""
    outcome = inner_result(result).get("Result")
    code = outcome.get("ResultCode") if isinstance(outcome, Mapping) else None
    return str(code or ("SUCCESS" if result.get("success") else "FAILED"))


def text_from(value: Any) -> str:
    """Return a value as text, as JSON if it is not a string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _content_type(names: tuple[str, ...], value: Any) -> str:
    if len(names) == 1 and names[0] in _TYPES:
        return _TYPES[names[0]]
    if not isinstance(value, str):
        return "json"
    start = value[:200].lstrip().lower()
    if start.startswith(("<!doctype", "<html")):
        return "html"
    return "json" if start.startswith(("{", "[")) else "markdown"


def _source_url(inner: Mapping[str, Any], action: Action) -> str | None:
    """Return the URL among the result's parameters of any type, or else among the action's."""
    action_params = action.get("params")
    values = dict(action_params) if isinstance(action_params, Mapping) else {}
    params = inner.get("Params")
    for param in params if isinstance(params, list | tuple) else ():
        if isinstance(param, Mapping):
            values[str(param.get("Name"))] = param.get("Value")
    urls = (values[name] for name in _URLS if isinstance(values.get(name), str))
    return next((url for url in urls if url), None)
