"""Notion pages, blocks and databases."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from holdfast.condense import notion_page
from holdfast.condense.kinds import kind_of
from tests.condense.structured import check, check_complete, source, values


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": {"content": words, "link": None}, "plain_text": words}]


def page(number: int, **more: Any) -> dict[str, Any]:
    return {
        "object": "page",
        "id": f"2532b7e8-cebd-8106-9455-e65c37d6{number:04}",
        "last_edited_time": "2025-08-18T22:28:00.000Z",
        "url": f"https://www.notion.so/Item-{number}",
        "parent": {"type": "database_id", "database_id": "d1"},
        "properties": {
            "Quantity": {"id": "KeQF", "type": "number", "number": number},
            "Packed": {"id": "a", "type": "checkbox", "checkbox": number % 2 == 0},
            "Type": {"id": "s", "type": "select", "select": {"id": "9", "name": "Shoes"}},
            "Due": {"id": "d", "type": "date", "date": {"start": "2025-09-01", "end": None}},
            "Name": {"id": "title", "type": "title", "title": text(f"Item {number} to pack")},
        },
    } | more


QUERY = {"object": "list", "results": [page(n) for n in range(12)], "has_more": False}


def test_a_page_tells_title_id_link_type_date_words_and_children() -> None:
    content = source(page(7, has_children=True))
    assert kind_of(content) == "notion_page"
    said, parts = check(notion_page, content)
    assert said.title == "Notion page: Item 7 to pack"
    assert said.notes[0].text == (
        "Item 7 to pack; id: 2532b7e8-cebd-8106-9455-e65c37d60007; "
        "url: https://www.notion.so/Item-7; type: page; last_edited: 2025-08-18; "
        "word_count: 4; has_children: true"
    )
    check_complete(page(7), parts)


def test_the_pages_of_a_query_are_rows_of_plain_values() -> None:
    content = source(QUERY)
    assert kind_of(content) == "notion_page"
    said, parts = check(notion_page, content)
    assert said.title == "Notion answer: 12 pages"
    assert parts[3].where == "$.results[3]"
    assert parts[3].text.startswith(
        "page: Item 3 to pack; Name: Item 3 to pack; Quantity: 3; Packed: false; Type: Shoes; "
        "Due: 2025-09-01; id: "
    )
    check_complete(QUERY, parts)


def test_databases_tell_their_properties() -> None:
    database = {
        "object": "database",
        "id": "d1",
        "title": text("Packing list"),
        "properties": {
            "Type": {
                "id": "s",
                "name": "Type",
                "type": "select",
                "select": {"options": [{"name": "Shoes"}, {"name": "Food"}]},
            },
            "Name": {"id": "title", "name": "Name", "type": "title", "title": {}},
        },
    }
    content = source(database)
    assert kind_of(content) == "notion_page"
    said, _ = check(notion_page, content)
    assert [note.text for note in said.notes] == [
        "Packing list; id: d1; type: database; word_count: 2",
        "Name: title",
        "Type: select of Shoes, Food",
    ]


def test_blocks_are_quoted_with_their_type() -> None:
    block = {
        "object": "block",
        "id": "b1",
        "type": "paragraph",
        "has_children": False,
        "paragraph": {"rich_text": text("Day one")},
    }
    content = source({"object": "list", "results": [block] * 3, "type": "block"})
    assert kind_of(content) == "notion_page"
    said = notion_page.condense(content)
    assert said.notes[0].text == (
        "Day one; id: b1; type: paragraph block; word_count: 2; has_children: false"
    )


def test_an_error_of_notion_is_an_alert() -> None:
    answer = {"object": "error", "status": 404, "code": "object_not_found", "message": "No page x."}
    content = source({"results": [page(1)], "failed": answer})
    assert "No page x." in notion_page.condense(content).notes[0].text


@given(values)
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(value: Any) -> None:
    wrapped = {"object": "page", "id": "x", "properties": {"a": value}, "title": value}
    property_ = {"id": "p", "type": "select", "select": value}
    for content in (value, wrapped, {"results": [{"properties": {"a": property_}}] * 3}):
        _, parts = check(notion_page, source(content))
        if notion_page.sniff(source(content)):
            check_complete(content, parts)
