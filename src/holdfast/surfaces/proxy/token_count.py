"""Answer a client that asks for the tokens of a request: the number that would be sent.

counting: after exchange, before app. Clients shorten their history by this number. They need not,
because they are charged for the request that fits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.assemble.requests import split_request
from holdfast.engine import Holdfast
from holdfast.engine.heads import let_go_of
from holdfast.errors import BudgetExceededError, ContextOptimizationError, StoreError
from holdfast.surfaces.proxy.client_ids import sender_of
from holdfast.surfaces.proxy.delivery import Outcome
from holdfast.surfaces.proxy.dispatch import Dispatch
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.request_preparer import RequestPreparer
from holdfast.surfaces.proxy.service import READING, Service
from holdfast.tokens import count
from holdfast.wire import Conversation, read
from holdfast.wire.strict import encode, parse

_COUNTED_AS_IS = 1_000_000
"""A larger body is counted unedited: the sent request is only known after fitting, and clients ask
for counts more often than for answers."""
_BYTES_PER_TOKEN = 4


async def count_answer(service: Service, incoming: IncomingRequest) -> Outcome:
    """Count a request as it would go out, or as it is if it cannot; nothing is stored or sent."""
    dialect = incoming.route.dialect
    engine = await service.tenants.of(incoming)
    off_loop, size = engine.workers.off_loop, len(incoming.body)
    if size > _COUNTED_AS_IS:
        tokens = await off_loop(size, partial(_tokens_as_is, service, incoming, engine))
        return _told(dialect, tokens)
    conversation = await off_loop(size // READING, partial(_read, service, incoming))
    try:
        tokens = await _tokens_to_send(service, incoming, engine, conversation)
    except StoreError as error:
        incoming.seen.store_failed_with(error)
        if service.settings.on_store_failure == "refuse":
            raise
        tokens = await off_loop(size, partial(_tokens_as_is, service, incoming, engine))
    return _told(dialect, tokens)


async def _tokens_to_send(
    service: Service, incoming: IncomingRequest, engine: Holdfast, conversation: Conversation
) -> int:
    """Return the tokens of a request as it would go out, or as it is if it does not fit."""
    off_loop, size = engine.workers.off_loop, len(incoming.body)
    sender = sender_of(incoming.headers, conversation)
    session = await engine.sessions.look_up(conversation, incoming.switches.session, sender)
    dispatch = Dispatch(service, incoming, incoming.route.model or conversation.model or "")
    preparing = RequestPreparer(service, incoming, engine, dispatch)
    options, budget = preparing.options(conversation), preparing.turn_budget
    looked_at = [conversation]
    try:
        fitted = await session.preview(conversation, options)
        looked_at += fitted.state.asked, fitted.state.sent
        tokens = fitted.tokens
    except (BudgetExceededError, ContextOptimizationError):  # which the client wants to know
        counted = partial(count, conversation, model=dispatch.model, calibration=engine.calibration)
        tokens = (await off_loop(size, counted)).tokens
    finally:
        await off_loop(size // READING, partial(let_go_of, looked_at, session.state))
    if budget is not None and split_request(conversation) is not None:
        tokens = min(tokens, budget)  # the exact number is known once the turn is assembled
    return tokens


def _told(dialect: str, tokens: int) -> Outcome:
    name = "totalTokens" if dialect == "gemini" else "input_tokens"
    return Outcome(200, {"content-type": "application/json"}, encode({name: tokens}))


def _tokens_as_is(service: Service, incoming: IncomingRequest, engine: Holdfast) -> int:
    """The tokens of a request as the client wrote it, counted by a worker."""
    body, dialect = _inside(incoming), incoming.route.dialect
    workers, model = engine.workers, incoming.route.model
    counted = workers.count(body, dialect, model, service.limits)
    if counted is None:
        return len(body) // _BYTES_PER_TOKEN
    return engine.calibration.correct(counted).tokens


def _read(service: Service, incoming: IncomingRequest) -> Conversation:
    dialect = incoming.route.dialect
    return read(_inside(incoming), dialect, limits=service.limits)


def _inside(incoming: IncomingRequest) -> bytes:
    """The request that is asked about."""
    inside = _asked_about(incoming.body) if incoming.route.dialect == "gemini" else None
    return encode(inside) if isinstance(inside, dict) else incoming.body


def _asked_about(body: bytes) -> Any:
    """The request inside a request to count; None if the body is the request itself."""
    document = parse(body)
    return document.get("generateContentRequest") if isinstance(document, dict) else None
