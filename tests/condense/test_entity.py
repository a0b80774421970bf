"""Metadata of entities."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from holdfast.condense import entity
from holdfast.condense.kinds import kind_of
from tests.condense.structured import check, check_complete, source, values

ORDERS = {
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
            "sample",
            "Orders; What customers bought.; primary key F0; 9 fields; 2 relationships",
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
