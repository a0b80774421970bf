"""Display names of tenants: the provider, and the last characters of the key.

A tenant's own name is a keyed hash, which people cannot distinguish. Only the last four characters
of a key are stored, as providers show them on their own pages; of a short key none, because four
characters would be much of it. If the proxy has tokens, keys belong to several people, and nothing
of them is stored.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from holdfast.store import Scope, Store
from holdfast.surfaces.proxy.tenants import ANONYMOUS, RequestCredentials, own_tokens
from holdfast.upstream.upstreams import Family, Upstreams

if TYPE_CHECKING:
    from holdfast.settings import Settings

PROVIDERS: dict[Family, str] = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "bedrock": "Amazon Bedrock",
    "cohere": "Cohere",
}
CLIENTS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "opencode": "opencode",
    "qwen-code": "Qwen Code",
}
"""Display names of the clients that sessions name."""
_RECORD = "tenant label"
"""The key of the record in the store, among the summaries of a scope."""
_SUFFIX = re.compile(r"[A-Za-z0-9_.=-]{4}\Z")
_SHOWN, _LEAST = 4, 24
"""Characters of a key that are stored, and how long the key must be for that."""
_MOST_KNOWN = 2_000
_FIXED = {
    ANONYMOUS: "No key",
    "token": "No key",
    "default": "Command line and library",
}
_HASH_DIGITS = 6


class KeyLabel(msgspec.Struct, frozen=True):
    """The known facts about the key of a tenant."""

    provider: str = ""
    suffix: str = ""
    """Its last characters; empty if they are not stored."""


class Labels:
    """Notes whose keys were seen, and names tenants for people."""

    def __init__(self, store: Store, user: str, settings: Settings, upstreams: Upstreams) -> None:
        self._store = store
        self._user = user
        self._settings = settings
        self._upstreams = upstreams
        self._known: OrderedDict[str, KeyLabel] = OrderedDict()

    async def note(self, tenant: str, who: RequestCredentials, family: Family) -> None:
        """Store the label of a tenant that sends a request, unless it is stored already."""
        label = KeyLabel(self._provider(family), self._suffix(who))
        if await self._of(tenant) == label:
            return
        scope = Scope(self._user, tenant)
        await self._store.put_summary(scope, _RECORD, msgspec.json.encode(label))
        self._remember(tenant, label)

    def _provider(self, family: Family) -> str:
        upstream = self._upstreams.by_family.get(family)
        if upstream is None or upstream.is_official:
            return PROVIDERS[family]
        host = urlsplit(upstream.url).hostname
        return f"{PROVIDERS[family]} at {host}" if host else PROVIDERS[family]

    def _suffix(self, who: RequestCredentials) -> str:
        if own_tokens(self._settings) or len(who.keys) != 1:
            return ""
        (key,) = who.keys
        suffix = key[-_SHOWN:]
        return suffix if len(key) >= _LEAST and _SUFFIX.fullmatch(suffix) else ""

    async def name(self, tenant: str) -> str:
        """Return the display name of a tenant, with the client that used it last."""
        label = await self._of(tenant)
        newest = await self._store.sessions(Scope(self._user, tenant), limit=1)
        client = CLIENTS.get(newest[0].client, "") if newest else ""
        parts = [label.provider, f"…{label.suffix}"] if label.suffix else [_plain(tenant, label)]
        text = " ".join(filter(None, parts))
        return f"{text} · {client}" if client else text

    async def _of(self, tenant: str) -> KeyLabel:
        if tenant in self._known:
            return self._known[tenant]
        stored = await self._store.summary(Scope(self._user, tenant), _RECORD)
        if stored is None:
            return KeyLabel()
        try:
            label = msgspec.json.decode(stored, type=KeyLabel)
        except msgspec.DecodeError:
            return KeyLabel()
        self._remember(tenant, label)
        return label

    def _remember(self, tenant: str, label: KeyLabel) -> None:
        self._known[tenant] = label
        self._known.move_to_end(tenant)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def _plain(tenant: str, label: KeyLabel) -> str:
    """Return the name of a tenant of whose key nothing is stored."""
    if tenant in _FIXED:
        return f"{_FIXED[tenant]} · {label.provider}" if label.provider else _FIXED[tenant]
    kind, _, name = tenant.partition("-")
    if kind in ("team", "named") and name:
        return name
    if kind == "aws" and name:
        return f"AWS key {name[:_HASH_DIGITS]}"
    if kind == "key" and name:
        return f"{label.provider} key {name[:_HASH_DIGITS]}".strip()
    return tenant
