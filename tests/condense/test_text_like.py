"""Guarantees of every text condenser, for any content."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense import code, diff, html, log, markdown, stack_trace, test_output, text
from holdfast.condense.condenser import Condenser
from holdfast.condense.source import Source
from tests.condense.places import opened, words

LINEWISE: list[Condenser] = [code, diff, log, markdown, stack_trace, test_output, text]
ALL: list[Condenser] = [*LINEWISE, html]

PIECES = [
    "def f(x):", "    return x", "class A(B):", "# Title", "## Part", "Title\n=====", "```",
    "2024-05-01 12:00:00,123 ERROR app: disk full on /dev/sda1", "~~~py", "Jun 14 15:16:01 ok",
    "Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: bad",
    "diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,2 +1,3 @@ def f", "-old", "+new", " same",
    "=" * 70, "FAIL: test_a (t.T)", "-" * 70, "Ran 3 tests in 0.1s", "FAILED (failures=1)",
    "===== FAILURES =====", "____ test_b ____", "E   assert 1 == 2", "===== 1 failed in 0.1s =====",
    "--- FAIL: TestX (0.00s)", "  ● suite", "---- m::t stdout ----", "test result: ok. 1 passed",
    "WARNING: careful", "[a](http://x.org/?q=1)", "> [!WARNING]\n> mind", "| a | b |",
    "<p>one <a href='/x'>two</a></p>", "<h1>", "</div>", "<pre>  a\n b</pre>", "a" * 2500, "", " ",
    "Ein Satz. Noch ein Satz! Wirklich?", "日本語の文。次の文。", "\r", "\x00", "\u2028", "\ufeff",
    "\x1b[31mred",
]  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=30)
TEXTS = st.builds(
    lambda ends, lines: ends.join(lines), st.sampled_from(["\n", "\r\n", "\n\n", " ", "\r"]), LINES
)
HOSTILE = {
    "nothing": b"",
    "a newline": b"\n",
    "only newlines": b"\n" * 100_000,
    "only returns": b"\r" * 100_000,
    "zero bytes": b"\0" * 50_000,
    "bytes that are no text": bytes(range(256)) * 400,
    "a line without spaces": b"a" * 1_000_000,
    "a line of words": b"lorem ipsum. " * 100_000,
    "digits": b"7" * 300_000,
    "dashes": b"-" * 300_000,
    "equal signs": b"= " * 150_000,
    "underscores": b"_" * 300_000,
    "hashes": b"#" * 300_000,
    "backticks": b"`" * 300_000,
    "brackets": b"[" * 300_000,
    "opened tags": b"<div>" * 60_000,
    "opened tags of formatting": b"".join(b"<font size=%d>" % n for n in range(3000))
    + b"<p>a" * 3000,
    "tags closed by others": b"<div></x>" * 60_000,
    "tables in tables": b"<table><tr><td>" * 20_000,
    "angles": b"<" * 300_000,
    "quotes": b"\"'" * 150_000,
    "spaces": b" " * 300_000,
    "spaces and newlines": b" \n" * 100_000,
    "indented lines": (b" " * 200 + b"x\n") * 1500,
    "errors": b"error" * 60_000,
    "lines of errors": b"error: 1\n" * 30_000,
    "commas": b"a," * 150_000,
    "separators": "\u2028".encode() * 100_000,
    "diff heads": b"--- a\n+++ b\n" * 20_000,
    "dotted words": b"a.b" * 100_000,
    "escapes": b"\x1b[" * 100_000,
}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.kind)
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_content_is_condensed_without_a_fault(one: Condenser, data: bytes) -> None:
    source = Source(data)
    assert 0 <= one.sniff(source) <= 1
    condensed = one.condense(source)
    assert len(condensed.title) <= 200
    assert all(note.text.strip() for note in condensed.notes)
    assert all(part.text.strip() for part in one.passages(source))


@pytest.mark.parametrize("one", LINEWISE, ids=lambda one: one.kind)
@given(content=TEXTS)
@settings(max_examples=60, deadline=None)
def test_every_word_is_in_a_passage_that_stands_where_it_says(one: Condenser, content: str) -> None:
    source = Source(content.replace("\x1b", "").encode("utf-8", "replace"))
    parts = one.passages(source)
    held = "\n".join(part.text for part in parts)
    assert all(word in held for word in words(source.text))
    for part in parts:
        place = opened(source, part.where)
        body = part.text if part.text in place else part.text.partition("\n")[2]
        assert body in place


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.kind)
@given(content=TEXTS | st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_condensing_is_deterministic_and_every_place_opens(
    one: Condenser, content: str | bytes
) -> None:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    source = Source(data)
    condensed = one.condense(source)
    assert condensed == one.condense(Source(data))
    assert list(one.passages(source)) == list(one.passages(Source(data)))
    for note in condensed.notes:
        if note.where:
            opened(source, note.where, one)


@pytest.mark.parametrize("one", LINEWISE, ids=lambda one: one.kind)
def test_a_line_too_long_is_addressed_by_characters(one: Condenser) -> None:
    source = Source(b"first line\n" + b"word and error: " * 1000 + b"\nlast line")
    long_ones = [part for part in one.passages(source) if len(part.text) > 300]
    assert long_ones
    assert all(part.where.startswith("characters ") for part in long_ones)
