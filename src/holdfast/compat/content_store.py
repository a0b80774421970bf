"""Contents by agent run: store, read, excerpts, clean-up.

A run is a session of the store, so that contents cited by `fit` in that session belong to it too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from holdfast.cite import CitingRules, cite, count
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from holdfast.engine import Holdfast
from holdfast.engine.session import longer_refs
from holdfast.errors import RefCollisionError
from holdfast.expand.excerpts import (
    EXCERPT_CHARACTERS,
    ContentExcerpt,
    SourceType,
    excerpts_of,
    source_type_of,
)
from holdfast.privacy import apply, find, flags
from holdfast.store import Content, Scope, Store
from holdfast.store.opening import open_memory
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import RefInfo, Stored
from holdfast.store.refs import canonical, digest, ref_id


class StoredContent(msgspec.Struct, frozen=True, kw_only=True):
    """A content and its origin. Equal contents are stored once, under the first one's id."""

    full_content: str
    source_type: SourceType = "web"
    source_url: str | None = None
    content_type: str = ""
    """`html`, `markdown`, `json`, `entity_metadata`, …"""
    metadata: dict[str, Any] = {}
    agent_run_id: str = ""
    """The run that owns it; without one it is kept until it expires."""
    id: str = ""
    """Its ref, assigned by the store."""
    created_at: datetime | None = None
    """When it was stored."""

    @property
    def content_length(self) -> int:
        """Return the number of characters."""
        return len(self.full_content)

    def __repr__(self) -> str:
        return f"<StoredContent {self.id or 'new'}, {self.content_length} characters>"


class ContentStore:
    """The contents of agent runs, in an engine's store."""

    _instance: ClassVar[ContentStore | None] = None

    def __init__(self, base: Holdfast | Store, scope: Scope | None = None) -> None:
        engine = base if isinstance(base, Holdfast) else Holdfast(base)
        self.store: Store = engine.store
        self.scope = (scope or engine.scope).of("")
        self.citing = engine.options.rules

    @classmethod
    def get_instance(cls) -> ContentStore:
        """Return the store of this process; in memory unless `set_instance` was called."""
        if ContentStore._instance is None:
            ContentStore._instance = cls(open_memory())
        return ContentStore._instance

    @classmethod
    def set_instance(cls, store: ContentStore | None) -> None:
        """Set the store that `get_instance` returns; None for a new one."""
        ContentStore._instance = store

    async def store_content(self, content: StoredContent) -> str:
        """Store a content and return its ref.

        Raises:
            PrivacyError: if the policy forbids data in the content.
        """
        return (await self.store_condensed(content)).ref_id

    async def store_condensed(self, content: StoredContent) -> Content:
        """Store a content and return it with its citation in `compressed`.

        A content that is stored already is not condensed again; the run is recorded as a user of
        it.

        Raises:
            PrivacyError: if the policy forbids data in the content.
        """
        rules = self.citing
        data = canonical(content.full_content)
        info = await self.store.info(self.scope, digest(data))
        if info is not None and info.state == "fresh" and rules.privacy != "refuse":
            stored = _from_record(info, data)
            await self.store.put(self.scope.of(content.agent_run_id), [stored])
            return stored
        while True:
            original = await asyncio.to_thread(_to_store, content, rules)
            try:
                await self.store.put(self.scope.of(content.agent_run_id), [original])
            except RefCollisionError:
                rules = longer_refs(rules)
            else:
                return original

    async def get_content(self, content_id: str) -> StoredContent | None:
        """Return a content by any form of its ref; None if there is none.

        Raises:
            DamagedContentError: if the stored bytes have changed.
        """
        stored = await self.store.get(self.scope, content_id)
        return None if stored is None else _from_store(stored)

    async def extract_excerpts(
        self,
        content_id: str,
        relevance_criteria: Sequence[str],
        max_excerpt_length: int = EXCERPT_CHARACTERS,
    ) -> list[ContentExcerpt]:
        """Return the best excerpts for each criterion; else the beginning of the content."""
        stored = await self.store.get(self.scope, content_id)
        if stored is None:
            return []
        criteria = [each for each in map(str.strip, relevance_criteria) if each]
        return await asyncio.to_thread(excerpts_of, stored, criteria, max_excerpt_length)

    async def cleanup_for_agent_run(self, run_id: str) -> int:
        """Delete the contents that only this run uses, and return how many."""
        return await self.store.delete_session(self.scope.of(run_id))

    async def close_run(self, run_id: str) -> None:
        """Mark a run as closed; contents that only it uses are kept for an hour for inspection."""
        await self.store.close_session(self.scope.of(run_id))

    async def sweep(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Delete the contents of runs closed more than `grace_seconds` ago, and return how many."""
        return (await self.store.gc(self.scope, grace_seconds=grace_seconds)).refs


# --- to and from the store -----------------------------------------------------------------------


def _to_store(content: StoredContent, rules: CitingRules) -> Content:
    text = content.full_content
    original = cite(text, source_url=content.source_url, rules=rules).content or _short(text, rules)
    meta = {
        "source_type": content.source_type,
        "content_type": content.content_type,
        "url": content.source_url or "",
        "run": content.agent_run_id,
        "metadata": json.dumps(content.metadata, default=str) if content.metadata else "",
    }
    return msgspec.structs.replace(original, meta={k: v for k, v in meta.items() if v})


def _from_record(info: RefInfo, data: bytes) -> Content:
    """Return a stored content from its record."""
    return Content(
        ref_id=info.ref_id,
        kind=info.kind,
        sha256=info.sha256,
        data=data,
        summary=info.summary,
        compressed=info.compressed,
        tokens=info.tokens,
        meta=info.meta,
        flags=info.flags,
    )


def _short(text: str, rules: CitingRules) -> Content:
    """Return a content that is too short for a citation."""
    data = canonical(text)
    sha256, kind, findings = digest(data), kind_of(Source(data)), find(text)
    apply(rules.privacy, text, findings)  # raises if the policy is to refuse
    return Content(
        ref_id=ref_id(kind, sha256, rules.ref_digits),
        kind=kind,
        sha256=sha256,
        data=data,
        tokens=count(text),
        flags=flags(findings),
        ttl_seconds=rules.ttl_seconds,
    )


def _from_store(stored: Stored) -> StoredContent:
    info = stored.info
    return StoredContent(
        id=info.ref_id,
        source_type=source_type_of(info),
        source_url=info.meta.get("url"),
        content_type=info.meta.get("content_type", info.kind),
        full_content=text_of(stored.data),
        metadata=json.loads(info.meta.get("metadata", "{}")),
        created_at=datetime.fromtimestamp(info.created_at, UTC),
        agent_run_id=info.meta.get("run", ""),
    )


def text_of(data: bytes) -> str:
    """Return bytes as text; invalid UTF-8 becomes U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
