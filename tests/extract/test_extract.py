"""The text of files: the result for each format, and the handling of harmful ones."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ExtractError
from holdfast.extract import FileKind, extract, kind_of_file
from holdfast.extract.html import by_blocks
from holdfast.workers import Workers, WorkLimits
from tests.extract.files import epub, pdf, word

PAGE = """<!doctype html><html><head><title>Deploys</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<main><h1>The June deploy</h1>
<p>The deploy of 14 June failed because the migration held a lock on the table of orders for
eleven minutes, and every request that wrote an order ran into its timeout.</p>
<p>It was rolled back at 09:41 by the engineer on call, after the error rate had passed 30 %.</p>
</main><footer>Imprint</footer></body></html>"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    pool = Workers(WorkLimits(processes=1, seconds=20, memory_bytes=600_000_000))
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", b"plain", "text"),
        ("a.md", b"# Title\n\ntext", "text"),
        ("log", b"\x1b[31merror\x1b[0m\n" * 30, "text"),
        ("a.txt", "text in UTF-16".encode("utf-16"), "text"),
        ("a.html", b"hello", "html"),
        ("page", PAGE.encode(), "html"),
        ("a.pdf", pdf("hello"), "pdf"),
        ("no-name", pdf("hello"), "pdf"),
        ("a.docx", word("hello"), "docx"),
        ("a.epub", epub("<p>hello</p>"), "epub"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        ("a.zip", b"PK\x03\x04\x14\0\0\0\0\0 other.bin", "binary"),
        ("a.txt", bytes(range(1, 32)) * 20, "binary"),
    ],
)
def test_a_file_is_known_by_how_it_begins(name: str, data: bytes, kind: str) -> None:
    assert kind_of_file(name, data) == kind


def test_utf_8_stays_byte_for_byte() -> None:
    text = "Grüße,\r\n\tWelt 🦊\n\n  end  "
    extracted = extract(text.encode(), "text")
    assert extracted.text == text
    assert not extracted.note


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp1252", "utf-8-sig"])
def test_other_encodings_are_read_and_said(encoding: str) -> None:
    extracted = extract("Grüße aus Köln".encode(encoding), "text")
    assert extracted.text == "Grüße aus Köln"
    assert bool(extracted.note) == (encoding != "utf-8-sig")


@given(st.binary(max_size=3_000))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_text_or_told_to_be_none(data: bytes) -> None:
    with suppress(ExtractError):
        assert extract(data, kind_of_file("file", data)).text.strip()


def test_the_matter_of_a_page_is_read_with_and_without_trafilatura() -> None:
    for text in (extract(PAGE.encode(), "html").text, by_blocks(PAGE).text):
        assert "held a lock on the table of orders" in text.replace("\n", " ")
        assert "rolled back at 09:41" in text
        assert "About us" not in text
    assert extract(PAGE.encode(), "html").title


def test_pages_of_a_pdf_are_parted_by_form_feeds(workers: Workers) -> None:
    extracted = workers.extract(pdf("The first page", "Of 2024", title="Notes"), "pdf")
    assert extracted.text.split("\f") == ["The first page", "Of 2024"]
    assert extracted.title == "Notes"
    assert extracted.published == 1_709_294_400


def test_a_word_file_gives_its_headings_paragraphs_and_tables() -> None:
    extracted = extract(word("It failed.", rows=[["month", "cost"], ["June", "410"]]), "docx")
    assert extracted.text == "# Findings\n\nIt failed.\n\nmonth | cost\nJune | 410"
    assert extracted.title == "The report"


def test_an_e_book_is_read_in_the_order_of_its_spine() -> None:
    extracted = extract(epub("<p>The second</p>", "<h1>First</h1><p>The first</p>"), "epub")
    assert extracted.text == "# First\n\nThe first\fThe second"
    assert extracted.title == "A book"


@pytest.mark.parametrize(
    ("data", "kind", "told"),
    [
        (pdf(""), "pdf", "no text"),
        (pdf("x")[:200], "pdf", "damaged"),
        (b"PK\x03\x04broken", "docx", "damaged"),
        (b"PK\x03\x04broken", "epub", "damaged"),
        (epub(), "epub", "no text"),
        (b"\0\1", "binary", "binary"),
        (b"  \n ", "text", "no text"),
    ],
)
def test_what_has_no_text_is_told(data: bytes, kind: FileKind, told: str) -> None:
    with pytest.raises(ExtractError, match=told):
        extract(data, kind)


def test_a_pdf_that_unpacks_to_gigabytes_ends_in_a_sentence(workers: Workers) -> None:
    packer = zlib.compressobj(9)
    zeros = b" " * 10_000_000
    stream = b"".join(packer.compress(zeros) for _ in range(200)) + packer.flush()
    with pytest.raises(ExtractError):
        workers.extract(pdf(stream=stream), "pdf")
    assert workers.extract(pdf("still here"), "pdf").text == "still here"


def test_a_zip_that_unpacks_to_gigabytes_is_not_unpacked() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 201_000_000)
    with pytest.raises(ExtractError, match="unpack to more than"):
        extract(out.getvalue(), "docx")


def test_a_worker_that_takes_too_long_is_told_as_such() -> None:
    pool = Workers(WorkLimits(processes=1, seconds=0.05))
    try:
        with pytest.raises(ExtractError, match="took longer"):
            pool.extract(pdf("hello"), "pdf")
    finally:
        pool.close()
