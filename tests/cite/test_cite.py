"""A citation: short, the same every time, with what matters in it, and the original beside it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.cite import CitingRules, cite, count, is_long
from holdfast.errors import PrivacyError, StoreError
from holdfast.store.refs import REF, canonical

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4000) | st.text(
    'ab \n{}[]",:<>/#0123456789', min_size=900, max_size=4000
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=200,
)
LOG = "\n".join(
    f"2024-05-01T10:{n // 60:02}:{n % 60:02} {'ERROR' if n == 431 else 'INFO'} "
    f"worker {n % 7} {'cannot reach db-3: refused' if n == 431 else 'handled request'} id={n * 37}"
    for n in range(1000)
)
ROWS = [
    {"id": n, "name": f"user-{n}", "city": ["Oslo", "Lima", "Pune"][n % 3], "balance": n * 1.25}
    for n in range(400)
]


@given(content=texts | st.binary(max_size=3000) | values, question=st.none() | texts)
@example(content=" " * 5000, question=None)
@example(content="x" * 200_000, question="x")
@example(content="[" * 3000, question=None)
def test_a_citation_is_short_and_keeps_its_original(content: Any, question: str | None) -> None:
    made = cite(content, question=question)
    data = canonical(content)
    if not made.ref_id:
        assert made.content is None
        assert made.text == data.decode("utf-8", "replace")
        assert made.fidelity.level == "full"
        return
    assert made.content is not None
    assert made.content.data == data
    assert made.content.sha256 == hashlib.sha256(data).hexdigest()
    assert made.ref_id == f"ref:{made.kind}:{made.content.sha256[:16]}"
    assert made.tokens == made.content.compressed_tokens == count(made.text) <= 400
    assert "" not in made.fidelity.kept
    assert made.tokens < made.fidelity.from_tokens == count(data.decode("utf-8", "replace"))
    assert next(found[0] for found in REF.finditer(made.text)) == made.ref_id
    assert cite(content, question=question) == made


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_what_is_short_stays_as_it_is(size: int) -> None:
    text = ("word " * 300)[:size]
    assert cite(text).text == text
    assert cite(text).ref_id == ""


def test_one_character_more_is_cited() -> None:
    text = "".join(f"{n} sheep. " for n in range(200))[:1001]
    assert cite(text).ref_id.startswith("ref:text:")
    assert cite(text, kind="sheep").ref_id.startswith("ref:sheep:")


def test_few_characters_of_many_bytes_are_cited() -> None:
    text = "東京都千代田区一二三四五六七八九〇" * 59
    text = text[:1000]
    assert len(text) == 1000
    assert len(text.encode()) == 3000
    assert cite(text).ref_id == ""
    assert cite(text, rules=CitingRules(threshold_bytes=2_999)).ref_id != ""


@pytest.mark.parametrize("threshold", [100, 1_000, 3_001, 20_000])
def test_a_threshold_of_any_size_is_obeyed(threshold: int) -> None:
    rules = CitingRules(threshold=threshold)
    assert not is_long("x" * threshold, rules)
    assert not is_long("\N{CJK UNIFIED IDEOGRAPH-4E2D}" * threshold, rules)
    assert is_long("x" * (threshold + 1), rules)


def test_errors_of_a_log_are_quoted_with_their_place() -> None:
    made = cite(LOG)
    assert made.kind == "log"
    assert "ERROR worker 4 cannot reach db-3: refused id=15947" in made.text
    assert "432" in made.text
    assert made.fidelity.unit == "lines"
    assert made.fidelity.total == 1000


@pytest.mark.parametrize(
    ("content", "question", "answer"),
    [
        (LOG, "What happened to request id=24605?", "id=24605"),
        (json.dumps(ROWS), "What is the balance of user-317?", "396.25"),
        ("\n\n".join(f"Chapter {n}. " + "Nothing here. " * 20 for n in range(50))
         + "\n\nThe treasure lies under the old lighthouse.",
         "Where is the treasure?", "under the old lighthouse"),
    ],
)  # fmt: skip
def test_what_answers_the_question_is_quoted(content: str, question: str, answer: str) -> None:
    made = cite(content, question=question)
    assert answer in made.text
    assert any(answer in excerpt.text and excerpt.relevance > 0 for excerpt in made.excerpts)


DEEP = {
    "resources": {
        f"service{n}": {
            "methods": {
                verb: {"id": f"s{n}.{verb}", "description": f"Says {verb} to number {n}. " * 9}
                for verb in ("get", "list", "delete")
            }
        }
        for n in range(60)
    }
}


@pytest.mark.parametrize(
    "question",
    [
        "What does the key `resources.service41.methods.list.id` hold?",
        "value of $.resources.service41.methods.list.id",
        "service41 list id?",
    ],
)
def test_one_value_deep_inside_is_quoted_with_its_path(question: str) -> None:
    made = cite(DEEP, question=question)
    assert "$.resources.service41.methods.list.id: s41.list" in made.text


def test_the_part_of_a_long_row_that_answers_is_quoted() -> None:
    rows = [
        {"title": f"Case {n}", "body": f"filler {n} " * 300, "closed_by": f"agent-{n * 7}"}
        for n in range(30)
    ]
    assert "agent-147" in cite(rows, question="Who closed the case titled Case 21?").text


def test_two_answers_from_one_place_are_both_quoted() -> None:
    note = "The pump was replaced on Monday. " + "Nothing else happened. " * 40
    rows = [{"id": n, "note": "quiet"} for n in range(50)]
    rows[7]["note"] = note + "The pump failed again on Friday."
    text = cite(rows, question="When was the pump replaced, and when did the pump fail?").text
    assert "replaced on Monday" in text
    assert "failed again on Friday" in text


def test_the_cap_is_obeyed_however_small() -> None:
    for most in (60, 80, 120, 200, 400, 1000):
        made = cite(LOG, question="Which worker failed?", rules=CitingRules(most_tokens=most))
        assert made.tokens <= most


SECRET = "password: AKIAIOSFODNN7EXAMPLE and mail to jane.roe@company.org\n" + "filler text. " * 200


def test_secrets_are_flagged_and_shown_only_if_allowed() -> None:
    shown = cite(SECRET)
    assert shown.content is not None
    assert "email" in shown.content.flags
    assert shown.fidelity.flags == shown.content.flags
    assert "jane.roe@company.org" in shown.text
    masked = cite(SECRET, rules=CitingRules(privacy="mask"))
    assert "jane.roe" not in masked.text
    assert "AKIAIOSFODNN7EXAMPLE" not in masked.text
    assert masked.content is not None
    assert masked.content.data == SECRET.encode()
    assert masked.ref_id == shown.ref_id
    assert "jane.roe" not in masked.content.summary + masked.content.compressed
    with pytest.raises(PrivacyError) as refused:
        cite(SECRET, rules=CitingRules(privacy="refuse"))
    assert "jane" not in str(refused.value)


def test_where_it_came_from_goes_with_the_original() -> None:
    made = cite(LOG, tool="read_log", source_url="https://example.com/log")
    assert made.content is not None
    assert made.content.meta == {"tool": "read_log", "url": "https://example.com/log"}


@pytest.mark.parametrize("kind", ["Bad Kind", "", "1st", "a" * 60, "x:y"])
def test_a_kind_that_is_no_name_is_refused(kind: str) -> None:
    with pytest.raises(StoreError, match="kind"):
        cite(LOG, kind=kind)


def test_what_is_printed_of_a_citation_holds_no_content() -> None:
    made = cite("the zebra went home\n" * 200)
    assert "zebra" not in repr(made) + repr(made.excerpts) + repr(made.content)
