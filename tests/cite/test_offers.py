"""Every offer of a citation opens: each way in its last line, and each place in it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cite import CitingRules, cite
from holdfast.expand.tool import NAME, OTHER_NAME
from tests.cite.offers import check_offers, offers, opened
from tests.support.recorded import DATA, trajectories

SMALL = CitingRules(threshold=200, threshold_bytes=600)

names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=10)
keys = st.sampled_from(
    "id name title url node edges items error status text content k.l".split()
) | (names.filter(str.strip))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
)
cells = st.text("abc xyz 012.-é", max_size=14)


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows alike enough to be some, long enough to be cited."""
    columns = draw(st.lists(keys, min_size=2, max_size=5, unique=True))
    some = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, scalars)), min_size=1))
    repeated = draw(st.integers(8, 60))
    return [
        {**some[n % len(some)], columns[0]: f"row number {n}"}
        for n in range(max(len(some), repeated))
    ]


def _dumped(value: Any, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **how)


def _held(value: Any) -> str:
    return _dumped({"content": [{"type": "text", "text": _dumped(value)}], "isError": False})


WRAPPINGS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "alone": _dumped,
    "indented": lambda rows: _dumped(rows, indent=2),
    "in a key": lambda rows: _dumped({"total": len(rows), "items": rows, "next": None}),
    "results in a list": lambda rows: _dumped([{"results": rows}]),
    "nodes of GraphQL": lambda rows: _dumped(
        {"data": {"repository": {"issues": {"totalCount": len(rows), "nodes": rows}}}}
    ),
    "edges of GraphQL": lambda rows: _dumped(
        {"data": {"a": {"b": {"edges": [{"cursor": "x", "node": row} for row in rows]}}}}
    ),
    "text of MCP": _held,
    "list of MCP": lambda rows: _dumped([{"type": "text", "text": _dumped({"items": rows})}]),
    "prose in MCP": lambda rows: _dumped(
        [{"type": "text", "text": f"Below is untrusted data.\n{_dumped(rows)}\nThat is all."}]
    ),
    "Python in MCP": lambda rows: _dumped([{"type": "text", "text": repr(rows)}]),
    "a string": lambda rows: _dumped(_dumped(rows)),
    "in a sentence": lambda rows: f"Below is untrusted data: {_dumped({'rows': rows})} The end.",
    "between lines": lambda rows: f"Found [some]:\n{_dumped(rows, indent=1)}\nWarning: old.",
    "in a fence": lambda rows: f"Here:\n```json\n{_dumped(rows)}\n```\n",
    "behind a mark": lambda rows: "\ufeff" + _dumped(rows),
    "lines of JSON": lambda rows: "\n".join(map(_dumped, rows)),
    "lines of JSON with gaps": lambda rows: "\n\n".join(map(_dumped, rows)) + "\n",
    "as Python prints": repr,
    "Python with calls": lambda rows: repr([{**row, "rate": Decimal("5.40")} for row in rows]),
    "Python in a sentence": lambda rows: f"Result of the query:\n{rows!r}",
}


wrapped = given(value=rows(), question=st.sampled_from(["", "Which row has number 7?"]))


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@wrapped
@settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_offered_for_rows_opens_in_any_wrapping(
    wrapping: str, value: list[dict[str, Any]], question: str
) -> None:
    check_rows(wrapping, value, question)


@pytest.mark.campaign
@pytest.mark.parametrize("wrapping", WRAPPINGS)
@wrapped
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_offered_for_three_hundred_rows_opens_in_any_wrapping(
    wrapping: str, value: list[dict[str, Any]], question: str
) -> None:
    check_rows(wrapping, value, question)


def check_rows(wrapping: str, value: list[dict[str, Any]], question: str) -> None:
    citation = cite(WRAPPINGS[wrapping](value), question=question, rules=SMALL)
    if citation.content is not None:
        check_offers(citation, NAME)


FILMS = [{"film": f"Film {n}", "rate": f"{n}.10", "note": "x y z"} for n in range(40)]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_rows_are_offered_in_any_wrapping_and_the_right_ones_open(wrapping: str) -> None:
    citation = cite(WRAPPINGS[wrapping](FILMS))
    arguments = [offer.arguments for offer in offers(citation.text)]
    assert arguments == [{"find": "rows 11-15"}]
    run = opened(citation, arguments[0], NAME).content
    assert [f"Film {n}" in run for n in (9, 10, 14, 15)] == [False, True, True, False]
    assert opened(citation, {"fields": ["film", "rate"]}, NAME).content.count("Film ") == 40


