"""Metadata of entities."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from holdfast.cite import cite
from holdfast.condense import entity
from holdfast.condense.kinds import kind_of
from tests.condense.structured import check, check_complete, source, values

ORDERS: dict[str, Any] = {
    "Name": "Orders",
    "Description": "What customers bought.",
    "Fields": [
        {"Name": f"F{n}", "Type": "nvarchar", "Description": f"Field {n}", "IsPrimaryKey": n == 0}
        for n in range(9)
    ],
    "RelatedEntities": [{"RelatedEntity": "Customers"}, {"RelatedEntity": "Lines"}],
}


def test_an_entity_tells_name_key_fields_and_relationships() -> None:
    content = source(ORDERS)
    assert kind_of(content) == "entity_metadata"
    said, parts = check(entity, content)
    assert said.title == "Entity Orders: 9 fields"
    assert [(note.role, note.text, note.where) for note in said.notes] == [
        (
            "key",
            "Orders; What customers bought.; primary key F0; 9 fields; "
            "2 relationships: Customers, Lines",
            "$",
        ),
        (
            "outline",
            "Orders: F0 nvarchar (Field 0); F1 nvarchar (Field 1); F2 nvarchar (Field 2); "
            "F3 nvarchar (Field 3); F4 nvarchar (Field 4); 4 more fields",
            "$",
        ),
    ]
    check_complete(ORDERS, parts)


def test_several_entities_have_a_summary_each() -> None:
    content = source({"entities": [ORDERS, ORDERS | {"Name": "Lines"}]})
    said = entity.condense(content)
    assert said.total == 2
    assert [note.where for note in said.notes[:2]] == ["$.entities[0]", "$.entities[1]"]


@pytest.mark.parametrize(
    ("described", "shown"),
    [
        (
            {"relationships": [{"Name": "buyer", "Target": "Customers"}]},
            "1 relationship: Customers by buyer",
        ),
        ({"relations": {"lines": {"table": "Lines"}}}, "1 relationship: Lines by lines"),
        (
            {"foreign_keys": [{"constrained_columns": ["buyer_id"], "referred_table": "people"}]},
            "1 relationship: people by buyer_id",
        ),
        ({"relationships": ["Customers", "Lines"]}, "2 relationships: Customers, Lines"),
        ({"relationships": [{"x": 1}] * 3}, "3 relationships"),
        (
            {"fields": [{"name": "BuyerID", "type": "int", "RelatedEntity": "Customers"}]},
            "1 relationship: Customers by BuyerID",
        ),
        ({}, "0 relationships"),
    ],
)
def test_relationships_are_told_with_what_they_lead_to(described: Any, shown: str) -> None:
    plain = {"name": "Orders", "fields": [{"name": "a", "type": "int"}]}
    note = entity.condense(source(plain | described)).notes[0]
    assert note.text.endswith(f"; {shown}")


def test_the_citation_of_an_entity_shows_what_it_is_even_beside_a_question() -> None:
    fields = [
        {"Name": f"Field{n}", "Type": "nvarchar(max)", "Description": f"What field {n} is for."}
        for n in range(200)
    ]
    content = json.dumps(ORDERS | {"Fields": [ORDERS["Fields"][0], *fields]})
    for question in ("", "What is Field150 for?"):
        text = cite(content, question=question).text
        assert "What customers bought.; primary key F0; 201 fields" in text
        assert "2 relationships: Customers, Lines" in text


@pytest.mark.parametrize(
    "value",
    [
        {"name": "x", "fields": []},
        {"name": "x", "fields": ["a", "b"]},
        {"name": "x", "fields": [{"name": "a"}]},
        {"fields": [{"name": "a", "type": "int"}]},
        {"name": 3, "fields": [{"name": "a", "type": "int"}]},
    ],
)
def test_what_has_no_typed_fields_is_no_entity(value: Any) -> None:
    assert entity.sniff(source(value)) == 0


@given(values)
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(value: Any) -> None:
    fields = [{"name": "a", "type": value}, value]
    for content in (value, {"name": "x", "fields": value}, {"name": "x", "columns": fields}):
        _, parts = check(entity, source(content))
        if entity.sniff(source(content)):
            check_complete(content, parts)
