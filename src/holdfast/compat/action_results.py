"""What an action's result holds: its content, its small outputs, its code.

action_results: before actions. Results have the form of the older design,
`{"success", "result": {"Params", "Result", "Message"}, "error"}` with parameters of
`{"Name", "Type", "Value"}`; what has another form is read as far as it goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.expand.excerpts import SourceType

CONTENT_PARAMS = ("Content", "Results", "Entities")
"""Parameters that are contents, however short they are."""
_OUTPUTS = ("Both", "Output")
_TYPES = {"Entities": "entity_metadata", "Markdown": "markdown", "Html": "html", "HTML": "html"}
_URLS = ("SourceURL", "SourceUrl", "URL", "Url", "url")
_LONG_ERROR = 8_000
"""Errors stay as they are; what is longer than this is a log of something that failed."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_DATABASE = {"database", "db", "sql", "entity", "entities", "record", "records", "table", "schema"}
_SEARCH = {"search", "google", "bing", "perplexity", "tavily"}
_STORAGE = {"file", "files", "storage", "drive", "blob", "bucket", "folder", "document"}
_QUERY = {"query", "queries", "view", "views"}

Result = Mapping[str, Any]
Action = Mapping[str, Any]


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """The content in an action's result."""

    full_content: str
    content_type: str
    source_url: str | None
    metadata: dict[str, Any]
    names: tuple[str, ...]
    """Where it stood: names of parameters, `Message`, `error`. All of these are in it."""

    def __repr__(self) -> str:
        return f"<Extracted {len(self.full_content)} characters of {', '.join(self.names)}>"


def extract_content_from_action_result(
    result: Result, action: Action, threshold: int = 1_000
) -> Extracted | None:
    """The content of a result: its content parameters, and whatever else in it is long."""
    inner = inner_of(result)
    parts: dict[str, Any] = {}
    for param in _outputs(inner):
        if _is_content(param, threshold):
            parts[_unused(str(param.get("Name")), parts)] = param["Value"]
    if len(words_of(inner.get("Message"))) > threshold:
        parts[_unused("Message", parts)] = inner["Message"]
    if has_long_error(result):
        parts[_unused("error", parts)] = result["error"]
    if not parts:
        return None
    names = tuple(parts)
    value = parts[names[0]] if len(parts) == 1 else parts
    return Extracted(
        full_content=words_of(value),
        content_type=_content_type(names, value),
        source_url=_source_url(inner, action),
        metadata={"action": name_of(action), "params": list(names)},
        names=names,
    )


def detect_source_type(action_name: str) -> SourceType:
    """Where an action's contents come from, by the words of its name."""
    words = {word.lower() for word in _WORDS.findall(action_name)}
    if words & _DATABASE:
        return "database"
    if words & _SEARCH:
        return "search"
    if words & _STORAGE:
        return "storage"
    return "database" if words & _QUERY else "web"


def inner_of(result: Result) -> Mapping[str, Any]:
    """What the action itself gave; empty if it gave nothing."""
    inner = result.get("result")
    return inner if isinstance(inner, Mapping) else {}


def _outputs(inner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    params = inner.get("Params")
    parameters = params if isinstance(params, list | tuple) else ()
    return [p for p in parameters if isinstance(p, Mapping) and p.get("Type") in _OUTPUTS]


def _is_content(param: Mapping[str, Any], threshold: int) -> bool:
    value = param.get("Value")
    return value is not None and (
        param.get("Name") in CONTENT_PARAMS or len(words_of(value)) > threshold
    )


def has_long_error(result: Result) -> bool:
    """Whether the error is too long to stay."""
    return len(words_of(result.get("error"))) > _LONG_ERROR


def _unused(name: str, parts: Mapping[str, Any]) -> str:
    """The name, with a number behind it if it is taken."""
    numbered = (f"{name} {n}" for n in range(2, len(parts) + 3))
    return next(n for n in (name, *numbered) if n not in parts)


def outputs_of(
    result: Result, without_contents_over: int | None = None
) -> tuple[dict[str, Any], ...]:
    """The output parameters; without contents if a length is given, and what is longer."""
    most = without_contents_over
    outputs = _outputs(inner_of(result))
    return tuple(dict(p) for p in outputs if most is None or not _is_content(p, most))


def name_of(action: Action) -> str:
    """What the action is called."""
    return str(action.get("name", ""))


def code_of(result: Result) -> str:
    """The result's code; where there is none, whether it succeeded."""
    outcome = inner_of(result).get("Result")
    code = outcome.get("ResultCode") if isinstance(outcome, Mapping) else None
    return str(code or ("SUCCESS" if result.get("success") else "FAILED"))


def words_of(value: Any) -> str:
    """A value as text: JSON, if it is not text itself."""
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
    """The address among the result's parameters, of any type, or else among the action's."""
    given = action.get("params")
    known = dict(given) if isinstance(given, Mapping) else {}
    params = inner.get("Params")
    for param in params if isinstance(params, list | tuple) else ():
        if isinstance(param, Mapping):
            known[str(param.get("Name"))] = param.get("Value")
    urls = (known[name] for name in _URLS if isinstance(known.get(name), str))
    return next((url for url in urls if url), None)
