"""One setting: its name, type and bounds, and the parsing of its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, inspect

PREFIX = "HOLDFAST_"
NESTED = "__"
"""Separates a table from its entries, as in HOLDFAST_UPSTREAMS__OPENAI__KEY."""
_MASK = "********"

_T = TypeVar("_T")
Secret = Annotated[_T, Meta(extra={"secret": True})]
"""The type of a setting that is never printed: `Secret[str]`."""

_SCALARS = (
    inspect.BoolType,
    inspect.FloatType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.StrType,
    inspect.UnionType,
)


class Key(NamedTuple):
    """A setting as defined by its field."""

    name: str
    type: inspect.Type
    annotation: Any
    default: object
    help: str
    secret: bool

    @property
    def variable(self) -> str:
        """Return the name of the environment variable."""
        return PREFIX + self.name.upper()

    @property
    def is_table(self) -> bool:
        """Return whether entries of the value can be set separately."""
        return isinstance(self.type, inspect.DictType | inspect.StructType)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the valid values; empty if they cannot be listed."""
        if isinstance(self.type, inspect.LiteralType):
            return tuple(str(value) for value in self.type.values)
        return ()

    @property
    def expects(self) -> str:
        """Return a description of valid values, such as "a whole number, at least 1"."""
        match self.type:
            case inspect.LiteralType():
                return f"one of {', '.join(self.choices)}"
            case inspect.IntType(ge=least, le=int(most)):
                return f"a whole number, from {least} to {most}"
            case inspect.IntType(ge=least):
                kind = "a whole number"
            case inspect.FloatType(ge=least):
                kind = "a number"
            case inspect.BoolType():
                return "true or false"
            case inspect.StrType():
                return "text"
            case inspect.DictType() | inspect.StructType():
                return "a table"
            case _:
                return "a list"
        return kind if least is None else f"{kind}, at least {least}"

    def shown(self, value: object) -> object:
        """Return the value in plain types, with secrets masked."""
        if self.secret and value:
            return _MASK
        return _mask_secrets(msgspec.to_builtins(value), self.type)

    def convert(self, value: object, *, is_text: bool) -> object:
        """Return the value in the setting's type, or raise `ValueError`.

        Text from the environment is parsed first: tables and lists are written there as JSON.
        """
        if is_text:
            value = _parse_text(value, self.type)
        return msgspec.convert(value, self.annotation, strict=not is_text)

    def with_entry(
        self, table: object, path: Sequence[str], value: object, *, is_text: bool
    ) -> object:
        """Return the table with one entry replaced, or raise `ValueError`.

        Names of entries match without regard to case, and `_` matches `-`: variables of the
        environment are written in capitals.
        """
        built: Any = msgspec.to_builtins(table)
        node, type_ = built, self.type
        for at, segment in enumerate(path):
            if not isinstance(node, dict):
                raise ValueError(f"`{path[at - 1]}` is no table - at `$`")  # noqa: TRY004
            name = next((key for key in node if _fold_name(key) == _fold_name(segment)), segment)
            type_ = _type_of_entry(type_, name)
            if at + 1 < len(path):
                node = node.setdefault(name, {})
            else:
                node[name] = _parse_text(value, type_) if is_text else msgspec.to_builtins(value)
        return msgspec.convert(built, self.annotation, strict=not is_text)


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "_")


def _parse_text(text: object, type_: inspect.Type) -> object:
    """Return the value that a variable's text encodes: JSON, unless the type is a scalar."""
    return text if isinstance(type_, _SCALARS) else msgspec.json.decode(str(text))


def _type_of_entry(type_: inspect.Type, name: str) -> inspect.Type:
    """Return the type of an entry of a table; text if the table has no such entry."""
    inner: inspect.Type | None = None
    if isinstance(type_, inspect.DictType):
        inner = type_.value_type
    elif isinstance(type_, inspect.StructType):
        inner = next((field.type for field in type_.fields if field.encode_name == name), None)
    while isinstance(inner, inspect.Metadata):
        inner = inner.type
    return inspect.StrType() if inner is None else inner


def _mask_secrets(value: Any, type_: inspect.Type) -> Any:
    """Return a value of plain types with the secrets inside its tables masked."""
    if isinstance(type_, inspect.Metadata):
        if type_.extra and type_.extra.get("secret") and value:
            return _MASK
        return _mask_secrets(value, type_.type)
    if isinstance(type_, inspect.DictType):
        return {name: _mask_secrets(entry, type_.value_type) for name, entry in value.items()}
    if isinstance(type_, inspect.StructType):
        types = {field.encode_name: field.type for field in type_.fields}
        return {name: _mask_secrets(entry, types[name]) for name, entry in value.items()}
    return value


class TracedValue(NamedTuple):
    """The value of a setting with its origin."""

    key: Key
    value: Any
    origin: str
    """`argument`, `environment HOLDFAST_X`, `file PATH:LINE` or `default`."""


def keys_of(definitions: type[msgspec.Struct]) -> Iterator[Key]:
    """Yield the settings of a table, in the order of its fields."""
    for field, info in zip(
        msgspec.structs.fields(definitions),
        inspect.type_info(definitions).fields,  # type: ignore[attr-defined]  # a StructType
        strict=True,
    ):
        yield Key(
            name=field.name,
            type=info.type.type,
            annotation=field.type,
            default=info.default_factory() if info.default is msgspec.NODEFAULT else info.default,
            help=info.type.extra_json_schema["description"],
            secret=bool(info.type.extra and info.type.extra.get("secret")),
        )
