from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.assemble.history_compression import CUT_CHARACTERS, LINE_CHARACTERS, compress
from holdfast.summarise.fidelity import Rung

LONG = "The harbour opens at six. " + "All is well there. " * 100 + "It closes at nine."


@pytest.mark.parametrize(
    ("age", "level", "most"),
    [
        (0, Rung.RAW, len(LONG)),
        (1, Rung.RAW, len(LONG)),
        (2, Rung.TRUNCATED, CUT_CHARACTERS + 60),
        (4, Rung.TRUNCATED, CUT_CHARACTERS + 60),
        (5, Rung.HEADLINE, LINE_CHARACTERS + 2),
        (50, Rung.HEADLINE, LINE_CHARACTERS + 2),
    ],
)
def test_a_text_gets_shorter_with_its_age(age: int, level: Rung, most: int) -> None:
    text, reached = compress(LONG, age)
    assert reached == level
    assert len(text) <= most
    assert text.startswith("The harbour opens at six.")


def test_a_middle_is_cut_and_both_ends_stay() -> None:
    assert compress(LONG, 3).text.endswith("It closes at nine.")


@pytest.mark.parametrize(
    "text",
    [
        "Error: the disk is full\n" + "at line 7 of module storage\n" * 20,
        "Security warning: the token was found in a public repository. " * 8,
    ],
)
@pytest.mark.parametrize("age", [2, 5, 99])
def test_errors_and_security_warnings_stay_whole(text: str, age: int) -> None:
    assert compress(text, age) == (text, Rung.RAW)


def test_no_address_is_torn() -> None:
    url = "https://example.com/a/long/path?with=query&and=more"
    for before in range(90, 130):
        text = compress("a" * before + " " + url + " " + "b " * 400, 9).text
        assert url in text or "https" not in text


@given(st.text(max_size=2_000), st.integers(0, 9))
def test_what_is_older_is_never_longer(text: str, age: int) -> None:
    older, younger = compress(text, age + 1), compress(text, age)
    if younger.level is not Rung.RAW:
        assert len(older.text) <= len(younger.text) + 2
    if older.level is Rung.HEADLINE:
        assert "\n" not in older.text
