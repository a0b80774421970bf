"""The conditions under which the model answers: each takes a question and returns an `Outcome`.

Questions about tool results come in two layouts. `whole`: the user asks, the assistant reads the
document, its content arrives. `late`: the document is read first and the question follows one turn
later, so that the citation was made without knowing it.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.judge import talks, weights
from benchmarks.judge.contents import count, first_tokens
from benchmarks.judge.passages import passage_for
from benchmarks.judge.questions import JudgeQuestion
from benchmarks.judge.server import Model, ModelCall
from benchmarks.peers import environment

ANSWER_TOKENS = 160
CITE_TOKENS = 500
"""The header x-holdfast-cite-tokens: all contents are longer, so that all are cited."""
SYSTEM = (
    "You answer questions about documents. Reply with the exact value or text from the document, "
    "and nothing else."
)
TALK_SYSTEM = (
    "You answer questions about a conversation between two people. Reply with a few words, "
    "and give dates as day, month and year."
)
HAS_READ = "I have read the document. What would you like to know?"
_TOOL = {
    "type": "function",
    "function": {
        "name": "read_document",
        "description": "Return the content of a document.",
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
_PATIENCE = 3_600
Messages = list[dict[str, Any]]


class Outcome(NamedTuple):
    """The answer of a turn and what it took."""

    text: str
    """What the client got."""
    calls: list[ModelCall]
    """Requests that reached the model, hidden ones included."""
    is_client_call: bool = False
    """Whether the answer is another call of the client's tool."""
    openings: int = 0
    """Calls of the proxy's tool that were answered."""
    valid_openings: int = 0
    """Those that were answered with a part of the content."""


class Rig(NamedTuple):
    """The model and, in front of it, a proxy."""

    model: Model
    model_url: str
    proxy_url: str


def question_messages(question: JudgeQuestion, shown: str) -> Messages:
    """Return the conversation of a question, with `shown` as the tool's result."""
    assert question.content is not None
    name = f"{question.content.kind}-{question.content.id}"
    arguments = json.dumps({"name": name})
    function = {"name": "read_document", "arguments": arguments}
    call = {"id": f"call_{question.content.id}", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": call["id"], "content": shown}
    is_late = question.about == "late"
    opening = f"Please read the document {name}." if is_late else question.text
    messages: Messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": opening},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result,
    ]
    if is_late:
        messages.append({"role": "assistant", "content": HAS_READ})
        messages.append({"role": "user", "content": question.text})
    return messages


def ask(rig: Rig, url: str, messages: Messages, session: str = "", tools: bool = True) -> Outcome:
    """Send a conversation and return the outcome."""
    rig.model.calls.clear()
    body: dict[str, Any] = {
        "model": weights.NAME,
        "messages": messages,
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
    }
    if tools:
        body["tools"] = [_TOOL]
    headers = {"x-holdfast-cite-tokens": f"{CITE_TOKENS}"}
    message = _post(url, body, headers | ({"x-holdfast-session": session} if session else {}))
    calls = list(rig.model.calls)
    return Outcome(message.get("content") or "", calls, bool(message.get("tool_calls")))


def _post(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    with contextlib.closing(connection):
        fields = {"Content-Type": "application/json", **headers}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), fields)
        response = connection.getresponse()
        data = response.read()
    if response.status != 200:
        raise OSError(f"{url} answered {response.status}: {data[:300]!r}")
    message: dict[str, Any] = json.loads(data)["choices"][0]["message"]
    return message


