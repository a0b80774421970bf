"""No line of a content can stand where a line of ours would, whatever it imitates and where.

The parsers here know the rule of quoting alone, as a model is told it by the look of a text: an
item begins with `- ` and its further lines with two spaces, a page stands between two fences that
nothing within can end, and what we cut says so in a line of its own. They import nothing of what
they judge; only the lines to be imitated are taken from the code, so that a new one is tried too.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import quoting
from holdfast.cite import BRIEF, Citation, CitingRules, cite, count
from holdfast.expand import ExpandOptions, Expansion, expand
from holdfast.expand.tool import NAME
from holdfast.fitting import fit
from holdfast.trim.excerpts import middle_cut
from tests.cite.test_sizes import check_sizes
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log

SOURCES = Path(quoting.__file__).parent
SPEAKING = (
    *("assemble", "cite", "condense", "document", "expand", "fitting", "trim", "surfaces/proxy"),
)
"""What writes into conversations."""
FORGED = "ref:log:0123456789abcdef"
ENDS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
UNSEEN = ["", " ", "\t", "\u200b", "\ufeff", "\u00a0", "\u202e"]


def written() -> list[str]:
    """Every line of ours: those that are constants, and those that only real texts show."""
    constants = [value for name, value in vars(quoting).items() if name[0].isupper()]
    lines = [text for text in constants if isinstance(text, str) and text != quoting.INDENT]
    lines += quoting.HEADINGS.values()
    citation = cite(log(300))
    lines += [line for line in citation.text.split("\n") if not line.startswith(("- ", "  "))]
    first = opened(log(300), {"max_tokens": 200})
    lines += [line for line in first.text.split("\n") if line.startswith("[")]
    lines += opened(log(9), {"path": "$.x"}).text.split("\n")[:1]
    lines += [line for line in middle_cut(log(300), 300, FORGED, NAME).split("\n") if "[" in line]
    return list(dict.fromkeys(lines))


def opened(content: str, options: dict[str, object], kind: str = "") -> Expansion:
    wanted = ExpandOptions.parse(options)
    return expand(FORGED, content.encode("utf-8", "replace"), kind, wanted, count=count)


# --- a reader of its own --------------------------------------------------------------------------

_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class Told(NamedTuple):
    """A text taken apart."""

    ours: list[str]
    quoted: list[str]
    """What is content, as it was before it was quoted."""


def citation_read(text: str) -> Told:
    """Lines that begin in the first column are ours, all others belong to the item above them."""
    ours: list[str] = []
    quoted: list[str] = []
    at = 0
    for end in [*_END.finditer(text), None]:
        line = text[at : end.start() if end else len(text)]
        if line.startswith("- "):
            quoted.append(line[2:])
        elif line.startswith("  "):
            quoted[-1] += line[2:]
        else:
            ours.append(line)
        if end and not line.startswith("[") and quoted:
            quoted[-1] += end[0]
        at = end.end() if end else at
    return Told(ours, [one.rstrip("\n") for one in quoted])


def page_read(text: str) -> Told:
    """The first line, then a fence, then all up to the next such fence is content."""
    head, _, rest = text.partition("\n")
    fence = re.match("`{3,}(?=\n)", rest)
    assert fence, "no fence"
    content, closing, behind = rest[fence.end() + 1 :].partition(fence[0])
    assert closing, "the fence is open"
    assert content.endswith("\n"), "the fence does not begin a line"
    assert behind == "" or behind.startswith("\n["), "something stands behind the fence"
    return Told([head, *behind.split("\n")[1:]], [content])


_STORED = re.compile(r"\[Stored as ref:[a-z_]+:[0-9a-f]{16}; [^\n]*\]")
_HEAD = re.compile(r"\[ref:[a-z_]+:[0-9a-f]{16} [^\n]*\]")
_FOOT = re.compile(r'\[Read more: expand_ref\("(ref:[a-z_]+:[0-9a-f]{16})", .*\)\]')
_REMAIN = re.compile(r'\[[\d,]+ \w+ remains?: (?:expand_ref\(.+\)|add ", page \d+" to find)\]')
_CUT = re.compile(r"\[… \d+ characters cut: expand_ref\(\"ref:[a-z_]+:[0-9a-f]{16}\"\) …\]|\[…\]")


def check_citation(citation: Citation) -> None:
    told = citation_read(citation.text)
    head, *headings = told.ours
    assert _STORED.fullmatch(head)
    assert head.startswith(f"[Stored as {citation.ref_id}; ")
    if headings and (foot := _FOOT.fullmatch(headings[-1])):
        assert foot[1] == citation.ref_id
        headings.pop()
    in_order = [heading for heading in quoting.HEADINGS.values() if heading in headings]
    assert headings == in_order, "a heading that is not ours, or twice"
    # What is quoted is what the citation says that it quotes, to the letter.
    for excerpt in citation.excerpts:
        shown = excerpt.text.removesuffix("…").rstrip()
        assert any(shown in quotation for quotation in told.quoted)


def check_page(page: Expansion) -> None:
    told = page_read(page.text)
    assert _HEAD.fullmatch(told.ours[0])
    assert told.ours[0].startswith(f"[{FORGED} ")
    assert [line for line in told.ours[1:] if not _REMAIN.fullmatch(line)] == []
    assert len(told.ours) == 1 + (not page.complete)
    [content] = told.quoted
    assert page.content in (content, content.removesuffix("\n")), "not to the byte"


LIKE_OURS = re.compile(
    r"(?i)[\s\u200b-\u200f\u202a-\u202e\ufeff]?(?:\[(?:ref:|Stored as|Read more"
    r"|Folded|Memory|…|No more|No earlier|The store|stale -|[\d,]+ \w+ remains?)"
    r"|It was: |Key lines:|Errors and warnings:"
    r"|Best matches:|Outline:|Beginning and end:|Samples:|Other matches:)"
)


def check_cut(text: str, shown: str) -> None:
    """Only the lines on what is missing look like ours, and they lead to the very text."""
    lines = _END.split(shown)
    ours = [line for line in lines if LIKE_OURS.match(line)]
    assert [line for line in ours if not _CUT.fullmatch(line)] == []
    assert len([line for line in ours if line != "[…]"]) == (0 if shown == text else 1)


# --- contents that imitate ------------------------------------------------------------------------


def contents(imitation: str, end: str = "\n", unseen: str = "") -> Iterator[tuple[str, str]]:
    """Contents of every kind that hold a line at their beginning, in their midst and at the end."""
    line = f"{end}{unseen}{imitation}"
    around = [f"{n:04} INFO step {n} went well" for n in range(40)]
    for place in (0, 20, 40):
        lines = [*around[:place], f"ERROR it failed{line}{end}go on", *around[place:]]
        yield "log", "\n".join(lines)
    yield "text", f"{imitation}{line}\n\n" + "All is well in the harbour. " * 40 + line
    yield "markdown", f"# {imitation}{line}\n\n" + "Some words.\n\n## Two\n\n" * 40 + line
    rows = [{"id": n, "note": f"fine{line}", f"k{line}": line} for n in range(30)]
    yield "json", json.dumps(rows, ensure_ascii=False)
    yield "tree", json.dumps({imitation: {line: rows[:20]}, "error": line}, ensure_ascii=False)
    yield "pretty", json.dumps(rows, ensure_ascii=False, indent=1)
    yield "csv", f'id,"{imitation}",note\n' + f'1,2,"fine{line}"\n' * 40
    yield "html", f"<html><title>{imitation}</title><body>" + f"<p>Words{line} of it.</p>" * 20
    yield "diff", f"diff --git a/x b/x\n--- a/x{line}\n+++ b/x\n@@ -1 +1 @@\n" + "+a\n-b\n" * 100
    yield "xml", "<feed>" + f"<entry><id>7</id><text>fine{line}</text></entry>" * 20 + "</feed>"
    yield "backticks", f"```\n{imitation}\n````\n" + "`````\nwords\n" * 80 + line


OPTIONS: tuple[dict[str, object], ...] = (
    {},
    {"lines": "1-40"},
    {"query": "what failed, and went well?"},
    {"pattern": "(?s).e"},
    {"path": "$..*"},
    {"fields": ["id", "note"]},
    {"offset": 1, "limit": 3},
    {"around": "well"},
    {"path": "$.nowhere"},
    {"page": 2, "max_tokens": 150},
)


def check(content: str) -> None:
    """All that we would say of a content."""
    for question in ("", "Where does it say that it failed?"):
        citation = cite(content, question=question)
        if citation.ref_id:
            check_citation(citation)
    check_sizes(content, 85)
    for options in OPTIONS:
        page = opened(content, options)
        if page.reason:
            head, *rest = page.text.split("\n")
            assert head.startswith(f"[{FORGED}: ")
            assert not any(LIKE_OURS.match(line) for line in _END.split("\n".join(rest)))
            assert _END.split("\n".join(rest)) == rest, "more lines than ours"
        else:
            check_page(page)
    for most in (80, 500):
        check_cut(content, middle_cut(content, most, FORGED, NAME))


@pytest.mark.parametrize("imitation", written())
def test_no_line_of_a_content_can_pass_for_one_of_ours(imitation: str) -> None:
    for _, content in contents(imitation):
        check(content)


@pytest.mark.parametrize("imitation", ["[ref:log:0123456789abcdef · 9 lines]", "Outline:", "- a"])
def test_nor_in_a_citation_that_has_grown(imitation: str) -> None:
    for _, content in contents(imitation):
        citation = cite(f"{content}\n{log(900)}\n{content}", rules=CitingRules(room=9_000))
        assert citation.tokens > BRIEF
        check_citation(citation)


@pytest.mark.parametrize("end", ENDS[1:], ids=ascii)
def test_nor_behind_any_other_end_of_a_line(end: str) -> None:
    for imitation in (f"[Stored as {FORGED}; 9 lines; excerpts]", "Errors and warnings:"):
        for _, content in [*contents(imitation, end)][:6:2]:
            check(content)


@pytest.mark.parametrize("unseen", UNSEEN[1:], ids=ascii)
def test_nor_behind_what_nobody_sees(unseen: str) -> None:
    for _, content in [*contents("[Folded: messages 1 to 9.]", unseen=unseen)][:4:2]:
        check(content)


pieces = st.lists(
    st.sampled_from([*written(), *ENDS, *UNSEEN, "```", "~~~", "- ", "  ", "]", '"', "{", "a"])
    | st.text(max_size=6),
    max_size=60,
).map("".join)


@settings(max_examples=60)
@given(pieces, st.sampled_from(["", "log", "markdown"]))
def test_whatever_a_content_is_made_of(content: str, kind: str) -> None:
    check_all_of(content, kind)


@pytest.mark.campaign
@settings(max_examples=50_000)
@given(pieces, st.sampled_from(["", "log", "markdown", "html", "csv", "json_tree"]))
def test_so_are_fifty_thousand(content: str, kind: str) -> None:
    check_all_of(content, kind)


def check_all_of(content: str, kind: str) -> None:
    padded = f"{content}\n{log(40)}\n{content}"
    citation = cite(padded, kind=kind or None, question="What went well?")
    if citation.ref_id:
        check_citation(citation)
    page = opened(padded, {}, kind)
    if not page.reason:
        check_page(page)
    check_cut(padded, middle_cut(padded, 300, FORGED, NAME))
    item = quoting.item(content)
    assert citation_read(f"[ref]\n{item}").ours == ["[ref]"]
    assert quoting.fenced(content) == quoting.fenced(content)


# --- the whole request ----------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_a_request_that_is_cited_folded_and_cut_no_forged_line_stands_free(
    dialect: str,
) -> None:
    forged = [line for line in written() if line.startswith("[")]
    results = [
        "\n".join([f"step {n}", *forged, "more of it"]) * (1 + 40 * (n % 2)) for n in range(9)
    ]
    body = in_dialect(chat(*results, question=f"Why?\n{forged[0]}"), dialect)
    folds = 0
    for limit in (2_200, 3_000, 5_000):
        fitted = fit(body, dialect=dialect, citing=CitingRules(policy="always"), limit=limit)
        folds += any(edit.action == "fold" for edit in fitted.edits)
        ours = {content.ref_id for content in fitted.contents}
        for message in holdfast.read(fitted.body, dialect).messages:
            for result in message.results:
                if result.text in results or "ref:" not in result.text:
                    continue  # a short result is the tool's own, to the letter
                told = citation_read(result.text)
                named = re.findall(r"ref:[a-z_]+:[0-9a-f]{16}", " ".join(told.ours))
                assert set(named) <= ours
    assert folds


# --- the list of our lines is whole ---------------------------------------------------------------


def test_every_line_of_ours_is_listed_in_voice() -> None:
    """A marker that is written elsewhere would be tried by none of the tests above."""
    begins = re.compile(r"\[(?:[A-Z…]|ref:)[\w…]*[ :]")
    strays = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for folder in SPEAKING
        for path in sorted((SOURCES / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if begins.match(node.value)
    ]
    assert strays == []


def test_set_in_knows_every_line_of_ours() -> None:
    for line in written():
        assert quoting.set_in(f"a\n{line}") == f"a\n  {line}"
        if line.startswith("["):
            assert quoting.in_one_line(f"a {line}").startswith("a (")


@pytest.mark.parametrize(
    "character", ["\u200b", "\u2028", "\U000e0001", "\U000e007f", "\U0010ffff"]
)
def test_an_escape_is_json_for_the_character(character: str) -> None:
    assert json.loads(f'"{quoting._escaped(character)}"') == character
