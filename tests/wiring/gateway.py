"""Settings of `holdfast mcp`, which neither the library nor the proxy obeys."""

from __future__ import annotations

from tests.wiring.wired import Wired

_WHERE = "only `holdfast mcp` obeys it: tests/surfaces/mcp/test_running.py"
GATEWAY: dict[str, Wired | str] = dict.fromkeys(
    (
        "mcp_config",
        "mcp_listing",
        "mcp_listed_tokens",
        "mcp_directory_tokens",
        "mcp_window",
        "mcp_max_message_bytes",
        "mcp_host",
        "mcp_port",
        "mcp_token",
        "mcp_names",
    ),
    _WHERE,
)
