"""Settings of the providers behind the proxy: where they are, and which models they are asked for.

upstreams: after gateway, before table.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.gateway import GatewaySettings
from holdfast.settings.keys import Secret


class NamedUpstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An upstream beside those of the families, as the settings file writes it."""

    url: str
    speaks: Literal["openai", "openai-chat", "anthropic", "gemini", "bedrock", "cohere"] = "openai"
    """Whose API it has; `openai-chat` is that of OpenAI without its Responses. Those of Bedrock and
    Cohere answer their own clients only: nothing is translated from or to them."""
    models: list[str] = msgspec.field(default_factory=lambda: ["*"])
    """Names or patterns of the models that it is asked for."""
    model: str = ""
    """What the model is called there; empty: as it was asked for."""
    key: str = ""
    """It gets this one or none: a client's own key is for the vendor whose client it is."""


class UpstreamSettings(GatewaySettings, frozen=True, kw_only=True):
    """Who answers: an address for each family, and any number of others for some models."""

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
    bedrock_upstream: Annotated[
        str,
        Meta(
            description="Address of Bedrock's runtime, such as "
            "https://bedrock-runtime.eu-west-1.amazonaws.com; empty without bedrock_key: none."
        ),
    ] = ""
    bedrock_key: Annotated[
        Secret[str],
        Meta(
            description="API key for bedrock_upstream, which also stands in for clients' AWS "
            "signatures; empty: the client's own."
        ),
    ] = ""
    cohere_upstream: Annotated[
        str,
        Meta(description="Address of Cohere's API; empty without cohere_key: none."),
    ] = ""
    cohere_key: Annotated[
        Secret[str], Meta(description="Key for cohere_upstream; empty: the client's own.")
    ] = ""
    upstream_idle_seconds: Annotated[
        float, Meta(ge=1, description="How long the proxy waits for the next byte of an upstream.")
    ] = 300.0
    upstreams: Annotated[
        Secret[dict[str, NamedUpstream]],
        Meta(
            description="Other upstreams by their names, tried in this order before that of the "
            "family, each for the models it lists; the next is asked where one cannot be reached "
            'or answers 429 or 5xx: { local = { url = "http://localhost:11434", speaks = '
            '"openai-chat", models = ["claude-*"], model = "qwen3", key = "" } }.'
        ),
    ] = msgspec.field(default_factory=dict)
    daily_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Most tokens, input and output, that requests of one tenant (see "
            "tenant_by) may use in a day of UTC; 0: any number.",
        ),
    ] = 0
    daily_dollars: Annotated[
        float,
        Meta(
            ge=0,
            description="Most US dollars of one tenant in a day, where prices are known; 0: any.",
        ),
    ] = 0.0
    model_aliases: Annotated[
        dict[str, str],
        Meta(
            description="Names that clients may use for models, and what is asked for instead: "
            '{ fast = "gpt-5-mini" }.'
        ),
    ] = msgspec.field(default_factory=dict)
