"""The Claude Agent SDK: its types where it is installed, else its calling convention by hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.integrations.claude_agent_sdk import TOOL, HoldfastHooks
from tests.integrations.reading import Broken

LOG = "\n".join(f"{n:05} INFO request {n} served in {n % 90} ms" for n in range(3_000))


@dataclass
class HookMatcher:
    """As in claude_agent_sdk.types 0.2.182: hooks take the input, the call's id and a context."""

    matcher: str | None = None
    hooks: list[Any] = field(default_factory=list)


class Double:
    """What `HoldfastHooks` wants of the SDK, written from its source."""

    HookMatcher = HookMatcher

    def tool(self, name: str, description: str, input_schema: dict[str, Any]) -> Any:
        return lambda handler: (name, description, input_schema, handler)

    def create_sdk_mcp_server(self, name: str, *, tools: list[Any]) -> Any:
        return {"type": "sdk", "name": name, "instance": {tool[0]: tool[3] for tool in tools}}


def after(tool: str, response: Any) -> dict[str, Any]:
    """The input of a PostToolUse hook."""
    return {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "tool_name": tool,
        "tool_input": {"command": "tail -n 3000 server.log"},
        "tool_response": response,
        "tool_use_id": "toolu_1",
    }


async def called(options: dict[str, Any], hook_input: dict[str, Any]) -> dict[str, Any]:
    """As the SDK calls the hooks of an event: one after the other, by position."""
    [matcher] = options["hooks"]["PostToolUse"]
    [hook] = matcher.hooks
    output: dict[str, Any] = await hook(hook_input, hook_input["tool_use_id"], {"signal": None})
    return output


def test_a_long_output_gives_way_in_its_own_shape_and_is_opened_to_the_byte() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            options = HoldfastHooks(engine).options(Double())
            assert options["allowed_tools"] == [TOOL]
            bash = {"stdout": LOG, "stderr": "", "interrupted": False}
            output = await called(options, after("Bash", bash))
            updated = output["hookSpecificOutput"]["updatedToolOutput"]
            assert output["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
            assert {**updated, "stdout": ""} == {**bash, "stdout": ""}
            assert len(updated["stdout"]) < len(LOG) / 10
            assert f"{TOOL}(" in updated["stdout"]
            [ref] = await engine.store.refs(engine.scope)
            stored = await engine.store.get(engine.scope, ref.ref_id)
            assert stored is not None
            assert stored.data.decode() == LOG
            expand = options["mcp_servers"]["holdfast"]["instance"]["expand_ref"]
            part = await expand({"ref_id": ref.ref_id, "lines": "1500-1501"})
            assert "\n".join(LOG.splitlines()[1499:1501]) in part["content"][0]["text"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "response",
    [
        {"stdout": "short", "stderr": "", "interrupted": False},
        [{"type": "text", "text": "short"}],
        "short",
        None,
        7,
    ],
)
def test_a_short_output_of_any_shape_stays(response: Any) -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            options = HoldfastHooks(engine).options(Double())
            assert await called(options, after("Any", response)) == {}
            assert await called(options, after(TOOL, LOG)) == {}  # never cited again

    asyncio.run(main())


def test_blocks_of_a_server_and_files_give_way_too() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            options = HoldfastHooks(engine).options(Double())
            blocks = [{"type": "text", "text": LOG}, {"type": "text", "text": "end"}]
            output = await called(options, after("mcp__logs__read", blocks))
            first, last = output["hookSpecificOutput"]["updatedToolOutput"]
            assert first["type"] == "text"
            assert len(first["text"]) < len(LOG) / 10
            assert last == blocks[1]

    asyncio.run(main())


def test_a_store_that_fails_leaves_the_output(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        hooks = HoldfastHooks(Holdfast(Broken.in_memory()))
        options = hooks.options(Double())
        assert await called(options, after("Bash", {"stdout": LOG})) == {}
        missing = await hooks.expand_ref({"lines": "1-2"})
        assert missing["is_error"]

    asyncio.run(main())
    assert "the disk is full" in caplog.text
    assert "INFO request" not in caplog.text


def test_the_options_are_those_of_the_sdk() -> None:
    sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")
    hooks = HoldfastHooks("memory:")
    options = sdk.ClaudeAgentOptions(**hooks.options())
    assert options.hooks["PostToolUse"][0].hooks == [hooks.post_tool_use]
    assert options.mcp_servers["holdfast"]["type"] == "sdk"
    hooks.close()
