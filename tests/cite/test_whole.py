"""A citation splits nothing: each URL, path, id and number in it is in the original."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cite import cite

WORDS = st.sampled_from("the crate of bay was moved by error and warning because nobody".split())
SLUG = st.from_regex(r"[a-z0-9_.,;=&%-]{1,60}[a-z0-9]", fullmatch=True)
URLS = st.lists(SLUG, min_size=1, max_size=6).map(
    lambda parts: "https://u.example/" + "/".join(parts)
)
PATHS = st.lists(SLUG, min_size=1, max_size=8).map(lambda parts: "/srv/data/" + "/".join(parts))
IDS = st.from_regex(r"id-[0-9a-f]{12,40}", fullmatch=True)
NUMBERS = st.integers(10**6, 10**14).map(lambda number: f"num={number:,}")
THINGS = st.one_of(WORDS, WORDS, URLS, PATHS, IDS, NUMBERS)
LINES = st.lists(st.lists(THINGS, min_size=1, max_size=40).map(" ".join), min_size=4, max_size=30)
NAMED = re.compile(
    r"https://u\.example[^\s\"<>`…]*|/srv/data[^\s\"<>`…]*|id-[0-9a-f]+|num=[\d,]*\d"
)
FORMS = st.sampled_from(["text", "log", "json", "rows", "csv", "markdown", "output"])


def written(form: str, lines: list[str]) -> str:
    if form == "log":
        return "\n".join(
            f"2024-05-01 12:00:{n % 60:02} ERROR {each}" for n, each in enumerate(lines)
        )
    if form == "json":
        return json.dumps({"message": lines[0], "error": lines[1], "rest": {"text": lines[2:]}})
    if form == "rows":
        return json.dumps(
            [{"id": n, "note": each, "last": each.split()[-1]} for n, each in enumerate(lines)]
        )
    if form == "csv":
        return "n,note,last\n" + "\n".join(
            f'{n},"{each}","{each.split()[-1]}"' for n, each in enumerate(lines)
        )
    if form == "markdown":
        return "\n\n".join(f"# {each}\n\n- {each}" for each in lines)
    if form == "output":
        return json.dumps({"stdout": "\n".join(lines), "exit_code": 1})
    return "\n".join(lines)


drawn = given(FORMS, LINES, st.sampled_from(["", "Which crate was moved?"]))


@settings(max_examples=25, deadline=None)
@drawn
def test_nothing_is_torn_and_the_cap_holds(form: str, lines: list[str], question: str) -> None:
    check_whole(form, lines, question)


@pytest.mark.campaign
@settings(max_examples=5_000, deadline=None)
@drawn
def test_nothing_is_torn_in_five_thousand(form: str, lines: list[str], question: str) -> None:
    check_whole(form, lines, question)


def check_whole(form: str, lines: list[str], question: str) -> None:
    content = written(form, lines * 3)
    citation = cite(content, question=question)
    if not citation.ref_id:
        return
    assert citation.tokens <= 400
    whole = set(" ".join(lines).split())
    whole |= {each.rstrip(".,;") for each in whole}
    for named in NAMED.findall(citation.text):
        assert named in whole or named.rstrip(".,:;)]|") in whole, named
