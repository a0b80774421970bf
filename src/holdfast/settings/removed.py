"""Removed settings, with advice on what to use instead.

A file or variable that sets one of them is an error, because ignoring the value would silently
change behaviour.
"""

from __future__ import annotations

_FAMILIES = ("openai", "anthropic", "gemini", "bedrock", "cohere")

REMOVED: dict[str, str] = {
    **{
        f"{family}_upstream": f"Set url in [upstreams.{family}], or the variable "
        f"HOLDFAST_UPSTREAMS__{family.upper()}__URL."
        for family in _FAMILIES
    },
    **{
        f"{family}_key": f"Set key in [upstreams.{family}], or the variable "
        f"HOLDFAST_UPSTREAMS__{family.upper()}__KEY."
        for family in _FAMILIES
    },
    "cite_max_tokens": "Remove it: a citation has at most 2,000 tokens. `holdfast cite` has "
    "--max-tokens.",
    "cite_repeats": "Remove it: repeated lines are always left out. A request with the header "
    "`x-holdfast-cite-repeats: off` keeps them; so does a tool with a rule in cite_tools.",
    "cite_share": "Remove it, or send the header x-holdfast-cite-share.",
    "cite_tokens": 'Set cite_tools = { "*" = N }, or send the header x-holdfast-cite-tokens.',
    "daily_dollars": "Set dollars in [daily_limit], or the variable HOLDFAST_DAILY_LIMIT__DOLLARS.",
    "daily_tokens": "Set tokens in [daily_limit], or the variable HOLDFAST_DAILY_LIMIT__TOKENS.",
    "lazy_tool_share": "Remove it: tools that take more than half of the limit are always set "
    "aside, unless lazy_tools = never. lazy_tool_tokens sets them aside earlier.",
    "lazy_tools_way": "Set lazy_tools to own or provider.",
    "max_connections": "Remove it: the proxy takes as many connections as its open files allow, "
    "up to 10,000. Lower `ulimit -n` to take fewer.",
    "max_expansion_rounds": "Remove it: one response may open stored content 8 times.",
    "max_expansion_tokens": "Remove it: one response may open 16,000 tokens of stored content.",
    "max_json_keys": "Remove it: a body may have 800,000 object keys. max_body_bytes limits its "
    "size.",
    "mcp_config": "Use `holdfast mcp --config FILE`.",
    "mcp_directory_tokens": "Remove it: the gateway's directory has at most 600 tokens.",
    "mcp_host": "Use `holdfast mcp --http --host ADDRESS`.",
    "mcp_listed_tokens": "Use `holdfast mcp --directory` or `--all`; without them, tools of at "
    "most 5,000 tokens are all listed.",
    "mcp_listing": "Use `holdfast mcp --directory` or `--all`.",
    "mcp_max_message_bytes": "Remove it: an MCP message has at most 32,000,000 bytes.",
    "mcp_names": "Set serve_names.",
    "mcp_port": "Use `holdfast mcp --http --port PORT`.",
    "mcp_token": "Set serve_token, or an entry of serve_tokens.",
    "mcp_window": "Set request_limit.",
    "offer_inline": "Set offer_expand = inline where it was always; else remove it.",
    "recall_embedder": "Set embedder.",
    "research_parallel": "Set parallel_calls.",
    "search_key": "Set key in [web_search], or the variable HOLDFAST_WEB_SEARCH__KEY.",
    "search_provider": "Set provider in [web_search], or the variable "
    "HOLDFAST_WEB_SEARCH__PROVIDER.",
    "search_url": "Set url in [web_search], or the variable HOLDFAST_WEB_SEARCH__URL.",
    "semantic_cache_sampled": "Remove it: only requests with temperature 0 share responses with "
    "similar questions.",
    "semantic_cache_similarity": "Remove it: similar questions are at least 0.97 alike.",
    "serve_drain_seconds": "Remove it: open responses get 600 seconds; a second signal ends them "
    "at once. The stop timeout of a service manager ends them earlier.",
    "summarization_parallel": "Set parallel_calls.",
    "summary_tokens_per_artifact": "Remove it: a summary has at most 120 tokens.",
    "summary_tokens_per_session": "Remove it: a session has at most 5,000 tokens of summaries. "
    "summary_tokens_per_day limits all of a user's.",
    "sweep_hours": "Remove it: expired data is removed every hour; background_jobs = false stops "
    "that.",
    "tool_directory_tokens": "Remove it: the directory of tools has at most 800 tokens.",
    "tool_embedder": "Set embedder.",
    "work_memory_mb": "Remove it: a worker has at most 1,000 MB. worker_processes = 0 reads "
    "content in the main process.",
    "work_seconds": "Remove it: large content of a request is read for at most 30 seconds.",
}
"""Former setting → what to do instead."""
