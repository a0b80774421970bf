"""Settings of what is read, kept and cited.

content: after definitions; table goes on from background, which goes on from here.
"""

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
    """What `model_context_overrides` says of a model or provider; None leaves it as it is."""

    context_window: Annotated[int, Meta(ge=1)] | None = None
    max_output_tokens: _Tokens | None = None
    output_reserved: _Tokens | None = None
    """Room kept for an answer whose size the request does not give."""
    mode: Literal["input_only", "combined"] | None = None
    """Whether the window is for input alone, or shared with output."""
    cli_overhead: _Tokens | None = None
    """What a command-line program puts before the user's text."""


class ContentSettings(Definitions, frozen=True, kw_only=True):
    """What is read, where it is kept, and what takes its place in a request."""

    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Largest request body that is read, in bytes.")
    ] = 33_554_432
    max_json_keys: Annotated[
        int, Meta(ge=1, description="Most object keys that a request body may hold.")
    ] = 800_000
    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="When the command line uses colour; auto: in a terminal."),
    ] = "auto"
    output: Annotated[
        Literal["auto", "table", "json"],
        Meta(description="What commands print; auto: a table in a terminal, JSON in a pipe."),
    ] = "auto"
    data_dir: Annotated[
        str,
        Meta(
            description="Folder for what Holdfast keeps, ~ being your home; auto: the user's "
            "data folder."
        ),
    ] = "auto"
    store_url: Annotated[
        Secret[str],
        Meta(
            description="Where originals are kept: memory:, sqlite:///path or postgresql://…; "
            "empty: holdfast.db in data_dir."
        ),
    ] = ""
    model_context_overrides: Annotated[
        dict[str, ModelLimits],
        Meta(
            description="Limits that win over our own, by model or provider: "
            '{ "gemini:flash" = { context_window = 1000000, output_reserved = 8192 } }.'
        ),
    ] = msgspec.field(default_factory=dict)
    cite_policy: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Which tool results are cited when they arrive: where it pays, every one "
            "over cite_threshold, or none."
        ),
    ] = "auto"
    cite_threshold: Annotated[
        int,
        Meta(
            ge=1,
            description="Content of more characters than this is cited; with cite_policy auto, "
            "shorter tool results never are.",
        ),
    ] = 1000
    cite_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="With cite_policy auto: results of more tokens are cited, whatever they "
            "are; 0: each is weighed.",
        ),
    ] = 0
    cite_share: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="With cite_policy auto: share of the window that one result may take, "
            "less as it fills; 0: the policy's own.",
        ),
    ] = 0.0
    cite_tools: Annotated[
        dict[str, Literal["auto", "always", "never"] | Annotated[int, Meta(ge=1)]],
        Meta(
            description="Other rules for some tools, by name or pattern; a number is the most "
            'tokens that stay whole: { Read = "never", "mcp__*" = "always", web_fetch = 2000 }.'
        ),
    ] = msgspec.field(default_factory=dict)
    cite_repeats: Annotated[
        bool,
        Meta(
            description="With cite_policy auto: whether lines of a result that stand above already "
            "are left out of it, with a line that says where they were shown."
        ),
    ] = True
    cite_max_tokens: Annotated[
        int,
        Meta(
            ge=60,
            description="Most tokens that a citation may cost: 400 of them always, more as the "
            "content is longer and the window has room.",
        ),
    ] = 2000
    offer_expand: Annotated[
        Literal["auto", "always", "when_cited", "never"],
        Meta(
            description="When requests get the tool that opens refs. auto: from the first request "
            "on if the tool is at most 1 % of it, else with the first citation that pays for the "
            "rewritten prompt cache; always: from the first request that has tools; when_cited: "
            "with the first citation; never: not at all."
        ),
    ] = "auto"
    open_ahead: Annotated[
        bool,
        Meta(
            description="Whether the passage of a hidden content that a new user message clearly "
            "asks for is appended to that message, in at most 300 tokens, so that the model need "
            "not open it."
        ),
    ] = True
    offer_inline: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Whether that tool comes in a message instead, behind what is cached, with "
            "the first citation: where the client's own request shows that its API takes tools "
            "there, always with OpenAI's own models on Responses too, or never."
        ),
    ] = "auto"
    lazy_tools: Annotated[
        Literal["auto", "never"],
        Meta(
            description="Whether the proxy sets the schemas of very many tools aside: a directory "
            "names them, the model finds them with find_tools and calls them with call_tool, and "
            "the client sees calls of its own tools."
        ),
    ] = "auto"
    lazy_tools_way: Annotated[
        Literal["auto", "own", "provider"],
        Meta(
            description="Who holds these schemas back: the proxy, with its own two tools (own), or "
            "Anthropic for models that are documented to (provider); auto: Anthropic where its own "
            "address is asked, else the proxy."
        ),
    ] = "auto"
    lazy_tool_tokens: Annotated[
        int,
        Meta(ge=1, description="Tokens of tools from which on their schemas are set aside."),
    ] = 40_000
    lazy_tool_share: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Share of a request's limit: tools that take more are set aside whatever "
            "lazy_tool_tokens says.",
        ),
    ] = 0.5
    pinned_tools: Annotated[
        list[str],
        Meta(
            description="Tools whose schemas always stay in the request, by name or pattern: "
            '["Read", "mcp__github__*"].'
        ),
    ] = msgspec.field(default_factory=list)
    tool_directory_tokens: Annotated[
        int,
        Meta(ge=0, description="Most tokens of the directory that stands for schemas set aside."),
    ] = 800
    privacy_policy: Annotated[
        Literal["allow", "mask", "refuse"],
        Meta(
            description="Secrets and personal data in contents: allow, mask them in citations, or "
            "refuse to store the content. No value keeps them from the provider: a content that "
            "is not cited is sent as the client wrote it."
        ),
    ] = "allow"
    session_titles: Annotated[
        bool,
        Meta(
            description="Whether a session is called by its first question in lists. With "
            "privacy_policy = refuse it never is, nor where the question holds anything private."
        ),
    ] = True
    content_ttl_hours: Annotated[
        float, Meta(ge=0, description="How long originals stay fresh, in hours; 0 is for good.")
    ] = 0.0
    worker_processes: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="Processes that large contents are read in, started when needed; 0: they "
            "are read in the program itself, without the two limits that follow.",
        ),
    ] = 2
    work_seconds: Annotated[
        float,
        Meta(
            gt=0,
            description="How long the large contents of one request may be read, or one of them "
            "be opened; then a citation shows their ends.",
        ),
    ] = 30.0
    work_memory_mb: Annotated[
        int,
        Meta(ge=100, description="Most memory that reading a large content may take, in MB."),
    ] = 1000
