"""Answer a client that asks how many tokens its request has: as many as would be sent.

counting: after exchange, before app. Clients shorten their history by this number; they need not,
for what they will be charged is the request that fits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.surfaces.proxy.exchange import Outcome
from holdfast.surfaces.proxy.incoming import Incoming
from holdfast.surfaces.proxy.preparing import Preparing
from holdfast.surfaces.proxy.service import Service
from holdfast.tokens import count
from holdfast.wire import Conversation, read
from holdfast.wire.strict import encode, parse

_READING = 16
"""How many times faster JSON is read than counted."""


async def count_answer(service: Service, incoming: Incoming) -> Outcome:
    """Count a request as it would go out, or as it is if it cannot; nothing is stored or sent."""
    dialect = incoming.route.dialect
    off_loop, size = service.engine.workers.off_loop, len(incoming.body)
    conversation = await off_loop(size // _READING, partial(_read, service, incoming))
    engine = await service.tenants.of(incoming)
    session = await engine.look_up(conversation, incoming.switches.session)
    model = incoming.route.model or conversation.model or ""
    options = Preparing(service, incoming, engine).options(conversation)
    try:
        tokens = (await session.preview(conversation, options)).tokens
    except (BudgetExceededError, ContextOptimizationError):  # which the client wants to know
        counted = partial(count, conversation, model=model, calibration=engine.calibration)
        tokens = (await off_loop(size, counted)).tokens
    name = "totalTokens" if dialect == "gemini" else "input_tokens"
    headers = {"content-type": "application/json"}
    return Outcome(200, headers, encode({name: tokens}))


def _read(service: Service, incoming: Incoming) -> Conversation:
    dialect = incoming.route.dialect
    body: Any = incoming.body
    if dialect == "gemini" and isinstance(inside := _asked_about(body), dict):
        body = encode(inside)
    return read(body, dialect, limits=service.limits)


def _asked_about(body: bytes) -> Any:
    """The request inside a request to count; None if the body is the request itself."""
    given = parse(body)
    return given.get("generateContentRequest") if isinstance(given, dict) else None
