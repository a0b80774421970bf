"""Answers are kept, given for equal and like questions, and forgotten: on every kind of store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.answer_cache import AnswerFilter, AnswerPolicy, Answers, Flights
from holdfast.answer_cache.cache import NO_EMBEDDER
from holdfast.engine import Holdfast
from holdfast.errors import PrivacyError, StoreError
from holdfast.store import Scope, Store
from tests.answer_cache.embedding import WordsEmbedder
from tests.privacy.made import UPPER, run
from tests.store.harness import HERE, Clock, Opener, content

CONTEXT = "the hash of a context"
SEMANTIC = AnswerPolicy(semantic=True)
ASKED, LIKE, UNLIKE = (
    "How can I reset a router?",
    "What is the best way to reset a router?",
    "How can I reset 2 routers?",
)


@pytest.fixture
def opener() -> Opener:
    return Opener("memory:")


def with_answers(
    opener: Opener,
    work: Callable[[Answers, Store], Awaitable[None]],
    policy: AnswerPolicy = SEMANTIC,
    **more: Any,
) -> None:
    async def main(store: Store) -> None:
        how: dict[str, Any] = {"embedder": WordsEmbedder(), **more}
        await work(Answers(store, HERE, policy, clock=opener.clock, **how), store)

    opener.run(main)


def test_an_answer_is_given_to_an_equal_and_to_a_like_question(opener: Opener) -> None:
    async def work(answers: Answers, _: Store) -> None:
        assert await answers.get(ASKED, CONTEXT) is None
        id_ = await answers.put(ASKED, CONTEXT, "Hold the button.")
        equal, like = await answers.get(ASKED, CONTEXT), await answers.get(LIKE, CONTEXT)
        assert equal is not None
        assert like is not None
        assert (equal.id, equal.text, equal.tier, equal.similarity) == (
            *(id_, "Hold the button."),
            *("exact", 1.0),
        )
        assert (like.id, like.tier, like.matched) == (id_, "semantic", ASKED)
        assert 0.97 <= like.similarity < 1.0
        assert await answers.get(UNLIKE, CONTEXT) is None
        assert await answers.get(LIKE, "another context") is None
        assert await answers.get(LIKE, CONTEXT, alike=False) is None
        [kept] = await answers.latest()
        assert kept.hits == 2

    with_answers(opener, work)


def test_no_scope_is_given_the_answer_of_another(opener: Opener) -> None:
    """Every pair of nine scopes, with equal and with like questions."""
    scopes = [Scope(user, place) for user, place in itertools.product("abc", "xyz")]

    async def work(answers: Answers, _: Store) -> None:
        for scope in scopes:
            before = answers.of(scope)
            assert await before.get(ASKED, CONTEXT) is None
            assert await before.get(LIKE, CONTEXT) is None
            assert await before.matches(ASKED) == []
            await before.put(ASKED, CONTEXT, f"{scope.user}{scope.workspace}")
        for scope in scopes:
            for prompt in (ASKED, LIKE):
                answer = await answers.of(scope).get(prompt, CONTEXT)
                assert answer is not None
                assert answer.text == f"{scope.user}{scope.workspace}"
        assert len(await answers.of(scopes[0]).forget(AnswerFilter())) == 1
        assert await answers.of(scopes[1]).get(ASKED, CONTEXT) is not None

    with_answers(opener, work)


def test_an_answer_holds_for_an_hour_from_when_it_came(opener: Opener) -> None:
    async def work(answers: Answers, _: Store) -> None:
        await answers.put(ASKED, CONTEXT, "Hold.")
        await answers.put("How do I wait?", CONTEXT, "Wait.", ttl=60)
        opener.clock.advance(3_599)
        assert await answers.get(LIKE, CONTEXT) is not None  # which does not make it any younger
        assert await answers.get("How do I wait?", CONTEXT) is None
        opener.clock.advance(1)
        assert await answers.get(ASKED, CONTEXT) is None
        assert await answers.get(LIKE, CONTEXT) is None

    with_answers(opener, work)


def test_a_stale_or_missing_ref_keeps_its_answer_back(opener: Opener) -> None:
    log = content("text", ttl_seconds=100.0)

    async def work(answers: Answers, store: Store) -> None:
        await store.put(HERE, [log])
        await answers.put(ASKED, CONTEXT, "Hold.", refs=[log.sha256])
        assert await answers.get(LIKE, CONTEXT) is not None
        opener.clock.advance(100)
        assert await answers.get(ASKED, CONTEXT) is None
        assert await answers.get(LIKE, CONTEXT) is None
        await store.put(HERE, [log])
        assert await answers.get(ASKED, CONTEXT) is not None
        [gone] = await answers.forget(log.ref_id, preview=True)
        assert gone.refs == (log.ref_id,)
        await store.forget(HERE, [log.ref_id])
        assert await answers.latest() == []
        with pytest.raises(StoreError, match="not stored"):
            await answers.put(ASKED, CONTEXT, "Hold.", refs=[log.ref_id])

    with_answers(opener, work)


def test_a_wrong_answer_is_removed_by_id_by_ref_and_by_filter(opener: Opener) -> None:
    log = content("text")

    async def work(answers: Answers, store: Store) -> None:
        await store.put(HERE, [log])
        ids = [await answers.put(f"What is {n}?", CONTEXT, f"It is {n}!") for n in range(4)]
        ids.append(await answers.put("What failed?", "other", "This.", refs=[log.ref_id]))
        opener.clock.advance(10)
        ids.append(await answers.put("What came late?", CONTEXT, "That.", session="s9"))
        for which, expected in (
            (ids[0][:12], {ids[0]}),
            (log.ref_id, {ids[4]}),
            (AnswerFilter(contains="IS 2!"), {ids[2]}),
            (AnswerFilter(session="s9"), {ids[5]}),
            (AnswerFilter(signature="other"), {ids[4]}),
            (AnswerFilter(older_than_seconds=5, signature=CONTEXT), set(ids[:4])),
        ):
            assert {each.id for each in await answers.forget(which, preview=True)} == expected
        everywhere = answers.of(HERE.of(""))
        assert len(await everywhere.latest()) == 6
        assert [each.id for each in await answers.forget(ids[0])] == [ids[0]]
        assert await answers.get("What is 0?", CONTEXT) is None
        assert len(await everywhere.latest()) == 5
        for slip in ("abc", "ans_", "ans_0123456", "everything"):
            with pytest.raises(StoreError, match="neither an id"):
                await answers.forget(slip)
        assert await answers.forget("ans_0123456789abcdef") == []

    with_answers(opener, work)


def test_what_a_question_matches_is_shown_with_what_keeps_it_back(opener: Opener) -> None:
    async def work(answers: Answers, _: Store) -> None:
        await answers.put(ASKED, CONTEXT, "Hold.")
        await answers.put(UNLIKE, CONTEXT, "Hold both.")
        first, second = await answers.matches(LIKE)
        assert (first.kept.prompt, first.serves, first.differs_in) == (ASKED, True, "")
        assert (second.kept.prompt, second.serves, second.differs_in) == (UNLIKE, False, "numbers")
        assert first.similarity > second.similarity

    with_answers(opener, work)


def test_like_questions_wait_until_they_are_switched_on_and_there_is_an_embedder(
    opener: Opener,
) -> None:
    async def off(answers: Answers, _: Store) -> None:
        await answers.put(ASKED, CONTEXT, "Hold.")
        assert "enable_semantic_cache" in answers.unlike_because
        assert await answers.get(LIKE, CONTEXT) is None
        assert await answers.get(ASKED, CONTEXT) is not None
        [kept] = await answers.latest()
        assert kept.vector == b""

    with_answers(opener, off, AnswerPolicy())

    async def without(answers: Answers, _: Store) -> None:
        await answers.put(ASKED, CONTEXT, "Hold.")
        assert answers.unlike_because == NO_EMBEDDER
        assert await answers.get(LIKE, CONTEXT) is None
        assert await answers.get(ASKED, CONTEXT) is not None

    with_answers(opener, without, embedder=None)


def test_vectors_of_two_embedders_are_never_compared(opener: Opener) -> None:
    class Another(WordsEmbedder):
        name = "others"

    async def work(answers: Answers, store: Store) -> None:
        await answers.put(ASKED, CONTEXT, "Hold.")
        other = Answers(store, HERE, SEMANTIC, embedder=Another(), clock=opener.clock)
        assert await other.get(LIKE, CONTEXT) is None
        assert await other.get(ASKED, CONTEXT) is not None

    with_answers(opener, work)


def test_switched_off_nothing_is_kept_and_nothing_given(opener: Opener) -> None:
    async def work(answers: Answers, store: Store) -> None:
        await Answers(store, HERE, clock=opener.clock).put(ASKED, CONTEXT, "Hold.")
        assert await answers.get(ASKED, CONTEXT) is None
        with pytest.raises(StoreError, match="not kept"):
            await answers.put(ASKED, CONTEXT, "Hold.")

    with_answers(opener, work, AnswerPolicy(enabled=False))


@pytest.mark.parametrize("policy", ["mask", "refuse"])
def test_a_secret_is_not_kept_where_the_policy_says_so(opener: Opener, policy: Any) -> None:
    secret = "AKIA" + run(16, UPPER)

    async def work(answers: Answers, _: Store) -> None:
        for prompt, answer in ((f"Is {secret} mine?", "No."), ("What is the key?", secret)):
            with pytest.raises(PrivacyError) as refused:
                await answers.put(prompt, CONTEXT, answer)
            assert secret not in str(refused.value)
        assert await answers.latest() == []

    with_answers(opener, work, AnswerPolicy(privacy=policy))


def test_who_joins_what_nobody_began_goes_on_at_once() -> None:
    async def main() -> None:
        flights = Flights()
        assert not await flights.joined("k")
        assert flights.begin("k")
        assert not flights.begin("k")
        flights.end("k", kept=True)
        flights.end("k", kept=True)
        assert flights.begin("k")

    asyncio.run(main())


def test_the_engine_has_the_answers_of_its_scope() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:", clock=Clock()) as engine:
            await engine.answers.put(ASKED, CONTEXT, "Hold.")
            other = await engine.of(Scope("bob"))
            assert await other.answers.get(ASKED, CONTEXT) is None
            assert await engine.answers.get(ASKED, CONTEXT) is not None

    asyncio.run(main())
