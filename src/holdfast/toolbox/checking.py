"""What is wrong with the arguments of a call, by the schema of its tool.

checking: after tool. Schemas are written by strangers: nothing they refer to is fetched, their
patterns run in linear time, and one that is no schema forbids nothing. Gemini writes types in
capitals; they mean the same.
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
"""Schemas that are held ready; compiling one takes longer than most calls' checks."""
_MOST_PROBLEMS = 3
_LONGEST_PROBLEM = 300
_checks: OrderedDict[str, jsonschema_rs.Validator | None] = OrderedDict()


def problems(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """What the schema says against arguments, a line each, the first few; none if all is well."""
    check = _check_of(tool)
    if check is None:
        return []
    try:
        errors = list(islice(check.iter_errors(dict(arguments)), _MOST_PROBLEMS))
    except (ValueError, jsonschema_rs.ReferencingError):
        return []
    return [_told(error) for error in errors]


def _told(error: jsonschema_rs.ValidationError) -> str:
    place = "".join(f"[{step!r}]" for step in error.instance_path)
    line = in_one_line(f"arguments{place}: {error.message}")
    return line if len(line) <= _LONGEST_PROBLEM else f"{line[: _LONGEST_PROBLEM - 1]}…"


def _check_of(tool: Tool) -> jsonschema_rs.Validator | None:
    if tool.hash not in _checks:
        _checks[tool.hash] = compiled(tool.parameters)
        while len(_checks) > _MOST_CHECKS:
            _checks.popitem(last=False)
    _checks.move_to_end(tool.hash)
    return _checks[tool.hash]


def compiled(schema: Any) -> jsonschema_rs.Validator | None:
    """The schema made ready; None if it is none, or refers to what stands elsewhere."""
    if not isinstance(schema, dict):
        return None
    try:
        return jsonschema_rs.validator_for(
            _lower_types(schema),
            retriever=_refuse,
            pattern_options=jsonschema_rs.RegexOptions(),  # no look-around, so no running away
        )
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError):
        return None


def _refuse(_address: str) -> NoReturn:
    raise ValueError("nothing is fetched for a schema")


def _lower_types(node: Any) -> Any:
    """A schema with its types as JSON Schema spells them."""
    if isinstance(node, list):
        return [_lower_types(member) for member in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _lower_types(value) for key, value in node.items()}
    kind = plain.get("type")
    if isinstance(kind, str) and kind.isupper():
        plain["type"] = [kind.lower(), "null"] if plain.get("nullable") is True else kind.lower()
    return plain
