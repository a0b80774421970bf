"""Write the message that reports the results of an agent's actions.

Long contents are stored and cited, short ones stay in full. A citation quotes the lines that the
condenser of its kind chose, such as errors, outcome or rows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.cite import is_long
from holdfast.compat.action_results import (
    Action,
    Result,
    action_name_of,
    detect_source_type,
    extract_content_from_action_result,
    has_long_error,
    inner_result,
    output_params,
    result_code_of,
    text_from,
)
from holdfast.compat.content_store import ContentStore, StoredContent
from holdfast.condense.cutting import shortened
from holdfast.errors import HoldfastError, PrivacyError
from holdfast.expand.excerpts import EXCERPT_CHARACTERS
from holdfast.expand.retrieval import ACTION
from holdfast.privacy import Policy, apply, find
from holdfast.quoting import HEADINGS
from holdfast.settings import Settings
from holdfast.store import Content

_LEAST_LINE = 80
"""Minimum room for a shortened line; with less, the line is omitted."""
_HALVES = re.compile("[\ud800-\udfff]")


class ActionExcerpt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a content that its citation shows."""

    text: str
    location: str
    total_length: int
    source_url: str | None = None

    def __repr__(self) -> str:
        return f"<ActionExcerpt of {self.total_length} characters>"


class ActionCitation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The report of one action in the conversation."""

    action_name: str
    success: bool
    content_id: str = ""
    """The ref of the stored content; empty if the result stays in full."""
    excerpt: ActionExcerpt | None = None
    result_code: str
    message: str
    params: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"<ActionCitation {self.action_name!r}, {self.content_id or 'in full'}>"


async def action_message(
    results: Sequence[Result],
    actions: Sequence[Action],
    agent_id: str,
    *,
    settings: Settings | None = None,
    store: ContentStore | None = None,
    agent_run_id: str = "",
) -> dict[str, str]:
    """Return the message with the results of actions, with citations if they are enabled."""
    settings = settings or Settings.load()
    if settings.enable_content_citations:
        title = "Action results with citations"
        reports = await build_action_citations(
            results, actions, agent_id, store=store, agent_run_id=agent_run_id
        )
    else:
        title, reports = "Action results", build_action_summaries(results, actions)
    return {"role": "user", "content": f"{title}:\n{_json(reports)}"}


async def build_action_citations(
    results: Sequence[Result],
    actions: Sequence[Action],
    agent_id: str,
    *,
    store: ContentStore | None = None,
    agent_run_id: str = "",
) -> list[ActionCitation]:
    """Store the contents of results and return a citation for each, in the order of the actions.

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
    """Return each result in full, as before citations existed."""
    _check(results, actions)
    return [_summary(result, action) for result, action in zip(results, actions, strict=True)]


async def _citation(
    result: Result, action: Action, run: str, store: ContentStore
) -> ActionCitation:
    if action_name_of(action) == ACTION:  # an opened content is not cited again
        return _summary(result, action)
    extracted = extract_content_from_action_result(result, action, store.citing.threshold)
    if extracted is None or not is_long(extracted.full_content, store.citing):
        return _summary(result, action)
    content = StoredContent(
        full_content=extracted.full_content,
        source_type=detect_source_type(action_name_of(action)),
        source_url=extracted.source_url,
        content_type=extracted.content_type,
        metadata=extracted.metadata,
        agent_run_id=run,
    )
    try:
        stored = await store.store_condensed(content)
    except PrivacyError:
        return _summary(result, action)  # a content that may not be stored must stay in full
    excerpt = await asyncio.to_thread(_excerpt, content, stored, store.citing.privacy)
    content_id, length = stored.ref_id, content.content_length
    stored_note = f"Content stored ({length} chars). Citation ID: {content_id}"
    error = "" if has_long_error(result) else text_from(result.get("error"))
    return ActionCitation(
        action_name=action_name_of(action),
        success=bool(result.get("success")),
        content_id=content_id,
        excerpt=excerpt,
        result_code=result_code_of(result),
        message=f"{error} {stored_note}" if error else stored_note,
        params=output_params(result, without_contents_over=store.citing.threshold),
    )


def _excerpt(content: StoredContent, stored: Content, privacy: Policy) -> ActionExcerpt:
    """Return the lines that the condenser chose; the beginning if it chose none."""
    length, url = content.content_length, content.source_url
    # The first and last lines of a citation are about its ref and another tool.
    chosen = stored.compressed.split("\n")[1:-1] if stored.compressed else []
    if not chosen:
        text = content.full_content
        visible = apply(privacy, text, find(text))
        return ActionExcerpt(shortened(visible, EXCERPT_CHARACTERS), "beginning", length, url)
    lines: list[str] = []
    for line in chosen:
        room = EXCERPT_CHARACTERS - sum(len(each) + 1 for each in lines)
        if len(line) <= room:
            lines.append(line)
        elif not lines or room > _LEAST_LINE:
            lines.append(shortened(line, room))
            break
    while len(lines) > 1 and lines[-1] in HEADINGS.values():
        lines.pop()  # a heading with no lines after it
    return ActionExcerpt("\n".join(lines), "condensed", length, url)


def _summary(result: Result, action: Action) -> ActionCitation:
    success = bool(result.get("success"))
    message = inner_result(result).get("Message")
    error = result.get("error") or message or "Action failed"
    return ActionCitation(
        action_name=action_name_of(action),
        success=success,
        result_code=result_code_of(result),
        message=text_from((message or "Action completed") if success else error),
        params=output_params(result),
    )


def _check(results: Sequence[Result], actions: Sequence[Action]) -> None:
    if len(results) != len(actions):
        raise HoldfastError(
            f"there are {len(results)} results of {len(actions)} actions",
            where="actions",
            fix="Give one result for each action, in the same order.",
        )


def _json(citations: Sequence[ActionCitation]) -> str:
    """Return JSON without escapes, which cost tokens; only lone surrogates are escaped."""
    value = msgspec.to_builtins(citations, enc_hook=str)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return json.dumps(value, indent=2) if _HALVES.search(text) else text
