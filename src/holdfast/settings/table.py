"""Every setting of Holdfast: its type with bounds, what it means, its default.

table: the last of this folder. From each field come the environment variable, the key of
`holdfast.toml`, the checks, the output of `holdfast config` and the sample file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.errors import SettingsError
from holdfast.settings.definitions import Definitions
from holdfast.settings.keys import Secret
from holdfast.settings.sources import user_data_folder

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


class Settings(Definitions, frozen=True, kw_only=True):
    """Every setting of Holdfast. A key arrives with the code that obeys it, never before."""

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
    cite_max_tokens: Annotated[
        int,
        Meta(
            ge=60,
            description="Most tokens that a citation may cost: 400 of them always, more as the "
            "content is longer and the window has room.",
        ),
    ] = 2000
    offer_expand: Annotated[
        Literal["always", "when_cited", "never"],
        Meta(
            description="When requests get the tool that opens refs: with their own tools from the "
            "start, with the first citation (which breaks the vendor's cache once), or not at all."
        ),
    ] = "always"
    offer_inline: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Whether that tool comes in a message instead, behind what is cached, with "
            "the first citation: where the client's own request shows that its API takes tools "
            "there, always with OpenAI's own models on Responses too, or never."
        ),
    ] = "auto"
    privacy_policy: Annotated[
        Literal["allow", "mask", "refuse"],
        Meta(
            description="Secrets and personal data in what is cited: allow, "
            "mask them in citations, or refuse to store it."
        ),
    ] = "allow"
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
    background_jobs: Annotated[
        bool,
        Meta(
            description="Whether the library and the proxy do jobs of the queue beside their own "
            "work; off: only `holdfast worker` does."
        ),
    ] = True
    sweep_hours: Annotated[
        float,
        Meta(
            ge=0,
            description="How often what is out of date is removed by itself, in hours: originals "
            "past their time, and what closed sessions left; 0: only by `holdfast store gc`.",
        ),
    ] = 1.0
    sweep_idle_days: Annotated[
        float,
        Meta(
            ge=0,
            description="Sessions that nobody has used for so many days are closed by the sweep, "
            "and what only they refer to goes; 0: none is.",
        ),
    ] = 0.0
    summary_tokens_per_session: Annotated[
        int, Meta(ge=1, description="Most tokens of summaries that a session may be given.")
    ] = 5_000
    summary_tokens_per_day: Annotated[
        int,
        Meta(
            ge=1,
            description="Most tokens of summaries in a day (UTC), for each user and tenant; what "
            "is over waits for the next.",
        ),
    ] = 50_000
    summary_tokens_per_artifact: Annotated[
        int, Meta(ge=1, description="Most tokens of the summary of one content.")
    ] = 120
    token_management_enabled: Annotated[
        bool,
        Meta(
            description="Whether the proxy makes requests fit and allocation makes prompts fit; "
            "off: everything passes through, byte for byte."
        ),
    ] = True
    token_safety_margin: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="Share of a phase's budget that is left free for errors of counting.",
        ),
    ] = 0.1
    analysis_budget_percent: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Share of a model's context that sources may take in an analysis or a "
            "refinement.",
        ),
    ] = 0.8
    synthesis_budget_percent: Annotated[
        float,
        Meta(
            gt=0, le=1, description="Share of a model's context that they may take in a synthesis."
        ),
    ] = 0.85
    allow_content_dropping: Annotated[
        bool,
        Meta(
            description="Whether contents that do not fit in any form are left out of a prompt; "
            "off: that is an error."
        ),
    ] = True
    min_items_per_phase: Annotated[
        int,
        Meta(
            ge=0,
            description="How many contents a prompt must hold, however little of each; if not even "
            "they fit, that is an error.",
        ),
    ] = 3
    enable_content_citations: Annotated[
        bool,
        Meta(description="Whether results of an agent's actions are cited; else they stay whole."),
    ] = True
    enable_facts_ledger: Annotated[
        bool,
        Meta(
            description="Whether facts are taken from results when they are cited, and from "
            "messages when they are remembered; off: only what is added by hand is known."
        ),
    ] = True
    content_archive_enabled: Annotated[
        bool, Meta(description="Whether the content archive keeps originals on the disk.")
    ] = False
    content_archive_ttl_hours: Annotated[
        float,
        Meta(
            ge=0,
            description="How long the archive keeps an original, in hours; 0 is for good.",
        ),
    ] = 72.0
    research_archive_dir: Annotated[
        str, Meta(description="Folder of the content archive; empty: archive in data_dir.")
    ] = ""
    summarization_provider: Annotated[
        str,
        Meta(
            description="The provider that summaries are asked of, such as [cli]gemini:flash or "
            "openai:gpt-5-mini; empty: quotations, without a model."
        ),
    ] = ""
    summarization_providers: Annotated[
        list[str],
        Meta(description="Providers that are asked in turn where the one before fails."),
    ] = msgspec.field(default_factory=list)
    summarization_timeout: Annotated[
        float, Meta(gt=0, description="How long a provider may take for one answer, in seconds.")
    ] = 120.0
    summarization_max_retries: Annotated[
        int,
        Meta(ge=0, le=100, description="How often a provider is asked again after it has failed."),
    ] = 2
    summarization_retry_delay: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds before a provider is asked again; a longer wait that it asks for "
            "itself is kept, up to summarization_timeout.",
        ),
    ] = 3.0
    summarization_cache_enabled: Annotated[
        bool, Meta(description="Whether summaries by models are kept, and used again.")
    ] = True
    summarization_cache_ttl_hours: Annotated[
        float, Meta(ge=0, description="How long they are kept, in hours; 0 is for good.")
    ] = 24.0
    summarization_prompt_version: Annotated[
        str, Meta(description="A name for the prompt; with another one every summary is made anew.")
    ] = "v1"
    summarization_truncate_fallback: Annotated[
        bool,
        Meta(
            description="Whether a summary that is too long at every level is cut, with a warning; "
            "else the next provider is asked."
        ),
    ] = True
    summarization_extractive: Annotated[
        bool,
        Meta(
            description="Whether quotations take the place of a summary that no provider could "
            "make; off: that is an error."
        ),
    ] = True
    summarization_parallel: Annotated[
        int,
        Meta(ge=1, le=64, description="Most parts of contents that are summarised at once."),
    ] = 4
    summarization_commands: Annotated[
        dict[str, list[str]],
        Meta(
            description="How programs behind [cli] are run, by name; the prompt is their input: "
            '{ mine = ["mine", "--model", "{model}"] }.'
        ),
    ] = msgspec.field(default_factory=dict)
    forbid_model_calls: Annotated[
        bool,
        Meta(
            description="Whether no model may be asked but those of this machine, as in tests; "
            "programs count as others."
        ),
    ] = False
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
    openai_upstream: Annotated[
        str,
        Meta(
            description="Address of an API like OpenAI's, such as https://api.openai.com or "
            "http://localhost:11434; empty without openai_key: none."
        ),
    ] = ""
    openai_key: Annotated[
        Secret[str], Meta(description="Key for openai_upstream; empty: the client's own.")
    ] = ""
    anthropic_upstream: Annotated[
        str,
        Meta(description="Address of Anthropic's API; empty without anthropic_key: none."),
    ] = ""
    anthropic_key: Annotated[
        Secret[str], Meta(description="Key for anthropic_upstream; empty: the client's own.")
    ] = ""
    gemini_upstream: Annotated[
        str,
        Meta(description="Address of Gemini's API; empty without gemini_key: none."),
    ] = ""
    gemini_key: Annotated[
        Secret[str], Meta(description="Key for gemini_upstream; empty: the client's own.")
    ] = ""
    upstream_idle_seconds: Annotated[
        float, Meta(ge=1, description="How long the proxy waits for the next byte of an upstream.")
    ] = 300.0
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
