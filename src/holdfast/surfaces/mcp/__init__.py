"""holdfast mcp: the engine as an MCP server, and a gateway in front of other MCP servers.

config → cards → structured → results → pipe → upstream → fleet → catalog → gateway, and own_tools →
host → running. The SDK takes two seconds to load, so that nothing outside this room may import it,
and config and cards, which `holdfast mcp list` reads, do without it.
"""
