"""The effects of the settings of assembled turns, in the library and in the running proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.assemble import AssembledContext, HeaderParts, ToolIntent
from holdfast.engine import Holdfast
from holdfast.settings import Settings
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import ask, path_of, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_assemble import asking, history
from tests.surfaces.proxy.upstream import Upstream
from tests.wiring.wired import LONG, Wired

_OWN_HEADER = "a client's request has rules and tools of its own, which stay as they are"


def assembled_by(
    setting: str, seen: Callable[[AssembledContext], object]
) -> Callable[[Any, Path], object]:
    """Return the observation of a turn with a value of a setting."""

    async def turn(value: Any) -> AssembledContext:
        settings = Settings(**{"store_url": "memory:", setting: value})
        async with Holdfast.open(settings=settings) as engine:
            options = engine.assembler.options
            tools = (ToolIntent("search", "finds pages"),)
            header = HeaderParts(tools=tools, profile=options.header.profile)
            engine.assembler.options = msgspec.structs.replace(options, header=header)
            await engine.cite(LONG, tool="read_log", session="s")
            return await engine.assemble(session="s", user_turn="Which step failed?")

    def observe(value: Any, _: Path) -> object:
        return seen(asyncio.run(turn(value)))

    return observe


def header_of(context: AssembledContext) -> str:
    return context.header[0]["content"]


def sent_by(setting: str, seen: Callable[[Got], object]) -> Callable[[Any, Path], object]:
    """Return the observation of the request that is sent for a long chat, with a value of a
    setting.
    """

    def observe(value: Any, _: Path) -> object:
        with Upstream() as upstream:
            upstream.always = says(text("Well."))
            chosen = {"mode": "assemble", setting: value}
            with running_proxy(chosen, upstream.url) as proxy:
                body = json.dumps(asking(history(50))).encode()
                headers = {"authorization": f"Bearer {KEY}"}
                assert ask(proxy.url + path_of("openai-chat"), body, headers).status == 200
            return seen(upstream.requests[0])

    return observe


def makers_of_what_is_remembered(embedder: str) -> object:
    """Return the embedder of the proxy's memory of a long chat."""
    chosen = {"mode": "assemble", "embedder": embedder}
    with running_proxy(chosen) as proxy:
        body = json.dumps(asking(history(3))).encode()
        ask(proxy.url + path_of("openai-chat"), body, {"authorization": f"Bearer {KEY}"})
        turns = proxy.service.engine.store.remembered
        [scope] = proxy.do(proxy.service.engine.store.scopes())
        return {turn.maker for turn in proxy.do(turns.indexed(scope))}


LIBRARY: dict[str, Wired | str] = {
    "mode": "the caller of the library chooses: `fit` or `assemble`",
    "assemble_tokens": Wired(assembled_by("assemble_tokens", lambda c: c.budget.limit), 900, 3_000),
    "profile": Wired(assembled_by("profile", header_of), {}, {"project": "alfred"}),
    "use_tool_directory": Wired(assembled_by("use_tool_directory", header_of), True, False),
    "enable_cas_refs": Wired(assembled_by("enable_cas_refs", lambda c: c.lazy_tools), True, False),
}
PROXY: dict[str, Wired | str] = {
    "mode": Wired(sent_by("mode", lambda got: got.tokens <= 3_000), "fit", "assemble"),
    "assemble_tokens": Wired(
        sent_by("assemble_tokens", lambda got: got.tokens <= 1_000), 1_000, 3_000
    ),
    "profile": _OWN_HEADER,
    "use_tool_directory": _OWN_HEADER,
    "enable_cas_refs": Wired(
        sent_by("enable_cas_refs", lambda got: sorted(got.tools)), True, False
    ),
}
