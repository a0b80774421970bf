"""XML."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cite import cite
from holdfast.condense import xml
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from tests.condense.places import opened
from tests.condense.structured import check

RECORDS = "\n".join(
    f'<book id="b{n}">\n <title>Bücher № {n}</title>\n <price currency="€">{n}.10</price>\n</book>'
    for n in range(60)
)
ERROR = '<error code="17">No more &amp; none</error>'
BOOKS = f'<?xml version="1.0"?>\n<books>\n{RECORDS}\n{ERROR}</books>'


def test_elements_are_counted_and_errors_quoted() -> None:
    content = Source(BOOKS.encode())
    assert kind_of(content) == "xml"
    said, parts = check(xml, content)
    assert said.title == "XML: books, 182 elements"
    assert [note.text for note in said.notes if note.role == "alert"] == [
        "error: code: 17; No more & none"
    ]
    outline = [note.text for note in said.notes if note.role == "outline"]
    assert outline == [
        "/: books (1)",
        "books: book (60), error (1)",
        "books/book: title (60), price (60)",
    ]
    assert "book {id: b7; title: Bücher № 7; price {currency: €; 7.10}}" in parts[0].text


@pytest.mark.parametrize("text", [BOOKS, BOOKS.replace("\n", "")])
def test_places_open_what_a_passage_says(text: str) -> None:
    content = Source(text.encode())
    for part in xml.passages(content):
        first = part.text.partition("title: ")[2].partition(";")[0]
        there = opened(content, part.where)
        assert f"<title>{first}</title>" in there
        assert len(there) < 4000


@pytest.mark.parametrize(
    "text",
    [
        "<a><b></a>",
        "<!DOCTYPE html><html><body>x</body></html>",
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>x</p></html>',
        '<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><a>&z;</a>',
        "<",
        "",
        "a < b",
    ],
)
def test_pages_broken_documents_and_bombs_are_not_taken(text: str) -> None:
    content = Source(text.encode())
    assert xml.sniff(content) == 0
    check(xml, content)


LOG = "\n".join(f"{n:04} INFO step {n} done, code {n * 7919 % 10_007}" for n in range(400))
ROWS = json.dumps([{"id": n, "code": n * 7919 % 10_007} for n in range(400)])


@pytest.mark.parametrize("inside", [LOG, ROWS])
def test_an_element_around_a_text_alone_is_a_wrapper(inside: str) -> None:
    # Gemini CLI puts it around all that a command prints.
    wrapped = f"<untrusted_context>\n{inside}\n</untrusted_context>"
    assert kind_of(Source(wrapped.encode())) == kind_of(Source(inside.encode()))
    assert f"{90 * 7919 % 10_007}" in cite(wrapped, question="What is the code of step id 90?").text


def test_deep_and_huge_documents_are_survived() -> None:
    for text in ("<a>" * 50_000 + "x" + "</a>" * 50_000, f"<a b='{'y' * 2_000_000}'/>"):
        content = Source(text.encode())
        _, parts = check(xml, content)
        assert all(len(part.text) < 3000 for part in parts)


names = st.sampled_from(["a", "b", "error", "ns:c"])
words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=20)
trees = st.recursive(
    words.map(lambda word: word.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "")),
    lambda inner: st.builds(
        lambda name, children: f"<{name}>{' '.join(children)}</{name}>",
        names,
        st.lists(inner, max_size=5),
    ),
    max_leaves=30,
)


@given(trees)
@settings(max_examples=80, deadline=None)
def test_every_text_is_in_a_passage(tree: str) -> None:
    content = Source(f"<root><leaf/>{tree}</root>".encode())
    _, parts = check(xml, content)
    assert xml.sniff(content) > 0
    plain = content.text.replace("&amp;", "&").replace("&lt;", "<")
    whole = " ".join(part.text for part in parts)
    for word in plain.replace("<", " <").replace(">", "> ").split():
        if "<" not in word and ">" not in word:
            assert word in whole


def test_an_element_of_very_many_parts_is_said_whole() -> None:
    rows = "".join(f"<e>v{n}</e>" for n in range(5_000))
    content = Source(f"<feed><a>first</a>{rows}</feed>".encode())
    texts = " ".join(part.text for part in xml.passages(content))
    assert all(f"e: v{n};" in f"{texts};" or f"e: v{n} " in texts for n in range(5_000))
    assert xml.condense(content).total == 5_002
