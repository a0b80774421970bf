"""LiteLLM: a logger that makes chat completions fit and answers `expand_ref` in LiteLLM's own loop.

`async_pre_call_deployment_hook` is the only hook that the library and the proxy both call with a
whole chat completion before a provider is called (1.106; `async_pre_request_hook` is only for
Anthropic's messages, and the blocking `completion` calls no hook that can change a request). The
caller does not see calls of `expand_ref`.

    litellm.callbacks.append(HoldfastLogger("sqlite:///work.db"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.extras import missing_extra

try:
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.integrations.custom_logger import (
        HEADROOM_CONVERTED_STREAM_KEY,
        AgenticLoopPlan,
        AgenticLoopRequestPatch,
    )
    from litellm.types.utils import CallTypes
except ImportError as error:
    raise missing_extra("litellm", error) from error

from holdfast.engine import Holdfast
from holdfast.expand.tool import DESCRIPTIONS
from holdfast.fitting import FitOptions
from holdfast.integrations._host import Host
from holdfast.integrations._session import Fit, Threads
from holdfast.quoting import NO_MORE

_ROUNDS = 8
"""Maximum number of openings per answer; LiteLLM's own limit, 3, ends in an error."""
_DEPTH = "_agentic_loop_depth"
Value = dict[str, Any]


class HoldfastLogger(CustomLogger):
    """Fits chat completions and opens citations while the answer is made."""

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
    ) -> None:
        """Fit requests to `limit` input tokens; by default, to the model's limit."""
        super().__init__()
        self.threads: Threads[Any] = Threads(Host(store), _ChatForm(), limit=limit, options=options)
        self._sent: dict[str, Fit[Any]] = {}
        """Requests without an answer yet, by call and depth in the loop."""

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Make a chat completion fit."""
        if (
            call_type not in (CallTypes.acompletion, CallTypes.completion)
            or kwargs.get("n", 1) != 1
        ):
            return None
        around = {name: kwargs[name] for name in _AROUND if kwargs.get(name) is not None}
        fit = await self.threads.afit(kwargs["messages"], around, _session_name(kwargs))
        if fit.fitted is None:
            return None
        self._sent[_call_name(kwargs)] = fit
        changed = {**kwargs, "messages": fit.messages}
        tools = fit.fitted.state.sent.rest.get("tools")
        if tools != kwargs.get("tools"):
            changed["tools"] = tools
        if _opener(tools):
            if kwargs.get("max_agentic_loops") is None:
                changed["max_agentic_loops"] = _ROUNDS + 1
            if kwargs.get(
                "stream"
            ):  # the loop needs complete answers; this key streams one afterwards
                changed |= {"stream": False, HEADROOM_CONVERTED_STREAM_KEY: True}
        return changed

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> Any:
        """Record the request with the reported usage."""
        fit = self._sent.pop(_call_name(request_data), None)
        usage = getattr(response, "usage", None)
        if fit is not None:
            usage_fields = usage.model_dump(exclude_none=True) if usage is not None else None
            self.threads.observe(fit, usage_fields)
        return None

    async def async_should_run_agentic_loop(  # noqa: PLR0913, PLR0917 - LiteLLM's signature
        self,
        response: Any,
        model: str,
        messages: list[Value],
        tools: list[Value] | None,
        stream: bool,
        custom_llm_provider: str,
        kwargs: dict[str, Any],
    ) -> tuple[bool, dict[str, Any]]:
        """Continue if the model only opens refs; the caller answers other calls."""
        choices = getattr(response, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        calls = list(getattr(message, "tool_calls", None) or ())
        own = [call for call in calls if call.function.name == _opener(tools)]
        if message is None or not own:
            return False, {}
        foreign_calls = [call for call in calls if call not in own]
        if not foreign_calls and kwargs.get(_DEPTH, 0) < kwargs.get("max_agentic_loops", 1):
            return True, {"calls": [call.model_dump() for call in own]}
        # the caller lacks our tool; the model may ask again
        message.tool_calls = foreign_calls or None
        return False, {}

    async def async_build_agentic_loop_plan(  # noqa: PLR0913, PLR0917 - LiteLLM's signature
        self,
        tools: dict[str, Any],
        model: str,
        messages: list[Value],
        response: Any,
        anthropic_messages_provider_config: Any,
        anthropic_messages_optional_request_params: dict[str, Any],
        logging_obj: Any,
        stream: bool,
        kwargs: dict[str, Any],
    ) -> AgenticLoopPlan:
        """Return the request with the opened parts appended, which is fitted like any other."""
        ends = kwargs.get(_DEPTH, 0) >= _ROUNDS
        why = NO_MORE.format(why=f"you have opened something {_ROUNDS} times")
        turn = response.choices[0].message.model_dump(exclude_none=True)
        results = []
        for call in tools["calls"]:
            text = why if ends else await self.threads.aexpand(call["function"]["arguments"])
            results.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        patch = AgenticLoopRequestPatch(messages=[*messages, turn, *results])
        return AgenticLoopPlan(run_agentic_loop=True, request_patch=patch)

    def close(self) -> None:
        """Finish recording and close the store."""
        self.threads.host.close()


_AROUND = (
    "model",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
)


def _opener(tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Return the name of our tool in a request; the caller may have a tool with the same name."""
    offered = (tool.get("function") or {} for tool in tools or ())
    ours = (tool["name"] for tool in offered if tool.get("description") in DESCRIPTIONS)
    return next(ours, "")


def _call_name(kwargs: Mapping[str, Any]) -> str:
    """Return the name of a request; requests of one loop share the call id."""
    return f"{kwargs.get('litellm_call_id', '')}/{kwargs.get(_DEPTH) or 0}"


def _session_name(kwargs: Mapping[str, Any]) -> str:
    """Return the caller's session name; empty to identify the conversation by its beginning."""
    metadata = kwargs.get("metadata") or kwargs.get("litellm_metadata") or {}
    name = kwargs.get("litellm_session_id") or metadata.get("session_id") or ""
    return f"{name}/opened" if name and kwargs.get(_DEPTH) else str(name)


class _ChatForm:
    """Messages of the dialect."""

    dialect = "openai-chat"

    def write(self, message: Any) -> Sequence[Mapping[str, Any]]:
        """Return a message unchanged; LiteLLM accepts its own classes and dictionaries."""
        return [message if isinstance(message, dict) else message.model_dump(exclude_none=True)]

    def read(self, parts: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
        """Return the values unchanged."""
        return [value for value, _ in parts]
