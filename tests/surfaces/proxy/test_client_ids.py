"""Clients' ids in headers and bodies, which are untrusted input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.surfaces.proxy.client_ids import sender_of
from holdfast.wire import read

UUID = "23b515cb-1a31-4632-9680-6355f0122c92"
OTHER = "01a1ec0c-8fd9-71f2-9c41-8e225baf686f"
AGENTS = {
    "claude-code": "claude-cli/2.1.197 (external, cli)",
    "codex": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb",
    "opencode": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23",
    "gemini-cli": "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)",
    "qwen-code": "QwenCode/0.14.1 (linux; x64)",
    "": "OpenAI/Python 2.20.0",
}


def sender(
    headers: dict[str, str] | None = None, dialect: str = "anthropic", **body: Any
) -> tuple[str, str, str, str]:
    said = [{"role": "user", "content": "Hello"}]
    name = "input" if dialect == "openai-responses" else "messages"
    conversation = read(json.dumps({"model": "m", name: said, **body}).encode(), dialect)
    return tuple(sender_of(tuple((headers or {}).items()), conversation))  # type: ignore[return-value]


def user_id(**fields: object) -> dict[str, str]:
    return {"user_id": json.dumps({"device_id": "d", "account_uuid": "", **fields})}


@pytest.mark.parametrize(("client", "agent"), AGENTS.items())
def test_a_client_is_known_by_its_user_agent(client: str, agent: str) -> None:
    assert sender({"user-agent": agent}) == (client, "", "", "")


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"x-claude-code-session-id": UUID}, {}, ("claude-code", UUID, "")),
        ({"x-claude-code-session-id": UUID, "x-claude-code-agent-id": "a29e"}, {},
         ("claude-code", UUID, "a29e")),
        ({}, {"metadata": user_id(session_id=UUID)}, ("claude-code", UUID, "")),
        ({}, {"metadata": {"user_id": f"user_0a1b_account__session_{UUID}"}},
         ("claude-code", UUID, "")),
        ({}, {"metadata": {"user_id": f"user_0a1b_account_{OTHER}_session_{UUID}"}},
         ("claude-code", UUID, "")),
        ({"session-id": UUID, "thread-id": UUID}, {"prompt_cache_key": UUID}, ("codex", UUID, "")),
        ({"session-id": UUID, "thread-id": OTHER}, {}, ("codex", UUID, OTHER)),
        ({"session_id": UUID, "conversation_id": UUID}, {}, ("codex", UUID, "")),
        ({}, {"client_metadata": {"session_id": UUID, "thread_id": OTHER}},
         ("codex", UUID, OTHER)),
        ({}, {"client_metadata": {"thread_id": UUID}}, ("codex", UUID, "")),
        ({}, {"prompt_cache_key": UUID}, ("", UUID, "")),
        ({"x-session-id": "ses_e13f", "x-session-affinity": "ses_e13f"}, {}, ("", "ses_e13f", "")),
        ({"x-session-affinity": "ses_e13f"}, {}, ("opencode", "ses_e13f", "")),
        ({"x-opencode-session": "ses_e13f"}, {}, ("opencode", "ses_e13f", "")),
        ({"x-session-id": "ses_2", "x-parent-session-id": "ses_1"}, {},
         ("opencode", "ses_1", "ses_2")),
        ({"x-claude-code-session-id": UUID, "x-session-id": "of-a-gateway"}, {},
         ("claude-code", UUID, "")),
    ],
)  # fmt: skip
def test_ids_are_read_where_clients_put_them(
    headers: dict[str, str], body: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    assert sender(headers, **body)[:3] == expected


def test_the_user_agent_names_the_client_of_a_general_id() -> None:
    headers = {"user-agent": AGENTS["opencode"], "x-session-id": "ses_1"}
    assert sender(headers)[:2] == ("opencode", "ses_1")


@pytest.mark.parametrize(
    "value",
    ["", " ", "a b", "ü", "x" * 129, "a\x00b", "jane@example.com", "../etc", "'; DROP TABLE", "-x"],
)
def test_what_does_not_look_like_an_id_is_none(value: str) -> None:
    assert sender({"x-claude-code-session-id": value, "x-session-id": value})[1:3] == ("", "")
    assert sender({"session-id": UUID, "thread-id": value})[1:3] == (UUID, "")
    assert sender(metadata=user_id(session_id=value))[1] == ""
    assert sender(prompt_cache_key=value)[1] == ""


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"user_id": "[" * 1_999}},
        {"metadata": {"user_id": '{"a":' * 400}},
        {"metadata": {"user_id": json.dumps({"session_id": [UUID]})}},
        {"metadata": {"user_id": json.dumps({"session_id": UUID, "pad": "x" * 100_000})}},
        {"metadata": {"user_id": 7}},
        {"metadata": [UUID]},
        {"metadata": "user_1_session_"},
        {"prompt_cache_key": {"id": UUID}},
        {"prompt_cache_key": "the same for every user of my shop"},
        {"client_metadata": {"thread_id": None}},
    ],
)
def test_odd_bodies_give_no_id(body: dict[str, Any]) -> None:
    assert sender(**body)[1:3] == ("", "")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-claude-code-request-class": "main"}, ""),
        ({"x-claude-code-request-class": "subagent"}, ""),
        ({"x-claude-code-request-class": "compaction"}, "compaction"),
        ({"x-claude-code-request-class": "auxiliary"}, "side request"),
        ({"x-openai-subagent": "compact"}, "compaction"),
        ({"x-openai-subagent": "memory_consolidation"}, "memory"),
        ({"x-openai-subagent": "collab_spawn"}, ""),
        ({"x-codex-turn-metadata": '{"request_kind":"turn","thread_source":"user"}'}, ""),
        ({"x-codex-turn-metadata": '{"request_kind":"compaction"}'}, "compaction"),
        ({"x-codex-turn-metadata": '{"request_kind":"turn","thread_source":"thread_title"}'},
         "title"),
        ({"x-codex-turn-metadata": "[[[["}, ""),
        ({"x-codex-turn-metadata": "{}" + " " * 100_000}, ""),
        ({"x-openai-subagent": "<b>anything</b>"}, ""),
    ],
)  # fmt: skip
def test_clients_say_what_a_request_is_for(headers: dict[str, str], expected: str) -> None:
    assert sender(headers)[3] == expected


def test_the_text_tells_where_the_headers_do_not() -> None:
    order = [{"type": "text", "text": "Generate a concise, sentence-case title (3-7 words)"}]
    agent = {"user-agent": AGENTS["claude-code"]}
    assert sender(agent, system=order)[3] == "title"
    assert sender({**agent, "x-claude-code-request-class": "auxiliary"}, system=order)[3] == "title"
    assert sender({**agent, "x-claude-code-request-class": "main"}, system=order)[3] == ""
