"""Settings of background jobs, allocation, memory, research and summaries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.content import ContentSettings
from holdfast.settings.keys import Secret


class WebSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search service that research uses."""

    provider: Literal["none", "searxng", "tavily", "brave"] = "none"
    url: str = ""
    """Base URL of the service; empty: that of Tavily or Brave."""
    key: Secret[str] = ""
    """API key of Tavily or Brave."""

    def __repr__(self) -> str:
        return f"<WebSearch {self.provider}>"


class BackgroundSettings(ContentSettings, frozen=True, kw_only=True):
    """Background jobs, allocation, memory, research and summaries."""

    background_jobs: Annotated[
        bool,
        Meta(
            description="Run queued jobs in the background of the library and the proxy. off: only "
            "`holdfast jobs worker` runs them."
        ),
    ] = True
    sweep_idle_days: Annotated[
        float,
        Meta(
            ge=0,
            description="Days without use after which a session is closed and the content that "
            "only it refers to is deleted; 0: never.",
        ),
    ] = 0.0
    retain_days: Annotated[
        float,
        Meta(
            ge=0,
            description="Days without use after which a session is deleted with all its data, and "
            "content that belongs to no session likewise; 0: never.",
        ),
    ] = 0.0
    summary_tokens_per_day: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum tokens of summaries per user, tenant and day (UTC); jobs over the "
            "maximum wait for the next day.",
        ),
    ] = 50_000
    token_management_enabled: Annotated[
        bool,
        Meta(
            description="Fit requests in the proxy and prompts in allocation. off: everything "
            "passes through unchanged."
        ),
    ] = True
    token_safety_margin: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="Share of a phase's budget that is left free for counting errors.",
        ),
    ] = 0.1
    analysis_budget_percent: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Share of a model's context for sources in an analysis or a refinement.",
        ),
    ] = 0.8
    synthesis_budget_percent: Annotated[
        float,
        Meta(gt=0, le=1, description="Share of a model's context for sources in a synthesis."),
    ] = 0.85
    allow_content_dropping: Annotated[
        bool,
        Meta(
            description="Leave content out of a prompt if no form of it fits. off: raise an error "
            "instead."
        ),
    ] = True
    min_items_per_phase: Annotated[
        int,
        Meta(
            ge=0,
            description="Minimum number of items in a prompt, however short each is; an error if "
            "they do not fit.",
        ),
    ] = 3
    enable_content_citations: Annotated[
        bool,
        Meta(description="Replace long results by citations. off: results are sent in full."),
    ] = True
    embedder: Annotated[
        Literal["wordllama", "minilm", "words"],
        Meta(
            description="Embedder of memory recall and tool search: wordllama (extra embeddings; "
            "words if it is not installed), minilm (extra embed; better and much slower), or words "
            "alone. Run `holdfast memory recall --reindex` after a change."
        ),
    ] = "wordllama"
    enable_facts_ledger: Annotated[
        bool,
        Meta(
            description="Extract facts from cited results and remembered messages. off: only facts "
            "that are added by hand are known."
        ),
    ] = True
    content_archive_enabled: Annotated[
        bool, Meta(description="Keep originals on disk in the content archive.")
    ] = False
    content_archive_ttl_hours: Annotated[
        float,
        Meta(ge=0, description="Hours until archived content expires; 0: it never expires."),
    ] = 72.0
    research_archive_dir: Annotated[
        str, Meta(description="Folder of the content archive; empty: archive in data_dir.")
    ] = ""
    allow_urls: Annotated[
        bool,
        Meta(
            description="Let research read web pages. Addresses in private networks are always "
            "refused."
        ),
    ] = False
    web_search: Annotated[
        WebSearch,
        Meta(
            description="Search service that finds further pages for research, if allow_urls is "
            "on; provider is none, searxng (with a url), tavily or brave (with a key): "
            '{ provider = "searxng", url = "http://localhost:8080" }.'
        ),
    ] = msgspec.field(default_factory=WebSearch)
    parallel_calls: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Maximum concurrent model calls of a summary or a research, and of sources "
            "that a research reads.",
        ),
    ] = 4
    summarization_provider: Annotated[
        str,
        Meta(
            description="Model that writes summaries, such as [cli]gemini:flash or "
            "openai:gpt-5-mini; empty: summaries are quotations, without a model."
        ),
    ] = ""
    summarization_providers: Annotated[
        list[str],
        Meta(description="Fallback models, tried in this order after summarization_provider."),
    ] = msgspec.field(default_factory=list)
    summarization_timeout: Annotated[
        float, Meta(gt=0, description="Timeout of a request to a summary model in seconds.")
    ] = 120.0
    summarization_max_retries: Annotated[
        int,
        Meta(ge=0, le=100, description="Maximum retries after a summary model has failed."),
    ] = 2
    summarization_retry_delay: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds before a retry. A longer delay that the provider asks for is "
            "obeyed, up to summarization_timeout.",
        ),
    ] = 3.0
    summarization_cache_enabled: Annotated[
        bool, Meta(description="Store summaries that models wrote, and reuse them.")
    ] = True
    summarization_cache_ttl_hours: Annotated[
        float,
        Meta(ge=0, description="Hours until a stored summary expires; 0: it never expires."),
    ] = 24.0
    summarization_prompt_version: Annotated[
        str,
        Meta(description="Version of the summary prompt. A new value discards stored summaries."),
    ] = "v1"
    summarization_truncate_fallback: Annotated[
        bool,
        Meta(
            description="Truncate a summary that is too long at every level, with a warning. off: "
            "ask the next model."
        ),
    ] = True
    summarization_extractive: Annotated[
        bool,
        Meta(
            description="Quote the content if no model could summarise it. off: raise an error "
            "instead."
        ),
    ] = True
    summarization_commands: Annotated[
        dict[str, list[str]],
        Meta(
            description="Commands of [cli] models by name; the prompt is written to their standard "
            'input: { mine = ["mine", "--model", "{model}"] }.'
        ),
    ] = msgspec.field(default_factory=dict)
    forbid_model_calls: Annotated[
        bool,
        Meta(
            description="Refuse calls to models outside this machine, as in tests; [cli] programs "
            "are refused too."
        ),
    ] = False
