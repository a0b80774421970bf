"""The Claude Agent SDK: a hook that cites long tool results, and a server that opens them.

Claude Code keeps the conversation, so that only results can be changed here. The hook's output must
have the shape of the tool's output, so only long texts in it are replaced. The SDK includes a
program of 350 MB and is never a dependency: `options` imports it.

    options = ClaudeAgentOptions(**HoldfastHooks("sqlite:///work.db").options())
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


async def cite_long_text(
    host: Host, text: str, *, tool: str, over: int, question: str = "", opener: str = NAME
) -> str | None:
    """Return the citation of a long text; None if it is short or cannot be stored.

    `opener` is the model's name for the tool that opens refs.
    """
    if len(text) <= over:  # a token has at least one character
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
"""Claude Code's name for a tool of an MCP server."""
RESULT_TOKENS = 7_000
"""Maximum tokens of a result in a window of 200,000: the share that the policy for requests allows.
"""
_DEEPEST = 20
"""Maximum depth of an output that is searched for long texts."""

Hook = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]
Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Sdk(Protocol):
    """The parts of the package `claude_agent_sdk` that are used."""

    def HookMatcher(self, *, hooks: list[Hook]) -> Any:  # noqa: N802 - a class of the SDK
        """Return the hooks of one event."""

    def tool(
        self, name: str, description: str, input_schema: dict[str, Any]
    ) -> Callable[[Handler], Any]:
        """Return a decorator that turns a handler into a tool."""

    def create_sdk_mcp_server(self, name: str, *, tools: list[Any]) -> Any:
        """Return a server in this process."""


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
    """Cites results of Claude Code's tools and opens the citations."""

    def __init__(
        self, store: Holdfast | str | None = None, *, result_tokens: int = RESULT_TOKENS
    ) -> None:
        """Cite each text of more than `result_tokens` in a result."""
        self.host = Host(store)
        self._result_tokens = result_tokens

    def options(self, sdk: Sdk | None = None) -> dict[str, Any]:
        """Return arguments for `ClaudeAgentOptions`; `sdk` replaces the installed package."""
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
        """Return the output with citations of its long texts; empty if none is long."""
        tool = str(hook_input.get("tool_name", ""))
        if tool == TOOL:
            return {}
        output = hook_input.get("tool_response")
        shorter = await self._cite_texts(output, tool, _question(hook_input.get("tool_input")))
        if shorter is output:
            return {}
        changed = {"hookEventName": "PostToolUse", "updatedToolOutput": shorter}
        return {"hookSpecificOutput": changed}

    async def _cite_texts(self, value: Any, tool: str, question: str, depth: int = 0) -> Any:
        """Return the same shape with citations; the same object if no text in it is long."""
        if depth > _DEEPEST:
            return value
        if isinstance(value, str):
            over = self._result_tokens
            citation = await cite_long_text(
                self.host, value, tool=tool, question=question, over=over, opener=TOOL
            )
            return value if citation is None else citation
        if isinstance(value, list):
            items = [await self._cite_texts(item, tool, question, depth + 1) for item in value]
            is_unchanged = all(new is old for new, old in zip(items, value, strict=True))
            return value if is_unchanged else items
        if isinstance(value, dict):
            fields = {
                key: await self._cite_texts(item, tool, question, depth + 1)
                for key, item in value.items()
            }
            return value if all(fields[key] is value[key] for key in value) else fields
        return value

    async def expand_ref(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a call, in the form of the SDK's servers."""

        async def work(engine: Holdfast) -> str:
            ref, options = parse_call(arguments)
            return (await engine.expand_ref(ref, options, opener=TOOL)).text

        try:
            text = await self.host.wait(work)
        except HoldfastError as error:
            log.warning("nothing could be opened: %s", error)
            return {"content": [{"type": "text", "text": NO_STORE}], "is_error": True}
        return {"content": [{"type": "text", "text": text}]}

    def close(self) -> None:
        """Close the store."""
        self.host.close()


def _question(tool_input: Any) -> str:
    """Return the texts of a call's arguments; lines relevant to them are quoted in the citation."""
    texts = tool_input.values() if isinstance(tool_input, Mapping) else ()
    return "\n".join(text[:500] for text in texts if isinstance(text, str))
