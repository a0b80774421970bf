"""One setting: its name, type and bounds, and how a value given for it is read.

keys: the first of this folder; it knows neither where values come from nor which settings there
are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, inspect

PREFIX = "HOLDFAST_"

_T = TypeVar("_T")
Secret = Annotated[_T, Meta(extra={"secret": True})]
"""The type of a setting that is never printed: `Secret[str]`."""

_SCALARS = (
    inspect.BoolType,
    inspect.FloatType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.StrType,
)


class Key(NamedTuple):
    """One setting, as its field defines it."""

    name: str
    type: inspect.Type
    annotation: Any
    default: object
    help: str
    secret: bool

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def choices(self) -> tuple[str, ...]:
        """The only valid values; empty if they cannot be listed."""
        if isinstance(self.type, inspect.LiteralType):
            return tuple(str(value) for value in self.type.values)
        return ()

    @property
    def expects(self) -> str:
        """What a valid value is, in words: "a whole number, at least 1"."""
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
        """Return the value as it may be printed: plain, a secret masked."""
        return "********" if self.secret and value else msgspec.to_builtins(value)

    def convert(self, value: object, *, is_text: bool) -> object:
        """Return the value in the setting's type, or raise `ValueError`.

        Text from the environment is parsed first: tables and lists are written there as JSON.
        """
        if is_text and not isinstance(self.type, _SCALARS):
            value = msgspec.json.decode(str(value))
        return msgspec.convert(value, self.annotation, strict=not is_text)


class Traced(NamedTuple):
    """The value of one setting, and where it came from."""

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
