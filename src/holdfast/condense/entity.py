"""Metadata of entities: tables, records and types with their fields and relationships.

Shows for each entity its name, description, primary key, number of fields, the first five fields
with type and description, and the relationships with their targets. Keys are read in any spelling:
`Fields`, `columns`, `is_primary_key`.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.cutting import shortened
from holdfast.condense.json_rows import passages
from holdfast.condense.objects import first_of, objects_near_top
from holdfast.condense.pieces import line, scalar
from holdfast.condense.rows import brief
from holdfast.condense.source import Source, once

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
_TARGETS = (
    "relatedentity",
    "relatedentityname",
    "relatedtable",
    "referredtable",
    "referencedtable",
    "foreigntable",
    "targetentity",
    "target",
    "totable",
    "to",
    "references",
    "entity",
    "table",
    "name",
)
"""Keys of a relationship's target, the most reliable first."""
_VIA = (
    "relatedentityjoinfield",
    "joinfield",
    "constrainedcolumns",
    "columns",
    "column",
    "field",
    "foreignkey",
)
_RELATIONS_SHOWN = 6
_ENTITIES_FIRST = 3
"""Number of entities shown first: their description, primary key and relationships."""
_DESCRIPTION_CHARS = 200
_IS_KEY = ("isprimarykey", "primarykey", "pk", "isidentity")


class Entity(msgspec.Struct, frozen=True):
    """An entity with normalised keys, and its place."""

    value: dict[str, Any]
    path: str


def sniff(source: Source) -> float:
    """Sure of named things with a list of named, typed fields."""
    return 0.9 if entities(source) else 0.0


def condense(source: Source) -> Condensed:
    """A summary of each entity."""
    described, values = entities(source), source.document
    if not described or values is None:
        return Condensed(title="Entities, none", unit="entities", total=0, notes=())
    notes = [*alerts(source), *entity_notes(described)]
    name = scalar(described[0].value["name"])
    what = f"Entity {name}" if len(described) == 1 else f"{len(described):,} entities, first {name}"
    fields = sum(map(field_count, described))
    return Condensed(
        title=shortened(f"{what}: {fields:,} fields".replace("\n", " "), 200),
        unit="entities",
        total=len(described),
        notes=tuple(notes),
    )


def entity_notes(found: list[Entity]) -> list[Note]:
    """What entities are and, for each, its first fields."""
    notes = [
        Note("key" if n < _ENTITIES_FIRST else "sample", _summary(entity), entity.path)
        for n, entity in enumerate(found)
    ]
    for entity in found:
        description = "; ".join(_field(field) for field in fields_of(entity, _TOP))
        more = field_count(entity) - _TOP
        description += f"; {more:,} more fields" if more > 0 else ""
        notes.append(Note("outline", f"{scalar(entity.value['name'])}: {description}", entity.path))
    return notes


@once
def entities(source: Source) -> list[Entity]:
    """The entities of a content: one, or a list of them."""
    if not any(word in source.data for word in (b"ields", b"olumns", b"ttributes")):
        return []
    if (objects := objects_near_top(source, _is_entity)) is None:
        return []
    return [Entity(_spelled(item), path) for item, path in zip(*objects, strict=True)]


def field_count(entity: Entity) -> int:
    """How many fields an entity has."""
    return len(_first(entity.value, _FIELDS))


def fields_of(entity: Entity, most: int | None = None) -> list[dict[str, Any]]:
    """The fields of an entity, or the first of them, their keys spelled plainly."""
    return [_spelled(field) for field in _first(entity.value, _FIELDS)[:most]]


def _is_entity(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    plain = _spelled(item)
    fields = _first(plain, _FIELDS)
    if type(plain.get("name")) is not str or not isinstance(fields, list) or not fields:
        return False
    if not all(isinstance(field, dict) for field in fields):
        return False
    return all(_is_field(_spelled(field)) for field in fields[:_TOP])


def _is_field(field: dict[str, Any]) -> bool:
    return type(field.get("name")) is str and _first(field, _TYPES) is not None


def _spelled(item: dict[str, Any]) -> dict[str, Any]:
    """The same with keys in small letters and without underscores."""
    return {_spelling(key): value for key, value in item.items()}


@functools.lru_cache(1024)
def _spelling(key: str) -> str:
    return key.replace("_", "").lower()


def _first(item: dict[str, Any], names: tuple[str, ...]) -> Any:
    return first_of(item, names, _is_given)


def _is_given(value: Any) -> bool:
    return value is not None


def _summary(entity: Entity) -> str:
    value = entity.value
    about = value.get("description") or value.get("comment")
    stated = _first(value, _KEYS)
    keys = _key_fields(entity) if stated is None else stated
    parts = [
        scalar(value["name"]),
        brief(about, limit=_DESCRIPTION_CHARS) if type(about) is str and about else "",
        f"primary key {line(keys).strip('[]')}" if keys else "",
        f"{field_count(entity):,} fields",
        _relationships(entity),
    ]
    return "; ".join(part for part in parts if part)


def _relationships(entity: Entity) -> str:
    """Return the number of relationships and the targets of the first.

    The relationships may be named only by the fields.
    """
    relations = _first(entity.value, _RELATIONS)
    if isinstance(relations, dict):
        relations = [
            {"name": name, **(relation if isinstance(relation, dict) else {"to": relation})}
            for name, relation in relations.items()
        ]
    if not isinstance(relations, list):
        relations = [field for field in fields_of(entity) if _first(field, _TARGETS[:-2])]
    targets = dict.fromkeys(filter(None, map(_target, relations[: 4 * _RELATIONS_SHOWN])))
    first_targets = ", ".join(list(targets)[:_RELATIONS_SHOWN])
    count = f"{len(relations):,} relationship{'' if len(relations) == 1 else 's'}"
    more = ", …" if len(relations) > _RELATIONS_SHOWN else ""
    return f"{count}: {first_targets}{more}" if first_targets else count


def _target(relation: Any) -> str:
    """Return the target of a relationship, and the field that refers to it."""
    if not isinstance(relation, dict):
        return brief(relation, limit=60) if type(relation) is str else ""
    spelled = _spelled(relation)
    target = _first(spelled, _TARGETS)
    if isinstance(target, dict):
        target = _first(_spelled(target), _TARGETS)
    via = _first(spelled, _VIA)
    if via is None and target != spelled.get("name"):
        via = spelled.get("name")
    if type(target) is not str:
        return ""
    field = brief(line(via).strip("[]"), limit=40) if via else ""
    return f"{brief(target, limit=60)} by {field}" if field else brief(target, limit=60)


def _key_fields(entity: Entity) -> list[Any]:
    return [field.get("name") for field in fields_of(entity) if _first(field, _IS_KEY)]


def _field(field: dict[str, Any]) -> str:
    about = field.get("description") or field.get("comment")
    text = f"{line(field.get('name'))} {brief(line(_first(field, _TYPES)), limit=40)}"
    return f"{text} ({brief(about, limit=60)})" if type(about) is str and about else text
