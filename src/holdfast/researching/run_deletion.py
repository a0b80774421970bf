"""Delete a research run: the contents that only it uses, and its record.

A report depends on what its run stored, so a run keeps its contents until `forget` deletes them, or
for an hour after the report if the option `discard` is set.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.compat import ContentStore, Payload
from holdfast.errors import ResearchError
from holdfast.researching.run_record import is_recorded
from holdfast.store import Scope, Store


class ForgetResult(NamedTuple):
    """The outcome of a deletion; the record of the run is deleted in any case."""

    removed: int
    """Number of contents that only this run used."""
    shared: int
    """Number of contents that other runs or sessions use; these are kept."""


async def forget(run: str, store: Store, scope: Scope) -> ForgetResult:
    """Delete a run and the contents that only it uses; its reports can no longer be verified.

    Raises:
        ResearchError: if the store has no run of this name.
    """
    if not await is_recorded(store, scope, run):
        raise ResearchError(
            "the store has no run with this name",
            where=run,
            fix="Give the run that the JSON of a report names, and the store it was made with.",
        )
    contents = ContentStore(store, scope)
    used = len(await Payload(contents, run).sources())
    removed = await contents.cleanup_for_agent_run(run)
    return ForgetResult(removed, used - removed)
