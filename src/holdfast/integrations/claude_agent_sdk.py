"""The Claude Agent SDK: a hook that cites long tool results, and a server that opens them.

claude_agent_sdk: over results. Claude Code keeps the conversation, so nothing but results can be
changed from here; what a hook gives back must have the shape of the tool's own output, so only the
long texts in it give way. The SDK brings a program of 350 MB and is never a dependency: what is
wanted of it is the protocol below, and it is imported when `options` is called.

    options = ClaudeAgentOptions(**HoldfastHooks("sqlite:///work.db").options())

A tool's result cited when it comes back, where a framework lets nobody change its requests.
results: after host, before the adapters. Elsewhere results stay whole in the framework's history,
and what is cited is so in what is sent, as an edit of its request's record.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, MissingExtraError
from holdfast.expand import parse_call
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.extras import install_command
from holdfast.integrations._host import Host, log
from holdfast.quoting import NO_STORE


async def cited(
    host: Host, text: str, *, tool: str, over: int, question: str = "", opener: str = NAME
) -> str | None:
    """The citation in the place of a result; None if it is short, or nothing can be stored.

    `opener` is what the model knows the tool by that opens refs.
    """
    if len(text) <= over:  # a token is a character at least
        return None

    async def work(engine: Holdfast) -> str | None:
        if await engine.workers.off_loop(len(text), lambda: count(text)) <= over:
            return None
        rules = msgspec.structs.replace(engine.options.rules, opener=opener)
        own = engine.with_parts(options=msgspec.structs.replace(engine.options, rules=rules))
        return (await own.cite(text, tool=tool, question=question or None)).text

    try:
        return await host.wait(work)
    except HoldfastError as error:
        log.warning("a tool's result stays as it is: %s", error)
        return None


SERVER = "holdfast"
TOOL = f"mcp__{SERVER}__{NAME}"
"""What Claude Code calls a tool of an MCP server."""
RESULT_TOKENS = 7_000
"""What one result may take of a window of 200,000: the share of the policy for requests."""
_DEEPEST = 20
"""Levels of an output that are looked at: nobody's result is nested so deep on purpose."""

Hook = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]
Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Sdk(Protocol):
    """What is wanted of the package `claude_agent_sdk`."""

    def HookMatcher(self, *, hooks: list[Hook]) -> Any:  # noqa: N802 - a class of the SDK
        """Hooks of one event."""

    def tool(
        self, name: str, description: str, input_schema: dict[str, Any]
    ) -> Callable[[Handler], Any]:
        """A decorator that makes a tool of a handler."""

    def create_sdk_mcp_server(self, name: str, *, tools: list[Any]) -> Any:
        """A server in this process."""


def _installed_sdk() -> Sdk:
    try:
        return cast(Sdk, importlib.import_module("claude_agent_sdk"))
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the Claude Agent SDK is not installed",
            where="holdfast.integrations.claude_agent_sdk",
            fix=f"Install it with `{install_command('claude-agent-sdk')}`.",
        ) from error


class HoldfastHooks:
    """Cites what Claude Code's tools give back, and opens it again."""

    def __init__(
        self, store: Holdfast | str | None = None, *, result_tokens: int = RESULT_TOKENS
    ) -> None:
        """Cite each text of more than `result_tokens` in a result."""
        self.host = Host(store)
        self._result_tokens = result_tokens

    def options(self, sdk: Sdk | None = None) -> dict[str, Any]:
        """Arguments for `ClaudeAgentOptions`; `sdk` is the package, where it is not installed."""
        sdk = sdk or _installed_sdk()
        expand = sdk.tool(NAME, DESCRIPTION, PARAMETERS)(self.expand_ref)
        return {
            "hooks": {"PostToolUse": [sdk.HookMatcher(hooks=[self.post_tool_use])]},
            "mcp_servers": {SERVER: sdk.create_sdk_mcp_server(SERVER, tools=[expand])},
            "allowed_tools": [TOOL],
        }

    async def post_tool_use(
        self, hook_input: Mapping[str, Any], tool_use_id: str | None, context: Any
    ) -> dict[str, Any]:
        """The output with citations in the place of its long texts; nothing where none is long."""
        tool = str(hook_input.get("tool_name", ""))
        if tool == TOOL:
            return {}
        output = hook_input.get("tool_response")
        shorter = await self._shorter(output, tool, _question(hook_input.get("tool_input")))
        if shorter is output:
            return {}
        changed = {"hookEventName": "PostToolUse", "updatedToolOutput": shorter}
        return {"hookSpecificOutput": changed}

    async def _shorter(self, value: Any, tool: str, question: str, depth: int = 0) -> Any:
        """The same shape with citations; the same object if nothing in it is long."""
        if depth > _DEEPEST:
            return value
        if isinstance(value, str):
            over = self._result_tokens
            citation = await cited(
                self.host, value, tool=tool, question=question, over=over, opener=TOOL
            )
            return value if citation is None else citation
        if isinstance(value, list):
            items = [await self._shorter(item, tool, question, depth + 1) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        if isinstance(value, dict):
            fields = {
                key: await self._shorter(item, tool, question, depth + 1)
                for key, item in value.items()
            }
            return value if all(fields[key] is value[key] for key in value) else fields
        return value

    async def expand_ref(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a call is answered, as a server of the SDK gives it."""

        async def work(engine: Holdfast) -> str:
            ref, wanted = parse_call(arguments)
            return (await engine.expand_ref(ref, wanted, opener=TOOL)).text

        try:
            text = await self.host.wait(work)
        except HoldfastError as error:
            log.warning("nothing could be opened: %s", error)
            return {"content": [{"type": "text", "text": NO_STORE}], "is_error": True}
        return {"content": [{"type": "text", "text": text}]}

    def close(self) -> None:
        """Let the store go."""
        self.host.close()


def _question(tool_input: Any) -> str:
    """What a call asks for: of a result, the lines that bear on it are quoted."""
    texts = tool_input.values() if isinstance(tool_input, Mapping) else ()
    return "\n".join(text[:500] for text in texts if isinstance(text, str))
