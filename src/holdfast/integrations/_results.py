"""A tool's result that a framework should not even keep: cited when it comes back.

results: after host, before the adapters. A framework keeps each result in a history of its own, and
copies, stores and sends it with every turn to come. What fits is decided with each request, by what
room there is; a result of this size gives way in any window, so it does at once.
"""

from __future__ import annotations

import msgspec

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.expand.tool import NAME
from holdfast.integrations._host import Host, log

RESULT_TOKENS = 20_000
"""Tokens from which on a result is cited before the framework has kept it."""


async def cited(
    host: Host, text: str, *, tool: str, over: int, question: str = "", opener: str = NAME
) -> str | None:
    """The citation in the place of a result; None if it is short, or nothing can be stored.

    `opener` is what the model knows the tool by that opens refs.
    """
    if len(text) <= over:  # a token is a character at least
        return None

    async def work(engine: Holdfast) -> str | None:
        if await engine.workers.off_loop(len(text), lambda: count(text)) <= over:
            return None
        own = await engine.of(engine.scope)
        rules = msgspec.structs.replace(engine.options.rules, opener=opener)
        own.options = msgspec.structs.replace(engine.options, rules=rules)
        return (await own.cite(text, tool=tool, question=question or None)).text

    try:
        return await host.wait(work)
    except HoldfastError as error:
        log.warning("a tool's result stays as it is: %s", error)
        return None
