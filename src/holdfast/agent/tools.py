"""Tools as plain functions: their schemas from types and docstrings, their arguments checked.

tools: the first word of the agent. What a model writes as arguments is hostile: it is read as what
the function's types say, and what does not fit is told to the model with the place, never run.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec

from holdfast.errors import HoldfastError, SettingsError

_ARGUMENT = re.compile(r"^\s{2,}+(\*{0,2}\w++)(?:\s*+\([^)]*+\))?+:\s*+(.+)$")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_ARGUMENT_BYTES = 1_000_000


class ArgumentsError(Exception):
    """Arguments that a tool cannot be called with; its text is for the model."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """The JSON schema of the arguments."""
    run: Callable[..., Any]
    reads: type[msgspec.Struct] | None = None
    """What arguments are read as; None: they are checked against `parameters`."""

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as OpenAI's chat writes it; clients carry it over to other dialects."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def arguments(self, text: str) -> dict[str, Any]:
        """The arguments of a call; raise `ArgumentsError` with the reason if they are none."""
        if len(text) > _MOST_ARGUMENT_BYTES:
            raise ArgumentsError(f"the arguments have more than {_MOST_ARGUMENT_BYTES:,} bytes")
        try:
            if self.reads is not None:
                read = msgspec.json.decode(text or "{}", type=self.reads)
                return {name: getattr(read, name) for name in self.reads.__struct_fields__}
            given = msgspec.json.decode(text or "{}")
        except msgspec.ValidationError as error:
            raise ArgumentsError(str(error)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise ArgumentsError("the arguments are no JSON object") from None
        if not isinstance(given, dict):
            raise ArgumentsError("the arguments are no JSON object")
        _check(self.parameters, given)
        return given

    async def __call__(self, given: Mapping[str, Any]) -> str:
        """Run the function; a plain one in a thread, so that nobody waits for it."""
        if inspect.iscoroutinefunction(self.run):
            result = await self.run(**given)
        else:
            result = await asyncio.to_thread(self.run, **given)
            if isinstance(result, Awaitable):
                result = await result
        return text_of(result)


def text_of(result: object) -> str:
    """What a tool gave, as text."""
    if isinstance(result, str):
        return result
    if isinstance(result, bytes):
        return result.decode("utf-8", "replace")
    try:
        return msgspec.json.encode(result).decode()
    except (TypeError, ValueError):
        return str(result)


def _check(schema: dict[str, Any], given: Mapping[str, Any]) -> None:
    from holdfast.toolbox.argument_checks import compile_schema  # noqa: PLC0415 - where a tool has its own

    check = compile_schema(schema)
    if check is None:
        return  # the schema itself is none; the function will say what it misses
    error = next(iter(check.iter_errors(given)), None)
    if error is not None:
        place = "/".join(map(str, error.instance_path)) or "the arguments"
        # The library's message quotes the value; the kind says enough.
        raise ArgumentsError(
            f"{place} does not match the tool's schema ({type(error.kind).__name__})"
        )


async def outcome_of(tool: Tool, written: str) -> tuple[bool, str]:
    """Whether a call with the arguments that a model wrote failed, and what it is told of it."""
    try:
        arguments = tool.arguments(written)
    except ArgumentsError as error:
        return True, f"[The arguments do not fit the tool: {error}.]"
    try:
        return False, await tool(arguments)
    except HoldfastError as error:
        return True, f"[The tool failed: {error}]"
    except Exception as error:  # noqa: BLE001 - a tool is another's code, and the model can mend it
        return True, f"[The tool failed: {type(error).__name__}: {error}]"


def tool_of(function: Callable[..., Any] | Tool) -> Tool:
    """A function as a tool; raise `SettingsError` if its parameters cannot be arguments of one."""
    if isinstance(function, Tool):
        return function
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "a tool needs a name of letters, digits, _ and -",
            where=name[:64],
            fix="Give a named function.",
        )
    summary, described = _documented(inspect.getdoc(function) or "")
    fields = [_field(parameter, function, described) for parameter in _parameters(function, name)]
    try:
        reads = msgspec.defstruct(
            "Arguments", fields, forbid_unknown_fields=True, kw_only=True, frozen=True
        )
        schema = _schema_of(reads)
    except TypeError as error:
        raise SettingsError(
            f"the types of a tool's parameters cannot be arguments: {error}",
            where=name,
            fix="Use plain types, dataclasses or msgspec structs.",
        ) from None
    return Tool(name=name, description=summary, parameters=schema, run=function, reads=reads)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SettingsError(
                "a tool cannot take any number of arguments",
                where=f"{name}({parameter})",
                fix="Name each parameter.",
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise SettingsError(
                "a tool's arguments are given by name",
                where=f"{name}({parameter})",
                fix="Take the / out of the signature.",
            )
    return parameters


def _field(
    parameter: inspect.Parameter, function: Callable[..., Any], described: Mapping[str, str]
) -> Any:
    hints = typing.get_type_hints(function, include_extras=True)
    kind = hints.get(parameter.name, Any)
    if text := described.get(parameter.name):
        kind = Annotated[kind, msgspec.Meta(description=text)]
    if parameter.default is parameter.empty:
        return parameter.name, kind
    default = parameter.default
    if isinstance(default, list | dict | set):
        return parameter.name, kind, msgspec.field(default_factory=default.copy)
    return parameter.name, kind, default


def _schema_of(reads: type[msgspec.Struct]) -> dict[str, Any]:
    schema = msgspec.json.schema(reads)
    definitions = schema.get("$defs", {})
    own = dict(definitions.pop("Arguments"))
    own.pop("title", None)
    if definitions:
        own["$defs"] = definitions
    return own


def _documented(doc: str) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each argument under `Args:`."""
    summary, _, rest = doc.partition("\nArgs:")
    described: dict[str, str] = {}
    for line in rest.splitlines():
        if match := _ARGUMENT.match(line):
            described[match[1].lstrip("*")] = match[2].strip()
        elif line.strip() and not line.startswith(" "):
            break
    return summary.strip(), described
