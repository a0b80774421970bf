"""A server for the tests, run as a program: a tool for each feature that a gateway must pass on.

It uses the SDK's `MCPServer`, so that direct results come from foreign code.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from pydantic import BaseModel

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8"
    "cf00000001010100a0b2b3b40000000049454e44ae426082"
)
server = MCPServer("demo", instructions="A server for tests.")


class Row(BaseModel):
    number: int
    text: str


class Table(BaseModel):
    title: str
    rows: list[Row]


@server.tool()
def echo(text: str) -> str:
    """Return the argument."""
    return text


@server.tool(structured_output=False)
def log(lines: int) -> str:
    """Shows the log of a service, line by line."""
    body = "\n".join(f"{n:05} INFO request {n * 7} served" for n in range(lines))
    return body + "\n99999 ERROR cannot reach db-3: connection refused"


@server.tool()
def table(rows: int) -> Table:
    """Gives rows of a table."""
    return Table(title="orders", rows=[Row(number=n, text=f"order {n} " * 5) for n in range(rows)])


@server.tool()
def picture() -> Image:
    """Draws a point."""
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False)
def many() -> list[Any]:
    """Gives one block of each kind."""
    note = types.TextResourceContents(uri="demo://note", text="a note", mime_type="text/plain")
    return [
        types.TextContent(text="words"),
        types.AudioContent(data="AAAA", mime_type="audio/wav"),
        types.ResourceLink(uri="demo://linked", name="linked"),
        types.EmbeddedResource(resource=note),
    ]


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it went wrong")


@server.tool()
async def slow(ctx: Context, steps: int = 3) -> str:
    """Tells how far it is."""
    for n in range(steps):
        await ctx.report_progress(n + 1, steps, f"step {n + 1}")
    return "done"


@server.tool()
async def wait() -> str:
    """Waits for ever."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
def process() -> str:
    """Tells the number of this process."""
    return str(os.getpid())


@server.tool()
def variables() -> list[str]:
    """Names the variables of the environment."""
    return sorted(os.environ)


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(echo, name="grown", description="Grew.")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Hello {name}"


@server.resource("demo://note")
def note() -> str:
    """A note."""
    return "a note"


@server.resource("demo://linked")
def linked() -> str:
    """Return the target of a link in a result."""
    return "linked text"


@server.resource("demo://pages/{page}")
def page(page: str) -> str:
    """A page by its name."""
    return f"page {page}"


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        server.run("streamable-http", port=int(os.environ["DEMO_PORT"]))
    elif sys.argv[1:] == ["sse"]:
        server.run("sse", port=int(os.environ["DEMO_PORT"]))
    else:
        server.run("stdio")
