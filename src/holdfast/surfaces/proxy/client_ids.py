"""The client of a request, its ids of session and subagent, and the purpose of the request.

Tables list the headers and fields of each client. All of them are untrusted: an id with an unusual
format counts as none, and ids are never logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast.engine.identity import Sender
from holdfast.engine.side_requests import purpose_of
from holdfast.wire import Conversation

Headers = tuple[tuple[str, str], ...]
"""Names in lower case, and values."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{1,80}")
_OF_USER = re.compile(r"user_\S{0,200}_session_([0-9a-f-]{36})")
_LONGEST_JSON = 4_000
_T = TypeVar("_T")

USER_AGENTS: tuple[tuple[str, str], ...] = (
    ("claude-cli/", "claude-code"),  # 2.1.197
    ("codex", "codex"),  # codex_exec, codex_cli_rs, codex-tui; 0.169.0
    ("opencode/", "opencode"),  # 1.18.33
    ("GeminiCLI", "gemini-cli"),  # 0.61.0
    ("QwenCode/", "qwen-code"),  # 0.14.1
)
"""How the User-Agent of each client begins."""


def _plain(value: str) -> str:
    return value if _ID.fullmatch(value) else ""


def _uuid(value: str) -> str:
    """Return a value that can only be one session's; people write all sorts of keys."""
    return value if _UUID.fullmatch(value) else ""


class _UserId(msgspec.Struct):
    session_id: str = ""


def _in_user_id(value: str) -> str:
    """Return the session of Claude Code's `user_id`: JSON since 2.1, before that one word."""
    if match := _OF_USER.fullmatch(value[:_LONGEST_JSON]):
        return _plain(match[1])
    fields = _decoded(value, _UserId)
    return _plain(fields.session_id) if fields is not None else ""


class IdSource(NamedTuple):
    """Where a client puts an id."""

    client: str
    """Empty if several clients use the same name."""
    where: tuple[str, ...]
    """The name of a header, or the path of a value in the body."""
    how: Callable[[str], str] = _plain
    """Returns the id in a value; empty if there is none."""


SESSION_IDS: tuple[IdSource, ...] = (
    IdSource("claude-code", ("x-claude-code-session-id",)),  # 2.1.197
    IdSource("claude-code", ("body", "metadata", "user_id"), _in_user_id),  # 1.0 to 2.1.197
    IdSource("opencode", ("x-parent-session-id",)),  # 1.18.33, of a subagent
    IdSource("", ("x-session-id",)),  # opencode 1.18.33
    IdSource("opencode", ("x-session-affinity",)),  # 1.18.33
    IdSource("opencode", ("x-opencode-session",)),  # 1.18.33, with opencode's own provider
    IdSource("codex", ("session-id",)),  # 0.169.0; the same for a thread and its subagents
    IdSource("codex", ("session_id",)),  # 0.38
    IdSource("codex", ("body", "client_metadata", "session_id")),  # 0.169.0
    IdSource("codex", ("thread-id",)),  # 0.169.0
    IdSource("codex", ("body", "client_metadata", "thread_id")),  # 0.169.0
    IdSource("", ("body", "prompt_cache_key"), _uuid),  # Codex, opencode
)
"""The first that gives an id counts."""

AGENT_IDS: tuple[IdSource, ...] = (
    IdSource("claude-code", ("x-claude-code-agent-id",)),  # 2.1.197
    IdSource("opencode", ("x-session-id",)),  # 1.18.33; equal to the session's but of a subagent
    IdSource("codex", ("thread-id",)),  # 0.169.0; likewise
    IdSource("codex", ("body", "client_metadata", "thread_id")),  # 0.169.0; likewise
)
"""Ids of subagents, where the same client gave the session's; one equal to that is none."""


class _TurnMetadata(msgspec.Struct):
    request_kind: str = ""
    thread_source: str = ""


def _codex_kind(value: str) -> str:
    fields = _decoded(value, _TurnMetadata)
    if fields is None:
        return ""
    return fields.thread_source if fields.request_kind == "turn" else fields.request_kind


SIDE = "side request"
"""The purpose of a side request without a more specific one."""
CONVERSATION = "conversation"
"""The client declares that the request is not a side request."""
PURPOSES: tuple[tuple[str, Callable[[str], str], Mapping[str, str]], ...] = (
    # Claude Code 2.1.273; to another address than its vendor's only if the environment variable
    # CLAUDE_CODE_GATEWAY_HINT_HEADERS is 1
    ("x-claude-code-request-class", str, {
        "main": CONVERSATION, "subagent": CONVERSATION, "workflow": CONVERSATION,
        "compaction": "compaction", "auxiliary": SIDE,
    }),
    # Codex 0.142 to 0.169
    ("x-openai-subagent", str, {"compact": "compaction", "memory_consolidation": "memory"}),
    ("x-codex-turn-metadata", _codex_kind, {
        "compaction": "compaction", "memory": "memory", "memory_consolidation": "memory",
        "thread_title": "title",
    }),
)  # fmt: skip
"""Headers with the purpose of a request, their parsers, and the meanings of their values."""


def sender_of(headers: Headers, conversation: Conversation) -> Sender:
    """Return the client, session and purpose of a request."""
    by_name = dict(headers)
    session, source = _first_id(SESSION_IDS, by_name, conversation.rest)
    of_client = tuple(agent for agent in AGENT_IDS if agent.client == source)
    agent, _ = _first_id(of_client, by_name, conversation.rest)
    user_agent = by_name.get("user-agent", "")
    client = next((name for start, name in USER_AGENTS if user_agent.startswith(start)), source)
    told = _told_purpose(by_name)
    if told in ("", SIDE):
        told = purpose_of(conversation, client) or told
    purpose = "" if told == CONVERSATION else told
    return Sender(client, session, agent if agent != session else "", purpose)


def _first_id(
    sources: tuple[IdSource, ...], headers: Mapping[str, str], body: Any
) -> tuple[str, str]:
    """Return the first id that any source gives, and the client that uses that source."""
    for source in sources:
        if value := source.how(_value(source.where, headers, body)):
            return value, source.client
    return "", ""


def _value(where: tuple[str, ...], headers: Mapping[str, str], body: Any) -> str:
    if len(where) == 1:
        return headers.get(where[0], "")
    value = body
    for name in where[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _told_purpose(headers: Mapping[str, str]) -> str:
    purposes = (meanings.get(how(headers.get(name, "")), "") for name, how, meanings in PURPOSES)
    return next(filter(None, purposes), "")


def _decoded(value: str, kind: type[_T]) -> _T | None:
    """Return JSON text as a struct; None if it is long or something else."""
    if len(value) > _LONGEST_JSON:
        return None
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
