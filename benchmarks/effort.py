"""What the most used ways through Holdfast take, in calls: the short form of the benchmarks.

Counted are the functions of the package that are entered, for requests that are always the same.
Times differ with the machine and with what else runs on it; calls do not, so `make check` can hold
them against `effort.json` and name what has come to do more. What grows with the conversation shows
in the same requests behind a long history. Code that runs inside one call, such as a comparison of
bytes, does not show here: that is for `make bench` and `ratios.json`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import holdfast
from holdfast import Holdfast, cite, count, read
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions, fit
from holdfast.store import open_store
from holdfast.tokens import vocabulary
from holdfast.wire import Conversation

FILE = Path(__file__).with_name("effort.json")
SHORT, LONG = 200, 1600
"""Messages."""
ALLOWED = 4 / 3
"""Times as many calls as before: `make bench` names what fell by a third, and so does this."""

_PACKAGE = str(Path(holdfast.__file__).parent) + "/"
_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Frames of their own in Python 3.11, and not in later ones."""
_WIDE = 10**9
_MODEL = "gpt-4o"
_CLAUDE = "claude-sonnet-4-5"

Body = dict[str, Any]


class Calls:
    """Counts the functions of the package that are entered in this thread, within a `with`."""

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._noted)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _noted(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in _INLINED:
            self.number += code.co_filename.startswith(_PACKAGE)


# --- requests -----------------------------------------------------------------------------------


def chat(messages: int) -> Body:
    """An agent's request to OpenAI: a question, then calls and their results."""
    history: list[Body] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Find out why the build fails."},
    ]
    for n in range((messages - 2) // 2):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/file_{n}.py"})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": f"call_{n}", "content": f"line {n} of the file"}
        history.append(result)
    return {"model": _MODEL, "messages": history}


def cited_last(messages: int) -> Body:
    """The same, whose last results give way to citations when they arrive."""
    body = chat(messages)
    first = messages // 50 * 50  # the same for all turns of a conversation
    for n, result in enumerate(body["messages"]):
        if n > first and result["role"] == "tool":
            rows = ({"id": row, "at": n, "state": "stored", "size": row**2} for row in range(45))
            result["content"] = json.dumps(list(rows))
    return body


def marked(messages: int) -> Body:
    """One to Anthropic, with the cache marks that clients move to their last two questions."""
    history: list[Body] = [
        {
            "role": "assistant" if n % 2 else "user",
            "content": [{"type": "text", "text": f"Message {n} about the build."}],
        }
        for n in range(messages - 1)
    ]
    for message in history[-1::-2][:2]:
        message["content"][0]["cache_control"] = {"type": "ephemeral"}
    return {"model": _CLAUDE, "max_tokens": 100, "messages": history}


Make = Callable[[int], Body]


def turns(make: Make, messages: int) -> Iterator[bytes]:
    """Requests of one conversation, each with two messages more."""
    for more in range(4):
        body = make(messages + 2 * more)
        yield json.dumps(body, separators=(",", ":")).encode()


# --- ways ---------------------------------------------------------------------------------------


def counted_on(messages: int) -> int:
    """Count a request from its bytes, when the one before was counted."""
    *earlier, body = turns(chat, messages)
    for shorter in earlier:
        count(shorter, model=_MODEL)
    with Calls() as calls:
        count(body, model=_MODEL)
    return calls.number


def fitted_on(messages: int, share: float) -> int:
    """Fit a request with the state of the one before, to a share of what the first one takes."""
    *earlier, body = turns(chat, messages)
    limit = round(count(earlier[0], model=_MODEL).tokens * share)
    state = None
    for shorter in earlier:
        state = fit(shorter, dialect="openai-chat", limit=limit, state=state).state
    with Calls() as calls:
        fit(body, dialect="openai-chat", limit=limit, state=state)
    return calls.number


def went_on(
    make: Make, dialect: str, messages: int, share: float = _WIDE, *, cites: bool = False
) -> int:
    """Read, fit and write down the next request of a session."""
    return asyncio.run(_went_on(make, dialect, messages, share, cites=cites))


async def _went_on(make: Make, dialect: str, messages: int, share: float, *, cites: bool) -> int:
    store = await open_store("memory:")
    *earlier, last = turns(make, messages)
    limit = round(count(earlier[0], dialect=dialect).tokens * share)
    rules = CitingRules(policy="always" if cites else "never")
    options = FitOptions(limit=limit, cites=cites, opens=cites, rules=rules)
    engine = Holdfast(store, options=options)
    before: Conversation | None = None
    for body in earlier:
        before = await _turn(engine, body, dialect, before)
    with Calls() as calls:
        await _turn(engine, last, dialect, before)
    await store.close()
    return calls.number


async def _turn(
    engine: Holdfast, body: bytes, dialect: str, before: Conversation | None
) -> Conversation:
    conversation = read(body, dialect, previous=before)
    session = await engine.session_of(conversation)
    fitted = await session.fit(conversation)
    await engine.observe(session, fitted, {"prompt_tokens": 10, "completion_tokens": 5})
    return conversation


def first_sight(messages: int) -> int:
    """Fit a request that nobody has seen before."""
    body = json.dumps(chat(messages)).encode()
    vocabulary.shared.forget()
    with Calls() as calls:
        fit(body, dialect="openai-chat", limit=_WIDE)
    return calls.number


def cited() -> int:
    """Cite a log of 1,000 lines with a question."""
    lines = (
        f"2026-11-16T09:{n // 60:02}:{n % 60:02} {'ERROR' if n == 77 else 'INFO'} took job {n}"
        for n in range(1000)
    )
    log = "\n".join(lines)
    with Calls() as calls:
        cite(log, question="Why did job 77 fail?")
    return calls.number


def measured() -> dict[str, int]:
    """The calls of every way, by its name."""
    ways: dict[str, Callable[[int], int]] = {
        "count, one exchange added": counted_on,
        "fit with state": lambda n: fitted_on(n, 2.0),
        "fit with state, folded": lambda n: fitted_on(n, 0.5),
        "session, next request": lambda n: went_on(chat, "openai-chat", n),
        "session, next request, folded": lambda n: went_on(chat, "openai-chat", n, 0.5),
        "session, next request, a result cited": lambda n: went_on(
            cited_last, "openai-chat", n, cites=True
        ),
        "session, next request, cache marks moved": lambda n: went_on(marked, "anthropic", n),
        "fit at first sight": first_sight,
    }
    efforts = {
        f"{name}: {n:,} messages": way(n) for name, way in ways.items() for n in (SHORT, LONG)
    }
    return {**efforts, "cite a log": cited()}


# --- against what it was ------------------------------------------------------------------------


def worse(now: dict[str, int], before: dict[str, int]) -> list[str]:
    """What takes more calls than it did by more than is allowed, in words."""
    return [
        f"{name}: {number:,} calls, were {before[name]:,}"
        for name, number in now.items()
        if name in before and number > before[name] * ALLOWED
    ]


def main() -> None:
    """Print the efforts, or compare them with those on file; end with 1 if any grew."""
    warnings.simplefilter("ignore")
    efforts = measured()
    if "--save" in sys.argv[1:]:
        FILE.write_text(json.dumps(efforts, indent=2) + "\n")
        print(f"wrote {FILE.name}")
        return
    if "--check" not in sys.argv[1:]:
        for name, number in efforts.items():
            print(f"{number:>10,}  {name}")
    if grown := worse(efforts, json.loads(FILE.read_text())):
        print("These ways through the code take more calls than they did, by over a third:")
        print("\n".join(f"  {line}" for line in grown))
        print("Make them shorter, or accept it: python -m benchmarks.effort --save")
        sys.exit(1)


if __name__ == "__main__":
    main()
