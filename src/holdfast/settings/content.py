"""Settings of input, output, storage, citations and privacy."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.definitions import Definitions
from holdfast.settings.keys import Secret

_Tokens = Annotated[int, Meta(ge=0)]


class ModelLimits(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Limits of a model or provider in `model_context_overrides`; None keeps the known limit."""

    context_window: Annotated[int, Meta(ge=1)] | None = None
    max_output_tokens: _Tokens | None = None
    output_reserved: _Tokens | None = None
    """Tokens reserved for the response if the request names no maximum."""
    mode: Literal["input_only", "combined"] | None = None
    """Whether the window holds input only, or input and output together."""
    cli_overhead: _Tokens | None = None
    """Tokens that a command-line program adds before the user's text."""


class ContentSettings(Definitions, frozen=True, kw_only=True):
    """Input, output, storage, citations and privacy."""

    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Maximum size of a request body in bytes.")
    ] = 33_554_432
    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="When commands use colour. auto: in a terminal."),
    ] = "auto"
    output: Annotated[
        Literal["auto", "table", "json"],
        Meta(description="Output format of commands. auto: a table in a terminal, JSON in a pipe."),
    ] = "auto"
    data_dir: Annotated[
        str,
        Meta(
            description="Folder for stored data; ~ is your home folder. auto: the data folder of "
            "the operating system."
        ),
    ] = "auto"
    store_url: Annotated[
        Secret[str],
        Meta(
            description="Database of sessions and stored content: memory:, sqlite:///path or "
            "postgresql://…; empty: holdfast.db in data_dir."
        ),
    ] = ""
    model_context_overrides: Annotated[
        dict[str, ModelLimits],
        Meta(
            description="Limits by model or provider, which replace the known ones: "
            '{ "gemini:flash" = { context_window = 1000000, output_reserved = 8192 } }.'
        ),
    ] = msgspec.field(default_factory=dict)
    cite_policy: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Which tool results are replaced by a citation when they arrive. auto: "
            "those where a citation saves more than it costs; always: every result over "
            "cite_threshold; never: none."
        ),
    ] = "auto"
    cite_threshold: Annotated[
        int,
        Meta(
            ge=1,
            description="Content of more characters than this is cited. With cite_policy auto, "
            "shorter tool results are never cited.",
        ),
    ] = 1000
    cite_tools: Annotated[
        dict[str, Literal["auto", "always", "never"] | Annotated[int, Meta(ge=1)]],
        Meta(
            description="Citation policy by tool name or pattern; a number cites results of more "
            'tokens: { Read = "never", "mcp__*" = "always", web_fetch = 2000 }.'
        ),
    ] = msgspec.field(default_factory=dict)
    offer_expand: Annotated[
        Literal["auto", "always", "when_cited", "inline", "never"],
        Meta(
            description="When requests get the tool expand_ref. auto: from the first request if "
            "the tool takes at most 1 % of it, else with the first citation that pays for "
            "rewriting the prompt cache; always: from the first request that has tools; "
            "when_cited: with the first citation; inline: like auto, but for OpenAI's models on "
            "Responses in a message after the cached prefix, so the cache stays valid; never: "
            "not at all."
        ),
    ] = "auto"
    open_ahead: Annotated[
        bool,
        Meta(
            description="Append the passage of hidden content that a new user message clearly asks "
            "for to that message, in at most 300 tokens, so the model need not open it."
        ),
    ] = True
    lazy_tools: Annotated[
        Literal["auto", "own", "provider", "never"],
        Meta(
            description="Replace the schemas of very many tools by a directory of their names; the "
            "model finds tools with find_tools and calls them with call_tool, and the client sees "
            "calls of its own tools. auto: use Anthropic's tool search at Anthropic's own address, "
            "else the proxy's; own: always the proxy's; provider: Anthropic's wherever the model "
            "supports it; never: send all schemas."
        ),
    ] = "auto"
    lazy_tool_tokens: Annotated[
        int,
        Meta(ge=1, description="Minimum tokens of tool schemas for lazy_tools to take effect."),
    ] = 40_000
    pinned_tools: Annotated[
        list[str],
        Meta(
            description="Tools whose schemas are always sent, by name or pattern: "
            '["Read", "mcp__github__*"].'
        ),
    ] = msgspec.field(default_factory=list)
    privacy_policy: Annotated[
        Literal["allow", "mask", "refuse"],
        Meta(
            description="Handling of secrets and personal data in content: allow them, mask them "
            "in citations, or refuse to store the content. Content that is not cited is sent to "
            "the provider unchanged, whatever the policy."
        ),
    ] = "allow"
    session_titles: Annotated[
        bool,
        Meta(
            description="Show a session's first question as its title in lists. Titles are never "
            "stored with privacy_policy = refuse, or if the question holds personal data."
        ),
    ] = True
    content_ttl_hours: Annotated[
        float,
        Meta(ge=0, description="Hours until stored content expires; 0: it never expires."),
    ] = 0.0
    worker_processes: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="Maximum processes that read large content, started on demand. 0: content "
            "is read in the main process, without limits on time and memory.",
        ),
    ] = 2
