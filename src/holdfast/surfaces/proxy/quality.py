"""How well requests were counted, and what each kind of edit did: what a store can tell of both.

quality: beside report; the command line uses it too. Counts are learnt by model and saved with the
store; edits stand in the turns, so that what one process did can be asked of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.store import Scope, Store
from holdfast.surfaces.proxy.report import MOST_SESSIONS
from holdfast.tokens.calibration import Calibration


class EditTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of edit did, each edit counted once: when it was made."""

    action: str
    edits: int = 0
    turns: int = 0
    """Requests in which it was done."""
    from_tokens: int = 0
    to_tokens: int = 0


async def quality(store: Store, scopes: Sequence[Scope]) -> dict[str, Any]:
    """The accuracy of counts by model, and the edits of the sessions last used by their kind."""
    return {
        "accuracy": [row for scope in scopes for row in await _accuracy(store, scope)],
        "edits": msgspec.to_builtins(await _edits(store, scopes)),
    }


async def _accuracy(store: Store, scope: Scope) -> list[dict[str, Any]]:
    data = await store.calibration(scope)
    learnt = Calibration.load(data).accuracy() if data else []
    return [{"tenant": scope.workspace, **msgspec.to_builtins(model)} for model in learnt]


async def _edits(store: Store, scopes: Sequence[Scope]) -> list[EditTotal]:
    totals: dict[str, EditTotal] = {}
    for scope in scopes:
        for record in await store.sessions(scope, limit=MOST_SESSIONS):
            for turn in await store.turns(scope.of(record.session)):
                for action in dict.fromkeys(edit.action for edit in turn.edits):
                    edits = [edit for edit in turn.edits if edit.action == action]
                    total = totals.get(action) or EditTotal(action=action)
                    totals[action] = msgspec.structs.replace(
                        total,
                        edits=total.edits + len(edits),
                        turns=total.turns + 1,
                        from_tokens=total.from_tokens + sum(edit.from_tokens for edit in edits),
                        to_tokens=total.to_tokens + sum(edit.to_tokens for edit in edits),
                    )
    return sorted(totals.values(), key=lambda total: total.to_tokens - total.from_tokens)
