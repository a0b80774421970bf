"""An archive of originals on disk, by SHA-256, for synchronous code.

Unless the settings enable it, it stores nothing and creates no folder. The store runs in its own
thread, so that the archive can be used from any code.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from holdfast.errors import DamagedContentError, StoreError, StoreUnavailableError
from holdfast.privacy import apply, find, flags
from holdfast.settings import Settings
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.opening import FILE_NAME
from holdfast.store.refs import canonical, digest, ref_id

KIND = "archived"
_SCOPE = Scope()
_T = TypeVar("_T")
_log = logging.getLogger("holdfast.archive")


class ContentArchive:
    """Originals on disk with a time to live. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        config: Settings,
        storage_path: Path | str | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.storage_path = _folder(config, storage_path)
        self._clock = clock
        self._closed = False
        self._store: Store | None = None
        self._runner = asyncio.Runner()
        self._thread = ThreadPoolExecutor(1, "holdfast-archive")

    def archive(self, content: str, metadata: Mapping[str, Any] | None = None) -> str:
        """Store a content and return its SHA-256; an empty text if the archive is disabled.

        Raises:
            PrivacyError: if the policy forbids data in the content.
        """
        if not self.config.content_archive_enabled:
            return ""
        findings = find(content)
        apply(self.config.privacy_policy, content, findings)  # raises if the policy is to refuse
        data = canonical(content)
        sha256 = digest(data)
        original = Content(
            ref_id=ref_id(KIND, sha256, len(sha256)),
            kind=KIND,
            sha256=sha256,
            data=data,
            meta={"metadata": json.dumps(metadata, default=str)} if metadata else {},
            flags=flags(findings),
            ttl_seconds=self.config.content_archive_ttl_seconds,
        )
        self._with_store(lambda store: store.put(_SCOPE, [original]))
        return sha256

    def retrieve(self, content_hash: str) -> str | None:
        """Return a content by its SHA-256; None if it is missing or damaged."""
        if not self._is_there():
            return None
        try:
            stored = self._with_store(lambda store: store.get(_SCOPE, content_hash))
        except DamagedContentError as error:
            _log.warning("an archived content is damaged: %s", error.where)
            return None
        return None if stored is None else stored.data.decode("utf-8", "surrogatepass")

    def cleanup_expired(self) -> int:
        """Delete expired contents and return how many."""
        if not self._is_there():
            return 0
        return self._with_store(lambda store: store.gc(_SCOPE, grace_seconds=0.0)).refs

    def close(self) -> None:
        """Close the file and the thread; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._store is not None:
            self._run(self._store.close())
        self._thread.submit(self._runner.close).result()  # in the thread that ran it
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_there(self) -> bool:
        return self._store is not None or (self.storage_path / FILE_NAME).is_file()

    def _with_store(self, work: Callable[[Store], Awaitable[_T]]) -> _T:
        if self._closed:
            raise StoreError("the archive is closed", fix="Make another one.")

        async def main() -> _T:
            if self._store is None:
                _make_private(self.storage_path)
                self._store = await open_store(folder=self.storage_path, clock=self._clock)
            return await work(self._store)

        return self._run(main())

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._thread.submit(self._runner.run, work).result()


def _folder(config: Settings, storage_path: Path | str | None) -> Path:
    configured = storage_path or config.research_archive_dir
    if configured:
        return Path(configured).expanduser()
    if config.data_folder is None:
        raise StoreError(
            "there is no folder for the archive",
            where="research_archive_dir",
            fix="Set research_archive_dir or data_dir.",
        )
    return config.data_folder / "archive"


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise StoreUnavailableError(
            f"the archive's folder cannot be made private: {error.strerror}",
            where=str(folder),
            fix="Set research_archive_dir to a folder of your own.",
        ) from error
