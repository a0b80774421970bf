"""Pass prompts and resources of the servers through, together with the engine's refs.

Prompts are named server__prompt. Resources keep their URIs, since results link to them. A resource
is read only from the server that lists it, has a matching template or linked it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp import MCPError
from pydantic import BaseModel, TypeAdapter

from holdfast.errors import ToolServerError
from holdfast.surfaces.mcp.catalog import SEPARATOR
from holdfast.surfaces.mcp.gateway import Gateway
from holdfast.surfaces.mcp.host import ConnectedHost, Context, resource_not_found
from holdfast.surfaces.mcp.own_tools import REF_SCHEME
from holdfast.surfaces.mcp.upstream import PROMPT_RESULT, READ_RESULT, McpUpstream

if TYPE_CHECKING:
    from holdfast.surfaces.mcp.handlers import OwnHandlers

_T = TypeVar("_T", bound=BaseModel)
_COMPLETE = TypeAdapter(types.CompleteResult)
_EMPTY = TypeAdapter(types.EmptyResult)


class PassthroughHandlers:
    """The handlers of everything except tools."""

    def __init__(self, gateway: Gateway, own: OwnHandlers) -> None:
        self._gateway = gateway
        self._own = own

    # --- prompts ---------------------------------------------------------------------------------

    async def list_prompts(self, context: Context, _: Any) -> types.ListPromptsResult:
        """Return all prompts of all servers."""
        await self._host(context)
        prompts = [
            types.Prompt.model_validate({**prompt, "name": self._name(upstream, prompt["name"])})
            for upstream, prompt in self._each("prompts")
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return a prompt of a server."""
        host = await self._host(context)
        upstream, name = await self._prompt(params.name, host)
        request = types.GetPromptRequest(params=params.model_copy(update={"name": name}))
        return await _call(upstream, request, PROMPT_RESULT, host)

    async def _prompt(self, name: str, host: ConnectedHost) -> tuple[McpUpstream, str]:
        """Return a prompt's server and its name there, waiting for servers that are starting."""
        prompt = self._listed_prompt(name)
        if prompt is None:
            await self._gateway.starts.for_call(host)
            prompt = self._listed_prompt(name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, "There is no prompt with this name.")
        return prompt

    def _listed_prompt(self, name: str) -> tuple[McpUpstream, str] | None:
        for upstream, prompt in self._each("prompts"):
            if self._name(upstream, prompt["name"]) == name:
                return upstream, prompt["name"]
        return None

    # --- resources -------------------------------------------------------------------------------

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the servers' resources, then the newest stored contents."""
        await self._host(context)
        own = await self._own.list_resources(context, params)
        if params is not None and params.cursor:
            return own
        resources = [types.Resource.model_validate(each) for _, each in self._each("resources")]
        return own.model_copy(update={"resources": [*resources, *own.resources]})

    async def list_templates(self, context: Context, _: Any) -> types.ListResourceTemplatesResult:
        """Return the servers' templates and the template of refs."""
        await self._host(context)
        own = await self._own.list_templates(context, None)
        templates = [
            types.ResourceTemplate.model_validate(each) for _, each in self._each("templates")
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=[*templates, *own.resource_templates]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Read a resource from its server."""
        uri = str(params.uri)
        if uri.startswith(REF_SCHEME):
            return await self._own.read_resource(context, params)
        host = await self._host(context)
        request = types.ReadResourceRequest(params=params)
        return await _call(await self._find_server(uri, host), request, READ_RESULT, host)

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Subscribe an older host to changes of a resource."""
        host = await self._host(context)
        holder = await self._find_server(str(params.uri), host)
        return await _call(holder, types.SubscribeRequest(params=params), _EMPTY, host)

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Unsubscribe from changes of a resource."""
        host = await self._host(context)
        holder = await self._find_server(str(params.uri), host)
        return await _call(holder, types.UnsubscribeRequest(params=params), _EMPTY, host)

    async def _find_server(self, uri: str, host: ConnectedHost) -> McpUpstream:
        """Return a resource's server, waiting for servers that are starting."""
        holder = self._known_server(uri)
        if holder is None:
            await self._gateway.starts.for_call(host)
            holder = self._known_server(uri)
        if holder is None:
            raise resource_not_found(uri)
        return holder

    def _known_server(self, uri: str) -> McpUpstream | None:
        for upstream, resource in self._each("resources"):
            if str(resource.get("uri")) == uri:
                return upstream
        for upstream, template in self._each("templates"):
            if matches_template(str(template.get("uriTemplate", "")), uri):
                return upstream
        linked = self._gateway.linked.get(uri)
        return None if linked is None else self._gateway.upstreams[linked]

    # --- completion and log level
    # ---------------------------------------------------------------------

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Return completions for an argument of a prompt or a template."""
        host = await self._host(context)
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            upstream, name = await self._prompt(ref.name, host)
            params = params.model_copy(update={"ref": ref.model_copy(update={"name": name})})
        else:
            holders = [u for u, each in self._each("templates") if each["uriTemplate"] == ref.uri]
            if not holders:
                raise MCPError(types.INVALID_PARAMS, "There is no such template.")
            upstream = holders[0]
        return await _call(upstream, types.CompleteRequest(params=params), _COMPLETE, host)

    async def set_level(
        self, context: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Set the log level of all servers, including those that start later."""
        self._gateway.audience.register(context)
        level_changes = (
            upstream.set_level(params) for upstream in self._gateway.upstreams.values()
        )
        await asyncio.gather(*level_changes)
        return types.EmptyResult()

    async def _host(self, context: Context) -> ConnectedHost:
        host = ConnectedHost(context)
        self._gateway.audience.register(context)
        await self._gateway.starts.for_list(host)
        return host

    def _each(self, kind: str) -> Iterator[tuple[McpUpstream, dict[str, Any]]]:
        for upstream in self._gateway.upstreams.values():
            if upstream.card is not None:
                for definition in getattr(upstream.card, kind):
                    yield upstream, definition

    def _name(self, upstream: McpUpstream, name: str) -> str:
        alone = len(self._gateway.upstreams) == 1 and self._gateway.options.listing == "all"
        return name if alone else f"{upstream.spec.name}{SEPARATOR}{name}"


async def _call(
    upstream: McpUpstream, request: Any, result: TypeAdapter[_T], host: ConnectedHost
) -> _T:
    """Send a request to a server; its failure becomes a protocol error in our words."""
    try:
        return await upstream.call(request, result, host)
    except ToolServerError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), {"kind": error.kind}) from error


def matches_template(template: str, uri: str) -> bool:
    """Return whether a template matches a URI; each variable has at least one character."""
    parts = re.split(r"\{[^{}]*\}", template)
    if len(parts) == 1:
        return template == uri
    if not uri.startswith(parts[0]) or not uri.endswith(parts[-1]):
        return False
    at = len(parts[0])
    # by the first match of each part, which takes linear time for any template
    for part in parts[1:-1]:
        at = uri.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return at < len(uri) - len(parts[-1]) + 1
