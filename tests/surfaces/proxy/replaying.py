"""Recorded conversations, replayed through a running proxy, turn by turn, in any dialect.

The client keeps its history as agents do: its messages are the recording's, the model's are the
proxy's responses. The upstream enforces the provider's rules and gives the recorded answers. Every
promise of the proxy is checked on the bytes that reached the upstream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import holdfast
from holdfast.store import Turn as WrittenTurn
from holdfast.store.refs import REF
from holdfast.wire import Conversation
from tests.fitting.test_citing import in_dialect
from tests.support.recorded import trajectories
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import Answered, Running, ask, path_of
from tests.surfaces.proxy.shifting import HEADERS, answer_messages
from tests.surfaces.proxy.spoken import whole
from tests.surfaces.proxy.upstream import Turn, Upstream
from tests.wire.responses.streams import Part, Script

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
_LIST = {"openai-responses": "input", "gemini": "contents"}

FOLDING = frozenset({"fold", "shorten", "drop"})
"""The actions that take history out of a request."""


@dataclass(frozen=True)
class Step:
    """The client's new messages, and the model's next answer."""

    added: list[Any]
    answer: Script


@dataclass(frozen=True)
class Story:
    """A recorded conversation in a dialect."""

    dialect: str
    frame: dict[str, Any]
    """The request around its list of messages."""
    steps: list[Step]

    @property
    def list_name(self) -> str:
        return _LIST.get(self.dialect, "messages")


@dataclass
class Told:
    """One turn: the client's request, the upstream's requests, and the response."""

    asked: bytes
    got: Got | None
    answered: Answered
    between: Sequence[Got] = ()
    """What reached the upstream before: the proxy answered the model itself, and asked again."""


@dataclass
class Retold:
    """A conversation that was sent through the proxy."""

    story: Story
    turns: list[Told] = field(default_factory=list)
    written: list[WrittenTurn] = field(default_factory=list)
    """The proxy's records."""

    @property
    def refusal(self) -> str:
        """Why the proxy would not send the last request; empty if it did."""
        last = self.turns[-1].answered
        return "" if last.status == 200 else last.body.decode()


def story_of(trajectory: dict[str, Any], dialect: str) -> Story:
    """Return a recording as a dialect's client would send it; tools are declared as they are
    called.
    """
    chat = {"model": MODELS[dialect], "messages": trajectory["messages"]}
    messages = json.loads(holdfast.repair(chat, "openai-chat").body)["messages"]
    chat |= {"messages": messages, "tools": tools_of(messages)}
    if not chat["tools"]:
        del chat["tools"]
    value = json.loads(in_dialect(chat, dialect))
    if dialect == "anthropic":
        value["max_tokens"] = 1000
    conversation = holdfast.read(json.dumps(value).encode(), dialect)
    frame = {k: v for k, v in value.items() if k != _LIST.get(dialect, "messages")}
    runs = [list(run) for _, run in groupby(conversation.messages, lambda m: m.role == "assistant")]
    if conversation.messages[0].role == "assistant":
        runs = runs[1:]
    steps = [
        Step([message.value for message in added], Script(tuple(_parts(said))))
        for added, said in zip(runs[::2], runs[1::2], strict=False)
    ]
    return Story(dialect, frame, steps)


def tools_of(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            given = json.loads(call["function"]["arguments"] or "{}")
            names = known.setdefault(call["function"]["name"], {})
            names |= {key: {} for key in given} if isinstance(given, dict) else {}
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"The recorded tool {name}.",
                "parameters": {"type": "object", "properties": names},
            },
        }
        for name, names in sorted(known.items())
    ]


def _parts(said: Sequence[holdfast.wire.Message]) -> Iterator[Part]:
    empty = True
    for message in said:
        for block in message.blocks:
            if isinstance(block, holdfast.wire.Text) and block.text:
                yield Part("text", (block.text,))
            elif isinstance(block, holdfast.wire.ToolCall):
                given = block.arguments
                written = given if isinstance(given, str) else json.dumps(given)
                yield Part("call", (written,), block.id, block.name)
            else:
                continue
            empty = False
    if empty:
        yield Part("text", ("…",))  # a provider's model never returns an empty answer


def retell(
    story: Story,
    proxy: Running,
    upstream: Upstream,
    model: Callable[[Script], Turn] | None = None,
) -> Retold:
    """Send every turn of a story; a refusal ends it, as it would end the agent.

    `model` may give the recorded answers differently, with several requests for one.
    """
    told = Retold(story)
    history: list[Any] = []
    url = proxy.url + path_of(story.dialect, model=MODELS[story.dialect])
    for step in story.steps:
        history += step.added
        body = {**story.frame, story.list_name: history}
        asked = json.dumps(body, ensure_ascii=False).encode()
        upstream.always = step.answer if model is None else model(step.answer)
        before = len(upstream.requests)
        answered = ask(url, asked, HEADERS)
        arrived = upstream.requests[before:]
        assert len(arrived) <= 1 or model is not None, "a request was sent twice"
        got = arrived[-1] if arrived else None
        told.turns.append(Told(asked, got, answered, arrived[:-1]))
        if answered.status != 200:
            break
        _check_answer(answered.json, step.answer, story.dialect, in_order=model is None)
        history += answer_messages(answered.json, story.dialect)
    proxy.settled()
    sessions = {turn.answered.headers.get("x-holdfast-session") for turn in told.turns} - {None}
    if sessions:
        scope = proxy.service.engine.scope.of(str(next(iter(sessions))))
        told.written = proxy.do(proxy.service.engine.store.turns(scope))
    return told