def _separated(separator: str) -> Callable[[list[list[str]]], str]:
    def written(records: list[list[str]]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=separator, lineterminator="\n").writerows(records)
        return out.getvalue()

    return written


def _psql(records: list[list[str]]) -> str:
    head, *rest = [" " + " | ".join(f"{cell:<14}" for cell in record) for record in records]
    rule = "+".join("-" * 16 for _ in records[0])
    return "\n".join([head, rule, *rest, f"({len(rest)} rows)", "", "Time: 0.5 ms"])


def _mysql(records: list[list[str]]) -> str:
    head, *rest = ["| " + " | ".join(f"{cell:<14}" for cell in record) + " |" for record in records]
    rule = "+" + "+".join("-" * 16 for _ in records[0]) + "+"
    return "\n".join([rule, head, rule, *rest, rule, f"{len(rest)} rows in set (0.00 sec)"])


def _markdown(records: list[list[str]]) -> str:
    head, *rest = ["| " + " | ".join(record) + " |" for record in records]
    return "\n".join([head, "|" + "---|" * len(records[0]), *rest])


def _bars(records: list[list[str]]) -> str:
    return "\n".join(" | ".join(record) for record in records)


TABLES: dict[str, Callable[[list[list[str]]], str]] = {
    "commas": _separated(","),
    "tabs": _separated("\t"),
    "semicolons": _separated(";"),
    "bars": _bars,
    "psql": _psql,
    "mysql": _mysql,
    "markdown": _markdown,
}
HEAD = ["film", "rate", "note"]


@pytest.mark.parametrize("style", TABLES)
@given(st.lists(st.tuples(cells, cells), min_size=12, max_size=60))
@settings(max_examples=15, deadline=None)
def test_what_is_offered_for_a_table_opens(style: str, records: list[tuple[str, str]]) -> None:
    table = [HEAD, *[[f"Film {n}", *record] for n, record in enumerate(records)]]
    citation = cite(TABLES[style](table), rules=SMALL)
    if citation.content is not None:
        check_offers(citation, NAME)


@pytest.mark.parametrize("style", TABLES)
def test_rows_of_a_table_are_offered_and_the_right_ones_open(style: str) -> None:
    table = [HEAD, *[[f"Film {n}", f"{n}.10", "x y z"] for n in range(50)]]
    citation = cite(TABLES[style](table), rules=SMALL)
    arguments = [offer.arguments for offer in offers(citation.text)]
    assert arguments == [{"find": "rows 11-15"}]
    run = opened(citation, arguments[0], NAME).content
    assert [f"Film {n}" in run for n in (9, 10, 14, 15)] == [False, True, True, False]
    assert opened(citation, {"fields": ["note", "film"]}, NAME).content.count("Film ") == 50


LINES = st.sampled_from(
    [
        "2024-05-01 12:00:00 INFO worker-7 started",
        "ERROR: disk /dev/sda1 is full",
        "## A heading",
        "- an item of a list, with a [link](https://example.com/a)",
        "def work(value: int) -> int:",
        "    return value + 1",
        "<p>Some words of a page.</p>",
        "diff --git a/x b/x",
        "+added",
        "FAILED tests/test_a.py::test_b - AssertionError",
        '  File "/app/a.py", line 3, in <module>',
        "CREATE TABLE a (",
        "INSERT INTO a VALUES (1, 'b');",
        "From: ann@example.com",
        "Subject: The plan",
        "a,b,c",
        "| a | b |",
        '{"a": 1}',
        "[",
        "",
    ]
)


