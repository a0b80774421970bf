"""Types and small rules for reserving the tokens of tool outputs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Literal, Protocol, TypeVar, get_args

import msgspec

from holdfast.errors import SettingsError

OverflowMode = Literal["force_final", "raise", "best_effort"]
"""The behaviour when no target accepts the next request.

`raise` raises an error. `force_final` sends one last turn with only the final-turn tools, and
raises if even that does not fit. `best_effort` sends that turn even if it does not fit.
"""

ToolPolicy = Literal["any", "all"]
"""Whether an output is refused if any target lacks room for it, or only if all do."""


class OutputStore(Protocol):
    """Stores outputs outside the conversation, where a handle replaces them."""

    def handle(self, output: str) -> str:
        """Return the handle for an output without storing it; equal outputs have equal handles."""

    def keep(self, output: str) -> Awaitable[None] | None:
        """Store an output under its handle, synchronously or by returning an awaitable."""


_Choice = TypeVar("_Choice", bound=str)


def check_choice(name: str, value: _Choice, choices: Any) -> _Choice:
    """Return the value; raise `SettingsError` if it is not one of the Literal's."""
    if value not in get_args(choices):
        raise SettingsError(
            f"{name} is none of its values",
            where=name,
            fix=f"Choose one of {', '.join(get_args(choices))}.",
        )
    return value


class ToolReservation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a reservation; its `repr` contains no text."""

    ok: bool
    """Whether `tokens` are reserved."""
    tokens: int
    """Tokens of `text` as a tool message."""
    reason: Literal["", "token_budget_exceeded"] = ""
    text: str = ""
    """Text for the conversation: the output, or the handle of a stored output.

    For a refused output only a handle remains; the caller may show it and count it with
    `add_pending`.
    """
    stored: bool = False
    """Whether `text` is a handle."""

    def __repr__(self) -> str:
        return f"<ToolReservation ok={self.ok}, {self.tokens} tokens, stored={self.stored}>"


def make_reservation(ok: bool, tokens: int, text: str, *, stored: bool) -> ToolReservation:
    """Return the reservation for a text that has room, or has none."""
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
    """Return the error for an asynchronous store in a synchronous call."""
    if inspect.iscoroutine(keeping):
        keeping.close()  # otherwise Python warns later, without context, that it was never awaited
    return SettingsError(
        "the store must be awaited, and nothing was kept",
        where="store",
        fix="Await areserve_tool_output instead of calling reserve_tool_output.",
    )
