"""Facts of the people and things that a question names come before all others."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.facts import FactIndexCache, Ledger, RankedFact
from holdfast.facts.names import find_names
from holdfast.search.words import fact_terms
from holdfast.store.opening import open_memory
from tests.store.harness import HERE

SPEAKERS = frozenset({"ann", "lee", "user"})


@pytest.mark.parametrize(
    ("question", "speakers", "objects"),
    [
        ("What did Ann's sister buy?", {"ann"}, []),
        ("what did ann buy?", {"ann"}, []),
        ("Ann or Lee?", {"ann", "lee"}, []),
        ("When is the Apollo release?", set(), ["Apollo"]),
        ("Is db-3 on AWS?", set(), ["db-3", "AWS"]),
        ("Where did Ann meet Bob?", {"ann"}, ["Bob"]),
        ("What did the user say on Monday in June?", set(), []),
        ("What is my budget? Tell me 3 things.", set(), []),
        ("WHAT IS THE BUDGET", set(), []),
        ("", set(), []),
    ],
)
def test_names_of_a_question(question: str, speakers: set[str], objects: list[str]) -> None:
    names = find_names(question, SPEAKERS)
    assert names.speakers == speakers
    assert names.objects == tuple(tuple(fact_terms(each)) for each in objects)


def test_of_a_pasted_page_only_both_ends_are_read() -> None:
    names = find_names("the Apollo " + "of Jupiter " * 9_000 + "x" * 2_000 + " Ann", SPEAKERS)
    assert names.speakers == {"ann"}
    assert len(names.objects) == 2


SaidFact = tuple[str, str, bool]
"""Speaker, text, and whether it is a standing fact."""


def ranked(facts: list[SaidFact], question: str, limit: int = 12) -> list[RankedFact]:
    async def work() -> list[RankedFact]:
        store = open_memory()
        ledger = Ledger(store, HERE, FactIndexCache(store, None))
        for number, (speaker, words, stands) in enumerate(facts):
            text = f"{speaker}: {words} {number}"
            await ledger.add(text, source_ref="m", said_by=speaker, standing=stands, at=number)
        return await ledger.top(question, k=limit)

    return asyncio.run(work())


def test_a_question_about_one_person_is_not_answered_with_another() -> None:
    alike = ("Ben", "I painted the harbour at sunrise with oil", False)
    facts = [*[alike] * 20, *[("Ann", "I bought brushes", False)] * 9]
    best = ranked(facts, "When did Ann paint the harbour at sunrise with oil?")
    assert [each.fact.said_by for each in best] == ["Ann"] * 9 + ["Ben"] * 3
    assert [each.named for each in best] == [True] * 9 + [False] * 3


def test_people_count_before_things() -> None:
    facts = [("Ben", "Apollo starts", False), ("Ann", "I rest", False), ("Cem", "we eat", False)]
    best = ranked(facts, "Does Ann like Apollo?")
    assert [each.fact.said_by for each in best] == ["Ann", "Ben", "Cem"]


def test_instructions_of_somebody_else_have_no_reserved_place() -> None:
    facts = [*[("Ann", "I paint", False)] * 4, *[("Ben", "I always paint", True)] * 4]
    best = ranked([*facts, ("User", "Always answer in German", True)], "What of Ann?", limit=4)
    assert sorted(each.fact.said_by for each in best) == ["Ann", "Ann", "Ann", "User"]


people = st.sampled_from(["Ann", "Ben", "User"])
sayings = st.sampled_from(["we use Apollo", "I met Ann", "the car is red", "Ben left Rome"])
QUESTIONS = st.sampled_from(
    ["What does Ann use?", "Is Apollo red?", "Did Ann and Ben leave Rome?", "which car is it?"]
)


@given(st.lists(st.tuples(people, sayings, st.booleans()), max_size=12), QUESTIONS, st.integers(1))
@settings(max_examples=60, deadline=None)
def test_what_is_named_comes_first_and_nothing_is_lost(
    facts: list[SaidFact], question: str, limit: int
) -> None:
    best = ranked(facts, question, min(limit, 20))
    flags = [each.named for each in best]
    assert flags == sorted(flags, reverse=True)
    assert [each.score for each in best] == sorted((each.score for each in best), reverse=True)
    assert len(best) == min(len(facts), limit, 20)
    names = [name for name in ("Ann", "Ben", "Apollo", "Rome") if name in question]
    for each in best:
        assert each.named == any(name in each.fact.text for name in names)
