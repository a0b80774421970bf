"""Research runs that kill themselves: `python -m tests.researching.mortal FOLDER EVERY`.

Each run is a process forked before any thread was started, on its own SQLite database. It dies by
SIGKILL just before or after its n-th write; then another one resumes. For each n the output has a
line: the process that died, and whether the report equals that of an uninterrupted run.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.engine import Holdfast
from holdfast.errors import ResearchError
from holdfast.researching import Options, conduct, research_run, verify
from holdfast.settings import Settings
from holdfast.store import Store, open_store
from tests.researching.made import NOW, researched, texts, wrong_citations

QUESTION = "How long was the bridge of Wien2? Who was the surveyor of Prag1?"
SOURCES = 5


def doomed(store: Store, writes: int, *, behind: bool) -> None:
    """Let this process die at a write: before it happens, or when it has."""
    numbers = count(1)

    def fatal(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def written(*args: Any, **options: Any) -> Any:
            is_last = next(numbers) == writes
            if is_last and not behind:
                os.kill(os.getpid(), signal.SIGKILL)
            result = await write(*args, **options)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return written

    for part, name in ((store, "put"), (store, "put_summary"), (store.journal, "append")):
        setattr(part, name, fatal(getattr(part, name)))


async def live(folder: Path, name: str, *, writes: int, behind: bool, resume: bool) -> None:
    """One research, to its end if it is let."""
    store = await open_store(f"sqlite:///{folder}/{name}.db")
    try:
        doomed(store, writes, behind=behind)
        engine, sources = Holdfast(store), [folder / "sources"]
        options = Options(budget=3_000, now=NOW, resume=resume)
        try:
            done = await conduct(QUESTION, sources, engine, Settings(), options)
        except ResearchError:  # it died before its first step was written
            fresh = options._replace(resume=False)
            done = await conduct(QUESTION, sources, engine, Settings(), fresh)
        faults = (await verify(done.report, store, engine.scope)).faults
        assert not faults, faults
        given = {str(file): file.read_text() for file in (folder / "sources").iterdir()}
        assert done.report.findings
        assert not wrong_citations(done.report, given)
        (folder / f"{name}.json").write_bytes(done.report.dump())
    finally:
        await store.close()


def fork(folder: Path, name: str, *, writes: int = 0, behind: bool = False, resume: bool) -> int:
    """Run in a separate process and return how it ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(live(folder, name, writes=writes, behind=behind, resume=resume))
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def besiege(folder: Path, every: int) -> None:
    vars(research_run)["open_embedder"] = lambda: None  # by words alone: a life has to be short
    researched(QUESTION, texts(1))  # what every life has to load, is loaded once
    (folder / "sources").mkdir()
    for source in texts(SOURCES):
        (folder / "sources" / source.name).write_text(source.text)
        os.utime(folder / "sources" / source.name, (NOW, NOW))
    assert fork(folder, "whole", resume=False) == 0
    whole = (folder / "whole.json").read_bytes()
    writes, ended = 1, False
    while not ended:
        for behind in (False, True):
            name = f"{writes}-{behind}"
            ending = fork(folder, name, writes=writes, behind=behind, resume=False)
            ended = ending == 0
            if not ended:
                assert fork(folder, name, resume=True) == 0
            same = (folder / f"{name}.json").read_bytes() == whole
            line = {"writes": writes, "died": ending == -signal.SIGKILL, "same": same}
            print(json.dumps(line), flush=True)  # noqa: T201 - it is read by the test
        writes += every


if __name__ == "__main__":
    besiege(Path(sys.argv[1]), int(sys.argv[2]))
