"""Web pages: all that is seen, its links exact, its matter apart from its frame."""

from __future__ import annotations

import html as entities

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.condense import html, kinds
from holdfast.condense.html_blocks import read_page
from holdfast.condense.source import Source
from tests.condense.places import opened

PROSE = "The lighthouse keeper wrote every evening about the ships that had passed the cape. " * 2
PAGE = f"""<!DOCTYPE html><html><head><title>Keeper &amp; cape</title>
<meta name="description" content="A keeper's diary"><style>p {{ color: red }}</style>
<script>var hidden = "never shown";</script></head><body>
<nav><ul><li><a href="/home">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<div class="content-wrap"><h1>The diary</h1><p>{PROSE}See <a href="https://example.org/d?x=1&amp;y=2">the
 <b>scans</b></a>.</p><h2>Storms</h2><p>{PROSE}</p><p>Warning: the path is closed.</p>
<pre>12:00  wind 9
12:30  wind 11</pre><table><tr><td>Ships</td><td>4,212</td></tr></table></div>
<div id="sidebar"><p>{"Buy our new calendar with pictures of all the ships. " * 3}</p></div>
<footer>© 1911 Harbour office</footer></body></html>"""


def test_a_page_is_known_with_or_without_its_head() -> None:
    assert kinds.kind_of(Source(PAGE.encode())) == "html"
    fragment = b"  <div><p>one</p><a href='/x'>two</a></div>"
    assert kinds.kind_of(Source(fragment)) == "html"
    assert html.sniff(Source(b"a < b and <b>bold</b>")) == 0


def test_title_matter_and_headings_are_told() -> None:
    source = Source(PAGE.encode())
    condensed = html.condense(source)
    assert condensed.title.startswith('Web page "Keeper & cape", ')
    assert condensed.total == len(html.passages(source))
    outline = [note for note in condensed.notes if note.role == "outline"]
    assert [note.text for note in outline[:2]] == ["# The diary", "## Storms"]
    assert "12:30  wind 11" in opened(source, outline[1].where, html)


def test_frame_and_matter_are_told_apart() -> None:
    frame = {
        block.text.split()[0]: block.frame for block in read_page(Source(PAGE.encode())).blocks
    }
    assert frame["Home"]
    assert frame["Buy"]
    assert frame["©"]
    assert not frame["The"]
    assert not frame["Ships"]


def test_a_page_named_strangely_is_not_all_frame() -> None:
    strange = (
        f"<html><body><div class='has sidebar'><p>{PROSE}</p><p>{PROSE}</p></div></body></html>"
    )
    assert not all(block.frame for block in read_page(Source(strange.encode())).blocks)


def test_links_are_exact_and_do_not_break_sentences() -> None:
    source = Source(PAGE.encode())
    part = next(part for part in html.passages(source) if "scans" in part.text)
    assert "See the scans." in part.text
    assert "[the scans](https://example.org/d?x=1&y=2)" in part.text
    links = [note.text for note in html.condense(source).notes if note.text.startswith("links: ")]
    assert "https://example.org/d?x=1&y=2" in links[0]


def test_a_warning_is_an_alert_where_it_stands() -> None:
    source = Source(PAGE.encode())
    alert = next(note for note in html.condense(source).notes if note.role == "alert")
    assert "Warning: the path is closed." in opened(source, alert.where, html)


def test_what_is_not_seen_is_not_told() -> None:
    text = "\n".join(part.text for part in html.passages(Source(PAGE.encode())))
    assert "never shown" not in text
    assert "color: red" not in text


def test_white_space_counts_only_in_pre() -> None:
    texts = [block.text for block in read_page(Source(PAGE.encode())).blocks]
    assert "12:00  wind 9\n12:30  wind 11" in texts


def test_a_page_nested_too_deep_is_read_as_text() -> None:
    source = Source(b"<html><body>" + b"<div>word " * 3000)
    assert sum(part.text.count("word") for part in html.passages(source)) == 3000


WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
TAGS = st.sampled_from("p div span b li td h2 section nav article em pre blockquote".split())


@given(pieces=st.lists(st.tuples(TAGS, st.lists(WORDS, min_size=1, max_size=8)), max_size=25))
@settings(deadline=None)
def test_every_visible_word_is_in_a_passage(pieces: list[tuple[str, list[str]]]) -> None:
    body = "".join(f"<{tag}>{entities.escape(' '.join(words))}</{tag}>" for tag, words in pieces)
    held = "\n".join(p.text for p in html.passages(Source(f"<html>{body}</html>".encode())))
    assert all(word in held for _, words in pieces for word in words)


def test_a_page_of_more_tags_than_a_parser_can_hold_is_read_as_text() -> None:
    page = Source(f"<html><body>{'<p>word' * 50_110}</body></html>".encode())
    blocks = read_page(page).blocks
    assert "\n".join(block.text for block in blocks).split("\n") == ["word"] * 50_110
    assert len(blocks) < 50_100 / 20
    assert kinds.kind_of(page) == "html"


@pytest.mark.parametrize(
    ("attribute", "is_parsed"),
    [("a{}", False), ("</a{}", False), ('a{}=">"', False), ("'a{}", False), ("class='a{}", True)],
)
def test_attributes_by_the_hundred_never_reach_a_parser(attribute: str, is_parsed: bool) -> None:
    attributes = " ".join(
        attribute.format(n) if n < 1 or not is_parsed else f"a{n}" for n in range(300)
    )
    end = "'" if is_parsed else ""
    page = Source(
        f"<html><title>Title</title><body><p {attributes}{end}>text</p></body></html>".encode()
    )
    assert read_page(page).title == ("Title" if is_parsed else "")


def test_a_long_page_is_read_as_a_page_and_only_a_deep_one_as_text() -> None:
    paragraph = "<div><h2>Quays</h2><p>Some <b>words</b> here.</p></div>"
    long, deep = (
        Source(page.encode()) for page in (paragraph * 1_200, "<div>" * 1_200 + paragraph)
    )
    assert any(block.level for block in read_page(long).blocks), "headings are known"
    assert not any(block.level for block in read_page(deep).blocks)
