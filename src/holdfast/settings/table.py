"""All settings of Holdfast, with type, bounds, description and default.

This module holds the settings of the answer cache, assembled turns and servers; `content`,
`background` and `upstreams` hold the others. The environment variables, the file keys, the checks,
`holdfast config` and the sample file are generated from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from holdfast.errors import SettingsError
from holdfast.settings.keys import Secret
from holdfast.settings.removed import REMOVED
from holdfast.settings.sources import user_data_folder
from holdfast.settings.upstreams import UpstreamSettings


class Settings(UpstreamSettings, frozen=True, kw_only=True):
    """All settings of Holdfast. Add a key together with the code that uses it."""

    removed: ClassVar[Mapping[str, str]] = REMOVED

    enable_answer_cache: Annotated[
        bool,
        Meta(
            description="Store responses, and return them for equal requests that ask for it "
            "(x-holdfast-answers) or match answer_rules."
        ),
    ] = True
    enable_semantic_cache: Annotated[
        bool,
        Meta(
            description="Return a stored response for a similar question in the same context, too. "
            "Needs the extra embeddings."
        ),
    ] = False
    answer_rules: Annotated[
        dict[str, Literal["off", "exact", "semantic"]],
        Meta(
            description="Requests that get stored responses without asking for them, by name or "
            "pattern of their model; the first match applies: "
            '{ "gpt-5-mini" = "exact", "*" = "off" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    answer_ttl_seconds: Annotated[
        float, Meta(gt=0, description="Seconds until a stored response expires.")
    ] = 3_600.0
    mode: Annotated[
        Literal["fit", "assemble"],
        Meta(
            description="How the proxy builds requests of clients that send their whole history: "
            "fit the history to the model, or assemble each turn from what it needs, within "
            "assemble_tokens. The request header x-holdfast-mode takes precedence."
        ),
    ] = "fit"
    assemble_tokens: Annotated[
        int,
        Meta(ge=200, description="Maximum input tokens of an assembled turn, tools included."),
    ] = 3_000
    profile: Annotated[
        dict[str, str],
        Meta(
            description="Profile of the user in the header of assembled turns, at most 100 tokens: "
            '{ project = "alfred", timezone = "Europe/Berlin", role = "engineer" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    use_tool_directory: Annotated[
        bool,
        Meta(
            description="List tools by name and intent, without their schemas, in the header of "
            "assembled turns."
        ),
    ] = True
    enable_cas_refs: Annotated[
        bool,
        Meta(
            description="Name stored results by their refs in assembled turns, and offer the tool "
            "that opens them."
        ),
    ] = True
    serve_host: Annotated[
        str,
        Meta(
            description="Address that the proxy listens on; addresses other than this machine's "
            "own need serve_token."
        ),
    ] = "127.0.0.1"
    serve_port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port of the proxy; 0: any free port.")
    ] = 8787
    serve_token: Annotated[
        Secret[str],
        Meta(
            description="Token that clients of the proxy send, as x-holdfast-token or as their API "
            "key, and hosts of `holdfast mcp --http` as a bearer token. In the dashboard it shows "
            "the sessions of everyone."
        ),
    ] = ""
    serve_tokens: Annotated[
        Secret[dict[str, str]],
        Meta(
            description="Tokens of teams or people by name, beside serve_token. In the proxy each "
            'has its own sessions and sees no others: { ann = "…", ben = "…" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    tenant_by: Annotated[
        Literal["key", "header", "none"],
        Meta(
            description="Which requests to the proxy share sessions and stored content: those with "
            "the same API key, with the same x-holdfast-tenant (needs a token), or all."
        ),
    ] = "key"
    serve_names: Annotated[
        list[str],
        Meta(
            description="Host names that the proxy and `holdfast mcp --http` answer to, beside "
            "those of this machine."
        ),
    ] = msgspec.field(default_factory=list)
    serve_workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Processes of the proxy, one per core that it may use. They share its port "
            "and its store; more than one need a store that is not in memory.",
        ),
    ] = 1
    serve_offline: Annotated[
        bool,
        Meta(
            description="Let the proxy's offline model answer for families without an upstream. It "
            "always does if no upstream is set."
        ),
    ] = False
    request_limit: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum input tokens of a request; 0: the limit of its model. For "
            "`holdfast mcp` the window of the models behind the hosts; 0: 200,000.",
        ),
    ] = 0
    context_debug: Annotated[
        bool,
        Meta(
            description="Log the decisions about the context of each request: ids and numbers, no "
            "content."
        ),
    ] = False
    on_store_failure: Annotated[
        Literal["pass", "refuse"],
        Meta(
            description="What the proxy does while the store is unavailable: pass requests through "
            "unchanged, or refuse them."
        ),
    ] = "pass"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="Format of log lines: key=value pairs, or JSON."),
    ] = "text"
    otel_endpoint: Annotated[
        str,
        Meta(
            description="OpenTelemetry collector that gets a span per request, such as "
            "http://localhost:4318; empty: none. Needs the extra otel."
        ),
    ] = ""

    @property
    def data_folder(self) -> Path | None:
        """Return the folder of `data_dir`; None if no home is known."""
        if self.data_dir == "auto":
            return user_data_folder()
        try:
            return Path(self.data_dir).expanduser()
        except RuntimeError:  # unknown user, or no home folder
            raise SettingsError(
                "there is no such home folder",
                where="data_dir",
                fix="Write the whole path instead of ~.",
            ) from None

    @property
    def content_ttl_seconds(self) -> float | None:
        """Return the seconds until stored content expires; None means never."""
        return _seconds(self.content_ttl_hours)

    @property
    def content_archive_ttl_seconds(self) -> float | None:
        """Return the seconds until archived content expires; None means never."""
        return _seconds(self.content_archive_ttl_hours)

    @property
    def summarization_cache_ttl_seconds(self) -> float | None:
        """Return the seconds until a stored summary expires; None means never."""
        return _seconds(self.summarization_cache_ttl_hours)


def _seconds(hours: float) -> float | None:
    """Return hours as a time to live; 0 means none in every setting."""
    return hours * 3600 if hours else None
