from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.assemble.intents import (
    INTENTS,
    SECTION_BUDGETS,
    TOKEN_BUDGET,
    Section,
    allocate_sections,
)

SECTIONS: tuple[Section, ...] = ("header", "history", "facts", "summaries")


def test_every_intent_has_a_pack_that_divides_the_seeds_budget() -> None:
    assert set(SECTION_BUDGETS) == set(INTENTS)
    for budgets in SECTION_BUDGETS.values():
        assert sum(budgets.shares.values()) == TOKEN_BUDGET["total"]
        assert budgets.header == TOKEN_BUDGET["header"], (
            "the header must not change with the intent"
        )
        assert 4 <= budgets.pairs <= 8
        assert 8 <= budgets.most_facts <= 20


def test_what_a_section_does_not_use_goes_to_the_others() -> None:
    shares: dict[Section, int] = {"history": 1000, "facts": 800, "summaries": 600}
    needs: dict[Section, int] = {"history": 9000, "facts": 100, "summaries": 0}
    assert allocate_sections(shares, needs, 2400) == {"history": 2300, "facts": 100, "summaries": 0}


def test_a_section_that_needs_its_share_has_it_whatever_the_others_want() -> None:
    needs: dict[Section, int] = dict.fromkeys(SECTIONS, 9000)
    assert (
        allocate_sections(SECTION_BUDGETS["context_lookup"].shares, needs, 3000)
        == SECTION_BUDGETS["context_lookup"].shares
    )


@given(
    st.fixed_dictionaries({section: st.integers(0, 5000) for section in SECTIONS}),
    st.integers(0, 10_000),
)
def test_no_more_is_lent_than_there_is_nor_than_is_wanted(
    needs: dict[Section, int], total: int
) -> None:
    allowed = allocate_sections(SECTION_BUDGETS["planning"].shares, needs, total)
    assert sum(allowed.values()) <= total
    assert all(0 <= allowed[section] <= needs[section] for section in SECTIONS)
    short = [section for section in SECTIONS if allowed[section] < needs[section]]
    assert not short or sum(allowed.values()) == total, "something was left, and somebody wanted it"
