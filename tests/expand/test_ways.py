"""The ways that a citation offers name what is there, and only what may be seen."""

from __future__ import annotations

import json

import pytest

from holdfast.document import Reading
from holdfast.expand.ways import ways


def offered(value: object, visible: str = "", tokens: int = 1_000) -> list[str]:
    return ways(Reading(json.dumps(value).encode()), tokens, visible)


@pytest.mark.parametrize(("rows", "offset"), [(2, 1), (7, 3), (19, 9), (20, 10), (400, 10)])
def test_the_offset_lies_in_the_middle_of_few_rows_and_at_ten_of_many(
    rows: int, offset: int
) -> None:
    assert f"offset={offset}, limit=5" in offered([{"id": n} for n in range(rows)])


def test_fields_are_offered_only_if_they_stand_in_what_is_seen() -> None:
    rows = [{"id": n, "state": "open", "secret": "x"} for n in range(30)]
    assert 'fields=["id", "state"]' in offered(rows, visible="id and state")
    assert not any(way.startswith("fields") for way in offered(rows, visible="nothing"))


def test_a_field_that_the_whole_has_too_is_not_offered_for_its_rows() -> None:
    value = {"id": "list", "rows": [{"id": n, "state": "open"} for n in range(30)]}
    assert 'fields=["state"]' in offered(value, visible="id state")


def test_the_largest_value_is_offered_by_its_path_if_its_name_is_seen() -> None:
    value = {"small": 1, "large": "x" * 400}
    assert 'path="$.large"' in offered(value, visible="small large")
    assert 'path="$"' in offered(value, visible="small")
    long = {"n" * 80: "x" * 400}
    assert 'path="$"' in offered(long, visible="n" * 80)
