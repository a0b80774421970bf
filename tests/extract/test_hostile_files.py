"""Files of a few hundred bytes that describe terabytes, and damaged ones.

Each of these took a reader minutes or gigabytes, or made it raise an error of a library.
"""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ExtractError
from holdfast.extract import FileKind, bounds, extract
from holdfast.extract.bounds import read_parts
from holdfast.extract.html import by_blocks
from holdfast.workers import Workers, WorkLimits
from tests.extract.files import cell, epub, pdf, shared_pdf, word, word_with, zipped

SPINE = '<package><item id="c" href="c.xhtml"/>{}</package>'


def book(spine: str, page: str) -> bytes:
    return zipped({"a.opf": SPINE.format(spine), "c.xhtml": page})


def test_a_page_that_an_e_book_lists_5000_times_is_read_once() -> None:
    attack = book('<itemref idref="c"/>' * 5_000, "<p>" + "again " * 20_000)
    assert len(attack) < 1_000
    assert extract(attack, "epub").text.count("again") == 20_000


def test_a_page_that_an_e_book_lists_and_lacks_is_told_and_the_others_are_read() -> None:
    lacking = book('<itemref idref="c"/><item id="d" href="d.xhtml"/><itemref idref="d"/>', "<p>a")
    extracted = extract(lacking, "epub")
    assert extracted.text == "a"
    assert extracted.note == "1 of 2 parts could not be read"


def test_an_e_book_whose_items_share_one_page_has_it_once() -> None:
    items = "".join(f'<item id="i{n}" href="c.xhtml"/><itemref idref="i{n}"/>' for n in range(50))
    assert extract(book(items, "<p>again</p>"), "epub").text == "again"


def test_the_text_of_a_file_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_TEXT", 1_000)
    pages = [f"<p>{'page ' * 80}</p>" for _ in range(10)]
    for data, kind in ((epub(*pages), "epub"), (word(*["word " * 80] * 10), "docx")):
        extracted = extract(data, kind)  # type: ignore[arg-type]
        assert 900 <= len(extracted.text) <= 1_050
        assert "was not read" in extracted.note
    extracted = extract(pdf(*["line " * 80] * 10), "pdf")
    assert extracted.note == "7 pages behind the first 3 were not read"


def test_a_part_longer_than_the_bound_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_TEXT", 1_000)
    assert read_parts(repeat("x" * 3_000)) == (["x" * 1_000], True, False)
    assert read_parts(["x" * 1_000]) == (["x" * 1_000], False, False)


def test_empty_parts_without_end_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_PARTS", 1_000)
    assert read_parts(repeat("")) == ([""] * 1_000, True, False)


def test_after_its_time_a_file_gives_the_pages_that_were_read() -> None:
    assert read_parts(repeat("page"), seconds=0) == (["page"], True, True)
    extracted = extract(pdf("one", "two", "three"), "pdf", seconds=0)
    assert extracted.text == "one"
    assert extracted.note == "2 pages behind the first 1 were not read"
    assert extracted.is_late
    assert extract(epub("<p>one</p>", "<p>two</p>"), "epub", seconds=0).text == "two"


def test_a_page_that_a_pdf_lists_5000_times_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypdf import PageObject  # noqa: PLC0415 - optional

    reads = []
    original = PageObject.extract_text

    def extract_text(self: PageObject, *given: Any, **named: Any) -> str:
        reads.append(1)
        return original(self, *given, **named)

    monkeypatch.setattr(PageObject, "extract_text", extract_text)
    assert extract(shared_pdf("again", 5_000), "pdf").text.split("\f") == ["again"] * 5_000
    assert len(reads) == 1


def test_a_cell_that_spans_a_billion_columns_is_one_cell() -> None:
    wide = cell("wide", '<w:gridSpan w:val="1000000000"/>') + cell("next")
    rows = f"<w:tbl><w:tr>{wide}</w:tr><w:tr>{cell('a')}{cell('b')}</w:tr></w:tbl>"
    assert extract(word_with(rows), "docx").text == "wide | next\na | b\n\n# Findings"


def test_a_merged_cell_is_repeated_below_in_part() -> None:
    top = cell("y" * 100_000, '<w:vMerge w:val="restart"/>')
    below = cell("", "<w:vMerge/>")
    rows = f"<w:tr>{top}</w:tr>" + f"<w:tr>{below}</w:tr>" * 3_000
    text = extract(word_with(f"<w:tbl>{rows}</w:tbl>"), "docx").text
    assert text.splitlines()[1] == "y" * 200
    assert len(text) < 1_000_000


