"""A run that is forgotten: what only it used goes, and whoever asked is told what stays.

forgetting: after saving. A report stands on what its run stored and wrote down, so a run keeps both
until somebody says otherwise: `discard` of the options lets them go an hour after the report
(003-43), `forget` at once (003-10).
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.compat import ContentStore, Payload
from holdfast.errors import ResearchError
from holdfast.researching.saving import is_recorded
from holdfast.store import Scope, Store


class Forgotten(NamedTuple):
    """What became of a run's contents; the record of its steps is gone in any case."""

    removed: int
    """Contents that only this run used."""
    shared: int
    """Contents that other runs or sessions use: what these reports quote can still be checked."""


async def forget(run: str, store: Store, scope: Scope) -> Forgotten:
    """Remove a run and what only it used; reports of it can no longer be verified.

    Raises:
        ResearchError: the store has no run of this name.
    """
    if not await is_recorded(store, scope, run):
        raise ResearchError(
            "the store has no run of this name",
            where=run,
            fix="Give the run that the JSON of a report names, and the store it was made with.",
        )
    contents = ContentStore(store, scope)
    used = len(await Payload(contents, run).sources())
    removed = await contents.cleanup_for_agent_run(run)
    return Forgotten(removed, used - removed)
