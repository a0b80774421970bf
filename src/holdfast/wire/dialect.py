"""The interface of a dialect: the functions that every provider module defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import ShapeError
from holdfast.wire.blocks import Block, Role, Tool
from holdfast.wire.json_places import Place, dotted
from holdfast.wire.strict import json_type

if TYPE_CHECKING:
    from holdfast.wire.message import Message


class Entry(msgspec.Struct, frozen=True):
    """A dialect-independent message, used for conversion."""

    role: Role
    blocks: tuple[Block, ...]


class Loss(msgspec.Struct, frozen=True):
    """A part of a request that a conversion lost."""

    path: str
    message: str


class Dialect(Protocol):
    """One provider's request format. Each implementation is a module with these names."""

    @property
    def NAME(self) -> str:
        """Name of the dialect, as users write it."""

    @property
    def LISTS(self) -> tuple[Place, ...]:
        """Possible positions of the message list, the usual one first."""

    @property
    def INLINE_SYSTEM(self) -> bool:
        """Whether system text is a message in the list rather than a separate field."""

    def check(self, message: Any, place: Place) -> Role:
        """Return the role of a message; raise `ShapeError` if it is invalid."""

    def blocks(self, message: Any, owner: Message | None) -> tuple[Block, ...]:
        """Return a checked message as blocks. Never fails: unknown parts become opaque blocks."""

    def system(self, body: Any) -> tuple[Block, ...]:
        """Return the system blocks outside the message list."""

    def tools(self, body: Any) -> tuple[Tool, ...]:
        """Return the tools that the request offers."""

    def content(self, block: Block, text: str) -> Any:
        """Return the JSON value to write into a block's slot so that it contains `text`."""

    def compose(self, entries: Sequence[Entry]) -> list[Any]:
        """Return entries (text, calls and results only) as messages of this dialect."""

    def envelope(
        self, system: str, tools: Sequence[Tool], params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the body around the messages; remove the parameters it expresses from `params`."""

    def params(self, body: Any) -> dict[str, Any]:
        """Return the generation parameters under their common names; see convert.py."""


def by_turns(entries: Sequence[Entry], part: Callable[[Block], Any]) -> list[Any]:
    """Return messages with alternating roles; results and user text share one message."""
    messages: list[Any] = []
    for entry in entries:
        role = "assistant" if entry.role == "assistant" else "user"
        parts = [part(block) for block in entry.blocks]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(parts)
        else:
            messages.append({"role": role, "content": parts})
    return messages


def role_of(message: Any, roles: dict[str, Role], place: Place) -> Role:
    """Return the role of a message; raise `ShapeError` with the valid roles."""
    if not isinstance(message, dict):
        # A string instead of the list is parsed as one message, because Responses accepts that.
        is_list = bool(place) and isinstance(place[-1], str)
        raise wrong_type(message, place, "a list of messages" if is_list else "an object")
    name = message.get("role")
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        raise ShapeError(
            "the message has no role" if name is None else "unknown role",
            where=dotted((*place, "role")),
            fix=f"Use one of {', '.join(roles)}.",
        )
    return role


def wrong_type(value: Any, place: Place, wanted: str) -> ShapeError:
    """Return the error for a value of the wrong type."""
    return ShapeError(
        f"expected {wanted}, found {json_type(value)}",
        where=dotted(place),
        fix="Check the dialect, or see `holdfast request validate --help`.",
    )
