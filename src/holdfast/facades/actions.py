"""What an agent's actions gave, as the message that goes into its conversation.

actions: after content_store. Long contents are stored and cited, short ones stay in full. Results
have the form of the older design: `{"success", "result": {"Params", "Result", "Message"}, "error"}`
with parameters of `{"Name", "Type", "Value"}`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.cite import is_long
from holdfast.errors import HoldfastError, PrivacyError
from holdfast.expand.retrieval import ACTION
from holdfast.facades.content_store import (
    EXCERPT_CHARACTERS,
    ContentStore,
    SourceType,
    StoredContent,
)
from holdfast.privacy import apply, find
from holdfast.settings import Settings

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
_STORAGE = {"file", "files", "storage", "drive", "blob", "bucket", "s3", "folder", "document"}
_QUERY = {"query", "queries", "view", "views"}

Result = Mapping[str, Any]
Action = Mapping[str, Any]


class ActionExcerpt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a content that its citation shows."""

    text: str
    location: str
    total_length: int
    source_url: str | None = None


class ActionCitation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the conversation says of one action."""

    action_name: str
    success: bool
    content_id: str = ""
    """The ref of what was stored; empty if the result stays in full."""
    excerpt: ActionExcerpt | None = None
    result_code: str
    message: str
    params: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"<ActionCitation {self.action_name!r}, {self.content_id or 'in full'}>"


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


async def action_message(
    results: Sequence[Result],
    actions: Sequence[Action],
    agent_id: str,
    *,
    settings: Settings | None = None,
    store: ContentStore | None = None,
    agent_run_id: str = "",
) -> dict[str, str]:
    """The message that tells an agent what its actions gave, with citations if they are on."""
    settings = settings or Settings.load()
    if settings.enable_content_citations:
        title = "Action results with citations"
        told = await build_action_citations(
            results, actions, agent_id, store=store, agent_run_id=agent_run_id
        )
    else:
        title, told = "Action results", build_action_summaries(results, actions)
    return {
        "role": "user",
        "content": f"{title}:\n{json.dumps(msgspec.to_builtins(told), indent=2)}",
    }


async def build_action_citations(
    results: Sequence[Result],
    actions: Sequence[Action],
    agent_id: str,
    *,
    store: ContentStore | None = None,
    agent_run_id: str = "",
) -> list[ActionCitation]:
    """A citation for each result, in the order of the actions; their contents are stored.

    The contents belong to the run; without one, to the agent.
    """
    store = store or ContentStore.get_instance()
    _check(results, actions)
    run = agent_run_id or agent_id
    return [
        await _citation(result, action, run, store)
        for result, action in zip(results, actions, strict=True)
    ]


def build_action_summaries(
    results: Sequence[Result], actions: Sequence[Action]
) -> list[ActionCitation]:
    """Each result in full: what there was before citations."""
    _check(results, actions)
    return [_summary(result, action) for result, action in zip(results, actions, strict=True)]


def extract_content_from_action_result(
    result: Result, action: Action, threshold: int = 1_000
) -> Extracted | None:
    """The content of a result: its content parameters, and whatever else in it is long."""
    inner = _inner(result)
    parts: dict[str, Any] = {}
    for param in _outputs(inner):
        if _is_content(param, threshold):
            parts[_unused(str(param.get("Name")), parts)] = param["Value"]
    if len(_text(inner.get("Message"))) > threshold:
        parts[_unused("Message", parts)] = inner["Message"]
    if _is_long_error(result):
        parts[_unused("error", parts)] = result["error"]
    if not parts:
        return None
    names = tuple(parts)
    value = parts[names[0]] if len(parts) == 1 else parts
    return Extracted(
        full_content=_text(value),
        content_type=_content_type(names, value),
        source_url=_source_url(inner, action),
        metadata={"action": _name(action), "params": list(names)},
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


# --- one result ----------------------------------------------------------------------------------


async def _citation(
    result: Result, action: Action, run: str, store: ContentStore
) -> ActionCitation:
    if _name(action) == ACTION:  # what was opened is never closed again
        return _summary(result, action)
    found = extract_content_from_action_result(result, action, store.citing.threshold)
    if found is None or not is_long(found.full_content, store.citing):
        return _summary(result, action)
    content = StoredContent(
        full_content=found.full_content,
        source_type=detect_source_type(_name(action)),
        source_url=found.source_url,
        content_type=found.content_type,
        metadata=found.metadata,
        agent_run_id=run,
    )
    try:
        content_id = await store.store_content(content)
    except PrivacyError:
        return _summary(result, action)  # what may not be stored is not taken out either
    shown = found.full_content
    if store.citing.privacy == "mask":
        shown = await asyncio.to_thread(lambda: apply("mask", shown, find(shown)))
    dots = "..." if len(shown) > EXCERPT_CHARACTERS else ""
    length = content.content_length
    told = f"Content stored ({length} chars). Citation ID: {content_id}"
    error = "" if _is_long_error(result) else _text(result.get("error"))
    return ActionCitation(
        action_name=_name(action),
        success=bool(result.get("success")),
        content_id=content_id,
        excerpt=ActionExcerpt(
            shown[:EXCERPT_CHARACTERS] + dots, "beginning", length, found.source_url
        ),
        result_code=_code(result),
        message=f"{error} {told}" if error else told,
        params=_params(result, without_contents_over=store.citing.threshold),
    )


def _summary(result: Result, action: Action) -> ActionCitation:
    success = bool(result.get("success"))
    said = _inner(result).get("Message")
    error = result.get("error") or said or "Action failed"
    return ActionCitation(
        action_name=_name(action),
        success=success,
        result_code=_code(result),
        message=_text((said or "Action completed") if success else error),
        params=_params(result),
    )


def _check(results: Sequence[Result], actions: Sequence[Action]) -> None:
    if len(results) != len(actions):
        raise HoldfastError(
            f"there are {len(results)} results of {len(actions)} actions",
            where="actions",
            fix="Give one result for each action, in the same order.",
        )


# --- readings ------------------------------------------------------------------------------------


def _inner(result: Result) -> Mapping[str, Any]:
    inner = result.get("result")
    return inner if isinstance(inner, Mapping) else {}


def _outputs(inner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    params = inner.get("Params")
    listed = params if isinstance(params, list | tuple) else ()
    return [p for p in listed if isinstance(p, Mapping) and p.get("Type") in _OUTPUTS]


def _is_content(param: Mapping[str, Any], threshold: int) -> bool:
    value = param.get("Value")
    return value is not None and (
        param.get("Name") in CONTENT_PARAMS or len(_text(value)) > threshold
    )


def _is_long_error(result: Result) -> bool:
    return len(_text(result.get("error"))) > _LONG_ERROR


def _unused(name: str, parts: Mapping[str, Any]) -> str:
    """The name, with a number behind it if it is taken."""
    numbered = (f"{name} {n}" for n in range(2, len(parts) + 3))
    return next(n for n in (name, *numbered) if n not in parts)


def _params(result: Result, without_contents_over: int | None = None) -> tuple[dict[str, Any], ...]:
    most = without_contents_over
    outputs = _outputs(_inner(result))
    return tuple(dict(p) for p in outputs if most is None or not _is_content(p, most))


def _name(action: Action) -> str:
    return str(action.get("name", ""))


def _code(result: Result) -> str:
    outcome = _inner(result).get("Result")
    code = outcome.get("ResultCode") if isinstance(outcome, Mapping) else None
    return str(code or ("SUCCESS" if result.get("success") else "FAILED"))


def _text(value: Any) -> str:
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
            known[param.get("Name")] = param.get("Value")
    found = (known[name] for name in _URLS if isinstance(known.get(name), str))
    return next((url for url in found if url), None)
