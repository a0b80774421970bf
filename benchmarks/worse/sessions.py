"""Recorded sessions as the requests that a client would have sent, turn by turn.

Two sources: `trajectories` (agent conversations, without time stamps) and `agent_sessions` (coding
agents with time stamps, reported usage and compactions). Each session becomes a list of turns in
one provider dialect. A turn holds the messages that the client added and the answer that followed.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

import holdfast
from tests.fitting.test_citing import in_dialect
from tests.support.recorded import DATA, trajectories
from tests.surfaces.proxy.replaying import tools_of

AGENT_SESSIONS = DATA / "agent_sessions" / "sessions.jsonl.gz"

Life = Literal["5m", "1h"]
"""How long the provider's prompt cache keeps an entry."""

_TOOL_SHARE = 0.5
_MOST_TOOL_TOKENS = 16_000
"""Tokens of tool schemas in a synthetic frame. Claude Code's own tools have about 15,000; more than
40,000 would make the proxy set schemas aside, which is another benchmark."""
_USUAL_FRAME = 12_000
"""Tokens around the messages where no usage was recorded."""
_CLAUDE_CODE_OUTPUT = 32_000
"""Output tokens that Claude Code asks for: the window is smaller by as many."""
_NO_RESULT = "[The tool was interrupted.]"
_LIST = {"openai-responses": "input", "gemini": "contents"}

Message = dict[str, Any]


class Turn(NamedTuple):
    """One call of the model."""

    added: list[Message]
    answer: list[Message]
    at: float
    """When the request began, in seconds; 0 where that was not recorded."""
    starts_over: bool = False
    """Whether the client replaced its history before this turn (its own compaction)."""


class RecordedSession(NamedTuple):
    """A session of a client, in one dialect."""

    id: str
    source: str
    dialect: str
    model: str
    life: Life
    frame: dict[str, Any]
    """The request without its messages."""
    turns: list[Turn]

    @property
    def list_name(self) -> str:
        """The field of the request that holds the messages."""
        return _LIST.get(self.dialect, "messages")


class _ChatTurn(NamedTuple):
    """A turn as OpenAI chat messages, before it is converted."""

    added: list[Message]
    answer: list[Message]
    at: float = 0.0


# --- trajectories --------------------------------------------------------------------------------

TRAJECTORY_MODELS = {"openai-chat": "gpt-5", "anthropic": "claude-sonnet-4-5"}
"""One model for each kind of prompt cache: automatic, and marked by the client."""


def trajectory_sessions(every: int = 1) -> Iterator[RecordedSession]:
    """Every `every`-th trajectory of each source, once for each kind of prompt cache."""
    seen: defaultdict[str, int] = defaultdict(int)
    for trajectory in trajectories():
        seen[trajectory["source"]] += 1
        if (seen[trajectory["source"]] - 1) % every:
            continue
        body = {"model": "gpt-5", "messages": trajectory["messages"]}
        messages = json.loads(holdfast.repair(body, "openai-chat").body)["messages"]
        turns = _chat_turns(messages)
        for dialect, model in TRAJECTORY_MODELS.items() if turns else ():
            frame = _with_tools({"model": model}, tools_of(messages))
            yield RecordedSession(
                id=f"{trajectory['id']} ({dialect})",
                source=trajectory["source"],
                dialect=dialect,
                model=model,
                life="5m",
                **_converted(frame, [turns], dialect),
            )


def _chat_turns(messages: Sequence[Message]) -> list[_ChatTurn]:
    runs = [list(run) for _, run in groupby(messages, lambda m: m["role"] == "assistant")]
    if runs and runs[0][0]["role"] == "assistant":
        runs = [runs[0] + runs[1], *runs[2:]] if len(runs) > 1 else []
    return [_ChatTurn(*pair) for pair in zip(runs[::2], runs[1::2], strict=False)]


# --- agent sessions ------------------------------------------------------------------------------

_DIALECTS = {"claude-code": "anthropic"}
"""Codex and opencode with GPT models speak OpenAI Responses."""
_UNNAMED = {"anthropic": "claude-opus-4-6", "openai-responses": "gpt-5.5"}


