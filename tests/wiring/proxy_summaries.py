"""The effect of each setting of summaries in the proxy.

A conversation is folded, and the upstream, which is the model for summaries too, summarises the
folded messages.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from holdfast.jobs.folding import KIND
from holdfast.jobs.protocol import Attempt
from holdfast.jobs.running import worker_of
from holdfast.settings import UpstreamEntry
from holdfast.store import Scope, Store
from holdfast.store.queue import Job
from holdfast.store.transfer import SummaryRecordLine
from tests.store.harness import exported
from tests.surfaces.proxy.faults import status
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import Running, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Fault, Turn, Upstream, UpstreamTurn
from tests.wire.responses.streams import Script
from tests.wiring.wired import Wired

PUMPS = [f"Pump {n} was checked at {n * 7} bar and found to be sound." for n in range(80)]
LINE = PUMPS[3]
TALK: list[dict[str, Any]] = [
    message
    for n in range(0, 80, 4)
    for message in (
        {"role": "user", "content": f"What of the pumps from {n} on?"},
        {"role": "assistant", "content": " ".join(PUMPS[n : n + 4])},
    )
]
ASKED = {"model": "gpt-4o", "messages": [*TALK, {"role": "user", "content": "And now?"}]}
HEADERS = {"authorization": f"Bearer {KEY}"}


class Summing(Upstream):
    """An upstream whose smaller models are asked for summaries: for those it has a script."""

    def __init__(self, *summaries: Turn) -> None:
        super().__init__()
        self.summaries = list(summaries)
        self.asked: list[Got] = []
        self.always = self._turn

    def _turn(self, got: Got) -> Script | Fault:
        if got.model == "gpt-4o":
            return says(text("Well."))
        self.asked.append(got)
        turn = self.summaries[min(len(self.asked), len(self.summaries)) - 1]
        return turn if isinstance(turn, Script | Fault) else turn(got)


@contextmanager
def folded(*summaries: Turn, **settings: Any) -> Iterator[tuple[Running, Summing]]:
    """A proxy that has folded a talk, whose own worker is not there to take the job."""
    usual: dict[str, Any] = {
        "background_jobs": False,
        "request_limit": 1_200,
        "summarization_provider": "openai:small",
        "summarization_retry_delay": 0.0,
        "upstreams": {"openai": UpstreamEntry(key=KEY)},
    }
    with (
        Summing(*(summaries or [says(text(LINE))])) as upstream,
        running_proxy(usual | settings, upstream.url) as proxy,
    ):
        send(proxy)
        yield proxy, upstream


def send(proxy: Running, session: str = "s") -> None:
    body = request_in("openai-chat", ASKED)
    headers = {**HEADERS, "x-holdfast-session": session}
    assert ask(proxy.url + path_of("openai-chat"), body, headers).status == 200
    proxy.settled()


def worked_off(proxy: Running) -> list[Job]:
    """The jobs of folds, once each that was due was tried by a worker of the proxy's settings."""
    return proxy.do(_work_off(proxy.service.engine.store, proxy))


async def _work_off(store: Store, proxy: Running) -> list[Job]:
    waiting = [job for job in await store.jobs.latest(None, kind=KIND) if job.state == "queued"]
    worker = worker_of(store, proxy.service.settings)
    attempts: list[Attempt] = []

    def told(attempt: Attempt) -> None:
        attempts.append(attempt)
        if len(attempts) == len(waiting):
            worker.stop()

    worker.told = told
    if waiting:
        running = asyncio.create_task(worker.run())
        while not running.done():
            jobs = await store.jobs.latest(None, kind=KIND, state="queued")
            if not jobs and not await store.jobs.latest(None, kind=KIND, state="running"):
                worker.stop()  # one that has no room in its quota is no attempt
            await asyncio.wait([running], timeout=0.01)
    return await store.jobs.latest(None, kind=KIND)


