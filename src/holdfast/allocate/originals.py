"""Originals are stored before anything is made of them: none is summarised, cut or dropped unkept.

originals: beside prompt. In the run's own store always, which is one in memory unless another is
given, and in the content archive on the disk where the settings switch it on (C27).
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
"""Characters that are searched for secrets on the event loop: they take a millisecond or two."""


class Original(NamedTuple):
    """A content that is stored."""

    ref: str
    sha256: str
    visible: str
    """The text that may be shown of it: itself, or with secrets masked."""


class Originals:
    """Stores contents under refs, each before it is shown in any shorter form."""

    def __init__(self, settings: Settings, store: Store, scope: Scope) -> None:
        self.settings = settings
        self.store = store
        self.scope = scope

    async def keep(self, texts: Sequence[str], tokens: Sequence[int]) -> list[Original]:
        """Store contents, all or none, and return what each is known by.

        Raises:
            PrivacyError: the policy refuses what one of them holds.
            StoreError: they cannot be stored; then none may be shortened.
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
        return [Original(content.ref_id, content.sha256, shown) for content, shown in stored]

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
            archive.cleanup_expired()  # the sweeper knows the store, and this is a file of its own
            for text in texts:
                archive.archive(text)
