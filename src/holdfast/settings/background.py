"""Settings of summaries, allocation, and work behind the answers.

background: after content, before table.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.content import ContentSettings
from holdfast.settings.keys import Secret


class BackgroundSettings(ContentSettings, frozen=True, kw_only=True):
    """What is made of contents, by whom, and how much of it there may be."""

    background_jobs: Annotated[
        bool,
        Meta(
            description="Whether the library and the proxy do jobs of the queue beside their own "
            "work; off: only `holdfast jobs worker` does."
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
    retain_days: Annotated[
        float,
        Meta(
            ge=0,
            description="Sessions that nobody has used for so many days are deleted by the sweep "
            "and by `holdfast store gc`, with all that is theirs; so is what belongs to no session "
            "and is as old; 0: nothing is deleted by its age.",
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
    recall_embedder: Annotated[
        Literal["wordllama", "minilm", "words"],
        Meta(
            description="By which meaning recall compares what was said: wordllama's, if the extra "
            "embeddings is installed; minilm's, better and slower, which needs the extra embed; or "
            "none, by words alone. After a change, `holdfast memory recall --reindex`."
        ),
    ] = "wordllama"
    tool_embedder: Annotated[
        Literal["wordllama", "minilm", "words"],
        Meta(
            description="By which meaning tools are searched: wordllama's, if the extra embeddings "
            "is installed; minilm's beside it, better and much slower, which needs the extra "
            "embed; or none, by words alone."
        ),
    ] = "wordllama"
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
    allow_urls: Annotated[
        bool,
        Meta(
            description="Whether research may read pages of the web; addresses of private "
            "networks never are."
        ),
    ] = False
    search_provider: Annotated[
        Literal["none", "searxng", "tavily", "brave"],
        Meta(
            description="Who finds further pages for a research, if allow_urls is on; none: only "
            "the sources that were given are searched."
        ),
    ] = "none"
    search_url: Annotated[
        str,
        Meta(
            description="Address of the search provider, such as http://localhost:8080 for a "
            "SearXNG; empty: tavily's or brave's own."
        ),
    ] = ""
    search_key: Annotated[Secret[str], Meta(description="Key for tavily or brave.")] = ""
    research_parallel: Annotated[
        int,
        Meta(ge=1, le=64, description="Most sources that are read, and models asked, at once."),
    ] = 4
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
