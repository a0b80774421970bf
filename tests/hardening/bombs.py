"""Thirty hostile requests, by name: each once stopped a proxy, ours or another's, or might.

A bomb is built at a scale: 1.0 is its size in the campaign, and `make test` uses a small part of
it. Each has its expected response.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

CHAT = "/v1/chat/completions"
COUNTING = "/v1/messages/count_tokens"
MODEL = "gpt-4o"
MB = 1_000_000


class Thrown(NamedTuple):
    """Requests that are sent at once, and how."""

    bodies: tuple[bytes, ...]
    path: str = CHAT
    headers: tuple[tuple[str, str], ...] = ()
    chunk: int = 0
    """Bytes of each piece in which the client sends; 0: all at once."""
    answer: str = "plain"
    """The upstream's behaviour: see blunt.py."""
    pages: tuple[str, ...] = ()
    """Paths of the dashboard that are looked at once a request is answered."""


class Bomb(NamedTuple):
    """A hostile request."""

    name: str
    build: Callable[[float], Thrown]
    statuses: tuple[int, ...] = (200,)
    """The allowed statuses for the client."""


def _body(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"model": MODEL, "messages": messages, **more}).encode()


def _call(call_id: str, name: str = "fetch") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def result(*contents: str, question: str = "What went wrong?") -> bytes:
    """A request in which tools have just given some contents."""
    calls = [_call(f"call_{n}") for n in range(len(contents))]
    answers = [
        {"role": "tool", "tool_call_id": f"call_{n}", "content": content}
        for n, content in enumerate(contents)
    ]
    asked = {"role": "user", "content": question}
    return _body([asked, {"role": "assistant", "content": None, "tool_calls": calls}, *answers])


def _times(unit: str, size: float) -> str:
    return unit * (int(size) // len(unit) + 1)


def log_lines(size: float) -> str:
    """A log that is never twice the same line."""
    chance = random.Random(11)
    words = ["".join(chance.choices("abcdefghij", k=chance.randint(2, 9))) for _ in range(500)]
    lines: list[str] = []
    length = 0
    while length < size:
        pair = f"{chance.choice(words)} {chance.choice(words)}"
        lines.append(f"2026-01-01 12:00:{len(lines) % 60:02d} INFO {pair} took {len(lines)} ms")
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def _one(content: Callable[[float], str]) -> Callable[[float], Thrown]:
    return lambda scale: Thrown((result(content(scale)),))


def _calls(scale: float) -> Thrown:
    return Thrown((result(*["ok"] * int(20_000 * scale)),))


def _messages(scale: float) -> Thrown:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": "hi"} for n in range(int(100_000 * scale) | 1)]
    return Thrown((_body(said),))


def _assembled(scale: float) -> Thrown:
    roles = ("user", "assistant")
    count = int(40_000 * scale) | 1
    said = [{"role": roles[n % 2], "content": f"Ship {n} has {n % 97}."} for n in range(count)]
    return Thrown((_body(said),), headers=(("x-holdfast-mode", "assemble"),))


def _looked_at(scale: float) -> Thrown:
    roles = ("user", "assistant")
    count = int(100_000 * scale) | 1
    said = [{"role": roles[n % 2], "content": f"<Line> {n} & more\x01"} for n in range(count)]
    session = f"looked-at-{scale}"
    here = f"/sessions/{session}"
    pages = (here, f"{here}/turns/1", f"{here}/turns/1/asked", f"{here}/export.json", "/lost")
    return Thrown((_body(said),), headers=(("x-holdfast-session", session),), pages=pages)


def _many_calls(answer: str) -> Callable[[float], Thrown]:
    def build(scale: float) -> Thrown:
        streams = {"stream": True} if answer == "streamed" else {}
        body = _body([{"role": "user", "content": f"Call {answer} tools."}], **streams)
        if answer == "hidden":
            body = result(log_lines(50_000), question="Open it all.")
        return Thrown((body,), answer=f"calls:{answer}:{int(100_000 * scale)}")

    return build


def _user_text(unit: str) -> Callable[[float], Thrown]:
    def build(scale: float) -> Thrown:
        return Thrown((_body([{"role": "user", "content": _times(unit, 15e6 * scale)}]),))

    return build


def _pasted_log(scale: float) -> Thrown:
    text = log_lines(30e6 * scale)
    return Thrown((_body([{"role": "user", "content": f"{text}\n\nWhat went wrong?"}]),))


def _keys(scale: float) -> Thrown:
    keys = {f"k{n}": n for n in range(int(790_000 * scale))}
    return Thrown((_body([{"role": "user", "content": "hi"}], metadata=keys),))


def _nested(scale: float) -> Thrown:
    deep = int(200_000 * scale)
    raw = b'{"model":"gpt-4o","messages":[{"role":"user","content":' + b"[" * deep + b"]" * deep
    return Thrown((raw + b"}]}",))


def _tools(scale: float) -> Thrown:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "parameters": schema}}
        for n in range(int(10_000 * scale))
    ]
    return Thrown((_body([{"role": "user", "content": "hi"}], tools=tools),))


