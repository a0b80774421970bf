from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.assemble.intents import INTENTS, PACKS, TOKEN_BUDGET, Section, lend

SECTIONS: tuple[Section, ...] = ("header", "history", "facts", "summaries")


def test_every_intent_has_a_pack_that_divides_the_seeds_budget() -> None:
    assert set(PACKS) == set(INTENTS)
    for pack in PACKS.values():
        assert sum(pack.shares.values()) == TOKEN_BUDGET["total"]
        assert pack.header == TOKEN_BUDGET["header"], "the header must not change with the intent"
        assert 4 <= pack.pairs <= 8
        assert 8 <= pack.most_facts <= 20


def test_what_a_section_does_not_use_goes_to_the_others() -> None:
    shares: dict[Section, int] = {"history": 1000, "facts": 800, "summaries": 600}
    wanted: dict[Section, int] = {"history": 9000, "facts": 100, "summaries": 0}
    assert lend(shares, wanted, 2400) == {"history": 2300, "facts": 100, "summaries": 0}


def test_a_section_that_needs_its_share_has_it_whatever_the_others_want() -> None:
    wanted: dict[Section, int] = dict.fromkeys(SECTIONS, 9000)
    assert lend(PACKS["context_lookup"].shares, wanted, 3000) == PACKS["context_lookup"].shares


@given(
    st.fixed_dictionaries({section: st.integers(0, 5000) for section in SECTIONS}),
    st.integers(0, 10_000),
)
def test_no_more_is_lent_than_there_is_nor_than_is_wanted(
    wanted: dict[Section, int], total: int
) -> None:
    allowed = lend(PACKS["planning"].shares, wanted, total)
    assert sum(allowed.values()) <= total
    assert all(0 <= allowed[section] <= wanted[section] for section in SECTIONS)
    short = [section for section in SECTIONS if allowed[section] < wanted[section]]
    assert not short or sum(allowed.values()) == total, "something was left, and somebody wanted it"
