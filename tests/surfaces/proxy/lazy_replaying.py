"""Recorded agents with many additional tools, replayed through a running proxy.

The recorded model uses only the tools that the request shows: a shown tool is called by its name; a
hidden one is searched with find_tools when it is first needed, and called with call_tool, or by its
name if the provider has loaded it. The client must get the calls as recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.fitting.test_citing import in_dialect
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import Running
from tests.surfaces.proxy.many_tools import MANY
from tests.surfaces.proxy.replaying import MODELS, Retold, Story, in_prompt_order, same_bytes
from tests.surfaces.proxy.spoken import call, says
from tests.wire.responses.streams import Part, Script


def with_tools(story: Story, more: list[dict[str, Any]] = MANY) -> Story:
    """A story whose client declares other tools too."""
    chat = {
        "model": MODELS[story.dialect],
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": function} for function in more],
    }
    added = json.loads(in_dialect(chat, story.dialect))["tools"]
    own = story.frame.get("tools", [])
    if story.dialect == "gemini":
        declared = [tool for group in (own, added) for tool in group[0]["functionDeclarations"]]
        return replace(story, frame=story.frame | {"tools": [{"functionDeclarations": declared}]})
    return replace(story, frame=story.frame | {"tools": [*own, *added]})


def lazy_model(dialect: str) -> Callable[[Script], Callable[[Got], Script]]:
    """Return a model that gives the recorded answers with the tools that a request shows."""
    looked_for: set[str] = set()

    def model(answer: Script) -> Callable[[Got], Script]:
        def turn(got: Got) -> Script:
            hidden = {part.name for part in answer.calls} - got.tools
            if new := sorted(hidden - looked_for):
                looked_for.update(new)
                number = len(looked_for)
                return says(
                    *(call("find_tools", {"query": name}, f"find_{number}_{n}")
                      for n, name in enumerate(new))
                )  # fmt: skip
            by_hand = hidden if "call_tool" in got.tools else ()
            parts = (_by_hand(part, dialect) if part.name in by_hand else part
                     for part in answer.parts)  # fmt: skip
            return replace(answer, parts=tuple(parts))

        return turn

    return model


def _by_hand(part: Part, dialect: str) -> Part:
    given = json.loads(part.text or "{}")
    arguments = json.dumps(given) if dialect == "gemini" else given
    return call("call_tool", {"name": part.name, "arguments": arguments}, part.id)


def requests_of(told: Retold) -> list[Got]:
    """All that reached the upstream, in its order."""
    return [got for turn in told.turns for got in (*turn.between, turn.got) if got is not None]


def kept_shares(told: Retold) -> Iterator[float]:
    """Of each request, the share with which the next one begins."""
    bodies = [in_prompt_order(got.body, got.dialect) for got in requests_of(told)]
    for before, now in pairwise(bodies):
        yield same_bytes(before, now) / len(before)


def rebuilt(told: Retold, proxy: Running) -> Iterator[bytes]:
    """The client's requests, from the store alone."""
    engine = proxy.service.engine
    session = engine.session(told.turns[0].answered.headers["x-holdfast-session"])
    for number in range(1, len(told.turns) + 1):
        yield proxy.do(session.rebuild(number))
