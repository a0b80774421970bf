"""The request handlers of the engine's own server and of the gateway.

As the protocol requires, a failed tool call is a result with `isError` and words for the model;
only an unknown tool, prompt or resource is a protocol error. No answer has the text of a foreign
exception.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.server.subscriptions import ListenHandler
from pydantic import TypeAdapter

import holdfast
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, ToolServerError
from holdfast.expand import ExpandOptions
from holdfast.surfaces.mcp.catalog import (
    ALWAYS_META,
    CALL,
    FIND,
    describe,
    describe_argument_faults,
)
from holdfast.surfaces.mcp.gateway import Gateway
from holdfast.surfaces.mcp.host import (
    Audience,
    ConnectedHost,
    Context,
    HostServer,
    resource_not_found,
)
from holdfast.surfaces.mcp.own_tools import (
    OPENER,
    OWN_TOOLS,
    REF_SCHEME,
    OwnTool,
    find_argument_faults,
    resource_of,
)
from holdfast.surfaces.mcp.passthrough import PassthroughHandlers

CallOutcome = types.CallToolResult | types.InputRequiredResult
ERROR_META = "holdfast/error"
PART_META = "holdfast/part"
"""Which part of a content was opened, and how to continue."""
_DEFAULT_LIMIT = 8
_PAGE = 100
_INSTRUCTIONS = (
    "Long results stand here as citations: expand_ref opens any part of them, exactly as it was."
)
_TOOLS = TypeAdapter(list[types.Tool])


def own_server(engine: Holdfast) -> HostServer:
    """Return a server for the engine's own tools."""
    own = OwnHandlers(engine)
    return HostServer(
        "holdfast",
        version=holdfast.__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=own.list_tools,
        on_call_tool=own.call_tool,
        on_list_resources=own.list_resources,
        on_list_resource_templates=own.list_templates,
        on_read_resource=own.read_resource,
        on_subscriptions_listen=ListenHandler(Audience().bus),
    )


def gateway_server(gateway: Gateway) -> HostServer:
    """Return a server for a gateway."""
    front = GatewayHandlers(gateway)
    passthrough = front.passthrough
    server = HostServer(
        "holdfast",
        version=holdfast.__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=front.list_tools,
        on_call_tool=front.call_tool,
        on_list_resources=passthrough.list_resources,
        on_list_resource_templates=passthrough.list_templates,
        on_read_resource=passthrough.read_resource,
        on_list_prompts=passthrough.list_prompts,
        on_get_prompt=passthrough.get_prompt,
        on_completion=passthrough.complete,
        on_subscribe_resource=passthrough.subscribe,
        on_unsubscribe_resource=passthrough.unsubscribe,
        on_subscriptions_listen=ListenHandler(gateway.audience.bus),
    )
    # Not in the constructor, where it is deprecated; hosts of the older era use it.
    server.add_request_handler(
        "logging/setLevel", types.SetLevelRequestParams, passthrough.set_level
    )
    return server


