"""The statements of a summary must be in its source: ids, URLs, numbers, errors, quotations."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summarise.support import sentences_of, shared_words, supported
from tests.support.steps import is_linear

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


MEASURED = """\
The pump ran 30 ms at -5 °C on 5 May 2024, used 12 % of 512 MB and cost $40.
At 7 pm it stopped. The deploy was not successful, and no errors were logged. Nobody was informed.
latency_ms,size_bytes
41,2048
It can't reconnect, yet it can restart. Three of its 80 valves leak 4 million litres in 9 hours.
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "It ran for 30ms.",
        "It ran 30 milliseconds.",
        "It was -5 °C.",
        "It happened on May 5, 2024.",
        "It used 12% of 512 megabytes.",
        "It used 12 percent.",
        "It cost 40 dollars.",
        "The latency was 41 ms, the size 2,048 bytes.",
        "3 of 80 valves leak.",
        "It lost 4 million litres.",
        "The deploy did not succeed.",
        "The deploy was unsuccessful, and errors were missing from the log.",
        "It was unable to reconnect, and can restart.",
        "It stopped at 7 PM.",
        "One of them leaks for 9 h.",
        "The pump ran ３０ ms.",  # noqa: RUF001
    ],
)
def test_a_number_stays_with_its_sign_and_its_unit_in_any_spelling(sentence: str) -> None:
    assert supported(sentence, MEASURED).unsupported == 0


@pytest.mark.parametrize(
    "sentence",
    [
        "It ran for 30 s.",
        "It ran for 30 minutes.",
        "It was 5 °C.",
        "It was -5 °F.",
        "It happened on 5 June 2024.",
        "It happened on May 12.",
        "It used 12 MB.",
        "It used 512 GB.",
        "It cost 40 euros.",
        "It cost €40.",
        "It cost -$40.",
        "The latency was 41 s.",
        "The size is 2,048 GB.",
        "Two of its valves leak.",
        "Twenty-one valves leak.",
        "It lost 4 billion litres.",
        "It stopped at 7 am.",
        "The deploy was successful.",
        "Errors were logged.",
        "It can reconnect.",
        "It took ９９ ms.",  # noqa: RUF001
        "She said 'the pump is fine'.",
        "She said „the pump is fine“.",
    ],
)
def test_a_number_with_another_sign_or_unit_and_a_denial_turned_round_are_dropped(
    sentence: str,
) -> None:
    assert supported(sentence, MEASURED).unsupported == 1


CHINESE = "该系统于3月5日升级，共有120名用户受到影响。数据库连接失败，工程师重启了服务器。"  # noqa: RUF001


@pytest.mark.parametrize("before", ["x", "xy", "see x"])
def test_a_part_of_a_longer_name_is_not_in_the_source(before: str) -> None:
    """Also where the longer name is the source's first word."""
    support = supported("It is order_17.", f"{before}order_17 was shipped.")
    assert support.unsupported == 1


def test_scripts_without_spaces_are_judged_like_others() -> None:
    summary = "数据库连接失败影响了120名用户。3月5日服务器重启。"
    assert supported(summary, CHINESE).unsupported == 0
    assert supported("影响了121名用户。", CHINESE).unsupported == 1
    assert supported("5月3日服务器重启。", CHINESE).unsupported == 1
    assert shared_words(summary, CHINESE) > 0.5
    assert shared_words("今天天气很好，我们去公园散步吧。", CHINESE) < 0.3  # noqa: RUF001


@pytest.mark.parametrize(
    "filling",
    ["not ", "5 ", "-5", "$", "May 5 ", "'a' ", "1,000", "１", "n't word ", "数", "5 ms\n"],  # noqa: RUF001
)
def test_hostile_sources_take_linear_time(filling: str) -> None:
    def work(size: int) -> Callable[[], object]:
        source = filling * (size // len(filling))
        return lambda: supported("It was 6 ms on 7 May, and it was a word.", source)

    assert is_linear(work, 10_000)


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
def test_of_any_two_texts_only_sentences_of_the_summary_stay_in_their_order(
    summary: str, source: str
) -> None:
    at = 0
    for kept in supported(summary, source).sentences:
        at = summary.find(kept.text, at)
        assert at >= 0
        at += len(kept.text)


@given(st.text(st.sampled_from(list("ab. 12\n")), max_size=80), st.text("ab 12", max_size=40))
def test_no_digits_stay_that_the_source_does_not_hold(summary: str, source: str) -> None:
    held = set(re.findall(r"\d+", source))
    kept = " ".join(one.text for one in supported(summary, source).sentences)
    # A single digit may be the number of a list; the other forms of numbers have separate tests.
    assert set(re.findall(r"(?<![\w.])\d{2,}(?![\w.])", kept)) <= held


@given(st.text("abc xyz,", max_size=60).map(str.strip).filter(bool))
def test_a_text_without_facts_is_all_borne_out_by_itself(text: str) -> None:
    support = supported(text, text)
    assert (support.unsupported, [one.text for one in support.sentences]) == (0, [text])


@given(st.text(st.sampled_from(list("ab. \n!?\"'…)")), max_size=80))
def test_sentences_are_all_of_the_text(text: str) -> None:
    rejoined = "".join(one.text + one.gap for one in sentences_of(text))
    assert rejoined == text.strip()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It failed. It was late!", ["It failed.", "It was late!"]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("1. First. 2. Second.", ["1. First.", "2. Second."]),
        ("- One line\n- and another", ["- One line", "- and another"]),
        ("Take v2.4.1 at 0.5 s. Done", ["Take v2.4.1 at 0.5 s.", "Done"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert [one.text for one in sentences_of(text)] == sentences


def test_a_thousand_invented_quotations_cost_a_few_looks() -> None:
    source = "the one true sentence " * 20_000
    summary = " ".join(f'He said "word {n} of mine".' for n in range(1_000))
    assert supported(summary, source).sentences == ()


def test_an_essay_on_another_matter_shares_few_words() -> None:
    essay = "Photosynthesis converts sunlight, water and carbon dioxide into glucose inside leaves."
    assert shared_words(essay, SOURCE) < 0.3
    assert shared_words("The build failed while the order was being shipped.", SOURCE) > 0.6
