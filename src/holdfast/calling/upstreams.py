"""Whose API is asked, where it is, and with which key: as the settings say.

upstreams: beside network; nothing is sent here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from holdfast.errors import SettingsError
from holdfast.settings import Settings

Family = Literal["openai", "anthropic", "gemini"]
"""Whose API it is: that of OpenAI is spoken by many."""

OFFICIAL: dict[Family, str] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
OWNERS: dict[Family, str] = {"openai": "OpenAI's", "anthropic": "Anthropic's", "gemini": "Gemini's"}


class Upstream(NamedTuple):
    """A provider's address, and the key to use there if the settings have one."""

    family: Family
    url: str
    key: str = ""

    @property
    def key_header(self) -> dict[str, str]:
        """The header that proves who asks; none without a key."""
        if not self.key:
            return {}
        if self.family == "openai":
            return {"authorization": f"Bearer {self.key}"}
        return {"x-api-key" if self.family == "anthropic" else "x-goog-api-key": self.key}

    def __repr__(self) -> str:
        return f"<Upstream {self.family}>"


def configured(settings: Settings) -> dict[Family, Upstream]:
    """The upstreams that the settings name.

    A key without an address means the vendor's own.
    """
    given: dict[Family, tuple[str, str]] = {
        "openai": (settings.openai_upstream, settings.openai_key),
        "anthropic": (settings.anthropic_upstream, settings.anthropic_key),
        "gemini": (settings.gemini_upstream, settings.gemini_key),
    }
    found: dict[Family, Upstream] = {}
    for family, (url, key) in given.items():
        if not url and not key:
            continue
        base = (url or OFFICIAL[family]).rstrip("/")
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise SettingsError(
                "the upstream is no HTTP address",
                where=f"{family}_upstream",
                fix=f"Give one such as {OFFICIAL[family]}, without a user name.",
            )
        found[family] = Upstream(family, base, key)
    return found
