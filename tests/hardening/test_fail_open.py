"""An exception in any step of the pipeline costs no client its answer.

Every function that a request calls raises once, at a later call, at every call or after its work,
with exceptions whose text is content. The request must be answered with the provider's answer, have
a warning and leave a log line with the place and without content; the session continues.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.store.records import Turn
from tests.fitting.test_citing import log
from tests.hardening.asks import Asked
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.driving import Answer, Era, era
from tests.hardening.injection import CONTENT, EXCEPTIONS, MODES, Fault, Mode, Recorder, Step
from tests.hardening.provider import Provider
from tests.provider.request import Got
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import DIALECTS, path_of, request_in
from tests.surfaces.proxy.spoken import REF, call, says, text, whole
from tests.wire.responses.streams import Part, Script, events

ROUNDS = 10_000
ERA = 400
"""Rounds with one proxy."""
_PREPARE_SECONDS = 20.0
"""Seconds to prepare a request here: much longer than any needs, also on a busy machine."""

_HUNG_SECONDS = 3 * _PREPARE_SECONDS
"""A request that took so long is lost: it waits for something that will never come."""

_HEADERS = [
    (b"content-type", b"application/json"),
    (b"authorization", f"Bearer {KEY}".encode()),
    (b"x-api-key", KEY.encode()),
    (b"x-goog-api-key", KEY.encode()),
    (b"anthropic-version", b"2023-06-01"),
    (b"host", b"localhost"),
]
_LISTS = {"openai-responses": "input", "gemini": "contents"}
_TOOL = {
    "type": "function",
    "function": {"name": "read_log", "parameters": {"type": "object", "properties": {}}},
}


class Story(NamedTuple):
    """A conversation whose last turn but one meets the fault."""

    name: str
    results: tuple[int, ...]
    """Lines of each tool result: the last two are those of the faulted turn and of the next."""
    opens: int = 0
    """The turn in which the model opens a ref, from the end: -2 is the faulted one."""
    settings: tuple[tuple[str, Any], ...] = ()
    edit: str = ""
    """The edit of the request in the faulted turn."""


_FOLDING = (("request_limit", 3_000), ("cite_policy", "never"))
STORIES = (
    Story("first", ()),
    Story("cited", (5, 150, 5), edit="cite"),
    Story("cited again", (150, 150, 5), edit="cite"),
    Story("opened", (5, 150, 5), opens=-2, edit="cite"),
    Story("opened again", (150, 150, 5), opens=-2, edit="cite"),
    Story("after an opening", (150, 5, 5), opens=-3, edit="rejoin"),
    Story("folding", (40, 40, 60, 140, 5), settings=_FOLDING, edit="fold"),
    Story("folded", (40, 40, 60, 140, 10, 5), settings=_FOLDING),
    Story("by a worker", (5, 1_500, 5), edit="cite"),
)


class Scripted(Provider):
    """Sends the story's next answer, and opens the first ref before it if the story has that."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = says(text("Nothing."))
        self.opens = False

    def say(self, answer: Script, *, opens: bool) -> None:
        """Answer the next request so."""
        self.answer, self.opens = answer, opens
        self.sent.clear()
        self.refused.clear()

    def _script(self, request: Got) -> Script:
        cited = REF.findall(request.texts) if "expand_ref" in request.tools else []
        if self.opens and cited:
            self.opens = False
            opening = call("expand_ref", {"ref_id": cited[0], "lines": "1-3"}, "call_open")
            return says(text("Opening. "), opening)
        return self.answer