def test_cells_merged_in_both_directions_keep_their_columns() -> None:
    span, start, more = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = (
        f"<w:tr>{cell('year', span)}{cell('2024', start)}</w:tr>"
        f"<w:tr>{cell('a')}{cell('b')}{cell('', more)}</w:tr>"
    )
    text = extract(word_with(f"<w:tbl>{rows}</w:tbl>"), "docx").text
    assert text.startswith("year | 2024\na | b | 2024\n")


def test_a_heading_of_a_level_that_does_not_exist_is_a_paragraph() -> None:
    def deeper(styles: bytes) -> bytes:
        return styles.replace(b'w:val="heading 1"', b'w:val="Heading 99999999999"')

    assert extract(word_with("", styles=deeper), "docx").text == "Findings"


@pytest.mark.parametrize("body", ["<w:p><", "<w:p>" * 300, "<w:p><w:r><w:t>&a;</w:t></w:r></w:p>"])
def test_a_word_file_of_broken_xml_is_damaged(body: str) -> None:
    with pytest.raises(ExtractError, match="Word file is damaged"):
        extract(word_with(body), "docx")


def test_a_list_of_pages_that_declares_entities_is_refused() -> None:
    entity = '<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    with pytest.raises(ExtractError, match="entities"):
        extract(zipped({"a.opf": entity + SPINE.format("&b;"), "c.xhtml": "x"}), "epub")


def test_of_a_damaged_list_the_pages_before_the_damage_are_read() -> None:
    assert extract(book('<itemref idref="c"/><', "<p>here</p>"), "epub").text == "here"
    with pytest.raises(ExtractError, match="damaged"):
        extract(book("<", "<p>here</p>"), "epub")


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr>" + "<td>" * 60_000 + "hello there",
        "<p " + " ".join(f"a{n}={n}" for n in range(5_000)) + ">hello there</p>",
        "<div>" * 5_000 + "hello there",
    ],
    ids=["cells", "attributes", "nested"],
)
def test_a_page_that_takes_a_parser_minutes_is_read_as_text(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("trafilatura was called")

    monkeypatch.setattr("trafilatura.bare_extraction", never)
    assert extract(page.encode(), "html").text == by_blocks(page).text != ""


def test_where_trafilatura_fails_our_own_reader_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RecursionError

    monkeypatch.setattr("trafilatura.bare_extraction", fail)
    assert extract(b"<html><body><p>hello there</p></body></html>", "html").text == "hello there"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    pool = Workers(WorkLimits(processes=1, seconds=20, memory_bytes=600_000_000))
    yield pool
    pool.close()


def test_a_small_web_page_is_read_in_a_worker(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the page was parsed in this process")

    monkeypatch.setattr("holdfast.workers.pool.perform", never)
    assert workers.extract(b"<html><body><p>hello there</p></body></html>", "html").text


SMALL: dict[FileKind, Callable[[], bytes]] = {
    "pdf": lambda: pdf("one", "two"),
    "docx": lambda: zipped_again(word("hello", rows=[["a", "b"]])),
    "epub": lambda: epub("<p>one</p>", "<p>two</p>"),
}


def zipped_again(data: bytes) -> bytes:
    """The same members without compression, so that damage reaches the XML."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as stored:
            for name in archive.namelist():
                stored.writestr(name, archive.read(name))
    return out.getvalue()


def damaged_member(data: bytes, chance: random.Random) -> bytes:
    """A zip with bytes changed in one member, whose checksum is right."""
    members = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            members[name] = archive.read(name)
    name = chance.choice(sorted(members))
    members[name] = damaged(members[name], chance)
    return zipped(members)


def damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(changed) + 1)
        changed[at : at + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 9))
    return bytes(changed)


@pytest.mark.parametrize("kind", SMALL)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_damaged_file_gives_its_text_or_a_typed_error(kind: FileKind, seed: int) -> None:
    chance = random.Random(seed)
    data = SMALL[kind]()
    harm = damaged if kind == "pdf" or chance.random() < 0.3 else damaged_member
    with suppress(ExtractError):
        assert extract(harm(data, chance), kind).text.strip()