@given(st.lists(LINES | st.text(max_size=40), min_size=3, max_size=80), st.integers(1, 6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_offered_for_any_text_opens(lines: list[str], times: int) -> None:
    text = "\n".join(lines * times).encode("utf-8", "replace")
    citation = cite(text, rules=SMALL)
    if citation.content is not None:
        check_offers(citation, NAME)


trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=60,
)


@given(trees, st.sampled_from([0, 1, 2]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_offered_for_any_value_opens(value: Any, times: int) -> None:
    for _ in range(times):
        value = {"type": "text", "text": _dumped(value)}
    citation = cite(_dumped(value), rules=SMALL)
    if citation.content is not None:
        check_offers(citation, NAME)


@pytest.mark.parametrize(
    "text", ["word " * 4000, "x" * 5000, "é" * 4000, "<root>" + "<a>word</a>" * 900 + "</root>"]
)
def test_one_long_line_offers_what_it_has(text: str) -> None:
    assert check_offers(cite(text), NAME) >= 1


def test_the_tool_is_called_as_it_is_offered() -> None:
    citation = cite(_held(FILMS * 9), rules=CitingRules(opener=OTHER_NAME))
    assert NAME + "(" not in citation.text.replace(OTHER_NAME, "")
    assert check_offers(citation, OTHER_NAME) >= 3


def test_names_that_may_not_be_seen_are_not_offered() -> None:
    secret = "ann.lee@mail.example.org"
    value = [{secret: f"row {n}", "city": "Oslo and more words"} for n in range(60)]
    citation = cite(_dumped(value), rules=CitingRules(privacy="mask"))
    assert secret not in citation.text
    check_offers(citation, NAME)


@pytest.mark.parametrize(
    ("mark", "stored"),
    [
        ("", "excerpts]"),
        ("[... 120 lines omitted ...]", "; truncated by the tool; excerpts]"),
        ("(Output truncated at 30000 characters)", "; truncated by the tool; excerpts]"),
        ("<response clipped>", "; truncated by the tool; excerpts]"),
        ("…4120 tokens truncated…", "; truncated by the tool; excerpts]"),
    ],
)
def test_what_a_client_cut_before_is_not_called_whole(mark: str, stored: str) -> None:
    log = "".join(f"12:00:{n % 60:02d} INFO worker {n} is up\n" for n in range(200))
    head = cite(f"{log}{mark}\n{log}").text.split("\n")[0]
    assert stored in head


# --- what was recorded ---------------------------------------------------------------------------

needs_results = pytest.mark.skipif(
    not (DATA / "tool_results" / "manifest.jsonl").exists(),
    reason="recorded tool results are not on this machine; set HOLDFAST_DATA",
)
needs_conversations = pytest.mark.skipif(
    not (DATA / "trajectories").exists(),
    reason="recorded trajectories are not on this machine; set HOLDFAST_DATA",
)


@needs_results
@pytest.mark.slow
def test_what_is_offered_for_recorded_results_opens() -> None:
    check_recorded_results(every=6)


@pytest.mark.campaign
@needs_results
@pytest.mark.parametrize("part", range(4))
def test_what_is_offered_for_all_recorded_results_opens(part: int) -> None:
    check_recorded_results(part, every=4)


def check_recorded_results(first: int = 0, *, every: int) -> None:
    folder = DATA / "tool_results"
    entries = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    for entry in entries[first::every]:
        data = (folder / entry["path"]).read_bytes()
        for question in ("", "What is the latest error, and which name does it have?"):
            citation = cite(data, question=question)
            assert citation.content is None or check_offers(citation, NAME) >= 2, entry["path"]


@cache
def _results() -> list[str]:
    """Every long result of a tool in the recorded conversations, once."""
    texts: set[str] = set()
    for conversation in trajectories():
        for message in conversation["messages"]:
            content = message.get("content")
            if message.get("role") == "tool":
                parts = content if isinstance(content, list) else [{"text": content}]
                texts.add("".join(str(part.get("text") or "") for part in parts))
    return sorted(text for text in texts if len(text) > 1000)


@needs_conversations
@pytest.mark.slow
def test_what_is_offered_for_results_in_conversations_opens() -> None:
    check_conversations(every=10)


@pytest.mark.campaign
@needs_conversations
@pytest.mark.parametrize("part", range(8))
def test_what_is_offered_for_all_results_in_conversations_opens(part: int) -> None:
    check_conversations(part, every=8)


def check_conversations(first: int = 0, *, every: int) -> None:
    for text in _results()[first::every]:
        citation = cite(text)
        if citation.content is not None:
            check_offers(citation, NAME)