class OwnHandlers:
    """The engine's tools, and stored contents as resources."""

    def __init__(self, engine: Holdfast, tools: tuple[OwnTool, ...] = OWN_TOOLS) -> None:
        self._engine = engine
        self._tools = {tool.name: tool for tool in tools}

    async def list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        """Return all tools; the list never changes."""
        return types.ListToolsResult(tools=self.definitions())

    def definitions(self) -> list[types.Tool]:
        """Return the tools as the protocol defines them."""
        return [
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.parameters,
                output_schema=tool.result,
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.reads_only, destructive_hint=False, open_world_hint=False
                ),
                _meta={ALWAYS_META: True} if tool is OPENER else None,
            )
            for tool in self._tools.values()
        ]

    def has(self, name: str) -> bool:
        """Return whether a name is one of the engine's tools."""
        return name in self._tools

    async def call_tool(self, _: Context, params: types.CallToolRequestParams) -> CallOutcome:
        """Run a tool of the engine."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "There is no tool with this name.")
        arguments = params.arguments or {}
        if faults := find_argument_faults(tool, arguments):
            return error_result(f"The arguments are not what {tool.name} takes. {' '.join(faults)}")
        try:
            text, value = await tool.work(self._engine, arguments)
        except HoldfastError as error:
            return error_result(str(error))
        content: list[types.ContentBlock] = [types.TextContent(text=text)]
        if tool.result is None:
            return types.CallToolResult(content=content, _meta={PART_META: value})
        return types.CallToolResult(content=content, structured_content=value)

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the newest stored contents, page by page."""
        cursor = params.cursor if params is not None and params.cursor else ""
        try:
            stored = await self._engine.store.refs(self._engine.scope, limit=_PAGE, before=cursor)
        except HoldfastError:
            raise MCPError(types.INVALID_PARAMS, "The cursor is invalid.") from None
        policy = self._engine.options.rules.privacy
        resources = [types.Resource.model_validate(resource_of(info, policy)) for info in stored]
        following = stored[-1].ref_id if len(stored) == _PAGE else None
        return types.ListResourcesResult(resources=resources, next_cursor=following)

    async def list_templates(self, _: Context, __: Any) -> types.ListResourceTemplatesResult:
        """Return the URI template of refs."""
        template = types.ResourceTemplate(
            uri_template=f"{REF_SCHEME}{{ref_id}}",
            name="ref",
            title="A stored content by its ref",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the first page of a stored content and how to continue."""
        ref = str(params.uri).removeprefix(REF_SCHEME)
        if ref == str(params.uri):
            raise resource_not_found(str(params.uri))
        part = await self._engine.expand_ref(ref, ExpandOptions(max_tokens=8_000))
        if part.reason:
            raise resource_not_found(str(params.uri))
        text = part.content if part.complete else part.text
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])


class GatewayHandlers:
    """The servers' tools, the two that find and call them, and the one that opens refs."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._own = OwnHandlers(gateway.engine, (OPENER,))
        self.passthrough = PassthroughHandlers(gateway, self._own)

    async def list_tools(self, context: Context, _: Any) -> types.ListToolsResult:
        """Return the catalog's tools; servers that never ran are started for it."""
        gateway = self._gateway
        gateway.audience.register(context)
        await gateway.starts.for_list(ConnectedHost(context))
        await gateway.read_pins()
        tools = _TOOLS.validate_python(gateway.catalog.definitions(), by_name=False)
        return types.ListToolsResult(tools=[*self._own.definitions(), *tools])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> CallOutcome:
        """Find tools, call one, or open a ref."""
        gateway, arguments = self._gateway, params.arguments or {}
        host = ConnectedHost(context)
        gateway.audience.register(context)
        if self._own.has(params.name) and gateway.catalog.entries.get(params.name) is None:
            return await self._own.call_tool(context, params)
        name = str(arguments.get("name", "")) if params.name == CALL else params.name
        # the names of the search tools are not in the catalog either
        if gateway.catalog.find(name) is None:
            await gateway.starts.for_call(host)
        # Even if all are listed: the host may have listed only once, before any server had a card.
        is_ours = params.name not in gateway.catalog.entries
        if params.name == FIND and is_ours:
            return await self._find_tools(arguments)
        if params.name == CALL and is_ours:
            arguments = arguments.get("arguments") or {}
            if not isinstance(arguments, dict):
                return error_result("The arguments are no object.")
        else:
            name = params.name
        entry = gateway.catalog.find(name)
        if entry is None:
            if params.name == CALL:
                return error_result(
                    f"There is no tool with this name. {FIND} knows which there are."
                )
            raise MCPError(types.INVALID_PARAMS, "There is no tool with this name.")
        if params.name == CALL and (fault := describe_argument_faults(entry, arguments)):
            return error_result(fault)
        try:
            return await gateway.call(entry, params, arguments, host)
        except ToolServerError as error:
            return _server_error_result(entry.server, error)

    async def _find_tools(self, arguments: dict[str, Any]) -> types.CallToolResult:
        query, limit = arguments.get("query"), arguments.get("limit", _DEFAULT_LIMIT)
        if not isinstance(query, str) or not query.strip() or not isinstance(limit, int):
            return error_result("Give a query: what is to be done, in a few words.")
        entries = await self._gateway.find(query[:2_000], max(1, min(limit, 30)))
        text, values = describe(entries)
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content={"tools": values}
        )


def error_result(why: str) -> types.CallToolResult:
    """Return the result of a failed call, for the model."""
    return types.CallToolResult(content=[types.TextContent(text=why)], is_error=True)


def _server_error_result(server: str, error: ToolServerError) -> types.CallToolResult:
    """Return a server's failure, with its type for programs."""
    kind = {"server": server, "kind": error.kind, "retryAfter": error.retry_after}
    return types.CallToolResult(
        content=[types.TextContent(text=f"[{error}]")],
        is_error=True,
        _meta={ERROR_META: msgspec.to_builtins(kind)},
    )