def _check_answer(value: Any, script: Script, dialect: str, *, in_order: bool) -> None:
    """Check that the client gets the model's answer, in its dialect, and nothing else.

    Calls through `call_tool` come after the others, so order is not compared then.
    """
    wanted = whole(script, dialect)
    assert set(value) == set(wanted)
    got, expected = answer_messages(value, dialect), answer_messages(wanted, dialect)
    if in_order:
        assert _read(got) == _read(expected)
    else:
        assert _sorted(_read(got)) == _sorted(_read(expected))


def _sorted(said: Any) -> Any:
    """Return a value with every list sorted."""
    if isinstance(said, dict):
        return {key: _sorted(inner) for key, inner in said.items()}
    if isinstance(said, list):
        return sorted(map(_sorted, said), key=lambda item: json.dumps(item, sort_keys=True))
    return said


def _read(said: Any) -> Any:
    """Return a value with parsed arguments of calls: those of call_tool are serialised again."""
    if isinstance(said, dict):
        return {
            key: json.loads(inner)
            if key == "arguments" and isinstance(inner, str)
            else _read(inner)
            for key, inner in said.items()
        }
    return [_read(inner) for inner in said] if isinstance(said, list) else said


# --- what must hold ----------------------------------------------------------------------------


def check(told: Retold, proxy: Running, window: int) -> None:
    """Every promise, on the bytes that reached the upstream."""
    sessions = {turn.answered.headers.get("x-holdfast-session", "") for turn in told.turns}
    assert len(sessions - {""}) <= 1, "the session was not recognised"
    opened: dict[str, bytes] = {}
    for turn in told.turns:
        if turn.got is None:
            assert turn.answered.status == 400, turn.answered.body
            assert b"tokens" in turn.answered.body
            continue
        got = turn.got
        assert got.dialect == told.story.dialect
        assert got.least <= window
        client = holdfast.read(turn.asked, got.dialect)
        sent = holdfast.read(got.body, got.dialect)
        assert _question(client) in {bytes(m.span) for m in sent.messages}
        shown = REF.search(got.texts)
        assert shown is None or "expand_ref" in got.tools
        _open_all(got.texts, opened, proxy)
        _nothing_lost(client, sent, opened)


def _question(conversation: Conversation) -> bytes:
    """The last message that a person wrote."""
    return next(
        bytes(message.span)
        for message in reversed(conversation.messages)
        if message.role == "user" and not message.results
    )


def _open_all(text: str, opened: dict[str, bytes], proxy: Running) -> None:
    """Open every ref in a text, and in the opened texts, completely and exactly."""
    engine = proxy.service.engine
    names = {found[0] for found in REF.finditer(text)} - opened.keys()
    while names:
        name = names.pop()
        stored = proxy.do(engine.store.get(engine.scope, name))
        assert stored is not None, f"{name} cannot be opened"
        opened[name] = stored.data
        inside = {found[0] for found in REF.finditer(stored.data.decode())}
        names |= inside - opened.keys()


def _nothing_lost(client: Conversation, sent: Conversation, opened: dict[str, bytes]) -> None:
    """Check that each text of the client's request is in the sent one, or behind a ref in it."""
    there = {text for message in sent.messages for text in _texts(message.value)}
    for data in opened.values():
        there.add(data.decode())
        with suppress(ValueError):  # not all that is stored is JSON
            there.update(_texts(json.loads(data)))
    for number, message in enumerate(client.messages):
        for text in _texts(message.value):
            assert text in there, f"a text of message {number} is lost"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


# --- what to tell, and what to measure ---------------------------------------------------------


def chosen(window: int, *, overflows: bool = True) -> Iterator[dict[str, Any]]:
    """Recordings of different tasks that would overflow a window, or that would not."""
    tasks: set[tuple[str, str]] = set()
    for trajectory in trajectories():
        task = (trajectory["source"], trajectory["task"])
        if task in tasks:
            continue  # it would begin like the other
        tasks.add(task)
        body = {"model": "gpt-4o", "messages": trajectory["messages"]}
        if (holdfast.count(body, dialect="openai-chat").tokens > window) is overflows:
            yield trajectory


def in_prompt_order(body: bytes, dialect: str) -> bytes:
    """A request as a vendor's cache sees it: all that is not messages comes first."""
    conversation = holdfast.read(body, dialect)
    spans = (bytes(message.span) for message in conversation.messages)
    return b"\n".join((conversation.frame.hollow, *spans))


def same_bytes(before: bytes, now: bytes) -> int:
    """How many bytes two requests begin with alike."""
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[:middle] == now[:middle] else (low, middle - 1)
    return low


def kept_prefixes(told: Retold) -> Iterator[tuple[float, bool]]:
    """Per turn without a fold: the share of the request before that this one begins with.

    And whether the tools changed: the first citation brings the one that opens it.
    """
    sent = [turn.got for turn in told.turns if turn.got is not None]
    for before, now, turn in zip(sent, sent[1:], told.written[1:], strict=False):
        if not any(edit.action in FOLDING for edit in turn.edits):
            old = in_prompt_order(before.body, before.dialect)
            same = same_bytes(old, in_prompt_order(now.body, now.dialect))
            yield same / len(old), before.tools != now.tools