def _schema(scale: float) -> Thrown:
    properties = {f"field_{n}": {"type": "string", "enum": ["a"]} for n in range(int(1e5 * scale))}
    function = {"name": "huge", "parameters": {"type": "object", "properties": properties}}
    tools = [{"type": "function", "function": function}]
    return Thrown((_body([{"role": "user", "content": "hi"}], tools=tools),))


def _image(scale: float) -> Thrown:
    data = base64.b64encode(random.Random(3).randbytes(int(23e6 * scale))).decode()
    url = {"url": f"data:image/png;base64,{data}"}
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": url}]
    return Thrown((_body([{"role": "user", "content": parts}]),))


def _count(scale: float) -> Thrown:
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": log_lines(20e6 * scale)}],
    }
    return Thrown((json.dumps(body).encode(),), COUNTING)


def _gzipped(scale: float) -> Thrown:
    packed = gzip.compress(b'{"model": "' + bytes(int(2e9 * min(scale, 0.1))) + b'"}')
    return Thrown((packed,), headers=(("content-encoding", "gzip"),))


def _slow_client(scale: float) -> Thrown:
    body = result("x y " * int(75_000 * scale))
    return Thrown((body,), chunk=1)


def _streamed(answer: str) -> Callable[[float], Thrown]:
    def build(scale: float) -> Thrown:
        body = _body([{"role": "user", "content": "hi"}], stream=True)
        return Thrown((body,), answer=f"{answer}:{scale}")

    return build


def _opened(options: str) -> Callable[[float], Thrown]:
    def build(scale: float) -> Thrown:
        return Thrown((result(_times("a b ", 10e6 * scale)),), answer=f"expand:{options}")

    return build


def _sessions(scale: float) -> Thrown:
    page = log_lines(50_000)
    asked = (f"Question {n}: what went wrong?" for n in range(max(2, int(200 * scale))))
    return Thrown(tuple(result(page, question=question) for question in asked))


def _results(scale: float) -> Thrown:
    # A pointer of some 80 tokens takes the place of each result. All of them fill 98 to 103 % of
    # the model's own window, depending on their wording, and what does not fit is refused.
    roomy = (("x-holdfast-budget", "200000"),)
    page = log_lines(20_000)
    body = result(*(f"{page}\n{n}" for n in range(int(1_000 * scale))))
    return Thrown((body,), headers=roomy)


def _questions(scale: float) -> Thrown:
    question = " ".join(f"word{n}" for n in range(int(200_000 * scale)))
    return Thrown((result(log_lines(1e6 * scale), question=question),))


def _half_characters(scale: float) -> Thrown:
    body = _body([{"role": "user", "content": "hi"}])
    return Thrown((body.replace(b"hi", b"\\ud800" * int(3e6 * scale)),))


def _feed(_: float) -> str:
    return "<!---->" * 300 + "<feed>" + "x " * 600


def _links(scale: float) -> str:
    return "<html><body>" + _times('<a href="/x">y</a> ', 1e6 * scale) + "</body></html>"


