"""Contents by agent run: store, get, excerpts, clean up.

content_store: after the engine, before actions and payload. A run is a session of the store, so
what `fit` cited in a session of that name belongs to the run as well.
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
    """A content and where it came from. Equal contents are one: the first to come names it."""

    full_content: str
    source_type: SourceType = "web"
    source_url: str | None = None
    content_type: str = ""
    """`html`, `markdown`, `json`, `entity_metadata`, …"""
    metadata: dict[str, Any] = {}
    agent_run_id: str = ""
    """The run it belongs to; without one it stays until its time is over."""
    id: str = ""
    """Its ref, which the store gives it."""
    created_at: datetime | None = None
    """When it was stored."""

    @property
    def content_length(self) -> int:
        """How many characters it has."""
        return len(self.full_content)

    def __repr__(self) -> str:
        return f"<StoredContent {self.id or 'new'}, {self.content_length} characters>"


class ContentStore:
    """Contents of agent runs, over an engine or a store."""

    _instance: ClassVar[ContentStore | None] = None

    def __init__(self, base: Holdfast | Store, scope: Scope | None = None) -> None:
        engine = base if isinstance(base, Holdfast) else Holdfast(base)
        self.store: Store = engine.store
        self.scope = (scope or engine.scope).of("")
        self.citing = engine.options.rules

    @classmethod
    def get_instance(cls) -> ContentStore:
        """The store of this process, for who was not given one: in memory, unless it was set."""
        if ContentStore._instance is None:
            ContentStore._instance = cls(open_memory())
        return ContentStore._instance

    @classmethod
    def set_instance(cls, store: ContentStore | None) -> None:
        """Choose the store that `get_instance` gives; None for a fresh one."""
        ContentStore._instance = store

    async def store_content(self, content: StoredContent) -> str:
        """Store a content and return its ref.

        Raises:
            PrivacyError: the policy refuses what the content holds.
        """
        return (await self.store_condensed(content)).ref_id

    async def store_condensed(self, content: StoredContent) -> Content:
        """Store a content and return what was stored, its citation in `compressed`.

        What the store knows already is not condensed again: it is noted as used by the run.

        Raises:
            PrivacyError: the policy refuses what the content holds.
        """
        rules = self.citing
        data = canonical(content.full_content)
        info = await self.store.info(self.scope, digest(data))
        if info is not None and info.state == "fresh" and rules.privacy != "refuse":
            again = _again(info, data)
            await self.store.put(self.scope.of(content.agent_run_id), [again])
            return again
        while True:
            original = await asyncio.to_thread(_to_store, content, rules)
            try:
                await self.store.put(self.scope.of(content.agent_run_id), [original])
            except RefCollisionError:
                rules = longer_refs(rules)
            else:
                return original

    async def get_content(self, content_id: str) -> StoredContent | None:
        """A content by its ref, in any form; None if there is none.

        Raises:
            DamagedContentError: what is stored is not what was stored.
        """
        stored = await self.store.get(self.scope, content_id)
        return None if stored is None else _from_store(stored)

    async def extract_excerpts(
        self,
        content_id: str,
        relevance_criteria: Sequence[str],
        max_excerpt_length: int = EXCERPT_CHARACTERS,
    ) -> list[ContentExcerpt]:
        """The parts that the criteria are about, the best of each first; else the beginning."""
        stored = await self.store.get(self.scope, content_id)
        if stored is None:
            return []
        criteria = [each for each in map(str.strip, relevance_criteria) if each]
        return await asyncio.to_thread(excerpts_of, stored, criteria, max_excerpt_length)

    async def cleanup_for_agent_run(self, run_id: str) -> int:
        """Remove at once what only this run uses; how many contents went."""
        return await self.store.delete_session(self.scope.of(run_id))

    async def close_run(self, run_id: str) -> None:
        """Note that a run is over: what only it uses stays for an hour, to look into."""
        await self.store.close_session(self.scope.of(run_id))

    async def sweep(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Remove what closed runs left once their hour is over; how many contents went."""
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


def _again(info: RefInfo, data: bytes) -> Content:
    """A content that is stored already, by what its record says."""
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
    """A content that a citation could not shorten."""
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
    """The text that was stored; bytes that never were text show as U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
