"""Tool definitions outside of the request: pinned, listed in a directory, found by search.

Usage:
    tools = read_tools(definitions, server="github")   # MCP, OpenAI, Anthropic, Gemini shapes
    text = directory(tools, budget=400)                # names and intents, the same bytes each time
    hits = search_over(tools, open_embedder())("open an issue", k=5)

`search_over` is in `holdfast.toolbox.tool_search`, which needs numpy: that takes 80 ms to load.
"""

from holdfast.toolbox.directory import directory
from holdfast.toolbox.intents import tool_intent, tool_warnings
from holdfast.toolbox.tool import InvalidTool, Tool, read_tool, read_tools, read_valid_tools

__all__ = [
    "InvalidTool",
    "Tool",
    "directory",
    "read_tool",
    "read_tools",
    "read_valid_tools",
    "tool_intent",
    "tool_warnings",
]
