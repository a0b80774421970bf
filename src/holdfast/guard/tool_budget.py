"""What a tool's output costs, and whether there is room for it.

tool_budget: before the guard, which holds the lock; only shapes and small rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Literal, Protocol, TypeVar, get_args

import msgspec

from holdfast.errors import SettingsError

OverflowMode = Literal["force_final", "raise", "best_effort"]
"""What happens when no target takes the next request.

`raise`: an error. `force_final`: one last turn with the final-turn tools alone, and an error if
even that does not fit. `best_effort`: the same last turn, sent even if it does not fit.
"""

ToolPolicy = Literal["any", "all"]
"""Output is refused if any target has no room for it, or only if all have none."""


class OutputStore(Protocol):
    """Keeps outputs outside of the conversation, each under a handle that stands for it there."""

    def handle(self, output: str) -> str:
        """Return what will stand for an output, the same for the same one; keep nothing."""

    def keep(self, output: str) -> Awaitable[None] | None:
        """Keep an output, so that its handle opens it; wait for it here, or return an awaitable."""


_Choice = TypeVar("_Choice", bound=str)


def checked(name: str, value: _Choice, choices: Any) -> _Choice:
    """Return the value, or raise `SettingsError` if it is none of a Literal's."""
    if value not in get_args(choices):
        raise SettingsError(
            f"{name} is none of its values",
            where=name,
            fix=f"Choose one of {', '.join(get_args(choices))}.",
        )
    return value


class ToolReservation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request for room; its representation holds no text."""

    ok: bool
    """Whether `tokens` are reserved."""
    tokens: int
    """What `text` costs as a tool message."""
    reason: Literal["", "token_budget_exceeded"] = ""
    text: str = ""
    """What to put into the conversation: the output, or the handle of a stored one.

    Of a refused output only a handle is left; it is for the caller to show, and to count with
    `add_pending`.
    """
    stored: bool = False
    """Whether `text` is a handle."""

    def __repr__(self) -> str:
        return f"<ToolReservation ok={self.ok}, {self.tokens} tokens, stored={self.stored}>"


def answered(ok: bool, tokens: int, text: str, *, stored: bool) -> ToolReservation:
    """Say that there is room for a text, or that there is none."""
    if ok:
        return ToolReservation(ok=True, tokens=tokens, text=text, stored=stored)
    return ToolReservation(
        ok=False,
        tokens=tokens,
        reason="token_budget_exceeded",
        text=text if stored else "",
        stored=stored,
    )


def must_be_awaited(keeping: Awaitable[None]) -> SettingsError:
    """Return the error of a store that nobody can wait for here."""
    if inspect.iscoroutine(keeping):
        keeping.close()  # else Python warns later, and far from here, that it was never awaited
    return SettingsError(
        "the store must be awaited, and nothing was kept",
        where="store",
        fix="Await areserve_tool_output instead of calling reserve_tool_output.",
    )