def full(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the whole content."""
    assert question.content is not None
    return ask(rig, rig.model_url, question_messages(question, question.content.text))


def citation(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the proxy's citation, without the tool that opens it."""
    return ask(rig, rig.model_url, question_messages(question, cited_text(rig, question)))


def truncation(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the first tokens of the content, as many as the citation has."""
    assert question.content is not None
    start = first_tokens(question.content.text, count(cited_text(rig, question)))
    return ask(rig, rig.model_url, question_messages(question, start))


def proxy(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Send the conversation through the proxy; for a late question after a turn that reads."""
    assert question.content is not None
    session = f"judge-{uuid.uuid4().hex}"
    messages = question_messages(question, question.content.text)
    if question.about == "late":
        rig.model.scripted = HAS_READ
        ask(rig, rig.proxy_url, messages[:4], session)
    outcome = ask(rig, rig.proxy_url, messages, session)
    return _with_openings(outcome, question.content.text)


def late_hand(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the citation, and the passage that answers behind the question."""
    messages = question_messages(question, cited_text(rig, question))
    messages[-1]["content"] += f"\n\nFrom the document:\n{passage_for(question)}"
    return ask(rig, rig.model_url, messages)


def cited_text(rig: Rig, question: JudgeQuestion) -> str:
    """Return the citation that the proxy puts in the place of the content."""
    assert question.content is not None
    messages = question_messages(question, question.content.text)[:4]
    rig.model.scripted = HAS_READ
    sent = ask(rig, rig.proxy_url, messages, f"judge-{uuid.uuid4().hex}").calls[0].messages
    return next(text_of(message) for message in sent if message["role"] == "tool")


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, in one piece or in parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _with_openings(outcome: Outcome, content: str) -> Outcome:
    """Return the outcome with its openings counted: the calls of the proxy's tool that it answered.

    An opening is valid if its result shows a line or a value of the content. What the proxy says
    about it does not matter, so that versions with different messages can be compared. A call after
    which the proxy sends the first request again is none.
    """
    packed = "".join(content.split())
    results = [
        text_of(message)
        for before, after in itertools.pairwise(outcome.calls)
        for message in after.messages[len(before.messages) :]
        if message["role"] == "tool"
    ]
    valid = sum(_shows_part(result, packed) for result in results)
    return outcome._replace(openings=len(results), valid_openings=valid)


def _shows_part(result: str, packed: str) -> bool:
    lines = ("".join(re.sub(r"^\s*\d+[:|\t]", "", line).split()) for line in result.splitlines())
    return any(
        len(text) >= 6 and text.rstrip(",") in packed
        for line in lines
        for text in (line, line.partition(":")[2])  # a passage stands behind its place
    )


def peer(name: str, rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show what another tool makes of the content, with nothing to ask back."""
    assert question.content is not None
    shown = _shrink(name)(question.content.text, question.text)
    return ask(rig, rig.model_url, question_messages(question, shown))


@functools.cache
def _shrink(name: str) -> Callable[[str, str], str]:
    process = environment.start(name)
    assert process.stdin is not None
    assert process.stdout is not None
    requests, replies = process.stdin, process.stdout

    def shrink(text: str, question: str) -> str:
        for line in ({"id": "1", "text": text}, {"id": "1", "question": question}):
            requests.write(json.dumps(line) + "\n")
        requests.flush()
        reply = replies.readline()
        if not reply:
            raise EOFError(f"{name} ended with status {process.wait()}")
        shown: str = json.loads(reply)["text"]
        return shown

    return shrink


def assembled(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the turn that the engine assembles of a long conversation, in 1,500 tokens."""
    messages = talks.assembled_messages(question.talk, question.text)
    return ask(rig, rig.model_url, _with_system(messages), tools=False)


def last(rig: Rig, question: JudgeQuestion) -> Outcome:
    """Show the last 1,450 tokens of a long conversation."""
    messages = talks.last_messages(question.talk, question.text)
    return ask(rig, rig.model_url, _with_system(messages), tools=False)


def _with_system(messages: Messages) -> Messages:
    """Return the messages with our instruction in front, joined with a system message there."""
    if messages and messages[0]["role"] == "system":
        joined = f"{TALK_SYSTEM}\n\n{messages[0]['content']}"
        return [{"role": "system", "content": joined}, *messages[1:]]
    return [{"role": "system", "content": TALK_SYSTEM}, *messages]


class Condition(NamedTuple):
    """How to answer, and which questions."""

    answer: Callable[[Rig, JudgeQuestion], Outcome]
    about: str
    """`whole`, `late` or `talk`."""


CONDITIONS = {
    "full": Condition(full, "whole"),
    "citation": Condition(citation, "whole"),
    "proxy": Condition(proxy, "whole"),
    "truncation": Condition(truncation, "whole"),
    "headroom": Condition(functools.partial(peer, "headroom"), "whole"),
    "llmtrim": Condition(functools.partial(peer, "llmtrim"), "whole"),
    "late": Condition(proxy, "late"),
    "late-hand": Condition(late_hand, "late"),
    "late-full": Condition(full, "late"),
    "assembled": Condition(assembled, "talk"),
    "last": Condition(last, "talk"),
}


@contextlib.contextmanager
def proxy_process(upstream: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a proxy of this tree in front of `upstream`, with these settings."""
    fields = {name: value for name, value in os.environ.items() if "HOLDFAST_" not in name}
    fields["PYTHONUNBUFFERED"] = "1"
    fields |= {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
    holdfast = Path(environment.ROOT) / ".venv" / "bin" / "holdfast"
    command = [str(holdfast), "serve", "--port", "0", "--store", "memory:", "--openai", upstream]
    process = subprocess.Popen(  # noqa: S603
        command, env=fields, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        match = re.search(r"http://\S+", first)
        if match is None:
            raise EOFError(f"the proxy did not start: {first!r}")
        # A pipe that nobody reads would block the proxy once it is full.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield match[0]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
