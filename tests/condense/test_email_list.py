"""Lists of e-mails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense import email_list
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from tests.condense.places import opened, words
from tests.condense.structured import check, check_complete, source, values
from tests.support.steps import is_linear

MAILS = [
    {
        "id": f"m{n}",
        "from": "ann@example.com" if n % 3 else "bo@example.com",
        "to": ["cy@example.com"],
        "subject": f"Invoice {n}",
        "date": f"2024-05-{n + 1:02}T10:00:00Z",
        "snippet": f"Please pay {n}.10 EUR by Friday.",
    }
    for n in range(9)
]
MBOX = "\n\n".join(
    f"From: ann@example.com\nTo: bo@example.com\nSubject: Invoice {n}\n"
    f"Date: Mon, {n + 1:02} May 2024 10:00:00 +0000\n\nPlease pay {n}.10 EUR.\n\nSubject: to change"
    for n in range(4)
)


def test_rows_with_sender_and_subject_are_said_in_a_line() -> None:
    content = source({"messages": MAILS})
    assert kind_of(content) == "email_list"
    said, parts = check(email_list, content)
    assert said.title == "E-mails: 9"
    assert said.notes[4].where == "$.messages[4]"
    assert said.notes[4].text == (
        "2024-05-05T10:00:00Z | from ann@example.com | Invoice 4 | Please pay 4.10 EUR by Friday."
    )
    assert said.notes[-1].text == "2 senders: ann@example.com (6), bo@example.com (3)"
    check_complete(MAILS, parts)


def test_headers_in_a_list_are_read_as_gmail_gives_them() -> None:
    def header(name: str, value: str) -> dict[str, str]:
        return {"name": name, "value": value}

    mail = {
        "id": "18f",
        "snippet": "Hello",
        "payload": {"headers": [header("From", "ann@example.com"), header("Subject", "Hi")]},
    }
    content = source({"messages": [mail, mail], "resultSizeEstimate": 2})
    assert kind_of(content) == "email_list"
    assert email_list.condense(content).notes[0].text == "from ann@example.com | Hi | Hello"


def test_e_mails_in_text_are_parted_where_their_headers_begin() -> None:
    content = Source(MBOX.encode())
    assert kind_of(content) == "email_list"
    said, parts = check(email_list, content)
    assert said.total == 4
    assert said.notes[2].text.startswith("Mon, 03 May 2024 10:00:00 +0000 | from ann@example.com")
    assert "Invoice 2" in opened(content, said.notes[2].where)
    assert "Invoice 3" not in opened(content, said.notes[2].where)
    assert words(MBOX) <= words(" ".join(part.text for part in parts))


def test_issues_with_a_subject_are_no_e_mails() -> None:
    assert email_list.sniff(source([{"subject": "x", "id": 1}] * 4)) == 0
    assert email_list.sniff(Source(b"Subject: a poem\n\nRoses are red.\n")) == 0


@given(values)
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(value: Any) -> None:
    mail = {"from": value, "subject": value, "payload": {"headers": value}}
    for content in (value, [mail, mail], {"messages": [{"from": "a", "subject": value}]}):
        _, parts = check(email_list, source(content))
        if email_list.sniff(source(content)):
            check_complete(content, parts)


lines = st.sampled_from(["From: a", "Subject: b", "Date: c", "", " ", "From x y", "text"])


@given(st.lists(lines | st.text(max_size=10), max_size=20).map("\n".join))
@settings(max_examples=60, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    check(email_list, Source(text.encode("utf-8", "replace")))


def test_much_text_that_only_looks_like_headers_takes_no_squared_time() -> None:
    for piece in ("From: a\n", "From: a\n\n", "\nSubject: b"):

        def work(times: int, piece: str = piece) -> Callable[[], object]:
            data = ("x\n" + piece * times).encode()
            return lambda: check(email_list, Source(data))

        assert is_linear(work, 2_000), piece
