"""The upstream of one request: the first that responds is used for all its calls.

If an upstream cannot be reached, or returns 429 or 5xx before its first byte, the next one is used.
A changed model name or dialect for it is an edit in the record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from urllib.parse import quote

from holdfast.errors import ShapeError
from holdfast.store.records import Edit
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.tenants import own_tokens
from holdfast.surfaces.proxy.translated import (
    SAFE,
    translated_path,
    translated_reply,
    translated_request,
)
from holdfast.surfaces.proxy.upstream_calls import UpstreamCall, UpstreamCalls
from holdfast.surfaces.proxy.upstreams import address, outgoing_headers, signature_of, without
from holdfast.upstream.network import UpstreamError, UpstreamReply
from holdfast.upstream.upstreams import UpstreamTarget
from holdfast.wire import Conversation, write
from holdfast.wire.stored_history import stored_fields

CREATING = frozenset({"openai-responses", "openai-chat", "anthropic"})
"""Dialects whose answers name objects that a later request may refer to."""
_NEXT = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses of a busy or failed upstream, after which the next one is tried."""


class Dispatch:
    """Sends one request, as often as the model's hidden calls take; used for one request only."""

    def __init__(self, service: Service, incoming: IncomingRequest, model: str) -> None:
        self.service = service
        self.incoming = incoming
        self.asked_model = model
        self.targets = service.upstreams.targets(incoming.route.dialect, model)
        self.is_signed = False
        """Whether the request is sent with the client's signature, and so unchanged."""
        if signature_of(incoming.headers):
            self._keep_signature()
        if not self.targets:
            service.check_offline(incoming.route.family)
        self._passed: list[str] = []
        """Upstreams that failed, with the reasons."""
        self._lost: tuple[str, ...] = ()
        """Fields that the other dialect does not have."""
        self.calls = UpstreamCalls(service, incoming.headers, incoming.query, incoming.seen)
        self._tokens: int | None = None

    def _keep_signature(self) -> None:
        """Ask the vendor alone, by the very name, unless there is a key to ask others with."""
        keyed = tuple(t for t in self.targets if not t.upstream.takes_clients_key)
        if self.targets[:1] == keyed[:1]:
            self.targets = keyed  # edits for these invalidate every signature
            return
        self.is_signed = True
        self.targets = (self.targets[0]._replace(model=self.asked_model),)

    @property
    def target(self) -> UpstreamTarget | None:
        """The upstream that is next, or has responded; None for the offline model."""
        return self.targets[0] if self.targets else None

    @property
    def model(self) -> str:
        """The model by the name under which it is counted and paid for."""
        return self.target.model if self.target is not None else self.asked_model

    @property
    def fell_back(self) -> bool:
        """Whether somebody answered who was not the first to be asked."""
        return bool(self._passed)

    def leave_out(self, takes: Callable[[str], bool]) -> None:
        """Leave out fallbacks whose models do not accept the fitted request."""
        fallbacks = (target for target in self.targets[1:] if takes(target.model))
        self.targets = (*self.targets[:1], *fallbacks)

    @property
    def headers(self) -> dict[str, str]:
        """Return headers that name the upstream, the failed ones, and fields that were lost."""
        if self.target is None:
            return {}
        values = {f"{PREFIX}upstream": self.target.name}
        if self._passed:
            values[f"{PREFIX}fell-back"] = ", ".join(self._passed)
        if self._lost:
            values[f"{PREFIX}not-carried"] = "; ".join(self._lost)
        return values

    @property
    def edit(self) -> Edit | None:
        """Return the edit for the upstream; None if the request was sent where the client asked."""
        target = self.target
        if target is None or (self._is_native(target) and not self._passed):
            return None
        reasons = [f"{name} in vain" for name in self._passed] or ["the settings say so"]
        reasons += [f"not carried over: {', '.join(self._lost)}"] * bool(self._lost)
        return Edit(
            action="route",
            what=f"sent to {target.name} as {target.dialect}, model {target.model}",
            why="; ".join(reasons),
            where="the whole request",
        )

    def _is_native(self, target: UpstreamTarget) -> bool:
        return target.dialect == self.incoming.route.dialect and target.model == self.asked_model

    @asynccontextmanager
    async def send(
        self, request: Conversation, body: bytes, tokens: int | None = None
    ) -> AsyncIterator[UpstreamReply]:
        """Send a request, whose bytes are `body`; the answer is read inside `async with`.

        `tokens` are those of its input, where they were counted.
        """
        self._tokens = tokens
        self.incoming.seen.release_slot()  # others have their turn while the model answers
        async with AsyncExitStack() as stack:
            while True:
                reply = await self._tried(stack, request, body)
                if reply is not None:
                    break
                await stack.aclose()
                self.targets = self.targets[1:]
            self.targets = self.targets[:1]  # later calls use the upstream of the first one
            yield reply

    async def _tried(
        self, stack: AsyncExitStack, request: Conversation, body: bytes
    ) -> UpstreamReply | None:
        """The answer of whoever is asked next; None if another is to be asked instead."""
        is_last = len(self.targets) <= 1
        if self.target is not None:
            self.incoming.seen.provider = self.target.upstream.label
        try:
            sending = self.incoming.seen.timed(self._sending(request, body))
            reply = await stack.enter_async_context(sending)
        except UpstreamError as error:
            if is_last:
                raise
            self._pass_over(str(error.status), error.what)
            return None
        if is_last or reply.status not in _NEXT:
            return reply
        self._pass_over(str(reply.status), "")
        return None

    def _pass_over(self, status: str, why: str) -> None:
        name = self.targets[0].name
        self._passed.append(f"{name} {status}")
        request_id = self.incoming.seen.id
        log.warning(Fields(event="fell_back", id=request_id, upstream=name, why=why or status))

    def _sending(
        self, request: Conversation, body: bytes
    ) -> AbstractAsyncContextManager[UpstreamReply]:
        target, incoming = self.target, self.incoming
        if target is None:
            return self.service.offline.send(incoming.path, "POST", {}, body)
        if target.dialect != incoming.route.dialect:
            return self._translated(target, request)
        path, query = quote(incoming.path, safe=SAFE), incoming.query
        if incoming.route.dialect == "converse":
            path = incoming.raw_path  # the slashes of an ARN are escaped, and signed in that form
        if target.model != self.asked_model:
            if incoming.route.model:
                path = translated_path(target, streams=incoming.route.streams)
            else:
                body = write(request.with_field("model", target.model))
        if incoming.route.dialect == "gemini" and incoming.route.streams:
            query = _as_events(query)
        tokens = own_tokens(self.service.settings).values()
        headers = outgoing_headers(target.upstream, incoming.headers, tokens)
        return self._post(target, path, query, headers, body)

    @asynccontextmanager
    async def _translated(
        self, target: UpstreamTarget, request: Conversation
    ) -> AsyncIterator[UpstreamReply]:
        """Ask in another dialect, and give the answer in the client's."""
        if fields := stored_fields(request):
            raise ShapeError(
                f"the history is held by a provider that is not {target.name}",
                where=f"$.{fields[0]}",
                fix="Send the whole history, or ask for a model that its own provider answers.",
            )
        streams = self.incoming.route.streams or request.rest.get("stream") is True
        off_loop = self.service.engine.workers.off_loop
        size = len(request.source or b"")
        longest = self.service.engine.options.registry.resolve(target.model).max_output_tokens
        work = partial(translated_request, request, target, streams=streams, longest=longest)
        translation = await off_loop(size, work)
        self._lost = translation.lost
        path = translated_path(target, streams=streams)
        query = "alt=sse" if streams and target.dialect == "gemini" else ""
        headers = {"content-type": "application/json", **target.upstream.key_header}
        if target.dialect == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
        async with self._post(target, path, query, headers, translation.body) as reply:
            most = self.service.most_bytes
            dialect = self.incoming.route.dialect
            answer, lost = await translated_reply(reply, target, dialect, most, translation.custom)
            self._lost += lost
            yield answer

    def _post(
        self, target: UpstreamTarget, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> AbstractAsyncContextManager[UpstreamReply]:
        url = address(target.upstream, path, query)
        if not self.is_signed:
            headers = {**headers, "accept-encoding": "identity"}
        call = UpstreamCall(
            target.upstream,
            "POST",
            self.incoming.path,
            url,
            headers,
            body,
            model=target.model,
            dialect=target.dialect,
            tokens=self._tokens,
            creates=target.dialect in CREATING,
        )
        return self.calls.send(call)


def _as_events(query: str) -> str:
    """Request a stream of events from Gemini; the client's format is derived from it."""
    return "&".join(filter(None, (without("alt", query), "alt=sse")))
