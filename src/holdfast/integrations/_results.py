"""A tool's result cited when it comes back, where a framework lets nobody change its requests.

results: after host, before the adapters. Elsewhere results stay whole in the framework's history,
and what is cited is so in what is sent, as an edit of its request's record.
"""

from __future__ import annotations

import msgspec

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.expand.tool import NAME
from holdfast.integrations._host import Host, log


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
