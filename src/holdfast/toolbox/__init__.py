"""Tools that cost nothing until they are used: definitions that are pinned, a directory, a search.

Usage:
    tools = read_tools(definitions, server="github")   # MCP, OpenAI, Anthropic, Gemini shapes
    text = directory(tools, budget=400)                # names and intents, the same bytes each time
    hits = search_over(tools, open_embedder())("open an issue", k=5)

`search_over` stands in `holdfast.toolbox.searching`: it needs numpy, which takes 80 ms to load.
"""

from holdfast.toolbox.directory import directory
from holdfast.toolbox.intents import intent_of, warnings_of
from holdfast.toolbox.tool import Refused, Tool, read_tool, read_tools, sorted_out

__all__ = [
    "Refused",
    "Tool",
    "directory",
    "intent_of",
    "read_tool",
    "read_tools",
    "sorted_out",
    "warnings_of",
]
