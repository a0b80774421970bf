"""Every setting of Holdfast: its type with bounds, what it means, its default.

table: the last of this folder; answers, turns and the proxy stand here, the rest in content,
background, gateway and upstreams. From each field come the environment variable, the key of
`holdfast.toml`, the checks, the output of `holdfast config` and the sample file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.errors import SettingsError
from holdfast.settings.keys import Secret
from holdfast.settings.sources import user_data_folder
from holdfast.settings.upstreams import UpstreamSettings


class Settings(UpstreamSettings, frozen=True, kw_only=True):
    """Every setting of Holdfast. A key arrives with the code that obeys it, never before."""

    enable_answer_cache: Annotated[
        bool,
        Meta(
            description="Whether answers are kept, and given again for equal requests that ask for "
            "it (x-holdfast-answers) or match answer_rules; off: none is."
        ),
    ] = True
    enable_semantic_cache: Annotated[
        bool,
        Meta(
            description="Whether an answer may also be given for a like question in the same "
            "context. Needs the extra embeddings."
        ),
    ] = False
    answer_rules: Annotated[
        dict[str, Literal["off", "exact", "semantic"]],
        Meta(
            description="Requests that are answered from memory unasked, by the name or pattern of "
            'their model; the first that fits counts: { "gpt-5-mini" = "exact", "*" = "off" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    answer_ttl_seconds: Annotated[
        float, Meta(gt=0, description="How long an answer may be given again, from when it came.")
    ] = 3_600.0
    semantic_cache_similarity: Annotated[
        float,
        Meta(
            ge=0.5,
            le=1,
            description="How alike two questions must be to share an answer; what their guards "
            "(numbers, names, negations, …) say counts beside it.",
        ),
    ] = 0.97
    semantic_cache_sampled: Annotated[
        bool,
        Meta(
            description="Whether like questions share answers even where the request leaves the "
            "model a choice: a temperature that is not 0, or none."
        ),
    ] = False
    mode: Annotated[
        Literal["fit", "assemble"],
        Meta(
            description="How the proxy makes requests of clients that send their whole history: "
            "fit them to the model, or assemble each turn of what matters, within "
            "assemble_tokens; a request's x-holdfast-mode says otherwise."
        ),
    ] = "fit"
    assemble_tokens: Annotated[
        int,
        Meta(ge=200, description="Most input tokens of an assembled turn, tools included."),
    ] = 3_000
    profile: Annotated[
        dict[str, str],
        Meta(
            description="A card of the user in the header of assembled turns, at most 100 tokens: "
            '{ project = "alfred", timezone = "Europe/Berlin", role = "engineer" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    use_tool_directory: Annotated[
        bool,
        Meta(
            description="Whether the header of assembled turns lists tools by name and intent, "
            "without their schemas."
        ),
    ] = True
    enable_cas_refs: Annotated[
        bool,
        Meta(
            description="Whether assembled turns name stored results by their refs, and offer the "
            "tool that opens them."
        ),
    ] = True
    serve_host: Annotated[
        str,
        Meta(
            description="Address that the proxy listens on; others than this machine's own "
            "need serve_token."
        ),
    ] = "127.0.0.1"
    serve_port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port of the proxy; 0: any that is free.")
    ] = 8787
    serve_token: Annotated[
        Secret[str],
        Meta(
            description="What clients of the proxy must send, as x-holdfast-token or as "
            "their API key; in the dashboard it shows everyone's sessions."
        ),
    ] = ""
    serve_tokens: Annotated[
        Secret[dict[str, str]],
        Meta(
            description="Tokens of teams or people by their names, beside serve_token: each has "
            'sessions of its own, and sees no others: { ann = "…", ben = "…" }.'
        ),
    ] = msgspec.field(default_factory=dict)
    tenant_by: Annotated[
        Literal["key", "header", "none"],
        Meta(
            description="Who shares sessions and stored content in the proxy: requests with the "
            "same API key, with the same x-holdfast-tenant (needs a token), or all."
        ),
    ] = "key"
    serve_names: Annotated[
        list[str],
        Meta(description="Host names that the proxy answers to, beside this machine's own."),
    ] = msgspec.field(default_factory=list)
    serve_workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Processes of the proxy, which share its port and its store: one for each "
            "core that it may use. More than one need a store that is not in memory.",
        ),
    ] = 1
    serve_drain_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="How long open answers may go on after the proxy was told to stop "
            "(SIGTERM, Ctrl-C); a second signal ends them at once.",
        ),
    ] = 600.0
    serve_offline: Annotated[
        bool,
        Meta(
            description="Whether the proxy's offline model answers for families without an "
            "upstream; where no upstream is set at all, it does."
        ),
    ] = False
    max_connections: Annotated[
        int,
        Meta(
            ge=0,
            description="Most requests that the proxy works on at once; others are told to come "
            "again. 0: as many as its open files allow, up to 10,000.",
        ),
    ] = 0
    request_limit: Annotated[
        int, Meta(ge=0, description="Most input tokens of a request; 0: what the model can take.")
    ] = 0
    max_expansion_rounds: Annotated[
        int,
        Meta(ge=1, description="How often one answer may open stored content before it must end."),
    ] = 8
    max_expansion_tokens: Annotated[
        int, Meta(ge=200, description="Most tokens of stored content that one answer may open.")
    ] = 16_000
    context_debug: Annotated[
        bool,
        Meta(
            description="Whether the proxy logs what was decided of each request's context, and "
            "the guard's looks at it: ids and numbers, no content."
        ),
    ] = False
    on_store_failure: Annotated[
        Literal["pass", "refuse"],
        Meta(
            description="What the proxy does while the store is unavailable: pass requests "
            "through as they are, or refuse them."
        ),
    ] = "pass"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="How the proxy logs: lines of key=value, or of JSON."),
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
        """The folder that `data_dir` means; None if there is nowhere."""
        if self.data_dir == "auto":
            return user_data_folder()
        try:
            return Path(self.data_dir).expanduser()
        except RuntimeError:  # a user whom nobody knows, or no home at all
            raise SettingsError(
                "there is no such home folder",
                where="data_dir",
                fix="Write the whole path instead of ~.",
            ) from None

    @property
    def content_ttl_seconds(self) -> float | None:
        """How long originals stay fresh; None is for good."""
        return _seconds(self.content_ttl_hours)

    @property
    def content_archive_ttl_seconds(self) -> float | None:
        """How long the archive keeps an original; None is for good."""
        return _seconds(self.content_archive_ttl_hours)

    @property
    def summarization_cache_ttl_seconds(self) -> float | None:
        """How long summaries are kept; None is for good."""
        return _seconds(self.summarization_cache_ttl_hours)


def _seconds(hours: float) -> float | None:
    """Hours as a time to live: 0 is none, in every setting, for keeping is what we are for."""
    return hours * 3600 if hours else None
