"""JSON schemas as the TypeScript that OpenAI's models are shown.

Function tools become `namespace functions { type name = (_: {...}) => any; }`. These rules
reproduce recorded counts token for token:

- a comment is the title, an empty `//` line, then the description, one `//` line for each line of
  text, every line stripped;
- an object whose properties carry no comment and no default is written on one line;
- nothing is indented; a default follows its property as `// default: …`;
- a union whose variants carry comments is written one variant a line.

The legacy style is that of gpt-4-0613: no titles, never on one line, no comment above an object,
unions as `any`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from holdfast.wire import Tool

_DEEPEST = 12
_MOST_TYPES = 10_000
"""Types written for one tool: references that meet themselves would go on for ever."""


class Style(Enum):
    """How titles, one-line objects and unions are written."""

    MODERN = "modern"
    LEGACY = "legacy"


def comment(text: str) -> str:
    """Text as comment lines, each stripped, without the closing newline."""
    return "\n".join(f"// {line.strip()}".rstrip() for line in text.strip().split("\n"))


def tool(made: Tool, style: Style = Style.MODERN) -> str:
    """One function tool, without the closing `;` and blank line."""
    head = comment(made.description) + "\n" if made.description.strip() else ""
    parameters = made.parameters
    if not isinstance(parameters, dict) or not _properties(parameters):
        return f"{head}type {made.name} = () => any"
    writer = _Writer(parameters, style)
    note = writer.note(parameters) if style is Style.MODERN else ""
    return f"{head}type {made.name} = (_: {note}{writer.fields(parameters, 0)}) => any"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _Writer:
    """Writes the types of one schema; holds its root to resolve references."""

    def __init__(self, root: dict[str, Any], style: Style) -> None:
        self.root = root
        self.style = style
        self.left = _MOST_TYPES

    def resolve(self, schema: Any) -> dict[str, Any]:
        """Follow `$ref` inside the root; keys beside the reference win."""
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
        """The comment above a property, a variant or the parameters."""
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
        """An object type: on one line where nothing is to be said about its properties."""
        required = _listed(schema.get("required"))
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
        """The type of a schema."""
        schema = self.resolve(schema)
        self.left -= 1
        written = "any" if depth > _DEEPEST or self.left < 0 else self._type(schema, depth)
        return f"{written} | null" if schema.get("nullable") is True else written

    def _type(self, schema: dict[str, Any], depth: int) -> str:
        variants = _listed(schema.get("anyOf")) or _listed(schema.get("oneOf"))
        whole = _listed(schema.get("allOf"))
        kind = schema.get("type")
        if variants:
            written = self.union(variants, depth)
        elif len(whole) == 1:
            written = self.type(whole[0], depth)
        elif _listed(schema.get("enum")):
            written = " | ".join(_literal(value) for value in schema["enum"])
        elif "const" in schema:
            written = _literal(schema["const"])
        elif isinstance(kind, list):
            rest = {key: value for key, value in schema.items() if key != "default"}
            written = self.union([{**rest, "type": one} for one in kind], depth)
        elif kind in ("integer", "number"):
            written = "number"
        elif kind == "array":
            items = schema.get("items")
            written = f"{self.type(items, depth + 1)}[]" if items else "any[]"
        elif kind == "object" or _properties(schema):
            written = self.fields(schema, depth) if _properties(schema) else "object"
        else:
            written = kind if isinstance(kind, str) else "any"
        return written

    def union(self, variants: Sequence[Any], depth: int) -> str:
        """Alternatives: one a line where any of them carries a comment."""
        if self.style is Style.LEGACY:
            return "any"
        known = [self.resolve(variant) for variant in variants]
        notes = [self.note(variant) for variant in known]
        types = [self.type(variant, depth + 1) for variant in known]
        if not any(notes):
            return " | ".join(types)
        return "\n" + "\n".join(f"{n}| {t}" for n, t in zip(notes, types, strict=True))
