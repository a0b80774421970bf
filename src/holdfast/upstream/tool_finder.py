"""The deferred tools of one answer: search them for the model, call them for the client.

finding: before expansions. A call that fits its tool's schema is handed to the client as a call of
its own tool. A call that does not is answered with the reason and the schema, a few times, before
it is handed over unchanged: the client then gives the best error message. The client receives no
tool name that it did not declare. Where the provider loads the found tools, the model calls them by
name, and there is nothing to hand over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from holdfast.cite import count
from holdfast.errors import ExpandError
from holdfast.expand.tool_search import CALLERS, parse_search, parse_tool_call
from holdfast.fitting.found_tools import load_found
from holdfast.fitting.options import LazyRules
from holdfast.models.protocol import Embedder
from holdfast.settings import Settings
from holdfast.toolbox import Tool, directory, read_valid_tools
from holdfast.toolbox.argument_checks import find_problems
from holdfast.upstream.upstreams import UpstreamTarget
from holdfast.wire import Conversation
from holdfast.wire.deferred_tools import deferred_names
from holdfast.wire.responses import HandedCalls, ModelCall
from holdfast.wire.strict import decode, encode
from holdfast.wire.tools import definitions, plain_functions
from holdfast.workers import Workers

MOST_FOUND = 4_000
"""Tokens of schemas that one search may bring."""
_MOST_HITS = 8
_MOST_REFUSALS = 3
"""Times that one answer's calls are sent back for their arguments."""
_NONE_FITS = "[No tool fits that. Ask in other words, or by a name.]"


class ToolFinder:
    """The client's tools for one answer, including those that were sent in full."""

    def __init__(
        self,
        asked: Conversation,
        sent: Conversation,
        workers: Workers,
        embedder: Embedder | None = None,
    ) -> None:
        self._asked = asked
        self._embedder = embedder
        deferred = deferred_names(sent)
        self._native = bool(deferred)
        """Whether the provider loads the found tools from the request."""
        self._shown = {tool.name for tool in sent.tools} - deferred
        self._workers = workers
        self._refusals = 0
        self._size = len(asked.frame.head) + len(asked.frame.tail)

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        conversation = self._asked
        values = list(map(decode, definitions(conversation, plain_functions(conversation))))
        return {tool.name: tool for tool in read_valid_tools(values)[0]}

    @property
    def _withheld(self) -> list[Tool]:
        return [tool for name, tool in self._tools.items() if name not in self._shown]

    async def handed(self, calls: Sequence[ModelCall]) -> HandedCalls:
        """Return the calls of a turn that are given to the client, as calls of its own tools."""
        size = max(self._size, sum(len(call.arguments) for call in calls))
        return await self._workers.off_loop(size, partial(self._handed, calls))

    def _handed(self, calls: Sequence[ModelCall]) -> HandedCalls:
        handed = {}
        for n, call in enumerate(calls):
            own = self._own_call(call) if call.name in CALLERS else None
            if own is not None:
                handed[n] = own
        return handed

    def _own_call(self, call: ModelCall) -> ModelCall | None:
        """Return the client's call in a call of ours; None if the call is returned to the model."""
        try:
            name, arguments = parse_tool_call(call.arguments)
        except ExpandError:
            return None
        tool = self._named(name)
        if tool is None:
            return None
        if self._refusals < _MOST_REFUSALS and find_problems(tool, arguments):
            self._refusals += 1
            return None
        return ModelCall(call.id, tool.name, encode(arguments).decode())

    def _named(self, name: str) -> Tool | None:
        """The tool of a name; models leave the part off that names a server."""
        if name in self._tools:
            return self._tools[name]
        alike = [tool for key, tool in self._tools.items() if key.endswith(f"__{name}")]
        return alike[0] if len(alike) == 1 else None

    def going_on(self, request: Conversation, start: int) -> Conversation:
        """Return the next request, in the form in which the provider receives found tools."""
        names = [tool.name for tool in self._asked.tools]
        return load_found(request, start, names) if self._native else request

    async def answer(self, call: ModelCall, most: int) -> str:
        """Return the answer for the model: the found tools, or the errors in its call."""
        work = self._refused if call.name in CALLERS else self._found
        return await self._workers.off_loop(self._size, partial(work, call, min(most, MOST_FOUND)))

    def _found(self, call: ModelCall, most: int) -> str:
        from holdfast.toolbox.tool_search import search_over  # noqa: PLC0415 - numpy loads slowly

        query, tools = parse_search(call.arguments), self._withheld
        hits = search_over(tools, self._embedder)(query, k=_MOST_HITS)
        chosen = [tools[hit.place] for hit in hits]
        lines: list[str] = []
        for tool in chosen:
            line = _told(tool, most, whole=self._native)
            if line is None:
                continue
            lines.append(line)
            most -= count(line) + 1
        return "\n".join(lines) or f"{_NONE_FITS}\n{directory(tools, max(most // 2, 0))}".rstrip()

    def _refused(self, call: ModelCall, most: int) -> str:
        name, arguments = parse_tool_call(call.arguments)
        tool = self._named(name)
        if tool is None:
            return f"[There is no tool of this name.]\n{directory(self._withheld, most // 2)}"
        wrong = "\n".join(find_problems(tool, arguments))
        return f"[The call was not made: its arguments do not fit the schema.]\n{wrong}\n" + (
            _told(tool, most - count(wrong) - 20) or ""
        )


def _told(tool: Tool, most: int, *, whole: bool = False) -> str | None:
    """A tool with its schema, within some tokens: without its descriptions if that may be."""
    forms = (tool.parameters,) if whole else (tool.parameters, _bare(tool.parameters))
    for parameters in forms:
        value = {"name": tool.name, "description": tool.description, "parameters": parameters}
        line = encode(value).decode()
        if len(line) <= most * 16 and count(line) <= most:
            return line
    return None


def _bare(node: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(node, list):
        return [_bare(member) for member in node]
    if not isinstance(node, dict):
        return node
    words = ("description", "title", "examples", "$comment")
    # A property may be called `description`: only texts are words.
    return {
        key: _bare(value)
        for key, value in node.items()
        if key not in words or isinstance(value, dict)
    }


def lazy_rules(
    settings: Settings, targets: Sequence[UpstreamTarget] = (), dialect: str = ""
) -> LazyRules:
    """Return when to defer the schemas of tools, according to the settings, and who holds them.

    Only for the proxy: callers of the library would have to answer the two tools themselves.
    """
    return LazyRules(
        native=_are_held_back_there(settings, targets, dialect),
        mode="never" if settings.lazy_tools == "never" else "auto",
        tokens=settings.lazy_tool_tokens,
        pinned=tuple(settings.pinned_tools),
        directory=_directory,
    )


def _are_held_back_there(
    settings: Settings, targets: Sequence[UpstreamTarget], dialect: str
) -> bool:
    """Return whether all targets can hold schemas back.

    Only its address shows whether the vendor itself answers: gateways with its dialect ignore the
    mark and bill all schemas (llmgateway#3604), or hold back schemas without it (zai feedback#172).
    """
    way = settings.lazy_tools
    if way == "own" or not targets or any(target.dialect != dialect for target in targets):
        return False
    return way == "provider" or all(target.upstream.is_official for target in targets)


def _directory(schemas: Sequence[bytes], tokens: int) -> str:
    tools, _ = read_valid_tools(list(map(decode, schemas)))
    return directory(tools, tokens)
