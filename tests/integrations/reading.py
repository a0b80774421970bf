"""One task for every framework, and checks of its requests.

The model reads sixty logs one after the other and is then asked for a line of an early one. It
answers from its messages, or opens a citation: a lost line gives a different answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast import Holdfast
from holdfast.errors import StoreUnavailableError
from holdfast.store.sqlite import SqliteStore
from tests.provider import chat_rules, gemini_rules
from tests.provider.tokens import least_tokens

LOGS = 60
LIMIT = 16_000
LINES = 300
"""Of a log: 5,400 tokens, which take a third of the window, so that each is cited at once."""
QUESTIONS = ("Read all the logs.", "What is the code of step 71 in log 3?")
_LINE = re.compile(r"step 3-71 done, code (\w+)")
_REF = re.compile(r"ref:[a-z_]+:[0-9a-f]+")
_LISTS = {"openai-chat": ("messages", chat_rules), "gemini": ("contents", gemini_rules)}


def code(number: int, step: int) -> str:
    """Return the content of a line, which cannot be guessed."""
    return hashlib.sha256(f"{number} {step}".encode()).hexdigest()[:8]


def read_log(number: int) -> str:
    """Reads a log."""
    return "\n".join(
        f"{n:04} INFO step {number}-{n} done, code {code(number, n)}" for n in range(LINES)
    )


ANSWER = f"The code is {code(3, 71)}."


class Move(NamedTuple):
    """Return the model's next turn: a tool call or an answer."""

    tool: str = ""
    arguments: Mapping[str, Any] = {}
    text: str = ""


class Reader:
    """The model; it keeps the requests it was sent."""

    def __init__(self, logs: int = LOGS) -> None:
        self.logs = logs
        self.requests: list[dict[str, Any]] = []
        self.opened: list[str] = []
        self.read = 0

    def __call__(self, request: dict[str, Any]) -> Move:
        self.requests.append(request)
        if self.read < self.logs:
            self.read += 1
            return Move("read_log", {"number": self.read - 1})
        shown = json.dumps(request)
        if QUESTIONS[1] not in shown:
            return Move(text="I have read them.")
        if line := _LINE.search(shown):
            return Move(text=f"The code is {line[1]}.")
        refs = [ref for ref in dict.fromkeys(_REF.findall(shown)) if ref not in self.opened]
        if not refs:
            return Move(text="I cannot find it.")
        self.opened.append(refs[0])
        return Move("expand_ref", {"ref_id": refs[0], "pattern": "step 3-71 "})


def judge(reader: Reader, dialect: str, model: str) -> None:
    """Every request fits as the provider counts, is one it takes, and begins as the last one."""
    key, rules = _LISTS[dialect]
    before: Sequence[Any] = ()
    anew = 0
    for request in reader.requests:
        assert least_tokens(request, dialect, model) <= LIMIT
        assert list(rules.violations(request, model)) == []
        messages = request[key]
        anew += messages[: len(before)] != before
        before = messages
    assert anew <= 3  # a fold is rare, and large
    assert len(reader.requests) >= LOGS


class Broken(SqliteStore):
    """A store that takes nothing."""

    async def put(self, *_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("the disk is full")


async def check_record(engine: Holdfast, requests: int) -> None:
    """Check that requests can be rebuilt and cited contents are stored exactly."""
    [record] = await engine.store.sessions(engine.scope)
    assert record.turns == requests
    session = await engine.session(record.session).load()
    rebuilt = await session.rebuild(requests)
    assert rebuilt.count(b"INFO step") >= LOGS * LINES
    refs = await engine.store.refs(engine.scope, limit=1000)
    stored = [await engine.store.get(engine.scope, ref.ref_id) for ref in refs]
    texts = {each.data.decode() for each in stored if each is not None}
    assert sum(read_log(n) in texts for n in range(LOGS)) > LOGS / 2
