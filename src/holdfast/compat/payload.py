"""The sources of a run, for audit and for handing on: a view of the store, never a copy of it.

payload: after content_store. What the store removes is gone from here as well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from holdfast.compat.content_store import ContentStore, text_of
from holdfast.errors import DamagedContentError
from holdfast.expand.excerpts import SourceType, source_type_of
from holdfast.expand.expansion import Count
from holdfast.expand.options import MOST_TOKENS
from holdfast.expand.retrieval import Retrieved, parse_retrieval, retrieve
from holdfast.privacy import Policy, apply, find
from holdfast.store.records import RefInfo, State, Stored

EXCERPT_CHARACTERS = 200
_PAGE = 200


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One source. Its content is in the store, and `Payload.content` opens it."""

    source_id: str
    """`src_` and digits of its hash."""
    ref_id: str
    source_type: SourceType
    url: str | None
    content_format: str
    content_length: int
    """In bytes."""
    tokens: int
    accessed_at: datetime
    """When it was opened last, or else stored."""
    summary: str
    flags: tuple[str, ...]
    """Kinds of secrets and personal data in it."""
    state: State
    title: str = ""
    quality: str = "unknown"
    published: float | None = None
    """When it was written, in seconds since 1970."""
    provenance: str = ""
    """Where its text comes from, in words, as whoever stored it first said."""

    def __repr__(self) -> str:
        return f"<SourceRecord {self.source_id}, {self.content_length} bytes>"


class Payload(NamedTuple):
    """The sources of a run, or those of them that a sub-agent is given."""

    store: ContentStore
    run_id: str
    keep: Callable[[SourceRecord], bool] = lambda _: True

    def only(self, keep: Callable[[SourceRecord], bool]) -> Payload:
        """The same, for a sub-agent: what it is not given it cannot open either."""
        wider = self.keep
        return self._replace(keep=lambda source: wider(source) and keep(source))

    async def sources(self) -> list[SourceRecord]:
        """All sources, in the order they came."""
        scope = self.store.scope.of(self.run_id)
        refs: list[RefInfo] = []
        page = await self.store.store.refs(scope, limit=_PAGE)
        while page:
            refs += page
            page = await self.store.store.refs(scope, limit=_PAGE, before=page[-1].ref_id)
        return [source for source in map(_source, reversed(refs)) if self.keep(source)]

    async def content(self, source_id: str) -> str | None:
        """The whole content of a source, by its id or ref; None if it is none of these."""
        stored = await self._stored(source_id)
        return None if stored is None else text_of(stored.data)

    async def retrieve(
        self, arguments: object, *, count: Count, max_tokens: int = MOST_TOKENS
    ) -> Retrieved:
        """What the action "Retrieve Stored Content" gives, of these sources and no others."""
        request = parse_retrieval(arguments)
        if isinstance(request, Retrieved):
            return request
        stored = await self._stored(request.content_id)
        excerpts = []
        if stored is not None and request.excerpt_only:
            excerpts = await self.store.extract_excerpts(stored.info.ref_id, request.terms)
        return await asyncio.to_thread(
            retrieve, request, stored, excerpts, count=count, max_tokens=max_tokens
        )

    async def _stored(self, source_id: str) -> Stored | None:
        info = await self.store.store.info(self.store.scope, source_id)
        names = {source.ref_id for source in await self.sources()}
        if info is None or info.ref_id not in names:
            return None
        return await self.store.store.get(self.store.scope, info.ref_id)

    async def listing(self) -> str:
        """The sources as a conversation lists them, each with how it begins."""
        lines = []
        for source in await self.sources():
            try:
                stored = await self.store.store.get(self.store.scope, source.ref_id)
            except DamagedContentError:
                continue
            if stored is not None:
                head = await asyncio.to_thread(_head, stored, self.store.citing.privacy)
                lines.append(
                    f"- {source.source_id}: {source.url or source.summary}\n  Excerpt: {head}"
                )
        return "\n".join([f"Retrieved {len(lines)} sources:", *lines])


def _head(stored: Stored, policy: Policy) -> str:
    """How a content begins, as it may be shown."""
    text = text_of(stored.data)
    if policy == "mask":
        text = apply(policy, text, find(text))
    head = " ".join(text[:EXCERPT_CHARACTERS].split())
    return f"{head}..." if len(text) > EXCERPT_CHARACTERS else head


def _source(info: RefInfo) -> SourceRecord:
    seen = info.created_at if info.accessed_at is None else info.accessed_at
    told = json.loads(info.meta.get("metadata", "{}"))
    return SourceRecord(
        source_id=f"src_{info.ref_id.rpartition(':')[2]}",
        ref_id=info.ref_id,
        source_type=source_type_of(info),
        url=info.meta.get("url"),
        content_format=info.meta.get("content_type", info.kind),
        content_length=info.size,
        tokens=info.tokens,
        accessed_at=datetime.fromtimestamp(seen, UTC),
        summary=info.summary,
        flags=info.flags,
        state=info.state,
        title=str(told.get("title", "")),
        quality=str(told.get("quality", "unknown")),
        published=told.get("published"),
        provenance=str(told.get("provenance", "")),
    )