def outcome(setting: str, *summaries: Turn, **more: Any) -> Callable[[Any, Path], object]:
    """What became of the job, with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        with folded(*summaries, **more | {setting: value}) as (proxy, _upstream):
            return [(job.state, job.error.partition(":")[0]) for job in worked_off(proxy)]

    return observe


def only_second(got: Got) -> Script:
    return says(text(LINE if got.model == "second" else ""))


@Fault
async def slow(spoken: UpstreamTurn) -> web.StreamResponse:
    await asyncio.sleep(0.3)
    return await spoken.say(spoken.truthful(says(text(LINE))))


def asked_for_the_same(enabled: bool, _: Path) -> object:
    """How often the model is asked by two sessions that fold the same, the first job forgotten."""
    with folded(summarization_cache_enabled=enabled) as (proxy, upstream):
        worked_off(proxy)
        proxy.do(proxy.service.engine.store.jobs.forget_finished(0.0))
        send(proxy, "another")
        worked_off(proxy)
        return len(upstream.asked)


def hours_kept(hours: float, _: Path) -> object:
    with folded(summarization_cache_ttl_hours=hours) as (proxy, _upstream):
        [job] = worked_off(proxy)
        lines = proxy.do(exported(proxy.service.engine.store, Scope()))
        kinds = [msgspec.json.decode(line).get("type") for line in lines]
        summaries = [
            msgspec.json.decode(line, type=SummaryRecordLine)
            for line, kind in zip(lines, kinds, strict=True)
            if kind == "summary"
        ]
        ends = [summary.expires_at for summary in summaries if summary.expires_at is not None]
        return [round((at - job.created_at) / 3600) for at in ends]


def keys(setting: str) -> Callable[[Any, Path], object]:
    """Return the key of the job: another value gives another job."""

    def observe(value: Any, _: Path) -> object:
        with folded(**{setting: value}) as (proxy, _upstream):
            return [job.key for job in worked_off(proxy)]

    return observe


def asked_at_once(most: int, _: Path) -> object:
    window = {"openai:small": {"context_window": 900}}
    at_once = [0, 0]

    @Fault
    async def counted(spoken: UpstreamTurn) -> web.StreamResponse:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.05)
        at_once[0] -= 1
        words = spoken.got.texts
        line = next(pump for pump in PUMPS if pump in words)
        return await spoken.say(spoken.truthful(says(text(line))))

    settings = {"parallel_calls": most, "model_context_overrides": window}
    with folded(counted, **settings) as (proxy, _upstream):
        worked_off(proxy)
    return at_once[1]


def by_program(setting: str) -> Callable[[Any, Path], object]:
    """What became of the job where a program writes summaries."""
    mine = {"mine": [sys.executable, "-c", f"print({LINE!r})"]}
    usual = {"summarization_provider": "[cli]mine:x", "summarization_commands": mine}
    return outcome(setting, **usual | {"summarization_max_retries": 0})


LONG_ANSWER = says(text(" ".join(PUMPS[:18])))
NO_RETRY: dict[str, Any] = {"summarization_max_retries": 0}

PROXY_SUMMARIES: dict[str, Wired | str] = {
    "summarization_provider": Wired(outcome("summarization_provider"), "", "openai:small"),
    "summarization_providers": Wired(
        outcome("summarization_providers", only_second, **NO_RETRY), [], ["openai:second"]
    ),
    "summarization_timeout": Wired(outcome("summarization_timeout", slow, **NO_RETRY), 0.05, 20.0),
    "summarization_max_retries": Wired(
        outcome("summarization_max_retries", status(503), says(text(LINE))), 0, 1
    ),
    # A wait that is longer than an answer may take is not waited for: the job is tried again later.
    "summarization_retry_delay": Wired(
        outcome(
            "summarization_retry_delay",
            status(503),
            says(text(LINE)),
            summarization_timeout=5.0,
        ),
        0.0,
        60.0,
    ),
    "summarization_cache_enabled": Wired(asked_for_the_same, True, False),
    "summarization_cache_ttl_hours": Wired(hours_kept, 1.0, 5.0),
    "summarization_prompt_version": Wired(keys("summarization_prompt_version"), "v1", "v2"),
    "summarization_truncate_fallback": Wired(
        outcome(
            "summarization_truncate_fallback",
            LONG_ANSWER,
            **NO_RETRY,
        ),
        True,
        False,
    ),
    "summarization_extractive": "a job keeps a model's words or none: the digest has quotations",
    "parallel_calls": Wired(asked_at_once, 1, 3),
    "summarization_commands": Wired(
        by_program("summarization_commands"),
        {},
        {"mine": [sys.executable, "-c", f"print({LINE!r})"]},
    ),
    "forbid_model_calls": Wired(by_program("forbid_model_calls"), False, True),
    "summary_tokens_per_day": Wired(outcome("summary_tokens_per_day"), 119, 50_000),
}
