"""Real tool results: their kinds, their errors, the same words every time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from holdfast.condense import kinds
from holdfast.condense.condenser import Condenser
from holdfast.condense.source import Source
from tests.condense.places import opened
from tests.support.recorded import DATA

FOLDER = DATA / "tool_results"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "manifest.jsonl").exists(),
    reason="recorded tool results are not on this machine; set HOLDFAST_DATA",
)

EXPECTED: dict[str, set[str]] = {
    "api_description": {"json"},
    "bio_api": {"json", "json_rows", "xml"},
    "cloud_api": {"json", "json_rows"},
    "github_api": {"json", "json_rows", "github_search"},
    "github_mcp": {"json", "json_rows", "github_search"},
    "json_rows": {"json_rows"},
    "log": {"log"},
    "notion_api": {"notion_page"},
    "sql_dump": {"sql_dump"},
    "sql_result": {"json", "json_rows", "entity_metadata"},
    "table_csv": {"csv"},
    "test_output": {"test_output"},
    "web_page": {"html"},
    "web_search": {"web_search"},
}
"""The kinds that are right for each kind of recorded result."""


def results(*wanted: str) -> Iterator[tuple[str, str, Source]]:
    """The path, the recorded kind and the content of each result."""
    for line in (FOLDER / "manifest.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        if not wanted or record["kind"] in wanted:
            yield record["path"], record["kind"], Source((FOLDER / record["path"]).read_bytes())


@pytest.mark.parametrize("kind", sorted(EXPECTED))
def test_each_kind_is_sniffed_right_for_95_of_100(kind: str) -> None:
    found = [(path, kinds.kind_of(source)) for path, _, source in results(kind)]
    wrong = [(path, name) for path, name in found if name not in EXPECTED[kind]]
    assert len(wrong) <= 0.05 * len(found), wrong


@pytest.mark.parametrize("kind", sorted(EXPECTED))
def test_condensing_is_deterministic_and_titles_are_short(kind: str) -> None:
    for path, _, source in results(kind):
        again = Source(source.data)
        one = kinds.condenser_for(source)
        condensed = one.condense(source)
        assert condensed == kinds.condenser_for(again).condense(again), path
        assert list(one.passages(source)) == list(one.passages(again)), path
        assert len(condensed.title) <= 200, path


ERROR = re.compile(r"error|fail|fatal|exception|traceback|critical|panic|warn", re.IGNORECASE)


@pytest.mark.parametrize("kind", ["log", "test_output"])
def test_every_error_line_is_quoted_or_listed_with_its_place(kind: str) -> None:
    for path, _, source in results(kind):
        notes = kinds.condenser_for(source).condense(source).notes
        alerts = [note for note in notes if note.role == "alert"]
        listed = set().union(*(_lines(f"{note.text} {note.where}") for note in alerts[:4]))
        for number, line in enumerate(source.text.split("\n"), 1):
            if ERROR.search(line):
                assert number in listed, (path, number)


def _lines(text: str) -> set[int]:
    found: set[int] = set()
    for first, last in re.findall(r"\b(\d+)(?:-(\d+))?\b", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("kind", ["log", "test_output", "web_page"])
def test_every_word_is_in_a_passage_that_opens(kind: str) -> None:
    for path, _, source in results(kind):
        one = kinds.condenser_for(source)
        parts = one.passages(source)
        if kind != "web_page" and b"\x1b" not in source.data:
            held = "\n".join(part.text for part in parts)
            assert all(word in held for word in set(source.text.split()) if len(word) < 300), path
        _opens(one, source)


def _opens(one: Condenser, source: Source) -> None:
    for note in one.condense(source).notes:
        if note.where:
            assert opened(source, note.where, one)
