"""Settings of the MCP server and gateway.

gateway: after background, before table.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.background import BackgroundSettings
from holdfast.settings.keys import Secret


class GatewaySettings(BackgroundSettings, frozen=True, kw_only=True):
    """How `holdfast mcp` lists tools, judges results, and listens."""

    mcp_config: Annotated[
        str,
        Meta(
            description="The list of servers behind `holdfast mcp`, as MCP hosts write it; empty: "
            "none, and the engine's own tools are served."
        ),
    ] = ""
    mcp_listing: Annotated[
        Literal["auto", "directory", "all"],
        Meta(
            description="What the gateway lists: a directory and the tools that find and call the "
            "others, all tools, or all as long as they take at most mcp_listed_tokens."
        ),
    ] = "auto"
    mcp_listed_tokens: Annotated[
        int,
        Meta(ge=0, description="Tokens of schemas up to which the gateway lists all tools."),
    ] = 5_000
    mcp_directory_tokens: Annotated[
        int, Meta(ge=20, description="Most tokens of the gateway's directory of tools.")
    ] = 600
    mcp_window: Annotated[
        int,
        Meta(
            ge=1_000,
            description="Window of the models behind MCP hosts, by which results are judged to be "
            "long: hosts do not say which model they ask.",
        ),
    ] = 200_000
    mcp_max_message_bytes: Annotated[
        int, Meta(ge=10_000, description="Largest message of an MCP host or server that is read.")
    ] = 32_000_000
    mcp_host: Annotated[
        str,
        Meta(
            description="Address that `holdfast mcp --http` listens on; others than this machine's "
            "own need mcp_token."
        ),
    ] = "127.0.0.1"
    mcp_port: Annotated[
        int, Meta(ge=1, le=65_535, description="Port of `holdfast mcp --http`.")
    ] = 8788
    mcp_token: Annotated[
        Secret[str],
        Meta(description="What hosts must send to `holdfast mcp --http`, as a bearer token."),
    ] = ""
    mcp_names: Annotated[
        list[str],
        Meta(
            description="Host names that `holdfast mcp --http` answers to, beside this machine's "
            "own."
        ),
    ] = msgspec.field(default_factory=list)