@dataclass
class Client:
    """A client that keeps its history as it was answered."""

    dialect: str
    stream: bool
    story: Story
    number: int
    history: list[Any] = field(default_factory=list)
    turns: int = 0

    def asked(self) -> Asked:
        """The next request."""
        added = self._added()
        frame = json.loads(request_in(self.dialect, self._chat(added), stream=self.stream))
        name = _LISTS.get(self.dialect, "messages")
        self.history += frame[name][-1:]
        frame[name] = self.history
        target = path_of(self.dialect, stream=self.stream)
        return Asked("POST", target, _HEADERS, json.dumps(frame).encode(), self.dialect)

    def _chat(self, added: dict[str, Any]) -> dict[str, Any]:
        model = "claude-sonnet-4-5" if self.dialect == "anthropic" else "gpt-4o"
        calls = [
            {"id": call_id, "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
            for call_id in [added.get("tool_call_id")]
            if call_id
        ]
        before = [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
        first = {"role": "user", "content": "?"}
        lead = [first, *before] if calls else []
        return {"model": model, "messages": [*lead, added], "tools": [_TOOL]}

    def _added(self) -> dict[str, Any]:
        if not self.turns:
            return {"role": "user", "content": f"Question {self.number}: what went wrong?"}
        results = self.story.results or (5,)
        lines = results[min(self.turns, len(results)) - 1]
        result = log(lines, seed=self.number * 10 + self.turns)
        return {"role": "tool", "tool_call_id": f"call_{self.turns}", "content": result}

    def answer(self) -> Script:
        """Return the model's response to that request."""
        reading = call("read_log", {"path": "a.log"}, f"call_{self.turns + 1}")
        return says(text(f"Answer {self.turns}. "), reading)

    def heard(self, answer: Script) -> None:
        """Keep the model's turn."""
        value = whole(answer, self.dialect)
        match self.dialect:
            case "openai-chat":
                self.history.append(value["choices"][0]["message"])
            case "openai-responses":
                self.history += value["output"]
            case "anthropic":
                self.history.append({"role": "assistant", "content": value["content"]})
            case _:
                self.history.append(value["candidates"][0]["content"])
        self.turns += 1


# --- what a client reads -------------------------------------------------------------------------


def read(answer: Answer, dialect: str) -> Script:
    """Return the text and calls of an answer, as a client that forgives much reads them."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        values = [value for _, value in events(answer.body) if isinstance(value, dict)]
        if dialect == "openai-responses":
            last = values[-1]
            assert last["type"] == "response.completed", last
            return _items(last["response"]["output"])
        return _pieces(values, dialect)
    value = json.loads(answer.body)
    match dialect:
        case "openai-chat":
            message = value["choices"][0]["message"]
            calls = [
                (each["id"], each["function"]["name"], each["function"]["arguments"])
                for each in message.get("tool_calls") or ()
            ]
            return _script(message["content"] or "", calls)
        case "openai-responses":
            return _items(value["output"])
        case "anthropic":
            words = "".join(block.get("text", "") for block in value["content"])
            calls = [
                (block["id"], block["name"], json.dumps(block["input"]))
                for block in value["content"]
                if block["type"] == "tool_use"
            ]
            return _script(words, calls)
    return _pieces([value], dialect)


def _script(words: str, calls: list[tuple[str, str, str]]) -> Script:
    parts = [Part("text", (words,))] if words else []
    return Script((*parts, *(Part("call", (given,), id_, name) for id_, name, given in calls)))


def _items(items: list[Any]) -> Script:
    words = "".join(part["text"] for item in items for part in item.get("content", ()))
    calls = [
        (item["call_id"], item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call"
    ]
    return _script(words, calls)


def _pieces(values: list[Any], dialect: str) -> Script:
    words, calls = "", dict[Any, list[str]]()
    for value in values:
        match dialect:
            case "openai-chat":
                for choice in value["choices"]:
                    delta = choice["delta"]
                    words += delta.get("content") or ""
                    for piece in delta.get("tool_calls", ()):
                        known = calls.setdefault(piece["index"], [piece.get("id", ""), "", ""])
                        known[1] += piece["function"].get("name", "")
                        known[2] += piece["function"].get("arguments", "")
            case "anthropic":
                block = value.get("content_block", {})
                if block.get("type") == "tool_use":
                    calls[value["index"]] = [block["id"], block["name"], ""]
                delta = value.get("delta", {})
                words += delta.get("text", "")
                if "partial_json" in delta:
                    calls[value["index"]][2] += delta["partial_json"]
            case _:
                for part in value["candidates"][0]["content"]["parts"]:
                    words += part.get("text", "")
                    if made := part.get("functionCall"):
                        calls[len(calls)] = [made.get("id", ""), made["name"], "{}"]
    return _script(words, [(one, two, three) for one, two, three in calls.values()])


def ends_well(answer: Answer, dialect: str) -> bool:
    """Return whether a stream has its end."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return True
    end = {
        "openai-chat": b"data:[DONE]",
        "openai-responses": b"response.completed",
        "anthropic": b'"message_stop"',
        "gemini": b'"finishReason":"STOP"',
    }[dialect]
    return end in answer.body.replace(b": ", b":")


# --- one round -----------------------------------------------------------------------------------


class Lines(logging.Handler):
    """All that is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.bugs: list[dict[str, Any]] = []
        self.is_told = False

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
        if isinstance(record.msg, dict) and record.msg.get("event") == "bug":
            self.bugs.append(record.msg)
        self.is_told |= record.levelno >= logging.WARNING

    @property
    def outcome(self) -> str:
        """Return the result of a fault that no request reported: it was handled locally."""
        return "absorbed" if self.is_told else "silent"


@contextmanager
def logged() -> Iterator[Lines]:
    """Collect every log line of any logger."""
    lines, root = Lines(), logging.getLogger()
    ours = logging.getLogger("holdfast")
    level = ours.level
    ours.setLevel(logging.INFO)
    root.addHandler(lines)
    try:
        yield lines
    finally:
        root.removeHandler(lines)
        ours.setLevel(level)


class Round(NamedTuple):
    """What became of a conversation with a fault in it."""

    wrong: list[str]
    kind: str
    """`unedited`, `edited`, `late` (after the answer had begun), `absorbed` or `silent`."""
    requests: int
    """Requests of the client."""


async def converse(
    running: Era, client: Client, fault: Fault | None, recorder: Recorder | None = None
) -> Round:
    """Tell a story with a fault in it, and judge it."""
    provider = running.provider
    assert isinstance(provider, Scripted)
    wrong: list[str] = []
    kind = ""
    turns = len(client.story.results or (5,)) + 1
    for turn in range(turns):
        faulted = turn == turns - 2
        asked, expected = client.asked(), client.answer()
        provider.say(expected, opens=turn - turns == client.story.opens)
        with logged() as lines, fault.injected() if fault and faulted else nullcontext():
            if fault is not None:
                fault.has_begun = lambda: running.begun
            if recorder is not None:
                recorder.records = faulted
            try:
                async with asyncio.timeout(_HUNG_SECONDS):
                    answer = await running.asked(asked)
            except Exception as error:  # noqa: BLE001 - whatever comes out of the application
                place = traceback.extract_tb(error.__traceback__)[-3:]
                answer = Answer()
                wrong.append(f"{type(error).__name__} came out of the application: {place}")
            if recorder is not None:
                recorder.records = False
        if recorder is not None and faulted:
            wrong += await unlike_the_story(running, answer, client.story)
        raised = fault if faulted and fault is not None and fault.raised else None
        wrong += judged(client, answer, expected, provider, faulted=raised is not None)
        if raised is not None:
            late = raised.is_late
            wrong += judged_fault(answer, lines, late=raised.is_late_too)
            unedited = bool(provider.sent) and provider.sent[-1].body == asked.body
            kind = "unedited" if unedited else "edited"
            kind = "late" if late else kind if lines.bugs else lines.outcome
        elif lines.bugs:
            wrong.append(f"turn {turn} without a fault logs {lines.bugs}")
        if wrong:
            wrong = [f"turn {turn} of {turns}: {each}" for each in wrong]
            return Round(wrong, kind, turn + 1)
        client.heard(read(answer, client.dialect))
        if turn == turns - 1:
            wrong += await rebuilt(running, answer, asked)
    return Round(wrong, kind, turns)


def judged(
    client: Client, answer: Answer, expected: Script, provider: Provider, *, faulted: bool
) -> list[str]:
    """Return the violations in the response of a turn."""
    if answer.status != 200 or not answer.is_whole:
        return [f"status {answer.status}, whole {answer.is_whole}: {answer.body[-300:]!r}"]
    if provider.refused:
        return [f"the provider refused: {provider.refused[0][:300]}"]
    if not ends_well(answer, client.dialect):
        return [f"the stream has no end: {answer.body[-300:]!r}"]
    try:
        seen = read(answer, client.dialect)
    except (AssertionError, LookupError, ValueError) as error:
        return [f"an answer that no client understands ({error!r}): {answer.body[-500:]!r}"]
    wrong = []
    if not "".join(seen.texts).endswith(expected.texts[-1]):
        wrong.append(f"said {seen.texts}, not {expected.texts}")
    names = [part.name for part in seen.calls]
    if names != [part.name for part in expected.calls]:
        wrong.append(f"calls {names}, faulted {faulted}")
    return wrong


def judged_fault(answer: Answer, lines: Lines, *, late: bool) -> list[str]:
    """Return the violations in the report of a fault."""
    wrong = []
    told = json.dumps(answer.headers) + "\n".join(lines.lines)
    if CONTENT in told or CONTENT.encode() in answer.body:
        wrong.append(f"content was told: {told[:1000]}")
    if not lines.bugs:
        return wrong
    for bug in lines.bugs:
        if not {"kind", "place", "step", "id"} <= bug.keys() or ".py:" not in bug["place"]:
            wrong.append(f"a log line without a fingerprint: {bug}")
    warning = answer.headers.get("x-holdfast-warning", "")
    # An error that nobody waits for belongs to no request, and telemetry looks at a written head.
    of_request = any(bug["step"] not in ("background", "telemetry") for bug in lines.bugs)
    if not late and of_request and "internal error" not in warning:
        wrong.append(f"no warning, but logged {lines.bugs}")
    return wrong


async def unlike_the_story(running: Era, answer: Answer, story: Story) -> list[str]:
    """Return the missing parts of a story, without an injected fault."""
    store, scope = running.service.engine.store, running.service.engine.scope
    turns = await store.turns(scope.of(answer.headers["x-holdfast-session"]))
    actions = {edit.action for edit in turns[-1].edits}
    return (
        [f"{story.edit} is not among {actions}"] if story.edit and story.edit not in actions else []
    )


async def rebuilt(running: Era, answer: Answer, asked: Asked) -> list[str]:
    """Return the violations in the record of the last turn."""
    engine = running.service.engine
    name = answer.headers.get("x-holdfast-session", "")
    if not name:
        return ["the turn after the fault has no session"]
    session = engine.session(name)
    turns: list[Turn] = await engine.store.turns(session.scope)
    if not turns:
        return ["the turn after the fault is not written down"]
    if await session.rebuild(turns[-1].number) != asked.body:
        return ["the turn after the fault is not rebuilt"]
    return []


# --- campaigns -----------------------------------------------------------------------------------


class Case(NamedTuple):
    """A place to inject a fault."""

    story: Story
    dialect: str
    stream: bool
    step: Step

    def __str__(self) -> str:
        form = "stream" if self.stream else "whole"
        return f"{self.story.name}, {self.dialect}, {form}, {self.step}"


KERNEL = {
    "faults.py": "the mechanism itself",
    "store/sqlite/lane.py:_deliver": "wakes whoever waits for the store's thread",
    "store/sqlite/lane.py:_settle": "wakes whoever waits for the store's thread",
    "surfaces/proxy/app.py:ProxyApp.__call__": "takes the request",
    "surfaces/proxy/app.py:ProxyApp._answer": "runs the guarded steps",
    "surfaces/proxy/app.py:ProxyApp._served_or_passed": "runs the guarded steps",
    "surfaces/proxy/app.py:_send": "gives the client its bytes",
    "surfaces/proxy/answer_stream.py:_JoinedStream.pieces": "runs the guarded steps",
    "surfaces/proxy/answer_stream.py:_JoinedStream._round_end": "runs the guarded steps",
    "surfaces/proxy/answer_stream.py:_JoinedStream._read_end": "runs the guarded steps",
    "surfaces/proxy/incoming_request.py:Upload.__init__": "takes the client's bytes",
    "surfaces/proxy/incoming_request.py:Upload._parts": "takes the client's bytes",
    "surfaces/proxy/seen.py:RequestSeen.__init__": "names the request in the log",
    "surfaces/proxy/server.py:_Providers.__call__": "takes the request",
    "surfaces/proxy/service.py:Service.faults": "the mechanism itself",
    "surfaces/proxy/service.py:Service.contain": "the mechanism itself",
    "surfaces/proxy/tenants.py:own_tokens": "decides who may ask, and fails closed",
}
"""Functions without a substitute: no fault is injected here."""
SENDING = {
    "upstream/upstreams.py:Upstream.key_header": "the key of the upstream",
    "upstream/upstreams.py:Upstream.takes_clients_key": "whether the client's key may go there",
    "surfaces/proxy/app.py:ProxyApp._forward": "sends the client's bytes",
    "surfaces/proxy/app.py:ProxyApp._unedited": "sends the client's bytes",
    "surfaces/proxy/passing_calls.py:ClientRequest.calls": "whether the call may go out",
    "surfaces/proxy/passing_calls.py:ClientRequest.query": "the address",
    "surfaces/proxy/passing_calls.py:passing_call": "the client's bytes",
    "surfaces/proxy/passing_calls.py:raw_path": "the address",
    "surfaces/proxy/upstream_calls.py:UpstreamCalls.__init__": "whether the call may go out",
    "surfaces/proxy/upstream_calls.py:UpstreamCalls.is_guarded": "whether the call may go out",
    "surfaces/proxy/upstream_calls.py:UpstreamCalls.is_shared": "whether the call may go out",
    "surfaces/proxy/upstream_calls.py:UpstreamCalls.send": "sends the client's bytes",
    "surfaces/proxy/exchange.py:RequestHandler.reply_to": "sends on in a stream that has begun",
    "surfaces/proxy/seen.py:_Timed.chunks": "the provider's bytes",
    "surfaces/proxy/upstreams.py:address": "the address",
    "surfaces/proxy/upstreams.py:outgoing_headers": "the headers",
    "surfaces/proxy/upstreams.py:returned_headers": "the headers",
    "surfaces/proxy/upstreams.py:signature_of": "whether the headers are signed",
}
"""Functions that send a request and read its response: a fault here may pass once, but not stay."""
HARNESS = ("surfaces/proxy/service.py:Service.drain",)
"""Functions that the tests call themselves."""
OUTSIDE = ("surfaces/proxy/gate.py", "surfaces/proxy/safety.py", "surfaces/proxy/connections.py")
"""Files that decide who may ask: they fail closed, with a typed error."""


async def cases(story: Story, dialect: str, stream: bool, store: str) -> list[Case]:
    """Return every function that the faulted turn of a story calls."""
    recorder = Recorder()
    with recorder.installed():
        async with era(
            provider=Scripted(), tenant_by="none", store_url=store, **dict(story.settings)
        ) as running:
            told = await converse(running, Client(dialect, stream, story, 0), None, recorder)
    assert not told.wrong, told.wrong
    steps = [
        step
        for step in recorder.take()
        if not step.file.startswith(OUTSIDE) and str(step) not in HARNESS
        if not {step.file, str(step)} & KERNEL.keys()
    ]
    return [Case(story, dialect, stream, step) for step in steps]


def drawn_exception(step: Step, chance: random.Random) -> Callable[[], Exception]:
    """Return an exception; a RecursionError while JSON is read means that it nests too deeply."""
    make = chance.choice(EXCEPTIONS)
    too_deep = step.file == "wire/strict.py" and isinstance(make(), RecursionError)
    return EXCEPTIONS[0] if too_deep else make


async def run(
    campaign: Campaign,
    stories: tuple[Story, ...],
    most: int,
    folder: Path,
    patch: pytest.MonkeyPatch,
) -> None:
    """Inject faults into all stories, in an order of chance."""
    places: list[Case] = []
    for n, story in enumerate(stories):
        for dialect in DIALECTS:
            for stream in (False, True):
                url = f"sqlite:///{folder}/{n}-{dialect}-{stream}.db"
                places += await cases(story, dialect, stream, url)
    campaign.figures["functions"] = len({place.step.function.__code__ for place in places})
    campaign.figures["places"] = len(places)
    order = campaign.chance("order")
    drawn: list[tuple[Case, Mode]] = [
        (place, mode)
        for place in places
        for mode in MODES
        if mode != "always" or str(place.step) not in SENDING
    ]
    order.shuffle(drawn)
    by_settings: dict[str, list[tuple[Case, Mode]]] = {}
    for place, mode in drawn[:most]:
        by_settings.setdefault(repr(place.story.settings), []).append((place, mode))
    eras = [
        group[start : start + ERA]
        for group in by_settings.values()
        for start in range(0, len(group), ERA)
    ]
    order.shuffle(eras)
    # A fault in the store's threads is one that hangs.
    patch.setattr("holdfast.surfaces.proxy.exchange.PREPARE_SECONDS", _PREPARE_SECONDS)
    rounds, tally = campaign.rounds(most), Tally()
    for number, faults in enumerate(eras):
        await run_era(campaign, rounds, faults, f"sqlite:///{folder}/era-{number}.db", tally)
    campaign.figures |= {**tally.kinds, "requests": tally.requests}
    campaign.figures["exceptions"] = dict(tally.exceptions)
    campaign.figures["silent in"] = dict(tally.silent.most_common())


@dataclass
class Tally:
    """Figures of a campaign."""

    requests: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    exceptions: Counter[str] = field(default_factory=Counter)
    """How often each class was raised."""
    silent: Counter[str] = field(default_factory=Counter)
    """Functions whose exceptions were not reported."""


async def run_era(
    campaign: Campaign,
    rounds: Iterator[int],
    faults: list[tuple[Case, Mode]],
    store: str,
    tally: Tally,
) -> None:
    """Inject faults into one proxy; they have the same settings."""
    settings = dict(faults[0][0].story.settings)
    async with era(provider=Scripted(), tenant_by="none", store_url=store, **settings) as running:
        # `rounds` is the second argument, or zip would draw one round too many from it.
        for (place, mode), number in zip(faults, rounds, strict=False):
            make = drawn_exception(place.step, campaign.chance(number))
            fault = Fault(place.step, mode, make)
            client = Client(place.dialect, place.stream, place.story, number + 1)
            told = await converse(running, client, fault)
            tally.requests += told.requests
            tally.kinds[told.kind or "not raised"] += 1
            tally.exceptions[type(make()).__name__] += fault.raised
            if told.kind == "silent":
                tally.silent[str(place.step)] += 1
            if told.wrong:
                campaign.found(f"{place}, {mode}: {told.wrong[0][:1500]}")


pytestmark = pytest.mark.filterwarnings(
    # A function that raises may leave a coroutine which it was given.
    "ignore:coroutine .* was never awaited:RuntimeWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "story", [STORIES[1], STORIES[3], STORIES[5]], ids=lambda story: story.name
)
@pytest.mark.parametrize(
    ("function", "mode"),
    [("_Timed.chunks", "after"), ("_JoinedStream._add_given", "later")],
)
def test_no_answer_is_given_twice_where_a_stream_fails_near_its_end(
    dialect: str, story: Story, function: str, mode: Mode, tmp_path: Path
) -> None:
    async def round_with_a_fault() -> Round:
        places = await cases(story, dialect, stream=True, store=f"sqlite:///{tmp_path}/a.db")
        step = next(each.step for each in places if each.step.name == function)
        url = f"sqlite:///{tmp_path}/b.db"
        async with era(provider=Scripted(), tenant_by="none", store_url=url) as running:
            client = Client(dialect, stream=True, story=story, number=1)
            return await converse(running, client, Fault(step, mode, ZeroDivisionError))

    assert not asyncio.run(round_with_a_fault()).wrong


@short_and_full("stories, rounds", (STORIES[:4], 300), (STORIES, ROUNDS))
def test_a_fault_in_any_step_costs_no_client_its_answer(
    campaign: Campaign, stories: Any, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(run(campaign, stories, rounds, tmp_path, monkeypatch))
