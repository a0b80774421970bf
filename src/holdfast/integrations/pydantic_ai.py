"""Pydantic AI: a capability that makes an agent's requests fit, and a store for its harness.

pydantic_ai: over session. A request is changed while it is sent (`wrap_model_request`) and not
before: what `before_model_request` gives back becomes the run's own history in 2.31, and the
history that a user saves must be what was said. Only this module imports `pydantic_ai`.

    agent = Agent("openai:gpt-5", capabilities=[HoldfastCapability("sqlite:///work.db")])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.extras import missing_extra

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart
    from pydantic_ai.tools import AgentDepsT, Tool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise missing_extra("pydantic-ai", error) from error

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.fitting import FitOptions
from holdfast.integrations._host import Host
from holdfast.integrations._pydantic_form import PydanticForm
from holdfast.integrations._session import Threads
from holdfast.privacy import apply, find, flags
from holdfast.store import Content
from holdfast.store.refs import digest, ref_id

if TYPE_CHECKING:
    from pydantic_ai.capabilities import WrapModelRequestHandler
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
    from pydantic_ai.tools import RunContext


class HoldfastCapability(AbstractCapability[AgentDepsT]):
    """Fits each request of an agent, and gives it the tool that opens what was cited."""

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
    ) -> None:
        """Fit requests to `limit` input tokens; without one, to what the model takes."""
        self.host = Host(store)
        self.threads: Threads[ModelMessage] = Threads(
            self.host, PydanticForm(), limit=limit, options=options
        )
        self._instructions: dict[str, ModelRequest] = {}

    def get_toolset(self) -> FunctionToolset[AgentDepsT]:
        """The tool that opens refs; it is there from the start, for tools stand first in caches."""

        async def expand_ref(**arguments: Any) -> str:
            return await self.threads.aexpand(arguments)

        return FunctionToolset([Tool.from_schema(expand_ref, NAME, DESCRIPTION, PARAMETERS)])

    async def wrap_model_request(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        """Send a request that fits; the run's history stays as it is."""
        instructed = self._instructed(request_context.messages)
        around = {
            "model": request_context.model.model_name,
            "tools": _tools(request_context.model_request_parameters),
        }
        messages = [*instructed, *request_context.messages]
        fit = await self.threads.afit(messages, around, ctx.conversation_id or ctx.run_id or "")
        fitted = replace(request_context, messages=fit.messages[len(instructed) :])
        if fit.tools is not None:
            fitted.model_request_parameters = _without(fitted.model_request_parameters, fit.tools)
        response = await handler(fitted)
        self.threads.observe(fit, _usage(response))
        return response

    def _instructed(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """The instructions that models put before all messages, as a message that is counted."""
        asked = (m.instructions for m in reversed(messages) if isinstance(m, ModelRequest))
        text = next(filter(None, asked), None)
        if text is None:
            return []
        if text not in self._instructions:
            self._instructions = {text: ModelRequest([SystemPromptPart(text)])}
        return [self._instructions[text]]


def _tools(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]


def _without(parameters: ModelRequestParameters, names: frozenset[str]) -> ModelRequestParameters:
    """The parameters without tools that were withheld; an answer's own form is never withheld."""
    tools = [tool for tool in parameters.function_tools if tool.name in names]
    return replace(parameters, function_tools=tools)


def _usage(response: ModelResponse) -> Mapping[str, Any] | None:
    usage = response.usage
    if not usage.input_tokens:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }


class HoldfastOverflowStore:
    """The `OverflowStore` of `pydantic-ai-harness`: what its `Spill` takes out is stored here.

    A handle is a ref, so that `expand_ref` opens what the harness has spilled, too.
    """

    def __init__(self, store: Holdfast | str | None = None) -> None:
        self.host = Host(store)

    async def write(self, key: str, data: bytes) -> str:
        """Store a payload, and return the ref it is known by.

        Raises:
            OSError: it cannot be stored; the harness keeps the output then.
        """

        async def work(engine: Holdfast) -> str:
            text = data.decode("utf-8", "replace")
            policy, findings = engine.options.rules.privacy, find(text)
            apply(policy, text, findings)  # raises if it is to refuse
            sha256 = digest(data)
            ref = ref_id("text", sha256, len(sha256))
            content = Content(
                ref_id=ref,
                kind="text",
                sha256=sha256,
                data=data,
                meta={"key": key[:200]},
                flags=flags(findings),
            )
            await engine.store.put(engine.scope, [content])
            return ref

        try:
            return await self.host.wait(work)
        except HoldfastError as error:
            raise OSError(str(error)) from error

    async def read(self, handle: str) -> bytes:
        """The very bytes of a payload.

        Raises:
            FileNotFoundError: no such payload is stored.
            OSError: the store cannot be read.
        """
        try:
            stored = await self.host.wait(lambda engine: engine.store.get(engine.scope, handle))
        except HoldfastError as error:
            raise OSError(str(error)) from error
        if stored is None:
            raise FileNotFoundError(handle)
        return stored.data
