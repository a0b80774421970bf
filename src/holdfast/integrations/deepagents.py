"""deepagents: persistent files, with every ref as a read-only file below `/refs/`.

`CompositeBackend(default, routes={"/holdfast/": HoldfastBackend()})` mounts it, so that refs are
`/holdfast/refs/…`; `/large_tool_results/` can be mounted too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.extras import missing_extra

try:
    from deepagents.backends.protocol import (
        FILE_NOT_FOUND,
        DeleteResult,
        EditResult,
        FileDownloadResponse,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.store import StoreBackend
    from deepagents.backends.utils import create_file_data, slice_read_response
except ImportError as error:
    raise missing_extra("deepagents", error) from error

from holdfast.engine import Holdfast
from holdfast.errors import StoreError
from holdfast.integrations._host import Host
from holdfast.integrations.langgraph import HoldfastStore
from holdfast.settings import Settings
from holdfast.store import Scope

REFS = "/refs/"
_READ_ONLY = "Error: originals behind refs are never changed; write outside /refs/"
_MOST_LISTED = 1_000


class HoldfastBackend(StoreBackend):
    """A deepagents file system in the engine's store."""

    def __init__(
        self,
        store: Host | Holdfast | str | None = None,
        *,
        folder: str = "files",
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Keep files in the store at a URL; agents with another `folder` have other files."""
        self.host = (
            store if isinstance(store, Host) else Host(store, settings=settings, scope=scope)
        )
        super().__init__(
            store=HoldfastStore(self.host, name="deepagents"), namespace=lambda _: (folder,)
        )

    def ls(self, path: str) -> LsResult:
        """List the files of a folder; in `/refs/`, the newest originals of the scope."""
        if not f"{path}/".startswith(REFS) and path.rstrip("/") + "/" != REFS:
            return super().ls(path)
        infos = self.host.run(lambda engine: engine.store.refs(engine.scope, limit=_MOST_LISTED))
        return LsResult(entries=[{"path": REFS + i.ref_id, "size": i.size} for i in infos])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return lines of a file or an original."""
        if not file_path.startswith(REFS):
            return super().read(file_path, offset, limit)
        return _lines(file_path, self.host.run(_original(file_path)), offset, limit)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return lines of a file or an original."""
        if not file_path.startswith(REFS):
            return await super().aread(file_path, offset, limit)
        return _lines(file_path, await self.host.wait(_original(file_path)), offset, limit)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file."""
        if file_path.startswith(REFS):
            return WriteResult(error=_READ_ONLY)
        return super().write(file_path, content)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Write a file."""
        if file_path.startswith(REFS):
            return WriteResult(error=_READ_ONLY)
        return await super().awrite(file_path, content)

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace a text in a file."""
        if file_path.startswith(REFS):
            return EditResult(error=_READ_ONLY)
        return super().edit(file_path, old_string, new_string, replace_all)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace a text in a file."""
        if file_path.startswith(REFS):
            return EditResult(error=_READ_ONLY)
        return await super().aedit(file_path, old_string, new_string, replace_all)

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a folder with its contents."""
        if file_path.startswith(REFS):
            return DeleteResult(error=_READ_ONLY)
        return super().delete(file_path)

    async def adelete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a folder with its contents."""
        if file_path.startswith(REFS):
            return DeleteResult(error=_READ_ONLY)
        return await super().adelete(file_path)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return files and originals as bytes."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith(REFS):
            return super().download_files([path])[0]
        data = self.host.run(_original(path))
        error = None if data is not None else FILE_NOT_FOUND
        return FileDownloadResponse(path=path, content=data, error=error)


def _original(path: str) -> Callable[[Holdfast], Awaitable[bytes | None]]:
    async def work(engine: Holdfast) -> bytes | None:
        try:
            stored = await engine.store.get(engine.scope, path.removeprefix(REFS))
        except StoreError:  # reported to the model, which continues
            return None
        return None if stored is None else stored.data

    return work


def _lines(path: str, data: bytes | None, offset: int, limit: int) -> ReadResult:
    if data is None:
        return ReadResult(error=f"File '{path}' not found")
    return slice_read_response(create_file_data(data.decode("utf-8", "replace")), offset, limit)
