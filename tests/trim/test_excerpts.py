"""Cuts: between words and lines, never through exact values, with the worst lines shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.trim.excerpts import (
    after,
    alert_excerpts,
    before,
    error_line,
    middle_cut,
    plain,
    quote,
)
from tests.support.steps import steps

EXACT = [
    "https://example.org/a/very/long/path,with;all(the)signs?q=1&r=2#part",
    "/usr/lib/python3.12/site-packages/holdfast/trim/excerpts.py",
    "550e8400-e29b-41d4-a716-446655440000",
    "1,234,567.89",
    "-0.000123e-17",
    "user@example.org",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "e\u0301\u0323",
    "C:\\Users\\someone\\file.txt",
]


@pytest.mark.parametrize("exact", EXACT)
@pytest.mark.parametrize("around", ["word " * 30, "x, ", '{"key": "value"} '])
def test_what_must_stay_exact_is_shown_whole_or_not_at_all(exact: str, around: str) -> None:
    text = f"{around} {exact} {around}"
    for most in range(len(text)):
        assert shows_whole_or_nothing(before(text, most), exact, text.index(exact))
        end = after(text, most)
        start = len(text) - len(end)
        if start > text.index(exact):
            assert start >= text.index(exact) + len(exact)


def shows_whole_or_nothing(beginning: str, exact: str, place: int) -> bool:
    return len(beginning) <= place or len(beginning) >= place + len(exact)


@pytest.mark.parametrize("exact", EXACT)
def test_a_middle_cut_does_not_run_through_it_either(exact: str) -> None:
    text = " ".join([exact] * 80)
    for most in range(60, 400):
        shown = middle_cut(text, most)
        for line in shown.split("\n"):
            if not line.startswith("["):
                assert line.replace(exact, "").strip() == ""


@pytest.mark.parametrize("character", [EXACT[6], EXACT[8], "👍🏽"])
def test_a_character_of_several_code_points_is_never_cut_where_no_word_ends(character: str) -> None:
    text = character * 30
    for most in range(len(text)):
        assert len(before(text, most)) % len(character) == 0
        assert len(after(text, most)) % len(character) == 0


@settings(max_examples=300)
@given(st.text(max_size=400), st.integers(0, 400))
def test_an_excerpt_is_a_part_and_not_longer_than_it_may_be(text: str, most: int) -> None:
    assert text.startswith(before(text, most))
    assert text.endswith(after(text, most))
    assert len(before(text, most)) <= most
    assert len(after(text, most)) <= most


def test_cuts_snap_to_lines_where_one_is_near() -> None:
    text = "".join(f"line {n} of it\n" for n in range(100))
    shown = middle_cut(text, 300).split("\n")
    assert shown[0] == "line 0 of it"
    marks = [line for line in shown if line.startswith("[…")]
    assert len(marks) == 1
    others = (line for line in shown if line and line not in marks)
    assert all(line in text.split("\n") for line in others)


def test_data_without_words_is_cut_all_the_same() -> None:
    shown = middle_cut("a" * 600 + "b" * 400, 300)
    assert shown.startswith("a" * 200)
    assert shown.endswith("b" * 100)
    assert "700 characters cut" in shown


def test_errors_and_warnings_in_the_middle_are_shown() -> None:
    lines = [f"step {n} done" for n in range(500)]
    lines[250] = "ERROR: could not write /var/lib/data.db"
    lines[300] = "WARNING: the certificate has expired"
    shown = middle_cut("\n".join(lines), 300)
    assert lines[250] in shown.split("\n")
    assert lines[300] in shown.split("\n")
    assert len(shown) < 700


def test_of_many_errors_few_are_shown() -> None:
    text = "\n".join(f"ERROR {n}: " + "it failed " * 40 for n in range(5000))
    assert len(middle_cut(text, 600)) < 1200
    assert sum(map(len, alert_excerpts(text, 240))) <= 240


def test_the_way_to_open_it_is_said_only_where_there_is_one() -> None:
    text = "word " * 1000
    assert 'expand_ref("ref:x:1")' in middle_cut(text, 300, "ref:x:1", "expand_ref")
    assert "ref:x:1" not in middle_cut(text, 300, "ref:x:1")


@settings(max_examples=300)
@given(st.text(max_size=300), st.integers(1, 100))
def test_a_quotation_cannot_end_itself_nor_our_bracket(text: str, most: int) -> None:
    quoted = quote(text, most)
    assert quoted[0] == quoted[-1] == '"'
    assert not set(quoted[1:-1]) & set('[]"\n\r\u2028\u2029')
    assert len(quoted) <= most + 3


def test_marks_that_turn_the_direction_of_text_are_left_out() -> None:
    assert plain("safe\u202eevil\u2066 text\x1b[31m", 80) == "safeevil text(31m"


def test_a_cut_looks_at_a_window_not_at_the_text() -> None:
    def cuts(size: int) -> int:
        text, combining = "a" * size, "e" + "\u0301" * size
        return steps(
            lambda: (
                before(text, size // 2),
                after(text, size // 2),
                before(combining, size // 2),
            )
        )

    cuts(10_000)
    assert cuts(2_000_000) == cuts(10_000)


ERRORS = [
    "Error: no such file",
    "error: could not compile `tide`",
    "PermissionError: cannot open /etc/tide/keys.toml, errno 13",
    "java.lang.NullPointerException: null",
    "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
    "fatal: not a git repository",
    "[ERROR] the mirror is gone",
    "Failed to connect to db-3",
    "Command failed with exit code 1",
    "Could not find the file",
    "cat: notes.txt: No such file or directory",
    "bash: rgg: command not found",
    '{"error": "rate limited", "retry": 3}',
    '{"error":{"code":404}}',
]
NO_ERRORS = [
    "0 errors, 0 warnings",
    "No errors found.",
    "error handling is in api.py",
    "errors.py\nexceptions.py",
    '{"error": null, "rows": []}',
    '{"errors": [], "data": 1}',
    "src/error.rs: 12 lines",
    "The function cannot fail.",
    "Everything is fine. Error: none",
    "",
]


@pytest.mark.parametrize("text", ERRORS)
def test_a_short_result_that_is_an_error_is_known_by_its_first_line(text: str) -> None:
    assert error_line(f"\n{text}\n") == text.split("\n", maxsplit=1)[0]
    assert error_line(text + "\nmore" * 400) == ""


@pytest.mark.parametrize("text", NO_ERRORS)
def test_a_result_that_has_the_word_in_it_is_no_error(text: str) -> None:
    assert error_line(text) == ""
