"""Tools from plain functions: schemas from types and docstrings, and checked arguments.

A model's arguments are untrusted. They are converted to the types of the function; arguments that
do not match are reported to the model with their place, and the function is not called.
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
    """Invalid arguments of a tool call. The message is for the model."""


class AgentTool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """The JSON schema of the arguments."""
    run: Callable[..., Any]
    argument_type: type[msgspec.Struct] | None = None
    """The type of the arguments; None to check them against `parameters`."""

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def definition(self) -> dict[str, Any]:
        """Return the definition for Chat Completions; clients convert it to other dialects."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def arguments(self, text: str) -> dict[str, Any]:
        """Return a call's arguments; raise `ArgumentsError` if they are invalid."""
        if len(text) > _MOST_ARGUMENT_BYTES:
            raise ArgumentsError(f"the arguments have more than {_MOST_ARGUMENT_BYTES:,} bytes")
        try:
            if self.argument_type is not None:
                read = msgspec.json.decode(text or "{}", type=self.argument_type)
                return {name: getattr(read, name) for name in self.argument_type.__struct_fields__}
            values = msgspec.json.decode(text or "{}")
        except msgspec.ValidationError as error:
            raise ArgumentsError(str(error)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise ArgumentsError("the arguments are no JSON object") from None
        if not isinstance(values, dict):
            raise ArgumentsError("the arguments are no JSON object")
        _check(self.parameters, values)
        return values

    async def __call__(self, given: Mapping[str, Any]) -> str:
        """Run the function; a synchronous one in a thread, so that it does not block."""
        if inspect.iscoroutinefunction(self.run):
            result = await self.run(**given)
        else:
            result = await asyncio.to_thread(self.run, **given)
            if isinstance(result, Awaitable):
                result = await result
        return to_text(result)


def to_text(result: object) -> str:
    """Return a tool's result as text."""
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
        return  # the schema is invalid; the function reports missing arguments
    error = next(iter(check.iter_errors(given)), None)
    if error is not None:
        place = "/".join(map(str, error.instance_path)) or "the arguments"
        # The library's message quotes the value; the kind of error is enough.
        raise ArgumentsError(
            f"{place} does not match the tool's schema ({type(error.kind).__name__})"
        )


async def run_tool(tool: AgentTool, written: str) -> tuple[bool, str]:
    """Run a call with a model's arguments; return whether it failed, and the text for the model."""
    try:
        arguments = tool.arguments(written)
    except ArgumentsError as error:
        return True, f"[The arguments do not fit the tool: {error}.]"
    try:
        return False, await tool(arguments)
    except HoldfastError as error:
        return True, f"[The tool failed: {error}]"
    except Exception as error:  # noqa: BLE001 - a tool is foreign code, and the model can correct the call
        return True, f"[The tool failed: {type(error).__name__}: {error}]"


def build_tool(function: Callable[..., Any] | AgentTool) -> AgentTool:
    """Return a function as a tool; raise `SettingsError` if its parameters cannot be arguments."""
    if isinstance(function, AgentTool):
        return function
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "a tool needs a name of letters, digits, _ and -",
            where=name[:64],
            fix="Give a named function.",
        )
    summary, described = _parse_docstring(inspect.getdoc(function) or "")
    fields = [_field(parameter, function, described) for parameter in _parameters(function, name)]
    try:
        argument_type = msgspec.defstruct(
            "Arguments", fields, forbid_unknown_fields=True, kw_only=True, frozen=True
        )
        schema = _schema_of(argument_type)
    except TypeError as error:
        raise SettingsError(
            f"the types of a tool's parameters cannot be arguments: {error}",
            where=name,
            fix="Use plain types, dataclasses or msgspec structs.",
        ) from None
    return AgentTool(
        name=name, description=summary, parameters=schema, run=function, argument_type=argument_type
    )


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


def _schema_of(argument_type: type[msgspec.Struct]) -> dict[str, Any]:
    schema = msgspec.json.schema(argument_type)
    definitions = schema.get("$defs", {})
    own = dict(definitions.pop("Arguments"))
    own.pop("title", None)
    if definitions:
        own["$defs"] = definitions
    return own


def _parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the description of a function and of its arguments under `Args:`."""
    summary, _, arguments = doc.partition("\nArgs:")
    descriptions: dict[str, str] = {}
    for line in arguments.splitlines():
        if match := _ARGUMENT.match(line):
            descriptions[match[1].lstrip("*")] = match[2].strip()
        elif line.strip() and not line.startswith(" "):
            break
    return summary.strip(), descriptions
