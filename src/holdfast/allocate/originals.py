"""Store originals before anything shorter is made of them.

They go to the run's store, in memory unless one is given, and to the content archive on disk if the
settings enable it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.compat import ContentArchive
from holdfast.errors import RefCollisionError
from holdfast.privacy import apply, find, flags
from holdfast.settings import Settings
from holdfast.store import Content, Scope, Store
from holdfast.store.refs import DIGITS, canonical, digest, ref_id

KIND = "source"
_ALL_DIGITS = 64
_READ_AT_ONCE = 50_000
"""Characters searched for secrets on the event loop, which takes a millisecond or two."""


class Original(NamedTuple):
    """A stored content."""

    ref: str
    sha256: str
    visible: str
    """The text that may be shown: the original, or with secrets masked."""


class StoredOriginals:
    """Stores contents under refs before they are shown in a shorter form."""

    def __init__(self, settings: Settings, store: Store, scope: Scope) -> None:
        self.settings = settings
        self.store = store
        self.scope = scope

    async def keep(self, texts: Sequence[str], tokens: Sequence[int]) -> list[Original]:
        """Store contents, all or none, and return their refs.

        Raises:
            PrivacyError: if the policy forbids data in one of them.
            StoreError: if they cannot be stored; then none may be shortened.
        """
        if not texts:
            return []
        stored = await self._prepared(texts, tokens)
        try:
            await self.store.put(self.scope, [content for content, _ in stored])
        except RefCollisionError:
            stored = await self._prepared(texts, tokens, _ALL_DIGITS)
            await self.store.put(self.scope, [content for content, _ in stored])
        if self.settings.content_archive_enabled:
            await asyncio.to_thread(self._archive, texts)
        return [Original(content.ref_id, content.sha256, visible) for content, visible in stored]

    async def _prepared(
        self, texts: Sequence[str], tokens: Sequence[int], digits: int = DIGITS
    ) -> list[tuple[Content, str]]:
        def work() -> list[tuple[Content, str]]:
            each = zip(texts, tokens, strict=True)
            return [self._content(text, count, digits) for text, count in each]

        if sum(map(len, texts)) <= _READ_AT_ONCE:
            return work()
        return await asyncio.to_thread(work)

    def _content(self, text: str, tokens: int, digits: int) -> tuple[Content, str]:
        findings = find(text)
        visible = apply(self.settings.privacy_policy, text, findings)
        data = canonical(text)
        sha256 = digest(data)
        original = Content(
            ref_id=ref_id(KIND, sha256, digits),
            kind=KIND,
            sha256=sha256,
            data=data,
            tokens=tokens,
            flags=flags(findings),
            ttl_seconds=self.settings.content_ttl_seconds,
        )
        return original, visible

    def _archive(self, texts: Sequence[str]) -> None:
        with ContentArchive(self.settings) as archive:
            archive.cleanup_expired()  # the store's sweeper does not cover this separate file
            for text in texts:
                archive.archive(text)
