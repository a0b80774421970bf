"""The page of tools: the gateway's servers, their calls, changed and suspicious definitions.

A server's descriptions are shown as data. A changed definition is used only after a person accepts
it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.engine.tool_calls import ServerReport
from holdfast.store.tool_store import StoredTool
from holdfast.surfaces.proxy.dashboard.html import Html, code, h2, p, section
from holdfast.surfaces.proxy.dashboard.layout import (
    facts,
    moment,
    number,
    page,
    remark,
    share,
    table,
)
from holdfast.surfaces.proxy.dashboard.views import Totals

MOST_LISTED = 200
"""Tools in one table; `holdfast tools list` has all."""
_NO_SERVER = "registered by hand"
_LONGEST = 200


class ToolsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page."""

    tools: Sequence[StoredTool]
    servers: Sequence[ServerReport]
    """The servers of the gateway, and the results of their calls."""
    totals: Totals
    """What requests did with tools that were set aside."""


def tools_page(shown: ToolsShown) -> str:
    """The tools of a tenant."""
    tools, sums = shown.tools, shown.totals
    figures = [
        ("tools", number(len(tools))),
        ("tokens of their schemas", number(sum(tool.tokens for tool in tools))),
        ("calls through the gateway", number(sum(each.calls for each in shown.servers))),
        ("tokens of results cited", number(sum(each.saved for each in shown.servers))),
        ("requests that went without schemas", number(sums.lazy)),
        ("tokens of schemas set aside", number(sums.lazy_saved)),
        ("searches for tools", number(sums.tool_searches)),
        ("calls of tools that were set aside", f"{sums.lazy_calls:,} of {sums.tool_calls:,}"),
    ]
    return page(
        "Tools",
        facts(figures),
        _changed([tool for tool in tools if tool.offered or tool.renamed_from]),
        _warned([tool for tool in tools if tool.warnings]),
        _servers(shown.servers),
        _listed(tools) if tools else _how_to_begin(),
        here="Tools",
    )


def _how_to_begin() -> Html:
    return p(
        "No tool is registered. ",
        code("holdfast mcp --config mcp.json"),
        " stands before the servers of an MCP host and registers theirs; ",
        code("holdfast tools add FILE"),
        " takes a list.",
    )


def _changed(tools: Sequence[StoredTool]) -> Html | None:
    if not tools:
        return None
    rows = [
        (
            _cut(tool.name),
            _cut(tool.server) or _NO_SERVER,
            f"was called {_cut(tool.renamed_from)}" if tool.renamed_from else "says something else",
            code(f"holdfast tools accept {_cut(tool.name)}"),
        )
        for tool in tools[:MOST_LISTED]
    ]
    return section(
        h2("Definitions that changed"),
        remark("Their servers describe these tools in another way now. The definition that was "
               "pinned stays in force until the new one is accepted."),
        table("Waiting to be accepted", ("Tool", "Server", "What changed", "To accept it"), rows,
              words=(1, 2, 3)),
    )  # fmt: skip


def _warned(tools: Sequence[StoredTool]) -> Html | None:
    if not tools:
        return None
    rows = [
        (_cut(tool.name), _cut(tool.server) or _NO_SERVER, "; ".join(tool.warnings))
        for tool in tools[:MOST_LISTED]
    ]
    return section(
        h2("Descriptions that give orders"),
        remark("A description may be written to steer a model. It is shown to models as data."),
        table("Flagged when they were registered", ("Tool", "Server", "What was found"), rows,
              words=(1, 2)),
    )  # fmt: skip


def _servers(servers: Sequence[ServerReport]) -> Html | None:
    if not servers:
        return None
    rows = [
        (
            _cut(each.server),
            f"{each.state}: {_cut(each.reason)}" if each.reason else each.state,
            number(each.tools),
            number(each.tool_tokens),
            number(each.calls),
            number(each.failed),
            number(each.cited),
            share(each.saved, each.from_tokens),
            f"{each.seconds * 1000 / each.calls:,.0f}" if each.calls else "",
            moment(each.at) if each.at else "",
        )
        for each in servers[:MOST_LISTED]
    ]
    columns = (
        "Server", "State", "Tools", "Schema tokens", "Calls", "Failed", "Cited",
        "Tokens saved", "ms a call", "Told (UTC)",
    )  # fmt: skip
    return section(
        h2("Servers behind the gateway"),
        table("How each was when the gateway last told", columns, rows, words=(1, 9)),
    )


def _listed(tools: Sequence[StoredTool]) -> Html:
    heaviest = sorted(tools, key=lambda tool: (-tool.tokens, tool.key))[:MOST_LISTED]
    rows = [
        (_cut(tool.name), _cut(tool.server) or _NO_SERVER, number(tool.tokens), _cut(tool.intent))
        for tool in heaviest
    ]
    columns = ("Tool", "Server", "Schema tokens", "What it is for, as its server says")
    return section(h2("Tools"), table("The heaviest schemas first", columns, rows, words=(1, 3)))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
