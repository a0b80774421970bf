"""Settings of upstreams: addresses, keys, models and daily limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.settings.background import BackgroundSettings
from holdfast.settings.keys import Secret


class UpstreamEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `upstreams`.

    The entries openai, anthropic, gemini, bedrock and cohere are the default upstreams of these
    API families; they have only `url` and `key`.
    """

    url: str = ""
    """Base URL. A family's entry without one means the vendor's own, if it has a key."""
    speaks: Literal["openai", "openai-chat", "anthropic", "gemini", "bedrock", "cohere"] = "openai"
    """API of the upstream; `openai-chat` is OpenAI's API without Responses. Bedrock and Cohere
    upstreams serve their own clients only: nothing is translated from or to them."""
    models: list[str] = msgspec.field(default_factory=lambda: ["*"])
    """Names or patterns of the models that are requested here."""
    model: str = ""
    """Name of the model at this upstream; empty: the requested name."""
    key: Secret[str] = ""
    """API key. A family without one gets the client's own key; other upstreams never do, because
    that key belongs to the vendor."""

    def __repr__(self) -> str:
        return f"<UpstreamEntry {self.url}>"


class DailyLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The maximum use of one tenant per day (UTC); 0: unlimited."""

    tokens: Annotated[int, Meta(ge=0)] = 0
    """Input and output tokens."""
    dollars: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars, for models whose price is known."""


class UpstreamSettings(BackgroundSettings, frozen=True, kw_only=True):
    """Addresses, keys, models and daily limits of upstreams."""

    upstreams: Annotated[
        dict[str, UpstreamEntry],
        Meta(
            description="Upstreams by name. openai, anthropic, gemini, bedrock and cohere have a "
            "url and a key, each optional: without a url a key is used at the vendor's address, "
            "without a key the client's own is passed on. Other names are asked first, in this "
            "order, for the models they list, and the next one follows if one cannot be reached "
            'or responds with 429 or 5xx: { openai = { key = "" }, local = { url = '
            '"http://localhost:11434", speaks = "openai-chat", models = ["claude-*"], model = '
            '"qwen3", key = "" } }.'
        ),
    ] = msgspec.field(default_factory=dict)
    upstream_idle_seconds: Annotated[
        float,
        Meta(ge=1, description="Seconds that the proxy waits for the next byte of an upstream."),
    ] = 300.0
    daily_limit: Annotated[
        DailyLimit,
        Meta(
            description="Maximum use per tenant (see tenant_by) and day (UTC): input and output "
            "tokens, and US dollars where prices are known; 0: unlimited."
        ),
    ] = msgspec.field(default_factory=DailyLimit)
    model_aliases: Annotated[
        dict[str, str],
        Meta(
            description="Model names that clients may use, and the models that are requested "
            'instead: { fast = "gpt-5-mini" }.'
        ),
    ] = msgspec.field(default_factory=dict)

    def upstream(self, family: str) -> UpstreamEntry:
        """Return the entry of an API family, empty if the settings have none."""
        return self.upstreams.get(family) or UpstreamEntry()
