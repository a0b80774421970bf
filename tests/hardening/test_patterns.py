"""No text makes a regular expression of the package slow: all of them, attacked one by one.

The short form is part of `make test`; `campaign` takes every attack at 50, 100 and 200 KB.
"""

from __future__ import annotations

import re
import time

import pytest
from tools.patterns import Use, inventory, unreached

from tests.hardening.patterns import attacked, attacks

BOUNDED = {
    "condense.alerts._KEY": 64,  # _KEY_BYTES
    "expand.around._CHARACTERS": 2_500,  # _LONGEST_PLACE
    "expand.around._LINES": 2_500,
    "expand.around._PARAGRAPH": 2_500,
    "expand.around._ROWS": 2_500,
    "expand.options._LINES": 60,  # a longer value is refused
    "tokens.media._PATCHES": 200,  # _LONGEST_MODEL
    "tokens.media._TILES": 200,
}
"""Patterns that are not linear, and the characters that their callers let them see."""
MOST_SECONDS = 0.2
"""What a pattern with a bound may take at its bound."""

RUN_TIME = {
    "expand.pattern._compiled()": "the model's own, in windows and under limits (test_hostile)",
    "privacy.detector.compiled()": "those of CREDENTIALS and PERSONAL, which are listed",
    "tokens.price_list._check_clause()": "only compiled; the price list is ours",
    "tokens.price_list.matches()": "of the price list, on the names of models",
    "condense.marks._any_of()": "a set of RE2 made of the patterns beside it",
}
"""Patterns that no list can show, and why that is no gap."""

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


def is_bounded(place: str) -> bool:
    return place.split("[", maxsplit=1)[0] in BOUNDED


def test_attacks_are_found_on_patterns_that_are_known_to_be_slow() -> None:
    uses = [Use("", "re", text, frozenset({method})) for text, method in (BAD | GOOD).items()]
    slow = {uses[attempt.number].pattern for attempt in attacked(uses, thorough=False)}
    assert slow == BAD.keys()


def test_the_list_holds_every_pattern_of_the_source() -> None:
    assert unreached() == []
    uses = inventory()
    assert {use.place for use in uses if use.pattern is None} <= RUN_TIME.keys()
    assert len(uses) > 250
    assert {"wire.frame._GAP", "privacy.escapes._ESCAPE"} <= {use.place for use in uses}


@pytest.mark.slow
def test_no_attack_makes_a_pattern_slow() -> None:
    working = [attempt for attempt in attacked(thorough=False) if not is_bounded(attempt.place)]
    assert not working, "\n".join(map(str, working))


@pytest.mark.campaign
def test_no_attack_makes_a_pattern_slow_at_any_size() -> None:
    working = [attempt for attempt in attacked() if not is_bounded(attempt.place)]
    assert not working, "\n".join(map(str, working))


def test_patterns_with_a_bound_are_fast_at_it() -> None:
    uses = [use for use in inventory() if is_bounded(use.place)]
    assert {use.place.split("[")[0] for use in uses} == BOUNDED.keys()
    for use in uses:
        size = BOUNDED[use.place.split("[")[0]]
        assert isinstance(use.compiled, re.Pattern)
        for attack in attacks(use.compiled.pattern, use.compiled.flags, thorough=False):
            for method in use.methods:
                begin = time.thread_time()
                getattr(use.compiled, method)(attack.text(size)) if method != "sub" else None
                assert time.thread_time() - begin < MOST_SECONDS, (use.place, attack)
