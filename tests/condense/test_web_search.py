"""Answers of web searches."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from holdfast.cite import cite
from holdfast.condense import web_search
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from tests.condense.places import opened
from tests.condense.structured import check, check_complete, source, values

LONG = "Harbours, quays and locks. " * 20


def named(title: str, link: str, snippet: str) -> list[dict[str, Any]]:
    return [
        {
            title: f"Harbour {n}",
            link: f"https://example.org/h/{n}?a=1&b=2",
            snippet: LONG,
            "rank": n,
        }
        for n in range(1, 6)
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"organic_results": named("title", "link", "snippet"), "ads": [{"a": "b"}] * 9},
        {"items": named("title", "link", "snippet"), "queries": {"request": [{"x": 1}]}},
        {"webPages": {"value": named("name", "url", "snippet")}},
        {"web": {"results": named("title", "url", "description")}},
        {"query": "harbours", "results": named("title", "url", "content")},
        named("title", "href", "body"),
    ],
)
def test_title_link_and_a_short_snippet_of_each_result(answer: Any) -> None:
    content = source(answer)
    assert kind_of(content) == "web_search"
    said, parts = check(web_search, content)
    assert said.total == 5
    first = next(note for note in said.notes if note.role == "key")
    title, link, snippet = first.text.split(" | ")
    assert (title, link) == ("1. Harbour 1", "https://example.org/h/1?a=1&b=2")
    assert len(snippet) <= 200
    assert LONG.startswith(snippet.removesuffix(" …"))
    check_complete(answer, parts)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ({"query": "quays"}, 'Web search for "quays": 5 results'),
        ({"query": {"text": "quays"}}, "Web search: 5 results"),
        ({"query": {"text": "quays"}, "searchTerms": "locks"}, 'Web search for "locks": 5 results'),
    ],
)
def test_the_title_has_the_query_if_it_is_a_text(asked: Any, title: str) -> None:
    answer = {**asked, "results": named("title", "url", "content")}
    assert web_search.condense(source(answer)).title == title


@pytest.mark.parametrize("path", ["", "guide/quays-and-locks/2024/opening-hours?lang=en"])
@pytest.mark.parametrize("question", ["", "Which harbour has the most quays?"])
def test_ten_results_show_ten_urls_however_long_each_result_is(path: str, question: str) -> None:
    results = [
        {
            "title": f"Harbour {n}: " + "everything on its quays and locks " * 6,
            "link": f"https://harbours.example/{n}/{path}",
            "snippet": LONG * 20,
        }
        for n in range(1, 11)
    ]
    citation = cite(json.dumps({"organic_results": results}), question=question)
    assert citation.tokens <= 400
    assert set(re.findall(r"https://\S+", citation.text)) >= {each["link"] for each in results}


def test_a_link_that_finds_no_room_is_left_out_whole() -> None:
    results = [
        {
            "title": f"Harbour {n}",
            "link": f"https://harbours.example/{n}/" + "q" * 400,
            "snippet": LONG,
        }
        for n in range(1, 11)
    ]
    text = cite(json.dumps({"organic_results": results})).text
    links = re.findall(r"https://\S+", text)
    assert links
    assert set(links) <= {each["link"] for each in results}


def test_the_question_is_told() -> None:
    answer = {
        "search_parameters": {"q": "old harbours"},
        "organic": named("title", "link", "snippet"),
    }
    assert web_search.condense(source(answer)).title == 'Web search for "old harbours": 5 results'


def test_results_written_as_text_are_placed_by_line() -> None:
    text = "\n\n".join(
        f"Title: Harbour {n}\nURL: https://example.org/{n}\nDescription: Quay number {n}."
        for n in range(1, 4)
    )
    content = Source(text.encode())
    assert kind_of(content) == "web_search"
    said, parts = check(web_search, content)
    assert said.notes[1].text == "2. Harbour 2 | https://example.org/2 | Quay number 2."
    assert "Quay number 2." in opened(content, parts[1].where)


def test_rows_with_only_names_and_links_are_no_search() -> None:
    rows = [{"name": f"n{n}", "url": f"https://x.example/{n}"} for n in range(5)]
    assert web_search.sniff(source(rows)) == 0
    assert web_search.sniff(source({"catalogue": named("title", "url", "description")})) == 0


@given(values)
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(value: Any) -> None:
    row = {"title": "t", "url": "https://x.example", "snippet": "s", "more": value}
    for content in (value, {"results": value}, {"results": [row, value]}):
        _, parts = check(web_search, source(content))
        if web_search.sniff(source(content)):
            check_complete(content, parts)
