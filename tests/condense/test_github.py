"""GitHub searches and other answers of GitHub."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from holdfast.condense import github_search, json_tree
from holdfast.condense.kinds import kind_of
from tests.condense.structured import check, check_complete, source, values


def repository(number: int) -> dict[str, Any]:
    return {
        "id": 9_000_000_000 + number,
        "full_name": f"acme/tool-{number}",
        "html_url": f"https://github.com/acme/tool-{number}",
        "url": f"https://api.github.com/repos/acme/tool-{number}",
        "owner": {"login": "acme", "id": 17},
        "description": "A tool that does one thing, and says so at some length.",
        "stargazers_count": 1000 - number,
        "pushed_at": "2024-05-06T07:08:09Z",
    }


SEARCH = {
    "total_count": 3112,
    "incomplete_results": False,
    "items": [repository(n) for n in range(30)],
}


def test_a_search_tells_count_top_ten_and_how_many_more() -> None:
    content = source(SEARCH)
    assert kind_of(content) == "github_search"
    said, parts = check(github_search, content)
    assert said.title == "GitHub search: 3,112 repositories found, 30 here"
    assert said.total == 3112
    top = [note for note in said.notes if note.role == "sample"]
    assert len(top) == 10
    assert top[2].where == "$.items[2]"
    assert top[2].text == (
        "3. acme/tool-2, https://github.com/acme/tool-2, stars 998, 2024-05-06, "
        "A tool that does one thing, and says so at some length."
    )
    more = [(note.text, note.where) for note in said.notes if note.role == "outline"]
    assert more == [
        ("20 more repositories here", "rows 11-30 of $.items"),
        ("3,082 more repositories not in this answer", ""),
    ]
    check_complete(SEARCH, parts)


def test_a_search_of_an_mcp_server_is_found_inside_its_text() -> None:
    content = source({"content": [{"type": "text", "text": json.dumps(SEARCH)}]})
    assert kind_of(content) == "github_search"
    said = github_search.condense(content)
    assert said.notes[0].where == "$.content[0].text.items[0]"


def test_an_incomplete_search_is_an_alert() -> None:
    said = github_search.condense(source(SEARCH | {"incomplete_results": True}))
    assert said.notes[0].text == "incomplete_results: true"
    assert said.notes[0].role == "alert"


def test_issues_and_commits_are_said_in_a_line() -> None:
    issue = {
        "number": 206,
        "title": "Specified the GET",
        "state": "closed",
        "user": {"login": "ann"},
        "updated_at": "2015-07-17T00:00:00Z",
        "html_url": "https://github.com/acme/tool/pull/206",
    }
    commit = {
        "sha": "a5259970acaec9813e2a12a91f37dfc7871a5ef5",
        "html_url": "https://github.com/acme/tool/commit/a525",
        "commit": {
            "message": "Prepare release\n\nLong",
            "author": {"name": "Bo", "date": "2008-01-13T01:02:03Z"},
        },
    }
    for item, line in (
        (
            issue,
            "1. #206, Specified the GET, closed, by ann, 2015-07-17, "
            "https://github.com/acme/tool/pull/206",
        ),
        (commit, "1. a5259970acaec9813e2a12a91f37dfc7871a5ef5, Prepare release, by Bo, 2008-01-13"),
    ):
        content = source({"total_count": 3, "incomplete_results": False, "items": [item] * 3})
        assert kind_of(content) == "github_search"
        assert github_search.condense(content).notes[0].text == line


def test_a_list_without_a_count_needs_no_condenser_of_its_own() -> None:
    assert kind_of(source([repository(n) for n in range(5)])) == "json_rows"


def test_an_error_of_github_is_an_alert() -> None:
    answer = {
        "message": "Validation Failed",
        "errors": [{"resource": "Issue", "code": "missing_field"}],
        "documentation_url": "https://docs.github.com/rest",
        "status": "422",
        "url": "https://api.github.com/repos/acme/tool/issues",
    }
    said, _ = check(json_tree, source(answer))
    assert said.notes[0].role == "alert"
    assert "Validation Failed" in said.notes[0].text
    assert "missing_field" in said.notes[0].text


def test_other_json_with_a_link_to_github_is_not_githubs() -> None:
    rows = [{"name": "x", "homepage": "https://github.com/acme/x"} for _ in range(4)]
    assert kind_of(source(rows)) == "json_rows"
    assert kind_of(source({"total_count": 9, "items": [{"a": 1}] * 9})) == "json_rows"


@given(values)
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(value: Any) -> None:
    check(github_search, source(value))
    found = {"total_count": 5, "items": value, "html_url": "https://github.com/"}
    check(github_search, source(found))
