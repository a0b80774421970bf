"""Markdown: sections with their places, links, code."""

from __future__ import annotations

from holdfast.condense import kinds, markdown
from holdfast.condense.source import Source
from tests.condense.places import opened

GUIDE = """\
# The guide

Read [the manual](https://example.org/m?id=7#top) first. It is short.

## Install

```sh
# not a heading
pip install it
```

> [!WARNING]
> Never run this as root.

Set up
------

| key | value |
|---|---|
| port | 8443 |

### Last

- **bold** item with [a link](./docs/x.md)
"""


def test_sections_are_outlined_with_their_lines() -> None:
    source = Source(GUIDE.encode())
    assert kinds.kind_of(source) == "markdown"
    condensed = markdown.condense(source)
    assert condensed.title == 'Markdown "The guide", 4 sections, 24 lines'
    outline = [(note.text, note.where) for note in condensed.notes if note.role == "outline"]
    assert outline[:4] == [
        ("# The guide", "section: The guide (lines 1-4)"),
        ("## Install", "section: Install (lines 5-14)"),
        ("## Set up", "section: Set up (lines 15-21)"),
        ("### Last", "section: Last (lines 22-24)"),
    ]
    assert "| port | 8443 |" in opened(source, outline[2][1])


def test_links_are_kept_exactly() -> None:
    notes = markdown.condense(Source(GUIDE.encode())).notes
    links = next(note.text for note in notes if note.text.startswith("links: "))
    assert "[the manual](https://example.org/m?id=7#top)" in links
    assert "[a link](./docs/x.md)" in links


def test_a_warning_is_an_alert() -> None:
    alerts = [n for n in markdown.condense(Source(GUIDE.encode())).notes if n.role == "alert"]
    assert "Never run this as root." in alerts[0].text
    assert alerts[0].where == "lines 12-13"


def test_a_comment_in_a_block_of_code_is_no_heading() -> None:
    names = [one.name for one in markdown.sections(Source(GUIDE.encode()))]
    assert "not a heading" not in names


def test_a_block_that_is_never_closed_hides_what_follows() -> None:
    assert [s.name for s in markdown.sections(Source(b"# A\n```\n# B\n"))] == ["A"]


def test_a_later_paragraph_is_quoted_under_its_heading() -> None:
    text = "# Top\n\n" + "first words. " * 30 + "\n\n" + "second part. " * 30 + "\n\nthe end"
    parts = markdown.passages(Source(text.encode()))
    assert parts[0].text.startswith("# Top\n")
    assert all(part.text.startswith("Top\n") for part in parts[1:])


def test_prose_is_no_markdown() -> None:
    assert markdown.sniff(Source(b"Dear all,\n\nwe meet on Monday - or not.\n\nYours, A.")) == 0


def test_more_headings_than_anyone_reads_are_one_section_to_the_end() -> None:
    text = "".join(f"# {n}\n" for n in range(16_100))
    parts = markdown.sections(Source(text.encode()))
    assert len(parts) == 16_001
    assert parts[-1].span == (text.index("# 16000\n"), len(text))
    assert [part.span[0] for part in parts[1:]] == [part.span[1] for part in parts[:-1]]
