"""No text makes a regular expression of the package slow: all of them, attacked one by one.

The short form is part of `make test`; `campaign` takes every attack at 50, 100 and 200 KB.
"""

from __future__ import annotations

import re
import time

import pytest
from tools.linear import BOUNDED, PROVEN, UNPROVEN, judge
from tools.patterns import ARGUED, Use, inventory, proof, unreached

from tests.hardening.campaign import Campaign
from tests.hardening.patterns import attacked, attacks

SHORT = {place: argument.characters for place, argument in ARGUED.items() if argument.characters}
"""Patterns that are not linear, and the characters that their callers let them see."""
MOST_SECONDS = 0.2
"""Seconds that a bounded pattern may take at its bound."""

BAD = {
    r"(a+)+$": "search",
    r"(?:\s*a\s*)*b": "search",
    r"\s+$": "search",
    r"<!--.*?-->": "search",
    r"^(.*)x(.*)y": "match",
    r"a.*b": "finditer",
    r'"(?:[^"\\]|\\.)*"': "sub",
}
GOOD = {
    r'"(?:[^"\\]++|\\.)*+"?': "finditer",
    r"\s*+,": "match",
    r"[^\n]*\n": "match",
    r"\d{4}-\d{2}": "search",
}


SLOW = {
    r"gpt-5(?!.*mini)": "search",
    r"(?:a*)*b": "match",
    r"(?:a|a)*b": "match",
    r"(?:a{1,30})*b": "match",
    r"(?:[^b]+c|[a ]?.)*+": "match",  # never fails, and looks ahead to the end at every turn
    r".*?(?:\w*+ )?": "fullmatch",
    r"(?:.++x)*+": "finditer",  # empty matches bring nobody further
}
LINEAR = {
    r"\b\w+x": "search",
    r"\w+(?:\.\w+)*": "finditer",
    r"\w+\b": "finditer",
    r"[A-Z]+(?![a-z])|[a-z]+": "findall",
    r"(?m)^a.*b$": "finditer",
}


@pytest.mark.parametrize(
    ("pattern", "method", "verdict"),
    [
        *((pattern, method, UNPROVEN) for pattern, method in (BAD | SLOW).items()),
        *((pattern, method, PROVEN) for pattern, method in (GOOD | LINEAR).items()),
        (r"\s{0,200}$", "search", BOUNDED),
    ],
)
def test_what_is_slow_is_not_proven_linear(pattern: str, method: str, verdict: str) -> None:
    assert judge(pattern, re.compile(pattern).flags, frozenset({method})).proof == verdict


def test_every_pattern_is_known_to_be_linear() -> None:
    assert [use.place for use in inventory() if not proof(use)] == []


def test_attacks_are_found_on_patterns_that_are_known_to_be_slow() -> None:
    uses = [
        Use("", "re", text, frozenset({method}), re.compile(text))
        for text, method in (BAD | GOOD).items()
    ]
    slow = {uses[attempt.number].pattern for attempt in attacked(uses, thorough=False).working}
    assert slow == BAD.keys()


def test_the_list_holds_every_pattern_of_the_source() -> None:
    assert unreached() == []
    uses = inventory()
    assert {use.place for use in uses if use.pattern is None} <= ARGUED.keys() - SHORT.keys()
    assert len(uses) > 250
    assert {"wire.frame._GAP", "privacy.escapes._ESCAPE"} <= {use.place for use in uses}


@pytest.mark.slow
def test_no_attack_makes_a_pattern_slow() -> None:
    outcome = attacked(thorough=False)
    assert not outcome.working, "\n".join(map(str, outcome.working))
    assert outcome.tried == outcome.attacks


@pytest.mark.campaign
def test_no_attack_makes_a_pattern_slow_at_any_size(campaign: Campaign) -> None:
    outcome = attacked(tell=campaign.found)
    campaign.done = outcome.tried
    campaign.figures |= {"patterns": outcome.patterns, "attacks there are": outcome.attacks}


def test_patterns_with_a_bound_are_fast_at_it() -> None:
    uses = [use for use in inventory() if use.place in SHORT]
    assert {use.place for use in uses} == SHORT.keys()
    for use in uses:
        size = SHORT[use.place]
        assert isinstance(use.compiled, re.Pattern)
        for attack in attacks(use.compiled.pattern, use.compiled.flags, thorough=False):
            for method in use.methods:
                begin = time.thread_time()
                getattr(use.compiled, method)(attack.text(size)) if method != "sub" else None
                assert time.thread_time() - begin < MOST_SECONDS, (use.place, attack)
