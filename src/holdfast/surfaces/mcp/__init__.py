"""The MCP surface: the engine as an MCP server, and a gateway for other MCP servers.

The MCP SDK takes two seconds to load, so no module outside imports it, and `config` and `cards`,
which `holdfast mcp list` reads, do without it.
"""
