"""The queue, on every kind of store: claims, leases, ends, quotas."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import StoreError
from holdfast.store import Scope, Store
from holdfast.store.queue import LOOKED_AT, LOST, Claim, Job, NewJob, Quotas
from holdfast.store.records import Summary
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    Opener,
    content,
    exported,
    lines_of,
    session,
    turn,
)

DAY = 86_400


def new(key: str, **more: Any) -> NewJob:
    return NewJob(**{"kind": "clean", "key": key} | more)


async def claimed(store: Store, **asked: Any) -> list[Job]:
    settings: dict[str, Any] = {"kinds": ("clean",), "limit": 10} | asked
    return await store.jobs.claim(Claim(**settings))


async def states(store: Store, scope: Scope | None = HERE) -> dict[str, str]:
    return {job.key: job.state for job in await store.jobs.latest(scope)}


def test_jobs_are_done_by_priority_and_then_by_age(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("b"), new("c", priority=1), new("a", priority=9)])
        opener.clock.advance(1)
        await store.jobs.enqueue(HERE, [new("later"), new("other", kind="none")])
        order = [(await claimed(store, limit=1))[0].key for _ in range(4)]
        assert order == ["a", "b", "later", "c"]
        assert await claimed(store) == []

    opener.run(work)


def test_ids_are_positive_and_grow(opener: Opener) -> None:
    """A user names a job by its id, and 0 is no id in a database."""

    async def work(store: Store) -> None:
        for key in "abc":
            await store.jobs.enqueue(HERE, [new(key)])
        ids = {job.key: job.id for job in await store.jobs.latest(HERE)}
        assert 0 < ids["a"] < ids["b"] < ids["c"]

    opener.run(work)


def owners(jobs: list[Job]) -> list[tuple[str, str]]:
    return [(job.scope.user, job.scope.workspace) for job in jobs]


ANN, BOB, RED = ("ann", "blue"), ("bob", "blue"), ("ann", "red")


def test_many_jobs_of_one_owner_do_not_hold_back_the_first_of_another(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new(str(number)) for number in range(200)])
        opener.clock.advance(60)
        await store.jobs.enqueue(OTHER_USER, [new("only")])
        await store.jobs.enqueue(OTHER_WORKSPACE, [new("first"), new("second")])
        order = [(await claimed(store, limit=1))[0] for _ in range(7)]
        assert owners(order) == [ANN, BOB, RED, ANN, RED, ANN, ANN]
        assert [job.key for job in order] == ["0", "only", "first", "1", "second", "2", "3"]

    opener.run(work)


def test_one_claim_serves_as_many_owners_as_it_has_jobs(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new(str(number)) for number in range(20)])
        await store.jobs.enqueue(OTHER_USER, [new("b")])
        await store.jobs.enqueue(OTHER_WORKSPACE, [new("c")])
        jobs = await claimed(store, limit=3)
        assert set(owners(jobs)) == {ANN, BOB, RED}
        # Where only one has any left, the claim is filled with what that has.
        assert [job.key for job in await claimed(store, limit=5)] == ["1", "2", "3", "4", "5"]

    opener.run(work)


def test_turns_are_taken_within_a_priority_and_not_against_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(OTHER_USER, [new("b")])
        await store.jobs.enqueue(HERE, [new(str(number), priority=9) for number in range(3)])
        assert owners(await claimed(store, limit=2)) == [ANN, ANN]
        assert set(owners(await claimed(store, limit=2))) == {ANN, BOB}

    opener.run(work)


def test_owners_whose_jobs_wait_for_tomorrow_take_no_turns_from_others(opener: Opener) -> None:
    """Between the two owners with due jobs are more owners than one claim reads."""

    async def work(store: Store) -> None:
        hog, last = Scope("a", "blue"), Scope("z", "blue")
        await store.jobs.enqueue(hog, [new(str(number)) for number in range(10)])
        for number in range(LOOKED_AT + 2):
            await store.jobs.enqueue(Scope(f"m{number}", "blue"), [new("x", delay_seconds=DAY)])
        await store.jobs.enqueue(last, [new("z")])
        order = [(await claimed(store, limit=1))[0].scope.user for _ in range(5)]
        assert order.index("z") <= 3
        assert order.count("a") == 4

    opener.run(work)


def test_a_job_of_a_kind_and_key_is_there_once_even_when_it_is_done(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await store.jobs.enqueue(HERE, [new("k"), new("k"), new("k", kind="x")]) == 2
        assert await store.jobs.enqueue(HERE.of("s2"), [new("k")]) == 0
        assert await store.jobs.enqueue(OTHER_USER, [new("k")]) == 1
        for job in await claimed(store):
            assert await store.jobs.finish(job)
        assert await store.jobs.enqueue(HERE, [new("k")]) == 0
        assert await claimed(store) == []

    opener.run(work)


def test_a_claimed_job_knows_all_that_it_was_queued_with(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k", ref_id="ref:log:1", priority=7, max_attempts=2)])
        (job,) = await claimed(store)
        assert (job.scope, job.key, job.ref_id, job.priority) == (HERE, "k", "ref:log:1", 7)
        assert (job.state, job.attempts, job.max_attempts) == ("running", 1, 2)
        assert job.created_at == opener.clock.now
        assert len(job.token) == 32
        (seen,) = await store.jobs.latest(HERE)
        assert (seen.state, seen.token) == ("running", "")

    opener.run(work)


def test_a_job_is_claimed_once_by_however_many(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new(str(number)) for number in range(40)])
        parts = await asyncio.gather(*(claimed(store, limit=3) for _ in range(16)))
        ids = [job.id for part in parts for job in part]
        assert len(ids) == len(set(ids)) == 40

    opener.run(work)


def test_a_lease_that_ran_out_gives_the_job_to_another_and_the_first_can_no_longer_end_it(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k")])
        (dead,) = await claimed(store)
        opener.clock.advance(59)
        assert await claimed(store) == []
        opener.clock.advance(1)
        (alive,) = await claimed(store)
        assert (alive.id, alive.attempts) == (dead.id, 2)
        assert alive.token != dead.token
        queue = store.jobs
        assert not await queue.renew([dead], 60.0)
        assert not await queue.finish(dead, summary=Summary("k", b"dead"))
        assert not await queue.fail(dead, "x")
        assert not await queue.release(dead)
        assert await queue.finish(alive, summary=Summary("k", b"alive"))
        assert not await queue.finish(dead, summary=Summary("k", b"dead"))
        assert await store.summary(HERE, "k") == b"alive"

    opener.run(work)


def test_a_renewed_lease_holds(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k"), new("left")])
        jobs = await claimed(store)
        opener.clock.advance(50)
        assert await store.jobs.renew(jobs[:1], 60.0) == {jobs[0].id}
        opener.clock.advance(50)
        assert await store.jobs.recover() == 1
        assert await store.jobs.finish(jobs[0])
        assert await states(store) == {"k": "done", "left": "queued"}

    opener.run(work)


def test_a_late_attempt_that_nobody_has_replaced_may_still_finish(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k")])
        (job,) = await claimed(store)
        opener.clock.advance(1000)
        assert await store.jobs.finish(job)

    opener.run(work)


def test_to_end_a_job_twice_is_to_end_it_once(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k", most_cost=100)])
        (job,) = await claimed(store)
        assert await store.jobs.finish(job, cost=30)
        assert await store.jobs.finish(job, cost=30)
        assert set((await store.jobs.spent(HERE)).values()) == {30}
        assert not await store.jobs.fail(job, "too late")

    opener.run(work)


def test_a_job_whose_worker_is_lost_too_often_has_failed(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k", max_attempts=2), new("for ever", max_attempts=0)])
        for _ in range(3):
            await claimed(store)
            opener.clock.advance(60)
            await store.jobs.recover()
        ends = {job.key: (job.state, job.error) for job in await store.jobs.latest(HERE)}
        assert ends == {"k": ("failed", LOST), "for ever": ("queued", LOST)}

    opener.run(work)


def test_a_failed_job_is_tried_again_after_its_delay_and_then_no_more(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k")])
        (job,) = await claimed(store)
        assert await store.jobs.fail(job, "timeout", delay_seconds=10.0)
        (seen,) = await store.jobs.latest(HERE)
        assert (seen.state, seen.error) == ("failed", "timeout")
        assert seen.next_attempt_at == opener.clock.now + 10
        opener.clock.advance(9)
        assert await claimed(store) == []
        opener.clock.advance(1)
        (again,) = await claimed(store)
        assert again.attempts == 2
        assert await store.jobs.fail(again, "refused")
        opener.clock.advance(DAY)
        assert await claimed(store) == []

    opener.run(work)


def test_a_job_that_is_handed_back_has_not_been_tried(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k")])
        (job,) = await claimed(store)
        assert await store.jobs.release(job)
        (again,) = await claimed(store)
        assert again.attempts == 1

    opener.run(work)


def test_a_job_that_recurs_is_one_job(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k")])
        for _ in range(5):
            (job,) = await claimed(store)
            assert job.attempts == 1
            assert await store.jobs.finish(job, again_seconds=3600.0)
            assert await claimed(store) == []
            opener.clock.advance(3600)

    opener.run(work)


def test_what_a_job_may_cost_is_debited_and_what_it_did_not_cost_is_refunded(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k", most_cost=120), new("free")])
        job = next(job for job in await claimed(store) if job.most_cost)
        assert await store.jobs.spent(HERE) == {"day 2027-01-15": 120, "session s1": 120}
        assert (await store.jobs.figures()).cost_today == 120
        await store.jobs.fail(job, "timeout", cost=20, delay_seconds=0.0)
        assert set((await store.jobs.spent(HERE)).values()) == {20}
        (again,) = await claimed(store)
        await store.jobs.finish(again, cost=80)
        assert set((await store.jobs.spent(HERE)).values()) == {100}
        assert {job.key: job.cost for job in await store.jobs.latest(HERE)}["k"] == 100
        assert await store.jobs.spent(OTHER_WORKSPACE) == {}

    opener.run(work)


def test_what_a_lost_attempt_may_have_cost_stays_spent(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("k", most_cost=100)])
        await claimed(store)
        opener.clock.advance(60)
        (again,) = await claimed(store)
        await store.jobs.finish(again, cost=1)
        assert set((await store.jobs.spent(HERE)).values()) == {101}
        (seen,) = await store.jobs.latest(HERE)
        assert seen.cost == 101

    opener.run(work)


@pytest.mark.parametrize(
    ("quotas", "why"),
    [
        (Quotas(session=250), "quota_exceeded: session"),
        (Quotas(day=250), "quota_exceeded: day"),
        (Quotas(artifact=99), "quota_exceeded: artifact"),
    ],
)
def test_jobs_over_quota_are_skipped_with_the_reason_and_due_the_next_day(
    opener: Opener, quotas: Quotas, why: str
) -> None:
    async def work(store: Store) -> None:
        jobs = [new(str(number), most_cost=100) for number in range(4)]
        await store.jobs.enqueue(HERE, [*jobs, new("free")])
        ran = await claimed(store, quotas=quotas)
        assert [job.key for job in ran][-1] == "free"
        assert len(ran) == (1 if quotas.artifact < 100 else 3)
        skipped = [job for job in await store.jobs.latest(HERE) if job.state == "skipped"]
        assert len(skipped) == 5 - len(ran)
        assert {job.error for job in skipped} == {why}
        midnight = opener.clock.now - opener.clock.now % DAY + DAY
        assert {job.next_attempt_at for job in skipped} == {midnight}
        assert {job.attempts for job in skipped} == {0}
        for job in ran:
            await store.jobs.finish(job, cost=job.most_cost)
        opener.clock.now = midnight - 1
        assert await claimed(store, quotas=quotas) == []
        opener.clock.now = midnight
        again = await claimed(store, quotas=quotas)
        assert len(again) == (2 if why.endswith("day") else 0)

    opener.run(work)


def test_more_jobs_over_quota_than_are_skipped_at_once_hide_none_behind_them(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.queue.SKIPPED_AT_ONCE", 3)

    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new(str(n), most_cost=200) for n in range(10)])
        opener.clock.advance(1)
        await store.jobs.enqueue(HERE, [new("free")])
        assert [job.key for job in await claimed(store, limit=1)] == ["free"]

    opener.run(work)


def test_the_jobs_of_a_session_go_with_it_and_those_of_a_ref_with_that(opener: Opener) -> None:
    made = content("x")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        await store.add_turn(HERE, turn(1), session(), {})
        await store.jobs.enqueue(HERE, [new("mine", most_cost=9)])
        await store.jobs.enqueue(HERE.of("s2"), [new("about", ref_id=made.ref_id), new("other")])
        await claimed(store, limit=1)
        await store.forget(HERE, [made.ref_id])
        assert await states(store, HERE.of("")) == {"mine": "running", "other": "queued"}
        await store.delete_session(HERE)
        assert await states(store, HERE.of("")) == {"other": "queued"}
        assert "session s1" not in await store.jobs.spent(HERE)

    opener.run(work)


def test_jobs_that_are_over_are_forgotten_and_others_are_not(opener: Opener) -> None:
    async def work(store: Store) -> None:
        keys = ["done", "again", "failed", "retried", "running", "queued"]
        await store.jobs.enqueue(HERE, [new(key) for key in keys])
        done, again, failed, retried, _ = await claimed(store, limit=5)
        await store.jobs.finish(done)
        await store.jobs.finish(again, again_seconds=1e6)
        await store.jobs.fail(failed, "x")
        await store.jobs.fail(retried, "x", delay_seconds=1.0)
        opener.clock.advance(59)
        assert await store.jobs.forget_finished(60.0) == 0
        opener.clock.advance(1)
        assert await store.jobs.forget_finished(60.0) == 2
        assert set(await states(store)) == {"again", "retried", "running", "queued"}

    opener.run(work)


def test_figures_tell_depth_by_kind_and_state_and_how_long_the_first_waits(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("a"), new("b"), new("later", delay_seconds=500.0)])
        await store.jobs.enqueue(OTHER_USER, [new("c", kind="x")])
        await claimed(store, limit=1)
        opener.clock.advance(30)
        depths = {
            (depth.kind, depth.state): (depth.jobs, depth.waiting_seconds)
            for depth in (await store.jobs.figures()).depths
        }
        assert depths == {
            ("clean", "queued"): (2, 30.0),
            ("clean", "running"): (1, 0.0),
            ("x", "queued"): (1, 30.0),
        }

    opener.run(work)


def test_jobs_are_listed_by_scope_kind_and_state(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("a"), new("b", kind="x")])
        await store.jobs.enqueue(HERE.of("s2"), [new("c")])
        await store.jobs.enqueue(OTHER_USER, [new("d")])
        queue = store.jobs
        assert [job.key for job in await queue.latest(None, limit=2)] == ["d", "c"]
        assert [job.key for job in await queue.latest(HERE.of(""))] == ["c", "b", "a"]
        assert [job.key for job in await queue.latest(HERE, kind="x")] == ["b"]
        assert await queue.latest(HERE, state="done") == []

    opener.run(work)


@pytest.mark.parametrize(
    "job", [new(""), new("k", kind=""), new("k", priority=10), new("k", most_cost=-1)]
)
def test_a_job_that_cannot_be_is_refused(opener: Opener, job: NewJob) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(StoreError):
            await store.jobs.enqueue(HERE, [new("fine"), job])
        assert await store.jobs.latest(None) == []

    opener.run(work)


def test_whoever_waits_is_woken_by_a_job(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.wait(0.0)  # on PostgreSQL, it begins to listen
        waiting = asyncio.create_task(store.jobs.wait(60.0))
        await asyncio.sleep(0)
        await store.jobs.enqueue(HERE, [new("k")])
        await asyncio.wait_for(waiting, 30.0)
        await store.jobs.wait(0.0)

    opener.run(work)


def test_whoever_waits_is_woken_by_a_job_that_is_handed_back(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await store.jobs.wait(0.0)  # on PostgreSQL, it begins to listen
        await store.jobs.enqueue(HERE, [new("k")])
        await store.jobs.wait(30.0)  # takes the notice of the new job
        [job] = await claimed(store, limit=1)
        waiting = asyncio.create_task(store.jobs.wait(60.0))
        await asyncio.sleep(0)
        await store.jobs.release(job)
        await asyncio.wait_for(waiting, 30.0)

    opener.run(work)


def test_jobs_are_exported_and_restored_once_and_one_that_runs_is_queued_again(
    opener: Opener,
) -> None:
    async def work(store: Store) -> None:
        await store.jobs.enqueue(HERE, [new("done"), new("failed"), new("running"), new("queued")])
        done, failed, _ = await claimed(store, limit=3)
        await store.jobs.finish(done, cost=7)
        await store.jobs.fail(failed, "timeout", delay_seconds=90.0)
        lines = await exported(store, HERE)
        assert await store.restore(HERE, lines_of(lines)) == 0
        assert await store.restore(OTHER_USER, lines_of(lines)) == 4
        theirs = {job.key: job for job in await store.jobs.latest(OTHER_USER)}
        assert {key: job.state for key, job in theirs.items()} == {
            "done": "done",
            "failed": "failed",
            "running": "queued",
            "queued": "queued",
        }
        assert (theirs["done"].cost, theirs["done"].scope) == (7, OTHER_USER)
        assert theirs["failed"].next_attempt_at == opener.clock.now + 90
        assert await store.jobs.enqueue(OTHER_USER, [new("done")]) == 0
        assert await exported(store, OTHER_USER) == lines
        assert owners(await claimed(store, limit=1)) == [BOB]

    opener.run(work)


def test_what_a_job_says_of_its_content_is_told_from_then_on(opener: Opener) -> None:
    made = content("a long text", summary="an extract", compressed="a …")

    async def work(store: Store) -> None:
        await store.put(HERE, [made])
        await store.put(OTHER_USER, [made])
        await store.jobs.enqueue(HERE, [new("k", ref_id=made.ref_id)])
        (dead,) = await claimed(store)
        opener.clock.advance(60)
        (alive,) = await claimed(store)
        assert not await store.jobs.finish(dead, gist="by one that is dead")
        with pytest.raises(StoreError):
            await store.jobs.finish(alive, gist="x" * 501)
        assert await store.jobs.finish(alive, gist="what a model made of it")
        info = await store.info(HERE, made.ref_id)
        theirs = await store.info(OTHER_USER, made.ref_id)
        assert info is not None
        assert (info.summary, info.compressed) == ("what a model made of it", "a …")
        assert theirs is not None
        assert theirs.summary == "an extract"

    opener.run(work)
