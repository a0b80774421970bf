"""Requests that are answered from memory, and answers that are kept for the next ones.

remembering: after preparing, before exchange. A request is looked up by what its client sent, and
an answer is kept as its client got it, so that it is given again byte for byte; in another form,
as a stream or in one piece, where its text is all of it. What failed, was cut, was refused or calls
a tool is never kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.answer_cache import Answer, GivenAnswer, SignedRequest, sign
from holdfast.answer_cache.records import Form
from holdfast.answer_cache.signing import answer_id
from holdfast.budget.usage import reported_usage
from holdfast.engine import Holdfast
from holdfast.errors import PrivacyError, StoreError
from holdfast.faults import Faults
from holdfast.fitting import Fitted
from holdfast.fitting.policy import matches
from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.service import READING, Service
from holdfast.surfaces.proxy.switches import PREFIX, AnswerSwitch
from holdfast.trim.provenance import REPLACEMENT
from holdfast.wire import Conversation
from holdfast.wire.responses import (
    CONTINUED,
    EventParser,
    Hop,
    ModelCall,
    OfflineResponse,
    compose_response,
    stream_response,
)
from holdfast.wire.strict import decode

MOST_BYTES = 1_000_000
"""Of an answer that is kept: longer ones are seldom asked for twice."""
_MEANT = ("anthropic-beta", "anthropic-version", "openai-beta", "openai-organization",
          "openai-project")  # fmt: skip
"""Headers that an answer depends on."""
_ENDED = frozenset({"stop", "end_turn", "stop_sequence", "STOP", "completed"})
"""Finish reasons of complete answers; all others are cut, filtered or refused."""
_PREFIXES = ("chatcmpl-", "resp_", "msg_")


class CompleteAnswer(NamedTuple):
    """How an answer came to its end."""

    id: str
    stop_reason: str
    turn: Sequence[bytes]
    """The assistant's last turn, as the next request would hold it."""
    calls: Sequence[ModelCall]
    usage: object
    hops: Sequence[Hop] = ()
    """Upstream calls before the last, with the model's openings."""


