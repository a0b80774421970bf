"""What a summary states must stand in its source: ids, URLs, numbers, errors, quotations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summarise.support import sentences_of, shared_words, supported

SOURCE = """\
Order A-1042 of 12 March 2024 cost 1,250.50 EUR and was shipped by maria_k on 2024-03-15.
The build failed: ConnectionResetError in src/net/pool.py line 88 (see https://ci.example/runs/9).
She said "the cache was never cold", and retried five times. Version v2.4.1 took 0.080 s.
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "Order A-1042 cost 1250.5 EUR.",
        "It cost 1,250.50.",
        "It was shipped on 2024-03-15 by maria_k.",
        "A ConnectionResetError in src/net/pool.py at line 88.",
        "See https://ci.example/runs/9.",
        'She said "the cache was never cold".',
        "It was retried 5 times, with v2.4.1.",
        "1. It took 0.08 s.",
        "The order was shipped after the build had failed.",
        "A 5-fold retry.",
    ],
)
def test_what_the_source_says_stays(sentence: str) -> None:
    support = supported(sentence, SOURCE)
    assert (support.unsupported, support.checked) == (0, 1)
    assert support.sentences[0].text == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "Order A-1043 cost 1250.5 EUR.",
        "It cost 1,250.",
        "It cost 250.50 EUR.",
        "It was shipped on 2024-03-16.",
        "It was shipped by maria_q.",
        "A ConnectionRefusedError occurred.",
        "The fault is in src/net/pools.py.",
        "See https://ci.example/runs/99.",
        "See https://ci.example/run.",
        'She said "the cache was always cold".',
        "It was retried 6 times.",
        "Version v2.4.2 is at fault.",
        "It took 80 ms.",
        "Write to maria@example.com.",
        "`rm -rf` was run.",
    ],
)
def test_what_the_source_does_not_say_is_dropped(sentence: str) -> None:
    support = supported(f"The build failed. {sentence} She was not amused.", SOURCE)
    assert [one.text for one in support.sentences] == ["The build failed.", "She was not amused."]
    assert (support.unsupported, support.checked) == (1, 3)


NUMBERS = st.integers(10, 99_999)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.lists(NUMBERS, min_size=1, max_size=8))
def test_no_number_stays_that_the_source_does_not_hold(held: list[int], told: list[int]) -> None:
    source = " ".join(f"Shelf {number} is full." for number in held)
    summary = " ".join(f"Of {number} it is known." for number in told)
    support = supported(summary, source)
    assert [one.text for one in support.sentences] == [
        f"Of {number} it is known." for number in told if number in held
    ]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_held_against_any_other(summary: str, source: str) -> None:
    support = supported(summary, source)
    assert support.checked - support.unsupported == len(support.sentences)
    assert supported(source, source).unsupported == 0 or "\x00" in source or '"' in source


@given(st.text(st.sampled_from(list("ab. \n!?\"'…)")), max_size=80))
def test_sentences_are_all_of_the_text(text: str) -> None:
    rejoined = "".join(one.text + one.gap for one in sentences_of(text))
    assert rejoined.split() == text.split()


def test_a_thousand_invented_quotations_cost_a_few_looks() -> None:
    source = "the one true sentence " * 20_000
    summary = " ".join(f'He said "word {n} of mine".' for n in range(1_000))
    assert supported(summary, source).sentences == ()


def test_an_essay_on_another_matter_shares_few_words() -> None:
    essay = "Photosynthesis converts sunlight, water and carbon dioxide into glucose inside leaves."
    assert shared_words(essay, SOURCE) < 0.3
    assert shared_words("The build failed while the order was being shipped.", SOURCE) > 0.6