def _attributes(scale: float) -> str:
    return "<html><body><p " + " ".join(f'a{n}="{n}"' for n in range(int(1e5 * scale))) + ">x</p>"


def _rows(scale: float) -> str:
    return json.dumps([{"id": n, "name": f"row {n}", "ok": True} for n in range(int(4e5 * scale))])


def _base64(scale: float) -> str:
    return base64.b64encode(random.Random(1).randbytes(int(15 * MB * scale))).decode()


def _wide(scale: float) -> str:
    columns = range(int(20_000 * scale))
    head = ",".join(f"column_{n}" for n in columns)
    return "\n".join([head, *[",".join(str(n) for n in columns)] * 20])


BOMBS: tuple[Bomb, ...] = (
    Bomb("feed of comments, 3 KB", _one(_feed)),
    Bomb("page of links, 1 MB", _one(_links)),
    Bomb("element of 100,000 attributes", _one(_attributes)),
    Bomb("Python list of quotes, 1 MB", _one(lambda s: "[None, " + _times("\\'", MB * s) + "]")),
    Bomb("dotted name, 1 MB", _one(lambda s: _times("a.", MB * s))),
    Bomb(
        "CREATE TABLE of brackets, 1 MB",
        _one(lambda s: "CREATE TABLE t (" + _times("( ", MB * s) + _times(" ", 1e5 * s)),
    ),
    Bomb("CSV of 20,000 columns", _one(_wide)),
    Bomb("JSON of 400,000 rows", _one(_rows)),
    Bomb("log, 20 MB", _one(lambda s: log_lines(20 * MB * s))),
    Bomb("one word, 8 MB", _one(lambda s: "x" * int(8 * MB * s))),
    Bomb("one line, 10 MB", _one(lambda s: _times("some words in a line ", 10 * MB * s))),
    Bomb("escapes, 20 MB", _one(lambda s: '\n"\\' * int(3.3 * MB * s))),
    Bomb("base64, 20 MB", _one(_base64)),
    Bomb("characters as \\u escapes, 20 MB", _one(lambda s: "é漢" * int(1.6 * MB * s))),
    Bomb("brackets in a text, 5 MB", _one(lambda s: "[" * int(5 * MB * s))),
    Bomb("1,000 results of 20 KB", _results),
    Bomb("200 sessions at once", _sessions),
    Bomb("20,000 parallel calls", _calls, (200, 400)),
    Bomb("100,000 messages", _messages, (200, 400)),
    Bomb("790,000 keys", _keys, (413,)),
    Bomb("nested 200,000 deep", _nested, (400, 413)),
    Bomb("10,000 tools", _tools, (200, 400)),
    Bomb("tool schema, 5 MB", _schema, (200, 400, 413)),
    Bomb("image, 30 MB", _image, (200, 400)),
    Bomb("half characters, 18 MB", _half_characters, (400,)),
    Bomb("gzip of 200 MB", _gzipped, (413,)),
    Bomb("count_tokens, 20 MB", _count),
    Bomb("client sends 300,000 bytes one by one", _slow_client),
    Bomb("upstream sends 300,000 bytes one by one", _streamed("bytes")),
    Bomb("one event of 10 MB", _streamed("event")),
    Bomb("40,000 messages, assembled", _assembled),
    Bomb("pages of 100,000 messages", _looked_at, (200, 400)),
    Bomb("answer with 100,000 calls", _many_calls("whole")),
    Bomb("stream with 100,000 calls", _many_calls("streamed")),
    Bomb("100,000 calls of our own tool", _many_calls("hidden")),
    Bomb("log pasted by the user, 30 MB", _pasted_log, (200, 400)),
    Bomb("15 million empty lines of the user", _user_text("\n"), (200, 400)),
    Bomb("7 million short lines of the user", _user_text("a\n"), (200, 400)),
    Bomb("expand_ref: \\b on 10 MB", _opened(json.dumps({"pattern": "\\b"}))),
    Bomb("expand_ref: a question on 10 MB", _opened(json.dumps({"query": "a b " * 500}))),
)
