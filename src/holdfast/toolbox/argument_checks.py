"""Check the arguments of a call against the schema of its tool.

Schemas are untrusted: no reference in them is fetched, their patterns run in linear time, and an
invalid schema forbids nothing. Gemini writes types in capitals; they mean the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast._lazy import LazyModule
from holdfast.quoting import in_one_line
from holdfast.toolbox.tool import Tool

if TYPE_CHECKING:
    import jsonschema_rs
else:
    jsonschema_rs = LazyModule("jsonschema_rs")

_MOST_CHECKS = 512
"""Compiled schemas kept in memory; compiling one takes longer than most checks."""
_MOST_PROBLEMS = 3
_LONGEST_PROBLEM = 300
_checks: OrderedDict[str, jsonschema_rs.Validator | None] = OrderedDict()


def find_problems(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return up to three problems with the arguments, one line each; none if they are valid."""
    check = _validator(tool)
    if check is None:
        return []
    try:
        errors = list(islice(check.iter_errors(dict(arguments)), _MOST_PROBLEMS))
    except (ValueError, jsonschema_rs.ReferencingError):
        return []
    return [_format_error(error) for error in errors]


def _format_error(error: jsonschema_rs.ValidationError) -> str:
    place = "".join(f"[{step!r}]" for step in error.instance_path)
    line = in_one_line(f"arguments{place}: {error.message}")
    return line if len(line) <= _LONGEST_PROBLEM else f"{line[: _LONGEST_PROBLEM - 1]}…"


def _validator(tool: Tool) -> jsonschema_rs.Validator | None:
    if tool.hash not in _checks:
        _checks[tool.hash] = compile_schema(tool.parameters)
        while len(_checks) > _MOST_CHECKS:
            _checks.popitem(last=False)
    _checks.move_to_end(tool.hash)
    return _checks[tool.hash]


def compile_schema(schema: Any) -> jsonschema_rs.Validator | None:
    """Compile a schema; None if it is invalid or refers to another document."""
    if not isinstance(schema, dict):
        return None
    try:
        return jsonschema_rs.validator_for(
            _lower_types(schema),
            retriever=_refuse,
            # no look-around, so that matching takes linear time
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError):
        return None


def _refuse(_address: str) -> NoReturn:
    raise ValueError("nothing is fetched for a schema")


def _lower_types(node: Any) -> Any:
    """Return a schema with its types in lower case, as JSON Schema spells them."""
    if isinstance(node, list):
        return [_lower_types(member) for member in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _lower_types(value) for key, value in node.items()}
    kind = plain.get("type")
    if isinstance(kind, str) and kind.isupper():
        plain["type"] = [kind.lower(), "null"] if plain.get("nullable") is True else kind.lower()
    return plain
