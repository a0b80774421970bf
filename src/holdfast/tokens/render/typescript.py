"""Render JSON schemas as the TypeScript that OpenAI's models see.

Function tools become `namespace functions { type name = (_: {...}) => any; }`. These rules
reproduce recorded counts token for token:

- a comment is the title, an empty `//` line, then the description, one `//` line per line of
  text, every line stripped;
- an object whose properties have no comment and no default is written on one line;
- nothing is indented; a default follows its property as `// default: …`;
- a union whose variants have comments is written with one variant per line.

The legacy style is that of gpt-4-0613: no titles, no one-line objects, no comment above an object,
and `any` for unions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from holdfast.wire import Tool

_DEEPEST = 12
# Maximum types written per tool: schemas whose references form a cycle would never end.
_MOST_TYPES = 10_000


class Style(Enum):
    """The style of titles, one-line objects and unions."""

    MODERN = "modern"
    LEGACY = "legacy"


def comment(text: str) -> str:
    """Return text as comment lines, each stripped, without the final newline."""
    return "\n".join(f"// {line.strip()}".rstrip() for line in text.strip().split("\n"))


def tool(definition: Tool, style: Style = Style.MODERN) -> str:
    """Return one function tool as TypeScript, without the final `;` and blank line."""
    head = comment(definition.description) + "\n" if definition.description.strip() else ""
    parameters = definition.parameters
    if not isinstance(parameters, dict) or not _properties(parameters):
        return f"{head}type {definition.name} = () => any"
    writer = _Writer(parameters, style)
    note = writer.note(parameters) if style is Style.MODERN else ""
    return f"{head}type {definition.name} = (_: {note}{writer.fields(parameters, 0)}) => any"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _Writer:
    """Writes the types of one schema; keeps its root to resolve references."""

    def __init__(self, root: dict[str, Any], style: Style) -> None:
        self.root = root
        self.style = style
        self.left = _MOST_TYPES

    def resolve(self, schema: Any) -> dict[str, Any]:
        """Return a schema with `$ref` resolved inside the root; keys beside the reference win."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                return {}
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            target: Any = self.root
            for key in reference.lstrip("#/").split("/"):
                target = target.get(key) if isinstance(target, dict) else None
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**(target if isinstance(target, dict) else {}), **beside}
        return {}

    def note(self, schema: dict[str, Any]) -> str:
        """Return the comment above a property, a variant or the parameters."""
        title, description = schema.get("title"), schema.get("description")
        lines: list[str] = []
        if isinstance(title, str) and title and self.style is Style.MODERN:
            lines.append(comment(title))
        if isinstance(description, str) and description.strip():
            if lines:
                lines.append("//")
            lines.append(comment(description))
        return "".join(line + "\n" for line in lines)

    def fields(self, schema: dict[str, Any], depth: int) -> str:
        """Return an object type, on one line if no property has a comment or default."""
        required = _as_list(schema.get("required"))
        rows: list[tuple[str, str, str]] = []
        plain = self.style is Style.MODERN
        for key, value in _properties(schema).items():
            prop = self.resolve(value)
            note = self.note(prop)
            if self.style is Style.LEGACY and prop.get("type") == "object":
                note = ""
            default = f" // default: {_literal(prop['default'])}" if "default" in prop else ""
            mark = "" if key in required else "?"
            rows.append((note, f"{key}{mark}: {self.type(prop, depth + 1)}", default))
            plain = plain and not note and not default
        if plain:
            return "{ " + ", ".join(field for _, field, _ in rows) + " }"
        return "{\n" + "".join(f"{n}{field},{d}\n" for n, field, d in rows) + "}"

    def type(self, schema: Any, depth: int) -> str:
        """Return the type of a schema."""
        schema = self.resolve(schema)
        self.left -= 1
        type_text = "any" if depth > _DEEPEST or self.left < 0 else self._type(schema, depth)
        return f"{type_text} | null" if schema.get("nullable") is True else type_text

    def _type(self, schema: dict[str, Any], depth: int) -> str:
        variants = _as_list(schema.get("anyOf")) or _as_list(schema.get("oneOf"))
        all_of = _as_list(schema.get("allOf"))
        kind = schema.get("type")
        if variants:
            type_text = self.union(variants, depth)
        elif len(all_of) == 1:
            type_text = self.type(all_of[0], depth)
        elif _as_list(schema.get("enum")):
            type_text = " | ".join(_literal(value) for value in schema["enum"])
        elif "const" in schema:
            type_text = _literal(schema["const"])
        elif isinstance(kind, list):
            base = {key: value for key, value in schema.items() if key != "default"}
            type_text = self.union([{**base, "type": name} for name in kind], depth)
        elif kind in ("integer", "number"):
            type_text = "number"
        elif kind == "array":
            items = schema.get("items")
            type_text = f"{self.type(items, depth + 1)}[]" if items else "any[]"
        elif kind == "object" or _properties(schema):
            type_text = self.fields(schema, depth) if _properties(schema) else "object"
        else:
            type_text = kind if isinstance(kind, str) else "any"
        return type_text

    def union(self, variants: Sequence[Any], depth: int) -> str:
        """Return a union type, with one variant per line if any variant has a comment."""
        if self.style is Style.LEGACY:
            return "any"
        resolved = [self.resolve(variant) for variant in variants]
        notes = [self.note(variant) for variant in resolved]
        types = [self.type(variant, depth + 1) for variant in resolved]
        if not any(notes):
            return " | ".join(types)
        return "\n" + "\n".join(f"{n}| {t}" for n, t in zip(notes, types, strict=True))
