"""Real results of tools, where this machine has them: kinds, completeness, places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from tests.condense.structured import check, check_complete
from tests.support.recorded import DATA

RESULTS = DATA / "tool_results"
KINDS = {
    "api_description": {"json"},
    "bio_api": {"json", "json_rows", "xml", "html"},
    "cloud_api": {"json", "json_rows", "xml"},
    "github_api": {"json", "json_rows", "github_search"},
    "github_mcp": {"json", "json_rows", "github_search"},
    "json_rows": {"json_rows"},
    "notion_api": {"notion_page"},
    "sql_result": {"json", "json_rows", "entity_metadata"},
    "sql_dump": {"sql_dump"},
    "table_csv": {"csv"},
    "web_search": {"web_search"},
}


def recorded() -> list[Any]:
    if not (RESULTS / "manifest.jsonl").exists():
        skip = pytest.mark.skip(
            reason="recorded results are not on this machine; set HOLDFAST_DATA"
        )
        return [pytest.param("", "", marks=skip)]
    lines = (RESULTS / "manifest.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [(one["path"], one["kind"]) for one in entries if one["kind"] in KINDS]


@pytest.mark.parametrize(("path", "kind"), recorded())
def test_a_recorded_result_is_known_and_whole(path: str, kind: str) -> None:
    content = Source(Path(RESULTS / path).read_bytes())
    condenser = condenser_for(content)
    assert condenser.kind in KINDS[kind]
    said, parts = check(condenser, content)
    assert said.total > 0
    assert said.notes
    if path.endswith(".json"):
        value = json.loads(content.text, parse_float=str)
        if isinstance(value, (dict, list)):
            check_complete(value, parts)
