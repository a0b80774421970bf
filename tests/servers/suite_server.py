"""A server with the tools, prompts and resources that the conformance suite requests by name.

Run as a program of the gateway, or at a port to be tested without it. Written from the suite's
requirements (`conformance list --server`, and the text of each scenario), with the SDK's own
`MCPServer`: failures on both are the SDK's; failures on the gateway alone are ours.
"""

from __future__ import annotations

import base64
import sys
import warnings
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.servers.world import PIXEL

# The suite is a host of the older era, and logging belongs to that era.
warnings.simplefilter("ignore", MCPDeprecationWarning)

_IMAGE = types.ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
_WATCHED = "test://watched-resource"
server = MCPServer("suite", instructions="What the conformance suite asks for.")


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)
    return types.EmbeddedResource(resource=contents)


# --- tools ---------------------------------------------------------------------------------------


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Gives a text."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> list[Any]:
    """Gives an image."""
    return [_IMAGE]


@server.tool(structured_output=False)
def test_audio_content() -> list[Any]:
    """Gives a sound."""
    return [types.AudioContent(data="UklGRiQAAABXQVZF", mime_type="audio/wav")]


@server.tool(structured_output=False)
def test_embedded_resource() -> list[Any]:
    """Gives a resource."""
    return [_embedded("test://embedded-resource", "This is an embedded resource content.")]


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Gives a block of each kind."""
    value = '{"test": "data", "value": 123}'
    resource = _embedded("test://mixed-content-resource", value, "application/json")
    return [types.TextContent(text="Multiple content types test:"), _IMAGE, resource]


@server.tool(structured_output=False)
async def test_tool_with_logging(ctx: Context) -> str:
    """Log its progress."""
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(words)
    return "It has told three things."


@server.tool(structured_output=False)
def test_error_handling() -> str:
    """Fails."""
    raise ValueError("This tool intentionally returns an error for testing")


@server.tool(structured_output=False)
async def test_tool_with_progress(ctx: Context) -> str:
    """Tells how far it is."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
    return "It has told three times how far it is."


@server.tool(structured_output=False)
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the host's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    answer = await ctx.session.create_message(
        [message], max_tokens=100, related_request_id=ctx.request_id
    )  # else it is sent on a stream that the host may not have opened yet
    return f"LLM response: {answer.content}"


async def _elicited(ctx: Context, message: str, **properties: dict[str, Any]) -> str:
    schema = {"type": "object", "properties": properties, "required": []}
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@server.tool(structured_output=False)
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the host's user."""
    return await _elicited(ctx, message, username={"type": "string"}, email={"type": "string"})


@server.tool(structured_output=False)
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default of each kind."""
    states = ["active", "inactive", "pending"]
    return await _elicited(
        ctx,
        "Is this right?",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": states, "default": "active"},
        verified={"type": "boolean", "default": True},
    )


@server.tool(structured_output=False)
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with a choice of each kind."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    old = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]}
    return await _elicited(
        ctx,
        "Which?",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", **old},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )


@server.tool(structured_output=False)
async def test_reconnection(ctx: Context) -> str:
    """Answers after its stream was closed."""
    await ctx.close_sse_stream()
    return "Answered."


@server.tool(structured_output=False)
def json_schema_2020_12_tool(name: str = "") -> str:
    """Takes a name and an address."""
    return name


_ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}}}
server._tool_manager._tools["json_schema_2020_12_tool"].parameters = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": _ADDRESS},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


# --- resources -----------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PIXEL


@server.resource(_WATCHED, mime_type="text/plain")
def watched() -> str:
    """A text that may be watched."""
    return "Watched."


@server.resource("test://template/{number}/data", mime_type="application/json")
def templated(number: str) -> str:
    """A text for each number."""
    return f'{{"id": "{number}", "templateTest": true, "data": "Data for ID: {number}"}}'


# --- prompts -------------------------------------------------------------------------------------


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite's
    """A prompt with a resource."""
    resource = _embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with an image."""
    return [UserMessage(_IMAGE), UserMessage("Please analyze the image above.")]


@server.completion()  # type: ignore[no-untyped-call,untyped-decorator]
async def completed(ref: Any, argument: Any, context: Any) -> types.Completion:
    """No proposals."""
    del ref, argument, context
    return types.Completion(values=[])


# --- what `MCPServer` has no decorator for -------------------------------------------------------


async def _nothing(context: Any, params: Any) -> types.EmptyResult:
    del context, params
    return types.EmptyResult()


for method, kind in (
    ("logging/setLevel", types.SetLevelRequestParams),
    ("resources/subscribe", types.SubscribeRequestParams),
    ("resources/unsubscribe", types.UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, kind, _nothing)


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
