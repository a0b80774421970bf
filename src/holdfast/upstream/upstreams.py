"""The upstreams of the settings: their API, address and key.

upstreams: beside network; nothing is sent here.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast
from urllib.parse import urlsplit

from holdfast.errors import SettingsError
from holdfast.fitting.policy import matches
from holdfast.settings import Settings, UpstreamEntry
from holdfast.wire.responses import CONTINUED

Family = Literal["openai", "anthropic", "gemini", "bedrock", "cohere"]
"""Whose API it is: that of OpenAI is spoken by many."""

OFFICIAL: dict[Family, str] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "cohere": "https://api.cohere.com",
}
FAMILY_OF: dict[str, Family] = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "converse": "bedrock",
    "cohere": "cohere",
}
DIALECT_OF: dict[Family, str] = {
    "openai": "openai-chat",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "bedrock": "converse",
    "cohere": "cohere",
}
"""The dialect of a family, unless its client uses another one of that family."""
PASSED_ON = frozenset(family for family, dialect in DIALECT_OF.items() if dialect not in CONTINUED)
"""Whose answers only pass: nobody else answers for them, the offline model neither."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
VENDORS: dict[Family, str] = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "bedrock": "Bedrock",
    "cohere": "Cohere",
}
OWNERS: dict[Family, str] = {family: f"{vendor}'s" for family, vendor in VENDORS.items()}
_KEY_HEADERS: dict[Family, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""The header with the key where that is not `authorization`."""


class Upstream(NamedTuple):
    """A provider's address, and the key to use there if the settings have one."""

    family: Family
    url: str
    key: str = ""
    name: str = ""
    """Of one beside those of the families; such a one never gets a client's own key."""
    chats_only: bool = False
    """It has OpenAI's chat, and not its Responses."""

    @property
    def key_header(self) -> dict[str, str]:
        """The header that proves who asks; none without a key."""
        if not self.key:
            return {}
        if (urlsplit(self.url).hostname or "").endswith(".azure.com") and self.family == "openai":
            return {"api-key": self.key}
        if self.family in _KEY_HEADERS:
            return {_KEY_HEADERS[self.family]: self.key}
        return {"authorization": f"Bearer {self.key}"}

    @property
    def label(self) -> str:
        """Its own name, the vendor at the vendor's address, else the host."""
        if self.name or self.is_official:
            return self.name or VENDORS[self.family]
        return urlsplit(self.url).netloc

    @property
    def is_official(self) -> bool:
        """Whether it is the vendor's own address."""
        return urlsplit(self.url).hostname == urlsplit(OFFICIAL[self.family]).hostname

    @property
    def takes_clients_key(self) -> bool:
        """Whether the client's own key is sent: only to its vendor, if the settings have no key."""
        return not (self.key or self.name)

    def answers(self, dialect: str) -> bool:
        """Whether a client of a dialect can be given its answers: as they are, or translated."""
        is_same = self.family == FAMILY_OF[dialect]
        return is_same or {DIALECT_OF[self.family], dialect} <= CONTINUED

    def dialect_for(self, dialect: str) -> str:
        """Return the dialect for a client's request: the client's, if the upstream supports it."""
        if self.family != FAMILY_OF[dialect]:
            return DIALECT_OF[self.family]
        return "openai-chat" if self.chats_only else dialect

    def __repr__(self) -> str:
        return f"<Upstream {self.name or self.family}>"


class UpstreamTarget(NamedTuple):
    """Where a request may go, and as what."""

    upstream: Upstream
    dialect: str
    model: str

    @property
    def name(self) -> str:
        """What logs and headers call it."""
        return self.upstream.name or self.upstream.family


class Upstreams:
    """Everybody who may be asked."""

    def __init__(self, settings: Settings) -> None:
        self.by_family = configured(settings)
        self._named = [
            (entry, _named(name, entry))
            for name, entry in settings.upstreams.items()
            if name not in OFFICIAL
        ]
        self._aliases = settings.model_aliases

    def __bool__(self) -> bool:
        return bool(self.by_family or self._named)

    @property
    def has_named(self) -> bool:
        """Whether there are upstreams besides those of the families."""
        return bool(self._named)

    def targets(self, dialect: str, model: str) -> tuple[UpstreamTarget, ...]:
        """Return the targets for a model, in the order in which they are tried; empty if none."""
        model = self._aliases.get(model, model)
        targets = [
            UpstreamTarget(upstream, upstream.dialect_for(dialect), entry.model or model)
            for entry, upstream in self._named
            if upstream.answers(dialect) and any(matches(name, model) for name in entry.models)
        ]
        own = self.by_family.get(FAMILY_OF[dialect])
        if own is not None:
            targets.append(UpstreamTarget(own, dialect, model))
        return tuple(targets)

    def names(self) -> list[str]:
        """The models that the settings name: aliases, and what upstreams list without patterns."""
        patterns = (name for entry, _ in self._named for name in entry.models)
        plain = (name for name in patterns if not set(name) & set("*?"))
        return sorted({*self._aliases, *plain})

    def addresses(self) -> dict[str, str]:
        """Where everybody is, by the names that people see."""
        families = {family: upstream.url for family, upstream in self.by_family.items()}
        return families | {upstream.name: upstream.url for _, upstream in self._named}


def configured(settings: Settings) -> dict[Family, Upstream]:
    """Return the upstreams of the families that the settings name.

    A key without an address means the vendor's own.

    Raises:
        SettingsError: an address is none, or an entry has more than an address and a key.
    """
    upstreams: dict[Family, Upstream] = {}
    for family, official in OFFICIAL.items():
        url, key = (entry := settings.upstream(family)).url, entry.key
        where = f"upstreams.{family}"
        if entry != UpstreamEntry(url=url, key=key):
            raise SettingsError(
                "the upstream of a family has only url and key",
                where=where,
                fix="Give an upstream with models, model or speaks another name.",
            )
        if url or key:
            upstreams[family] = Upstream(family, _base(url or official, where, family), key)
    return upstreams


def _named(name: str, entry: UpstreamEntry) -> Upstream:
    speaks = entry.speaks
    family = FAMILY_OF.get(speaks) or FAMILY_OF[DIALECT_OF[cast("Family", speaks)]]
    where = f"upstreams.{name}"
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "an upstream cannot have this name",
            where=where,
            fix="Use letters, digits, - and _.",
        )
    base = _base(entry.url, where, family)
    return Upstream(family, base, entry.key, name, speaks == "openai-chat")


def _base(url: str, where: str, family: Family) -> str:
    base = url.rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise SettingsError(
            "the upstream is no HTTP address",
            where=where,
            fix=f"Give one such as {OFFICIAL[family]}, without a user name.",
        )
    return base
