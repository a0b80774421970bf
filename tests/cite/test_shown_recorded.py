"""Real tool results: how they ended is shown, and nothing is torn. The rules are written by hand.

They know nothing of our own detectors: plain words, looked for line by line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache

import pytest

from holdfast.cite import Citation, cite
from tests.condense.test_recorded import FOLDER, results
from tests.support.recorded import DATA, trajectories

pytestmark = pytest.mark.skipif(
    not (FOLDER / "manifest.jsonl").exists() or not (DATA / "trajectories").exists(),
    reason="recorded tool results are not on this machine; set HOLDFAST_DATA",
)

EVERY = 5
"""Of the results in conversations, as many are passed over between two that are looked at."""


def outputs() -> Iterator[str]:
    for _, _, source in results():
        yield source.text
    number = 0
    for conversation in trajectories():
        for message in conversation["messages"]:
            content = message.get("content")
            if message["role"] == "tool" and isinstance(content, str) and len(content) > 1_000:
                number += 1
                if number % EVERY == 0:
                    yield content


@cache
def citations() -> list[tuple[str, Citation]]:
    cited = [(content, cite(content)) for content in outputs()]
    return [(content, citation) for content, citation in cited if citation.ref_id]


def spaced(text: str) -> str:
    return " ".join(text.split())


def plain_lines(content: str) -> list[str]:
    """The lines of a text that is neither JSON nor a page; none of others."""
    if content.lstrip()[:1] in ("{", "[", "<") and not content.startswith("<returncode>"):
        return []
    return [line for line in map(spaced, content.split("\n")) if re.search(r"\w", line)]


def test_no_citation_is_over_its_cap() -> None:
    assert len(citations()) > 500
    assert max(citation.tokens for _, citation in citations()) <= 400


def test_the_first_and_the_last_line_are_shown() -> None:
    for content, citation in citations():
        shown = spaced(citation.text)
        lines = [line for line in plain_lines(content) if not re.fullmatch(r"(</?\w+>\s*)+", line)]
        for line in [*lines[:1], *lines[-1:]]:
            words = line.split()[0]
            if len(line) <= 100:
                assert line in shown
            elif len(words) <= 60:
                assert words in shown


def test_the_exit_code_is_shown() -> None:
    for content, citation in citations():
        if content.startswith("<returncode>"):
            assert content.partition("\n")[0] in citation.text


def test_the_last_line_of_a_runner_is_shown() -> None:
    summary = re.compile(
        r"=+ .*\d+ (?:passed|failed).* in .*=+|(?:OK|FAILED) \(.*\)|Ran \d+ tests? in .*"
    )
    for content, citation in citations():
        lines = [line for line in plain_lines(content) if summary.fullmatch(line)]
        if lines:
            assert lines[-1] in spaced(citation.text)


def test_what_a_tool_had_cut_is_never_called_whole() -> None:
    notes = (
        "characters elided",
        "observation truncated",
        "content truncated. call",
        "output truncated",
    )
    for content, citation in citations():
        if any(note in content.lower() for note in notes) and plain_lines(content):
            assert "truncated by the tool" in citation.text


def test_every_url_stands_so_in_the_original() -> None:
    url = re.compile(r"https?://[^\s\"'<>`\\…()\[\]{}|]+")
    for content, citation in citations():
        unescaped = html.unescape(content.replace("\\/", "/"))
        originals = {*url.findall(unescaped), *url.findall(content)}
        trimmed = {each.rstrip(".,;:*_)") for each in originals}
        for shown in url.findall(citation.text):
            assert shown in originals or shown.rstrip(".,;:*_)") in trimmed