class AnswerReuse:
    """The use of the answer cache for one request. Create one instance per request."""

    def __init__(
        self, service: Service, incoming: IncomingRequest, engine: Holdfast, faults: Faults
    ) -> None:
        self._service = service
        self._faults = faults
        self._incoming = incoming
        self._scope = engine.scope
        self._answers = engine.answers
        self._workers = engine.workers
        self._signed: SignedRequest | None = None
        """Set if the answer is to be kept."""
        self._alike = False
        self._form: Form = "whole"
        self._flight = ""
        """The request that others wait for, if this is it."""
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_kept = False
        """Whether the answer is being stored: waiting requests continue when it is there."""
        self.warnings: tuple[str, ...] = ()
        self.headers: dict[str, str] = {}
        """Response headers of a request that the cache could not answer."""

    # --- look ------------------------------------------------------------------------------------

    async def look(self, conversation: Conversation) -> Answer | None:
        """An answer that this request may be given; waits for an equal one that is under way."""
        switch = self._wanted(conversation)
        if switch == "off":
            return None
        size = len(self._incoming.body) // READING
        work = partial(sign, conversation, *self._beside(conversation))
        self._signed = signed = await self._workers.off_loop(size, work)
        if signed is None:
            return None
        self._form = self._form_of(conversation)
        self._alike = switch == "semantic" and self._may_share(signed)
        self.headers = {f"{PREFIX}answer": "miss"}
        if switch == "refresh":
            return None
        try:
            return await self._found(signed)
        # the lookup only saves money, so its failure is no reason to fail
        except StoreError as error:
            self._incoming.seen.store_failed_with(error)
            return None

    async def _found(self, signed: SignedRequest) -> Answer | None:
        answer = await self._get(signed)
        if answer is not None:
            return answer
        key = answer_id(signed.prompt, signed.signature)
        if self._answers.flights.begin(key):
            self._flight = key
            return None
        return await self._get(signed) if await self._answers.flights.joined(key) else None

    async def _get(self, signed: SignedRequest) -> Answer | None:
        answer = await self._answers.get(signed.prompt, signed.signature, alike=self._alike)
        if answer is None or not _can_be_written(answer.given, self._form):
            return None
        return answer

    def _wanted(self, conversation: Conversation) -> AnswerSwitch:
        """Return the request's switch, else that of the first rule for its model."""
        switches, settings = self._incoming.switches, self._service.settings
        if switches.read_only or not settings.enable_answer_cache:
            return "off"
        if conversation.dialect not in CONTINUED:
            return "off"  # the content of a forwarded response is unknown
        model = self._incoming.route.model or conversation.model or ""
        for name, way in settings.answer_rules.items() if switches.answers is None else ():
            if matches(name, model):
                return way
        return switches.answers or "off"

    def _beside(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the inputs of an answer that are not in the body."""
        route, switches = self._incoming.route, self._incoming.switches
        model = route.model or conversation.model or ""
        targets = self._service.upstreams.targets(route.dialect, model)
        relevant = sorted(pair for pair in self._incoming.headers if pair[0].lower() in _MEANT)
        changing = (switches.cite, switches.offer_expand, switches.limit, *switches[-4:])
        where = ",".join(f"{target.upstream.url} {target.model}" for target in targets)
        return (model, where, repr(relevant), repr(changing))

    def _may_share(self, signed: SignedRequest) -> bool:
        if self._answers.unlike_because:
            if self._incoming.switches.answers == "semantic":
                self.warnings = (self._answers.unlike_because,)
            return False
        settled = signed.temperature == 0 or self._answers.policy.sampled
        return signed.is_question and not signed.has_tools and settled

    def _form_of(self, conversation: Conversation) -> Form:
        body = conversation.rest
        if not (self._incoming.route.streams or body.get("stream") is True):
            return "whole"
        options = body.get("stream_options")
        reports = isinstance(options, dict) and options.get("include_usage") is True
        return "events+usage" if reports and conversation.dialect == "openai-chat" else "events"

    # --- give ------------------------------------------------------------------------------------

    def replay(self, answer: Answer) -> tuple[dict[str, str], bytes | AsyncIterator[bytes]]:
        """Headers and body of an answer from memory, in the form that the client asks for."""
        dialect = self._incoming.route.dialect
        headers = {
            "content-type": "application/json" if self._form == "whole" else "text/event-stream",
            f"{PREFIX}answer": answer.tier,
            f"{PREFIX}answer-id": answer.id,
            f"{PREFIX}answer-similarity": f"{answer.similarity:.4f}",
            f"{PREFIX}answer-age": f"{answer.age_seconds:.0f}",
        }
        content = answer.given
        if self._form == "whole":
            if content.form == "whole":
                return headers, content.body
            return headers, compose_response(_said(answer), dialect)
        if content.form == self._form:
            return headers, _one_by_one([event.raw for event in EventParser().feed(content.body)])
        usage = self._form == "events+usage"
        return headers, _one_by_one(stream_response(_said(answer), dialect, usage=usage))

    # --- keep ------------------------------------------------------------------------------------

    def add(self, piece: bytes) -> None:
        """Hold a piece of a stream that the client is given, should the whole be kept."""
        if self._signed is None:
            return
        self._size += len(piece)
        if self._size > MOST_BYTES:
            self._signed = None
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def keep(self, ended: CompleteAnswer, fitted: Fitted | None, session: str) -> None:
        """Store the answer if it may be used again; then call `end`."""
        signed, body = self._signed, b"".join(self._pieces)
        self._signed, self._pieces = None, []
        content = self._given(ended, body) if body else None
        if signed is None or content is None or fitted is None:
            self.end()
            return
        self.is_kept = True
        refs = _refs_of(fitted, ended.hops)
        self._service.later(self._keeping(signed, content, refs, session), self._faults)

    async def _keeping(
        self, signed: SignedRequest, given: GivenAnswer, refs: Sequence[str], session: str
    ) -> None:
        is_stored = False
        try:
            await self._answers.put(
                signed.prompt, signed.signature, given, refs, session=session, alike=self._alike
            )
            is_stored = True
        except PrivacyError:
            pass  # the policy keeps it out: that is no failure
        finally:
            self.end(kept=is_stored)

    def _given(self, ended: CompleteAnswer, body: bytes) -> GivenAnswer | None:
        """The answer as it is kept; None if it may not be given again."""
        dialect = self._incoming.route.dialect
        turn = [decode(message) for message in ended.turn]
        is_refused = any(map(_refuses, turn))
        if ended.stop_reason not in _ENDED or ended.calls or is_refused or len(body) > MOST_BYTES:
            return None
        if ended.hops and dialect == "openai-responses":
            return None  # a client that continues from its id would continue from the hidden call
        texts = list(_texts_in(turn))
        if not any(text.strip() for text in texts):
            return None
        used = reported_usage(ended.usage)
        return GivenAnswer(
            text="".join(texts),
            body=body,
            dialect=dialect,
            form=self._form,
            model=self._incoming.seen.model,
            id=ended.id,
            is_plain=not ended.hops and all(map(_is_plain, turn)),
            input_tokens=(used.input or 0) if used is not None else 0,
            output_tokens=(used.output or 0) if used is not None else 0,
        )

    def end(self, *, kept: bool = False) -> None:
        """Let requests that wait for this one continue; repeated calls do nothing."""
        if self._flight:
            self._answers.flights.end(self._flight, kept=kept)
            self._flight = ""

    @property
    def is_keeping(self) -> bool:
        """Whether the answer, once it is whole, is to be kept."""
        return self._signed is not None


def edit_of(answer: Answer) -> Edit:
    """Return the edit for a request that was answered from the cache."""
    age = f"{answer.age_seconds:.0f} seconds before"
    like = "an equal request" if answer.tier == "exact" else "a like question in the same context"
    return Edit(
        action="answer",
        what=f"answered from memory ({answer.tier})",
        why=f"{like} was answered {age}: similarity {answer.similarity:.4f}, answer {answer.id}",
        where="the answer",
    )


def _can_be_written(given: GivenAnswer, form: Form) -> bool:
    return bool(given.body) and (given.form == form or given.is_plain)


def _said(answer: Answer) -> OfflineResponse:
    """An answer in no dialect, to be written in another form."""
    content = answer.given
    name = next((content.id[len(each) :] for each in _PREFIXES if content.id.startswith(each)), "")
    return OfflineResponse(
        id=name or content.id or answer.id[:24],
        model=content.model,
        created=answer.created,
        pieces=(content.text,),
        input_tokens=content.input_tokens,
        output_tokens=content.output_tokens,
    )


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _refs_of(fitted: Fitted, hops: Sequence[Hop]) -> list[str]:
    """The stored contents that an answer was made from: those cited, and those opened."""
    stands = (REPLACEMENT.get(message) for message in fitted.state.sent.messages)
    cited = [ref for stand in stands if stand is not None for ref in stand.refs]
    calls = [call for hop in hops for call, _ in hop.results]
    return cited + [ref[0] for call in calls for ref in REF.finditer(call.arguments)]


def _texts_in(turn: Iterable[object]) -> Iterable[str]:
    """The texts of an assistant's turn, in any dialect."""
    for message in turn:
        if not isinstance(message, dict):
            continue
        content = message.get("content", message.get("parts"))
        if isinstance(content, str):
            yield content
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield "" if part.get("thought") else part["text"]


def _refuses(message: object) -> bool:
    """Return whether the model refuses, in OpenAI's format; others use a stop reason."""
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return bool(message.get("refusal")) or any(
        isinstance(part, dict) and part.get("type") == "refusal" for part in parts
    )


_PLAIN_MESSAGE = frozenset({"role", "content", "parts", "type", "id", "status", "phase"})
_PLAIN_PART = frozenset({"type", "text", "annotations", "logprobs"})


def _is_plain(message: object) -> bool:
    """Whether a message is text and nothing else: no thinking, citations or probabilities."""
    if not isinstance(message, dict) or not message.keys() <= _PLAIN_MESSAGE:
        return False
    if message.get("type") not in (None, "message"):
        return False
    content = message.get("content", message.get("parts"))
    parts = content if isinstance(content, list) else ()
    return all(
        isinstance(part, dict)
        and part.keys() <= _PLAIN_PART
        and part.get("type") in (None, "text", "output_text")
        and not (part.get("annotations") or part.get("logprobs"))
        for part in parts
    )
