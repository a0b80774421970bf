"""The directory of tools: names and one-line intents by server, in at most so many tokens.

directory: after intents. It stands at the beginning of a prompt, so it is a pure function of the
set of tools: their order changes no byte, and nothing of use or time goes in. Where all lines do
not fit, intents go first, then names; the servers stay longest, with how many tools each has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from holdfast.cite import count
from holdfast.quoting import bracketed, in_one_line
from holdfast.toolbox.intents import MOST_INTENT, intent_of
from holdfast.toolbox.tool import Tool
from holdfast.trim.excerpts import before

BUDGET = 400
"""Tokens; a few tools take 100 (004-71)."""
HEADING = "Tools:"
_SHORT_INTENT = 40
_MOST_CHARACTERS_PER_TOKEN = 16
"""A text with more characters than that for each token allowed is not counted: it does not fit."""


class Listed(NamedTuple):
    """A tool as a directory lists it."""

    server: str
    name: str
    intent: str = ""


def directory(tools: Sequence[Tool | Listed], budget: int = BUDGET) -> str:
    """The directory within a budget; empty if not even the number of tools fits, or none is."""
    ordered = sorted({_listed(tool) for tool in tools})
    groups = [(server, list(members)) for server, members in groupby(ordered, lambda t: t.server)]
    for text in _ways(groups):
        if len(text) <= budget * _MOST_CHARACTERS_PER_TOKEN and count(text) <= budget:
            return text
    return ""


_Groups = list[tuple[str, list[Listed]]]


def _ways(groups: _Groups) -> Iterator[str]:
    """The same directory, shorter every time."""
    total = sum(len(tools) for _, tools in groups)
    if not total:
        return
    for length in (MOST_INTENT, _SHORT_INTENT):
        yield _headed([_described(server, tools, length) for server, tools in groups])
    shown = max(len(tools) for _, tools in groups)
    while shown:
        yield _headed([_named(server, tools, shown) for server, tools in groups])
        shown = shown * 2 // 3 if shown > 3 else shown - 1
    servers = len(groups)
    while servers:
        lines = [_title(server, len(tools)) for server, tools in groups[:servers]]
        rest = sum(len(tools) for _, tools in groups[servers:])
        more = [f"and {len(groups) - servers} more servers with {rest} tools"] if rest else []
        yield _headed([*lines, *more])
        servers = servers * 2 // 3 if servers > 3 else servers - 1
    yield f"{HEADING} {total}"


def _listed(tool: Tool | Listed) -> Listed:
    return tool if isinstance(tool, Listed) else Listed(tool.server, tool.name, intent_of(tool))


def _headed(lines: Sequence[str]) -> str:
    return "\n".join([HEADING, *lines])


def _described(server: str, tools: list[Listed], most: int) -> str:
    lines = [f"{shown_name(server)}:"] if server else []
    for tool in tools:
        intent = before(tool.intent, most)
        lines.append(
            f"- {shown_name(tool.name)}: {intent}" if intent else f"- {shown_name(tool.name)}"
        )
    return "\n".join(lines)


def _named(server: str, tools: list[Listed], most: int) -> str:
    names = ", ".join(shown_name(tool.name) for tool in tools[:most])
    rest = f" and {len(tools) - most} more" if len(tools) > most else ""
    return f"- {shown_name(server)}: {names}{rest}" if server else f"- {names}{rest}"


def _title(server: str, tools: int) -> str:
    return f"- {shown_name(server) or 'others'}: {tools} tools"


def shown_name(name: str) -> str:
    """A name as it stands in a line of ours, which it cannot end."""
    return in_one_line(bracketed(name))
