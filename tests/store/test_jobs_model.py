"""A queue does the same as a model of one page, for any calls in any order.

The model does not use the package: a dictionary of jobs, and sums of their cost.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.store import Scope, open_store
from holdfast.store.queue import Claim, Job, NewJob, Quotas
from holdfast.store.records import Summary
from tests.store.harness import Clock

T = TypeVar("T")
SCOPE = Scope("ann", "blue", "s")
DAY = 86_400
LEASE = 60.0
SESSION_LIMIT, DAY_LIMIT, JOB_LIMIT = 400, 300, 100


@dataclass
class ModelJob:
    number: int
    priority: int
    most_attempts: int
    most_cost: int
    due: float | None
    state: str = "queued"
    attempts: int = 0
    cost: int = 0
    lease: float = 0.0
    claims: int = 0
    """How often it was claimed; the last one holds it."""
    debited_on: int = 0


@dataclass
class Model:
    now: float
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    session: int = 0
    days: dict[int, int] = field(default_factory=dict)

    @property
    def today(self) -> int:
        return int(self.now // DAY)

    def claim(self, limit: int) -> list[str]:
        keys = self._claim(limit)
        if not keys and self.recover():
            keys = self._claim(limit)
        return keys

    def _claim(self, limit: int) -> list[str]:
        waiting = [(key, job) for key, job in self.jobs.items() if job.due is not None]
        waiting.sort(key=lambda pair: (-pair[1].priority, pair[1].due, pair[1].number))
        claimed: list[str] = []
        for key, job in waiting:
            if len(claimed) < limit and job.due is not None and job.due <= self.now:
                if not self.fits(job.most_cost):
                    job.state, job.due = "skipped", float((self.today + 1) * DAY)
                    continue
                self.debit(self.today, job.most_cost)
                job.state, job.due, job.lease = "running", None, self.now + LEASE
                job.attempts, job.claims, job.debited_on = (
                    job.attempts + 1,
                    job.claims + 1,
                    self.today,
                )
                claimed.append(key)
        return claimed

    def fits(self, most: int) -> bool:
        return not most or (
            most <= JOB_LIMIT
            and self.days.get(self.today, 0) + most <= DAY_LIMIT
            and self.session + most <= SESSION_LIMIT
        )

    def debit(self, day: int, tokens: int) -> None:
        self.session += tokens
        self.days[day] = self.days.get(day, 0) + tokens

    def recover(self) -> int:
        lost = [j for j in self.jobs.values() if j.state == "running" and j.lease <= self.now]
        for job in lost:
            job.cost += job.most_cost
            is_spent = 0 < job.most_attempts <= job.attempts
            job.state, job.due = ("failed", None) if is_spent else ("queued", self.now)
            job.claims += 1  # nobody holds it
        return len(lost)

    def end(self, key: str, claim: int, state: str, cost: int, delay: float | None) -> bool:
        job = self.jobs[key]
        if job.state != "running" or job.claims != claim:
            return False
        if job.most_cost:
            self.debit(job.debited_on, cost - job.most_cost)
        job.cost += cost
        job.state, job.due = state, None if delay is None else self.now + delay
        if state in ("queued", "skipped"):
            job.attempts -= 1
        return True


class QueueMachine(RuleBasedStateMachine):
    """Every step is taken in the store and in the model."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.folder = tempfile.TemporaryDirectory()
        url = self.url or f"sqlite:///{self.folder.name}/holdfast.db"
        self.store = self.do(open_store(url, clock=self.clock))
        self.scope = SCOPE if not self.url else Scope("ann", tempfile.mktemp()[-8:], "s")
        self.kind = self.scope.workspace  # on a server that others use, too
        self.model = Model(self.clock.now)
        self.handles: list[tuple[Job, str, int]] = []

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    def teardown(self) -> None:
        # `recover` covers all owners: jobs claimed here would be counted in the next run, too.
        self.do(self.store.delete_session(self.scope))
        self.do(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    @rule(seconds=st.sampled_from([1.0, 30.0, LEASE, DAY]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.now

    @rule(
        key=st.sampled_from("abcdef"),
        priority=st.sampled_from([0, 5, 9]),
        attempts=st.sampled_from([0, 1, 2]),
        cost=st.sampled_from([0, 60, 100, 101]),
        delay=st.sampled_from([0.0, 0.0, 45.0]),
    )
    def enqueue(self, key: str, priority: int, attempts: int, cost: int, delay: float) -> None:
        job = NewJob(
            kind=self.kind,
            key=key,
            priority=priority,
            max_attempts=attempts,
            most_cost=cost,
            delay_seconds=delay,
        )
        is_new = key not in self.model.jobs
        assert self.do(self.store.jobs.enqueue(self.scope, [job])) == is_new
        if is_new:
            due, number = self.clock.now + delay, len(self.model.jobs)
            self.model.jobs[key] = ModelJob(number, priority, attempts, cost, due)

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        quotas = Quotas(session=SESSION_LIMIT, day=DAY_LIMIT, artifact=JOB_LIMIT)
        claim = Claim(kinds=(self.kind,), limit=limit, lease_seconds=LEASE, quotas=quotas)
        jobs = self.do(self.store.jobs.claim(claim))
        assert sorted(job.key for job in jobs) == sorted(self.model.claim(limit))
        self.handles += [(job, job.key, self.model.jobs[job.key].claims) for job in jobs]

    @rule()
    def recover(self) -> None:
        assert self.do(self.store.jobs.recover()) == self.model.recover()

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        if self.handles:
            job, key, claim = data.draw(st.sampled_from(self.handles))
            model = self.model.jobs[key]
            holds = model.state == "running" and model.claims == claim
            assert self.do(self.store.jobs.renew([job], LEASE)) == ({job.id} if holds else set())
            if holds:
                model.lease = self.clock.now + LEASE

    @rule(
        data=st.data(),
        state=st.sampled_from(["done", "failed", "skipped", "queued"]),
        cost=st.sampled_from([0, 40]),
        delay=st.sampled_from([None, 10.0]),
    )
    def end(self, data: st.DataObject, state: str, cost: int, delay: float | None) -> None:
        if not self.handles:
            return
        job, key, claim = data.draw(st.sampled_from(self.handles))
        queue = self.store.jobs
        made = Summary(f"{job.key} {job.token}", b"made")
        match state:
            case "done":
                call, delay = queue.finish(job, cost=cost, summary=made), None
            case "failed":
                call = queue.fail(job, "x", cost=cost, delay_seconds=delay)
            case "skipped":
                call = queue.skip(job, "x", cost=cost, delay_seconds=delay)
            case _:
                call, delay = queue.release(job, cost=cost), 0.0
        is_ours = self.do(call)
        assert is_ours == self.model.end(key, claim, state, cost, delay)
        is_kept = self.do(self.store.summary(self.scope, made.key)) is not None
        assert is_kept == (is_ours and state == "done")
        self.handles = [h for h in self.handles if (h[1], h[2]) != (key, claim)]

    @invariant()
    def the_queue_is_as_the_model_says(self) -> None:
        jobs = self.do(self.store.jobs.latest(self.scope))
        assert {
            job.key: (job.state, job.attempts, job.cost, job.next_attempt_at) for job in jobs
        } == {
            key: (job.state, job.attempts, job.cost, job.due)
            for key, job in self.model.jobs.items()
        }

    @invariant()
    def every_token_is_accounted_for_and_no_quota_is_exceeded(self) -> None:
        spent = self.do(self.store.jobs.spent(self.scope))
        running = sum(j.most_cost for j in self.model.jobs.values() if j.state == "running")
        cost = sum(job.cost for job in self.model.jobs.values() if job.most_cost)
        assert spent.get("session s", 0) == self.model.session == running + cost
        assert self.model.session <= SESSION_LIMIT
        days = sum(tokens for name, tokens in spent.items() if name.startswith("day "))
        assert days == sum(self.model.days.values())


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)


def _machine(store_url: str) -> type[QueueMachine]:
    return type("Machine", (QueueMachine,), {"url": store_url})


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_other_queues_do_too(kind: str, request: pytest.FixtureRequest) -> None:
    url = "memory:"
    if kind == "postgres":
        url = str(request.getfixturevalue("postgres_store_url"))
    examples = 20 if kind == "memory" else 5
    run_state_machine_as_test(
        _machine(url),
        settings=settings(max_examples=examples, stateful_step_count=25, deadline=None),
    )


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["sqlite", "memory", "postgres"])
def test_queues_do_over_many_histories(kind: str, request: pytest.FixtureRequest) -> None:
    url = {"sqlite": "", "memory": "memory:"}.get(kind)
    if url is None:
        url = str(request.getfixturevalue("postgres_store_url"))
    run_state_machine_as_test(
        _machine(url),
        settings=settings(max_examples=400, stateful_step_count=50, deadline=None),
    )
