"""The sources of a run, for audits and hand-overs: a view of the store, never a copy.

Contents deleted from the store are missing here too.
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
from holdfast.expand.retrieval import RetrievalResult, parse_retrieval, retrieve
from holdfast.privacy import Policy, apply, find
from holdfast.store.records import RefInfo, State, Stored

EXCERPT_CHARACTERS = 200
_PAGE = 200


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One source. `Payload.content` reads its content from the store."""

    source_id: str
    """`src_` and digits of its hash."""
    ref_id: str
    source_type: SourceType
    url: str | None
    content_format: str
    content_length: int
    """Size in bytes."""
    tokens: int
    accessed_at: datetime
    """When it was last opened, or else stored."""
    summary: str
    flags: tuple[str, ...]
    """Kinds of secrets and personal data in it."""
    state: State
    title: str = ""
    quality: str = "unknown"
    published: float | None = None
    """When it was written, in seconds since 1970."""
    provenance: str = ""
    """The origin of its text in words, from the caller that stored it first."""

    def __repr__(self) -> str:
        return f"<SourceRecord {self.source_id}, {self.content_length} bytes>"


class Payload(NamedTuple):
    """The sources of a run, or the subset that a sub-agent gets."""

    store: ContentStore
    run_id: str
    keep: Callable[[SourceRecord], bool] = lambda _: True

    def only(self, keep: Callable[[SourceRecord], bool]) -> Payload:
        """Return a subset for a sub-agent, which cannot open other sources."""
        wider = self.keep
        return self._replace(keep=lambda source: wider(source) and keep(source))

    async def sources(self) -> list[SourceRecord]:
        """Return all sources in the order in which they were stored."""
        scope = self.store.scope.of(self.run_id)
        refs: list[RefInfo] = []
        page = await self.store.store.refs(scope, limit=_PAGE)
        while page:
            refs += page
            page = await self.store.store.refs(scope, limit=_PAGE, before=page[-1].ref_id)
        return [source for source in map(_source, reversed(refs)) if self.keep(source)]

    async def content(self, source_id: str) -> str | None:
        """Return a source's full content by id or ref; None if it is not one of these."""
        stored = await self._stored(source_id)
        return None if stored is None else text_of(stored.data)

    async def retrieve(
        self, arguments: object, *, count: Count, max_tokens: int = MOST_TOKENS
    ) -> RetrievalResult:
        """Run the action "Retrieve Stored Content", limited to these sources."""
        request = parse_retrieval(arguments)
        if isinstance(request, RetrievalResult):
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
        """Return the sources as a conversation lists them, each with its beginning."""
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
    """Return the beginning of a content, with secrets masked if the policy requires it."""
    text = text_of(stored.data)
    if policy == "mask":
        text = apply(policy, text, find(text))
    head = " ".join(text[:EXCERPT_CHARACTERS].split())
    return f"{head}..." if len(text) > EXCERPT_CHARACTERS else head


def _source(info: RefInfo) -> SourceRecord:
    used_at = info.created_at if info.accessed_at is None else info.accessed_at
    metadata = json.loads(info.meta.get("metadata", "{}"))
    return SourceRecord(
        source_id=f"src_{info.ref_id.rpartition(':')[2]}",
        ref_id=info.ref_id,
        source_type=source_type_of(info),
        url=info.meta.get("url"),
        content_format=info.meta.get("content_type", info.kind),
        content_length=info.size,
        tokens=info.tokens,
        accessed_at=datetime.fromtimestamp(used_at, UTC),
        summary=info.summary,
        flags=info.flags,
        state=info.state,
        title=str(metadata.get("title", "")),
        quality=str(metadata.get("quality", "unknown")),
        published=metadata.get("published"),
        provenance=str(metadata.get("provenance", "")),
    )
