"""Pydantic AI: a capability that makes an agent's requests fit, and a store for its harness.

A request is changed only while it is sent (`wrap_model_request`). The result of
`before_model_request` becomes the run's history in 2.31, and a saved history must be complete.

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
    """Fits each request of an agent and adds the tool that opens citations."""

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
    ) -> None:
        """Fit requests to `limit` input tokens; by default, to the model's limit."""
        self.host = Host(store)
        self.threads: Threads[ModelMessage] = Threads(
            self.host, PydanticForm(), limit=limit, options=options
        )
        self._instructions: dict[str, ModelRequest] = {}

    def get_toolset(self) -> FunctionToolset[AgentDepsT]:
        """Return the tool that opens refs, offered always: tools begin the cached prefix."""

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
        """Send a request that fits; the run's history is unchanged."""
        instructed = self._instructions_message(request_context.messages)
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

    def _instructions_message(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return the instructions that models put before all messages, as a message to count."""
        instructions = (m.instructions for m in reversed(messages) if isinstance(m, ModelRequest))
        text = next(filter(None, instructions), None)
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
    """Return the parameters without withheld tools; output tools are never withheld."""
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
    """The `OverflowStore` of `pydantic-ai-harness`, for outputs that its `Spill` removes.

    A handle is a ref, so that `expand_ref` opens spilled outputs too.
    """

    def __init__(self, store: Holdfast | str | None = None) -> None:
        self.host = Host(store)

    async def write(self, key: str, data: bytes) -> str:
        """Store a payload and return its ref.

        Raises:
            OSError: if it cannot be stored; the harness then keeps the output.
        """

        async def work(engine: Holdfast) -> str:
            text = data.decode("utf-8", "replace")
            policy, findings = engine.options.rules.privacy, find(text)
            apply(policy, text, findings)  # raises if the policy is to refuse
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
        """Return the exact bytes of a payload.

        Raises:
            FileNotFoundError: if no such payload is stored.
            OSError: if the store cannot be read.
        """
        try:
            stored = await self.host.wait(lambda engine: engine.store.get(engine.scope, handle))
        except HoldfastError as error:
            raise OSError(str(error)) from error
        if stored is None:
            raise FileNotFoundError(handle)
        return stored.data
