"""The data that pages of one tenant need from the store and the engine, read in bounded steps.

Long work runs in a thread, so that clients' requests are not delayed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.engine import Holdfast
from holdfast.errors import ExpandError, HoldfastError
from holdfast.expand import Expansion
from holdfast.store.records import SessionRecord, UsageTotal
from holdfast.store.refs import digest
from holdfast.surfaces.proxy.dashboard.contents import ContentShown
from holdfast.surfaces.proxy.dashboard.lost_page import Proof
from holdfast.workers import LARGE_BYTES

_T = TypeVar("_T")
_PAGE_TOKENS = 4_000


class TenantReader:
    """Reads the data of one tenant from the store of a running proxy."""

    def __init__(self, engine: Holdfast) -> None:
        self.engine = engine
        self.store = engine.store
        self.scope = engine.scope

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run work for a page in a thread: a session may have any number of messages."""
        return await self.engine.workers.off_loop(LARGE_BYTES, work)

    async def usage(self, record: SessionRecord) -> list[UsageTotal]:
        """Return the usage of a session."""
        return await self.store.usage(self.scope.of(record.session), by="session")

    # --- what was lost ---------------------------------------------------------------------------

    async def proof(self, record: SessionRecord, number: int, tenant: str = "") -> Proof:
        """Rebuild a request; a failure is in the proof. `tenant` is for the link to it."""
        proof = Proof(session=record.session, title=record.title, number=number, tenant=tenant)
        try:
            body = await self.asked(record.session, number)
        except HoldfastError as error:
            return msgspec.structs.replace(proof, why=error.what)
        sha256 = await self.run(partial(digest, body))
        return msgspec.structs.replace(proof, size=len(body), sha256=sha256)

    async def asked(self, name: str, number: int) -> bytes:
        """The client's request of a turn, byte for byte; raises if it cannot be rebuilt."""
        return await self.engine.sessions.unkept(self.scope.of(name)).rebuild(number)

    # --- contents --------------------------------------------------------------------------------

    async def content(
        self, ref: str, options: dict[str, str], page: int, *, agreed: bool
    ) -> ContentShown | None:
        """Return the content of a ref and the requested part, if it may be shown."""
        info = await self.store.info(self.scope, ref)
        if info is None:
            return None
        visible = agreed or not info.flags
        opened: Expansion | None = None
        refused = ""
        if visible and info.state in ("fresh", "stale"):
            arguments = {**options, "page": page, "max_tokens": _PAGE_TOKENS}
            try:
                opened = await self.engine.expand_ref(info.ref_id, arguments, peek=True)
            except ExpandError as error:
                refused = f"This cannot be opened: {error}"
        return ContentShown(
            info=info,
            options=options,
            page=page,
            opened=opened,
            refused=refused,
            shown=visible,
        )

    async def raw(self, ref: str) -> tuple[str, bytes] | None:
        """The name and the very bytes of a content."""
        stored = await self.store.get(self.scope, ref, peek=True)
        return None if stored is None else (stored.info.ref_id, stored.data)
