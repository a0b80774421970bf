"""Prompts and resources of the servers, handed through; the engine's own refs among them.

passing: after gateway. Prompts have their server's name before their own. Resources keep their
addresses, which results link to: one is read from the server that listed it, whose template it
matches or whose result linked it, and from no other.
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
from holdfast.surfaces.mcp.host import AskingHost, Context, no_resource
from holdfast.surfaces.mcp.own_tools import REF_SCHEME
from holdfast.surfaces.mcp.upstream import PROMPT_RESULT, READ_RESULT, Upstream

if TYPE_CHECKING:
    from holdfast.surfaces.mcp.serving import OwnHandlers

_T = TypeVar("_T", bound=BaseModel)
_COMPLETE = TypeAdapter(types.CompleteResult)
_EMPTY = TypeAdapter(types.EmptyResult)


class Passing:
    """The handlers of everything but tools."""

    def __init__(self, gateway: Gateway, own: OwnHandlers) -> None:
        self._gateway = gateway
        self._own = own

    # --- prompts ---------------------------------------------------------------------------------

    async def list_prompts(self, context: Context, _: Any) -> types.ListPromptsResult:
        """All prompts of all servers."""
        await self._acquainted(context)
        prompts = [
            types.Prompt.model_validate({**prompt, "name": self._name(upstream, prompt["name"])})
            for upstream, prompt in self._each("prompts")
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """A prompt of a server."""
        host = await self._acquainted(context)
        upstream, name = await self._prompt(params.name, host)
        request = types.GetPromptRequest(params=params.model_copy(update={"name": name}))
        return await _asked(upstream, request, PROMPT_RESULT, host)

    async def _prompt(self, name: str, host: AskingHost) -> tuple[Upstream, str]:
        """A prompt's server and its name there; servers that are still starting are waited for."""
        prompt = self._listed_prompt(name)
        if prompt is None:
            await self._gateway.acquaintance.for_call(host)
            prompt = self._listed_prompt(name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, "There is no prompt of this name.")
        return prompt

    def _listed_prompt(self, name: str) -> tuple[Upstream, str] | None:
        for upstream, prompt in self._each("prompts"):
            if self._name(upstream, prompt["name"]) == name:
                return upstream, prompt["name"]
        return None

    # --- resources -------------------------------------------------------------------------------

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The servers' resources, then the contents stored last."""
        await self._acquainted(context)
        own = await self._own.list_resources(context, params)
        if params is not None and params.cursor:
            return own
        listed = [types.Resource.model_validate(each) for _, each in self._each("resources")]
        return own.model_copy(update={"resources": [*listed, *own.resources]})

    async def list_templates(self, context: Context, _: Any) -> types.ListResourceTemplatesResult:
        """The servers' templates, and that of refs."""
        await self._acquainted(context)
        own = await self._own.list_templates(context, None)
        listed = [
            types.ResourceTemplate.model_validate(each) for _, each in self._each("templates")
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=[*listed, *own.resource_templates]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """A resource, from the server that it is of."""
        uri = str(params.uri)
        if uri.startswith(REF_SCHEME):
            return await self._own.read_resource(context, params)
        host = await self._acquainted(context)
        request = types.ReadResourceRequest(params=params)
        return await _asked(await self._holder(uri, host), request, READ_RESULT, host)

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Have changes of a resource told, by an older host."""
        host = await self._acquainted(context)
        holder = await self._holder(str(params.uri), host)
        return await _asked(holder, types.SubscribeRequest(params=params), _EMPTY, host)

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Have them told no more."""
        host = await self._acquainted(context)
        holder = await self._holder(str(params.uri), host)
        return await _asked(holder, types.UnsubscribeRequest(params=params), _EMPTY, host)

    async def _holder(self, uri: str, host: AskingHost) -> Upstream:
        """The server that a resource is of; those that are still starting are waited for."""
        holder = self._listed_holder(uri)
        if holder is None:
            await self._gateway.acquaintance.for_call(host)
            holder = self._listed_holder(uri)
        if holder is None:
            raise no_resource(uri)
        return holder

    def _listed_holder(self, uri: str) -> Upstream | None:
        for upstream, resource in self._each("resources"):
            if str(resource.get("uri")) == uri:
                return upstream
        for upstream, template in self._each("templates"):
            if fits(str(template.get("uriTemplate", "")), uri):
                return upstream
        linked = self._gateway.linked.get(uri)
        return None if linked is None else self._gateway.upstreams[linked]

    # --- the rest --------------------------------------------------------------------------------

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Proposals for an argument of a prompt or a template."""
        host = await self._acquainted(context)
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            upstream, name = await self._prompt(ref.name, host)
            params = params.model_copy(update={"ref": ref.model_copy(update={"name": name})})
        else:
            holders = [u for u, each in self._each("templates") if each["uriTemplate"] == ref.uri]
            if not holders:
                raise MCPError(types.INVALID_PARAMS, "There is no such template.")
            upstream = holders[0]
        return await _asked(upstream, types.CompleteRequest(params=params), _COMPLETE, host)

    async def set_level(
        self, context: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """How much the servers shall tell, those too that start later."""
        self._gateway.audience.note(context)
        told = (upstream.tell_level(params) for upstream in self._gateway.upstreams.values())
        await asyncio.gather(*told)
        return types.EmptyResult()

    async def _acquainted(self, context: Context) -> AskingHost:
        host = AskingHost(context)
        self._gateway.audience.note(context)
        await self._gateway.acquaintance.for_list(host)
        return host

    def _each(self, kind: str) -> Iterator[tuple[Upstream, dict[str, Any]]]:
        for upstream in self._gateway.upstreams.values():
            if upstream.card is not None:
                for definition in getattr(upstream.card, kind):
                    yield upstream, definition

    def _name(self, upstream: Upstream, name: str) -> str:
        alone = len(self._gateway.upstreams) == 1 and self._gateway.options.listing == "all"
        return name if alone else f"{upstream.spec.name}{SEPARATOR}{name}"


async def _asked(upstream: Upstream, request: Any, result: TypeAdapter[_T], host: AskingHost) -> _T:
    """Ask a server; that it failed is an error of the protocol, with words of ours."""
    try:
        return await upstream.call(request, result, host)
    except ToolServerError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), {"kind": error.kind}) from error


def fits(template: str, uri: str) -> bool:
    """Whether an address may be made by a template; each variable is at least one character."""
    parts = re.split(r"\{[^{}]*\}", template)
    if len(parts) == 1:
        return template == uri
    if not uri.startswith(parts[0]) or not uri.endswith(parts[-1]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:  # by the first place of each: linear, whatever the template
        at = uri.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return at < len(uri) - len(parts[-1]) + 1
