"""A model's summary of folded messages: queued after the response, quoted by the next fold.

For any answer of the model at any time: requests stay valid, keep the limit, can be rebuilt, and
between two folds each continues the bytes of the previous one.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import Holdfast
from holdfast.fitting import Fitted
from holdfast.jobs.folding import KIND
from holdfast.store import open_store
from holdfast.store.opening import open_memory
from holdfast.trim.provenance import Fold
from tests.engine.summed_up import (
    ALLOWANCE,
    HERE,
    LIE,
    SETTINGS,
    WAYS,
    Model,
    engine_on,
    talk,
    work_off,
)
from tests.surfaces.proxy.gatekeeper import KEY, Got, Ledger, refusal

LIMIT = 1_200
SUMMED_UP = "Summed up by a model"


async def sent(engine: Holdfast, body: bytes) -> Fitted:
    session = engine.session("s")
    fitted = await session.fit(body, limit=LIMIT)
    await engine.observe(session, fitted)
    return fitted


def messages(body: bytes) -> list[str]:
    return [json.dumps(message) for message in json.loads(body)["messages"]]


def digests(body: bytes) -> list[str]:
    return [text for text in messages(body) if "[Folded: " in text]


def is_valid(body: bytes) -> bool:
    headers = {"authorization": f"Bearer {KEY}"}
    got = Got("POST", "/v1/chat/completions", {}, headers, body)
    return refusal(got, LIMIT, Ledger()) is None


def folds(fitted: Fitted) -> bool:
    return any(edit.action in ("fold", "cite") for edit in fitted.edits)


async def run_through(
    seed: int, way: str, ready: list[bool], restarts: list[bool]
) -> tuple[list[Fitted], Model]:
    """Run one conversation, with jobs and restarts after some turns."""
    store = open_memory()
    engine, model = engine_on(store), Model(way)
    requests: list[Fitted] = []
    for body, is_ready, restart in zip(talk(seed, len(ready)), ready, restarts, strict=True):
        fitted = await sent(engine, body)
        assert is_valid(fitted.body), "a provider takes it"
        assert await engine.session("s").rebuild(len(requests) + 1) == body
        if requests and not folds(fitted):
            before = messages(requests[-1].body)
            assert messages(fitted.body)[: len(before)] == before
        requests.append(fitted)
        if is_ready:
            await work_off(store, model)
        if restart:
            engine = engine_on(store)
    return requests, model


runs = st.lists(st.booleans(), min_size=16, max_size=16)


any_run = given(st.integers(0, 9_999), st.sampled_from(WAYS), runs, runs)


@settings(max_examples=10)
@any_run
def test_whatever_the_queue_does_requests_stay_whole_and_the_same_after_a_restart(
    seed: int, way: str, ready: list[bool], restarts: list[bool]
) -> None:
    holds_whatever_the_queue_does(seed, way, ready, restarts)


@pytest.mark.campaign
@settings(max_examples=1_000)
@any_run
def test_the_same_over_many_talks(
    seed: int, way: str, ready: list[bool], restarts: list[bool]
) -> None:
    holds_whatever_the_queue_does(seed, way, ready, restarts)


def holds_whatever_the_queue_does(
    seed: int, way: str, ready: list[bool], restarts: list[bool]
) -> None:
    async def work() -> None:
        requests, model = await run_through(seed, way, ready, restarts)
        never_ended, _ = await run_through(seed, way, ready, [False] * len(ready))
        assert [r.body for r in requests] == [r.body for r in never_ended]
        text = b"".join(request.body for request in requests).decode()
        assert LIE not in text
        assert (SUMMED_UP in text) <= (way in ("honest", "lies", "speaks"))
        assert all("[Folded: " not in source for source in model.sources), "originals only"
        for request in requests:
            for digest in digests(request.body):
                assert digest.count("[") == digest.count("]") == 1

    asyncio.run(work())


async def until_summed_up(engine: Holdfast, model: Model) -> list[Fitted]:
    """The requests of a talk up to the one whose digest quotes the model."""
    requests = []
    for body in talk(7, 60):
        requests.append(await sent(engine, body))
        if SUMMED_UP in requests[-1].body.decode():
            return requests
        await work_off(engine.store, model)
    raise AssertionError


def test_the_fold_that_is_due_quotes_what_was_said_of_the_messages_folded_before() -> None:
    async def work() -> None:
        engine, model = engine_on(open_memory()), Model()
        *before, last = await until_summed_up(engine, model)
        folded = [request for request in before if folds(request)]
        assert folded
        [digest] = digests(last.body)
        assert 'by a model, each with its path in the ref: \\"Pump' in digest
        [edit] = [edit for edit in last.edits if edit.action == "fold"]
        assert edit.what == "folded into a digest, with a model's summary"
        [fold] = last.state.folds
        assert edit.ref_id == fold.ref_id
        assert fold.sentences == 1
        sentence = fold.parts[0].told[0]
        assert sentence.first == sentence.last
        opened = await engine.expand_ref(fold.ref_id, {"path": f"$.{sentence.first}"})
        assert sentence.text in opened.text

    asyncio.run(work())


def test_nothing_is_written_anew_because_a_summary_is_ready() -> None:
    async def work() -> None:
        engine, model = engine_on(open_memory()), Model()
        requests: list[Fitted] = []
        for body in talk(7, 60):
            requests.append(await sent(engine, body))
            if await work_off(engine.store, model):
                break
        before = requests[-1]
        bodies = list(talk(7, len(requests) + 1))
        fitted = await sent(engine, bodies[-1])
        assert fitted.state.told, "it is noted"
        assert not folds(fitted)
        assert SUMMED_UP not in fitted.body.decode()
        assert messages(fitted.body)[: len(messages(before.body))] == messages(before.body)

    asyncio.run(work())


def test_a_summary_has_no_more_room_than_the_digest_was_allowed() -> None:
    async def work() -> None:
        for seed in range(2):
            ready = [True] * 20
            requests, _ = await run_through(seed, "honest", ready, [False] * 20)
            quoting = [fold for request in requests for fold in request.state.folds]
            assert any(fold.sentences for fold in quoting)
            for request in requests:
                for edit in request.edits:
                    if edit.action == "fold":
                        assert edit.to_tokens <= edit.from_tokens
                        assert edit.to_tokens <= 260 + ALLOWANCE

    asyncio.run(work())


def test_a_message_is_asked_about_once() -> None:
    async def work() -> None:
        _, model = await run_through(3, "honest", [True] * 24, [False] * 24)
        reports = [report for source in model.sources for report in source.split(". ")]
        long = [report for report in reports if report.startswith("Pump ")]
        assert len(model.sources) > 2
        assert len(long) == len(set(long))

    asyncio.run(work())


def test_two_processes_that_take_turns_send_the_same_as_one(tmp_path: Path) -> None:
    async def work(processes: int) -> list[bytes]:
        url = f"sqlite:///{tmp_path}/{processes}.db"
        stores = [await open_store(url) for _ in range(processes)]
        engines, model = [engine_on(store) for store in stores], Model()
        bodies = []
        for n, body in enumerate(talk(5, 18)):
            engine = engines[n % processes]
            await engine.session("s").load()
            await engine.session("s").catch_up()
            bodies.append((await sent(engine, body)).body)
            await work_off(stores[0], model)
        for store in stores:
            await store.close()
        return bodies

    alone, together = asyncio.run(work(1)), asyncio.run(work(2))
    assert alone == together
    assert SUMMED_UP in b"".join(alone).decode()


def test_what_the_queue_made_since_the_last_turn_is_for_the_next() -> None:
    """A process that answers the same request anew must come to the same bytes."""

    async def work() -> None:
        store = open_memory()
        engine, model = engine_on(store), Model()
        bodies = talk(7, 16)
        for body in bodies:
            fitted = await sent(engine, body)
            if folds(fitted):
                break
        for body in bodies:
            first = await engine_on(store).session("s").fit(body, limit=LIMIT)
            await work_off(store, model)  # ready between two attempts at one request
            second = await engine_on(store).session("s").fit(body, limit=LIMIT)
            assert second.body == first.body
            await sent(engine, body)

    asyncio.run(work())


@pytest.mark.parametrize("way", ["fails", "declines", "empty", "essay", "error", "only lies"])
def test_what_is_no_summary_leaves_the_extracts(way: str) -> None:
    async def work() -> None:
        ready = [True] * 14
        requests, model = await run_through(7, way, ready, [False] * 14)
        assert model.sources
        assert SUMMED_UP not in b"".join(request.body for request in requests).decode()
        plain, _ = await run_through(7, way, [False] * 14, [False] * 14)
        assert [r.body for r in requests] == [r.body for r in plain]

    asyncio.run(work())


def test_without_a_model_nothing_is_set_aside_and_nothing_queued() -> None:
    async def work() -> None:
        store = open_memory()
        engine = engine_on(store, type(SETTINGS)(cite_policy="always"))
        assert engine.parts.summaries is None
        for body in talk(7, 30):
            fitted = await sent(engine, body)
        assert fitted.state.folds
        assert all(not fold.parts for fold in fitted.state.folds)
        assert await store.jobs.latest(None, kind=KIND) == []

    asyncio.run(work())


def parts_in_order(fold: Fold) -> bool:
    ends = [(part.start, part.stop) for part in fold.parts]
    return all(first[1] <= second[0] for first, second in pairwise(ends))


def test_the_strategy_summarise_has_the_same_queue() -> None:
    async def work() -> None:
        engine, model = engine_on(open_memory()), Model()
        options = msgspec.structs.replace(engine.options, strategy="summarise", limit=LIMIT)
        session = engine.session("s")
        quoted = False
        for body in talk(11, 20):
            fitted = await session.fit(body, options)
            await engine.observe(session, fitted)
            assert is_valid(fitted.body)
            assert all(map(parts_in_order, fitted.state.folds))
            quoted = quoted or SUMMED_UP in fitted.body.decode()
            await work_off(engine.store, model)
        assert quoted
        assert [job.scope.session for job in await engine.store.jobs.latest(HERE, kind=KIND)]

    asyncio.run(work())
