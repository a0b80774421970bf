"""Metadata of entities: tables, records and types with their fields and relationships.

entity: after main_rows. Of each entity: name, description, primary key, how many fields, the first
five with type and description, how many relationships. Keys are read in any spelling: `Fields`,
`columns`, `is_primary_key`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.document import document
from holdfast.condense.json_rows import passages
from holdfast.condense.main_rows import near_top, path_to
from holdfast.condense.once import once
from holdfast.condense.pieces import line, scalar
from holdfast.condense.rows import brief
from holdfast.condense.source import Source

__all__ = ["condense", "entities", "entity_notes", "kind", "passages", "sniff"]

kind = "entity_metadata"

_TOP = 5
_FIELDS = ("fields", "columns", "attributes")
_TYPES = ("type", "datatype", "sqltype", "columntype", "fieldtype", "tstype")
_RELATIONS = (
    "relatedentities",
    "relationships",
    "relations",
    "foreignkeys",
    "foreignkeyconstraints",
    "references",
)
_KEYS = ("primarykey", "primarykeys", "primarykeycolumns")
_IS_KEY = ("isprimarykey", "primarykey", "pk", "isidentity")


class Entity(msgspec.Struct, frozen=True):
    """An entity, its keys spelled plainly, and where it stands."""

    value: dict[str, Any]
    path: str


def sniff(source: Source) -> float:
    """Sure of named things with a list of named, typed fields."""
    return 0.9 if entities(source) else 0.0


def condense(source: Source) -> Condensed:
    """A summary of each entity."""
    found, values = entities(source), document(source)
    if not found or values is None:
        return Condensed(title="Entities, none", unit="entities", total=0, notes=())
    notes = [*alerts(source, values.value), *entity_notes(found)]
    name = scalar(found[0].value["name"])
    what = f"Entity {name}" if len(found) == 1 else f"{len(found):,} entities, first {name}"
    fields = sum(len(fields_of(one)) for one in found)
    return Condensed(
        title=f"{what}: {fields:,} fields"[:200].replace("\n", " "),
        unit="entities",
        total=len(found),
        notes=tuple(notes),
    )


def entity_notes(found: list[Entity]) -> list[Note]:
    """What entities are and, for each, its first fields."""
    notes = [Note("sample", _summary(one), one.path) for one in found]
    for one in found:
        fields = fields_of(one)
        said = "; ".join(_field(field) for field in fields[:_TOP])
        more = f"; {len(fields) - _TOP:,} more fields" if len(fields) > _TOP else ""
        notes.append(Note("outline", f"{scalar(one.value['name'])}: {said}{more}", one.path))
    return notes


@once
def entities(source: Source) -> list[Entity]:
    """The entities of a content: one, or a list of them."""
    if not any(word in source.data for word in (b"ields", b"olumns", b"ttributes")):
        return []
    found = document(source)
    for steps, item in near_top(found.value) if found else ():
        if isinstance(item, list) and all(map(_is_entity, item)):
            path = path_to(steps)
            return [Entity(_spelled(one), f"{path}[{n}]") for n, one in enumerate(item)]
        if _is_entity(item):
            return [Entity(_spelled(item), path_to(steps))]
    return []


def fields_of(entity: Entity) -> list[dict[str, Any]]:
    """The fields of an entity, their keys spelled plainly."""
    listed = _first(entity.value, _FIELDS)
    return [_spelled(field) for field in listed if isinstance(field, dict)]


def _is_entity(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    plain = _spelled(item)
    fields = _first(plain, _FIELDS)
    if type(plain.get("name")) is not str or not isinstance(fields, list) or not fields:
        return False
    return all(isinstance(field, dict) and _is_field(_spelled(field)) for field in fields)


def _is_field(field: dict[str, Any]) -> bool:
    return type(field.get("name")) is str and _first(field, _TYPES) is not None


def _spelled(item: dict[str, Any]) -> dict[str, Any]:
    """The same with keys in small letters and without underscores."""
    return {key.replace("_", "").lower(): value for key, value in item.items()}


def _first(item: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def _summary(entity: Entity) -> str:
    value, fields = entity.value, fields_of(entity)
    about = value.get("description") or value.get("comment")
    keys = _first(value, _KEYS) or [f["name"] for f in fields if _first(f, _IS_KEY)]
    relations = _first(value, _RELATIONS)
    parts = [
        scalar(value["name"]),
        brief(about, limit=120) if type(about) is str and about else "",
        f"primary key {line(keys).strip('[]')}" if keys else "",
        f"{len(fields):,} fields",
        f"{len(relations) if isinstance(relations, list) else 0:,} relationships",
    ]
    return "; ".join(part for part in parts if part)


def _field(field: dict[str, Any]) -> str:
    about = field.get("description") or field.get("comment")
    text = f"{field['name']} {brief(line(_first(field, _TYPES)), limit=40)}"
    return f"{text} ({brief(about, limit=60)})" if type(about) is str and about else text