def agent_sessions(every: int = 1) -> Iterator[RecordedSession]:
    """Every `every`-th recorded session of a coding agent."""
    with gzip.open(AGENT_SESSIONS, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % every == 0:
                session = _agent_session(json.loads(line))
                if session is not None:
                    yield session


def _agent_session(record: dict[str, Any]) -> RecordedSession | None:
    events = [event for event in record["events"] if not event.get("side")]
    segments = [turns for part in _segments(events) if (turns := _turns_of(part))]
    if not segments:
        return None
    dialect = _DIALECTS.get(record["client"], "openai-responses")
    usages = [event["usage"] for event in events if event.get("usage")]
    named = (event["model"] for event in events if event.get("model"))
    model = next((name for name in named if name.startswith(("claude", "gpt"))), _UNNAMED[dialect])
    reported = (
        sum(usages[0].get(key) or 0 for key in ("in", "cache_read", "cache_write"))
        if (usages)
        else 0
    )
    first = {"model": model, "messages": segments[0][0].added}
    own = holdfast.count(first, dialect="openai-chat", model=model).tokens
    frame = _synthetic_frame(model, segments, max(reported - own, 0) or _USUAL_FRAME)
    return RecordedSession(
        id=record["session_id"],
        source=record["client"],
        dialect=dialect,
        model=model,
        life="1h" if any(usage.get("write_1h") for usage in usages) else "5m",
        **_converted(frame, segments, dialect),
    )


def _segments(events: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The events between the client's own compactions: each begins with a history of its own."""
    segment: list[dict[str, Any]] = []
    for event in events:
        if event["kind"] == "compact_boundary":
            yield segment
            segment = []
        segment.append(event)
    yield segment


def _turns_of(events: Sequence[dict[str, Any]]) -> list[_ChatTurn]:
    """The calls of one segment, with the messages that the client added before each of them."""
    has_usage = any(event.get("usage") for event in events)
    turns: list[_ChatTurn] = []
    pending: defaultdict[str, deque[str]] = defaultdict(deque)
    results: list[Message] = []
    texts: list[Message] = []
    number, at, before = 0, 0.0, ""
    for event in events:
        role, kind, text = event["role"], event["kind"], event.get("text") or ""
        if role == "assistant":
            if event.get("usage") or (not has_usage and before != "assistant"):
                added = [*results, *_unanswered(pending), *texts]
                turns.append(_ChatTurn(added, [_assistant()], at))
                results, texts = [], []
            if turns and kind == "text" and text.strip():
                turns[-1].answer[0]["content"] += text
            elif turns and kind == "tool_use":
                number += 1
                pending[event.get("call") or ""].append(f"call_{number}")
                turns[-1].answer[0]["tool_calls"].append(_call(event, number))
        elif kind == "tool_result":
            if ids := pending[event.get("call") or ""]:
                results.append(_result(ids.popleft(), text))
                at = _seconds(event["t"])
        elif text.strip() and (role == "user" or kind.startswith("attachment:")):
            texts.append({"role": "user", "content": text})
            at = _seconds(event["t"])
        before = role
    return _well_formed(turns)


def _assistant() -> Message:
    return {"role": "assistant", "content": "", "tool_calls": []}


def _call(event: dict[str, Any], number: int) -> Message:
    arguments = event.get("text") or "{}"
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None  # its middle was cut, or it is a free-form call
    if not isinstance(value, dict):
        arguments = json.dumps({"input": arguments})
    function = {"name": event.get("tool") or "tool", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _result(call: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": text or "(no output)"}


def _unanswered(pending: defaultdict[str, deque[str]]) -> list[Message]:
    """Results for the calls that nobody answered: providers refuse a call without one."""
    calls = [call for ids in pending.values() for call in ids]
    pending.clear()
    return [_result(call, _NO_RESULT) for call in calls]


def _well_formed(turns: Sequence[_ChatTurn]) -> list[_ChatTurn]:
    """The turns that have both sides; the client adds something before each call."""
    kept: list[_ChatTurn] = []
    for turn in turns:
        if not kept and not turn.added:  # a compaction whose summary was not recorded
            turn.added.append({"role": "user", "content": "Continue."})
        answer = turn.answer[0]
        if not answer["tool_calls"]:
            del answer["tool_calls"]
        if not turn.added and kept:  # the model went on by itself: one answer for the client
            last = kept[-1].answer[0]
            last["content"] += answer["content"]
            calls = [*last.get("tool_calls", ()), *answer.get("tool_calls", ())]
            kept[-1].answer[0] = {**last, **({"tool_calls": calls} if calls else {})}
        elif turn.added:
            kept.append(turn)
    for turn in kept:
        turn.answer[0]["content"] = turn.answer[0]["content"] or None
        if turn.answer[0]["content"] is None and "tool_calls" not in turn.answer[0]:
            turn.answer[0]["content"] = "…"
    return kept


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


# --- the request around the messages -------------------------------------------------------------


def _synthetic_frame(
    model: str, segments: Sequence[Sequence[_ChatTurn]], tokens: int
) -> dict[str, Any]:
    """A system prompt and tools of about so many tokens: the recordings have neither."""
    called = tools_of([m for turns in segments for turn in turns for m in turn.answer])
    tools = called or tools_of([{"tool_calls": [_call({"tool": "bash"}, 0)]}])
    padding = min(_MOST_TOOL_TOKENS, round(tokens * _TOOL_SHARE))
    each = padding // len(tools)
    for tool in tools:
        tool["function"]["description"] = _prose(each, model)
    system = {"role": "system", "content": _prose(max(1, tokens - padding), model)}
    return _with_tools({"model": model, "messages": [system]}, tools)


def _with_tools(frame: dict[str, Any], tools: list[Message]) -> dict[str, Any]:
    return {**frame, "tools": tools} if tools else frame


_LINE = "Rule {n}: check the answer against the task before you report that it is done.\n"


@cache
def _prose(tokens: int, model: str) -> str:
    """Plain text of about so many tokens of a model."""
    lines = max(1, round(tokens / _tokens_a_line(model)))
    return "".join(_LINE.format(n=n) for n in range(lines))


@cache
def _tokens_a_line(model: str) -> float:
    text = "".join(_LINE.format(n=n) for n in range(1_000))
    return holdfast.count(text, model=model).tokens / 1_000


def _with_blocks(message: Message, dialect: str) -> Message:
    """A message whose text is a block, so that a cache mark can stand on it (Anthropic)."""
    if dialect != "anthropic" or not isinstance(message["content"], str):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def _calls(message: Message) -> list[Message]:
    return message.get("tool_calls") or []


def _converted(
    frame: dict[str, Any], segments: Iterable[Sequence[_ChatTurn]], dialect: str
) -> dict[str, Any]:
    """The frame and the turns in a dialect."""
    turns: list[Turn] = []
    around: dict[str, Any] = {}
    own = frame.get("messages", [])
    for segment in segments:
        messages = [m for turn in segment for m in (*turn.added, *turn.answer)]
        # Providers refuse a conversation that ends with an answer or with open calls: conversion
        # would mend it.
        open_calls = [_result(call["id"], _NO_RESULT) for call in _calls(messages[-1])]
        end = {"role": "user", "content": "End."}
        chat = {**frame, "messages": [*own, *messages, *open_calls, end]}
        body = json.loads(in_dialect(chat, dialect))
        conversation = holdfast.read(json.dumps(body).encode(), dialect)
        converted = [m for m in conversation.messages if m.role != "system"]
        runs = [
            [_with_blocks(message.value, dialect) for message in run]
            for _, run in groupby(converted, lambda m: m.role == "assistant")
        ]
        pairs = list(zip(runs[:-1:2], runs[1::2], strict=True))
        assert len(pairs) == len(segment), "a turn was lost in conversion"
        for n, ((added, answer), turn) in enumerate(zip(pairs, segment, strict=True)):
            turns.append(Turn(added, answer, turn.at, starts_over=bool(turns) and not n))
        name = _LIST.get(dialect, "messages")
        heads = [m.value for m in conversation.messages if m.role == "system"]
        around = {**body, name: heads}
    if dialect == "anthropic":
        around["max_tokens"] = _CLAUDE_CODE_OUTPUT
    return {"frame": around, "turns": turns}
