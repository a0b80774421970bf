"""What a dialect is: the handful of functions that every provider file defines.

dialect: after blocks; the provider files follow this shape, conversation.py uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import ShapeError
from holdfast.wire.blocks import Block, Role, Tool
from holdfast.wire.pointing import Place, dotted
from holdfast.wire.strict import json_type

if TYPE_CHECKING:
    from holdfast.wire.message import Message


class Entry(msgspec.Struct, frozen=True):
    """A message in no dialect: the form that conversion goes through."""

    role: Role
    blocks: tuple[Block, ...]


class Loss(msgspec.Struct, frozen=True):
    """Something a conversion could not carry over."""

    path: str
    message: str


class Dialect(Protocol):
    """One provider's way to write a request. Each is a module with these names."""

    @property
    def NAME(self) -> str:
        """The dialect's name, as users write it."""

    @property
    def LISTS(self) -> tuple[Place, ...]:
        """The places where the list of messages may stand, the usual one first."""

    @property
    def INLINE_SYSTEM(self) -> bool:
        """Whether system text is a message in the list rather than a field beside it."""

    def check(self, message: Any, place: Place) -> Role:
        """Give the role of a message, or raise ShapeError if it is not one."""

    def blocks(self, message: Any, owner: Message | None) -> tuple[Block, ...]:
        """View a checked message as blocks. Never fails: what is unknown is opaque."""

    def system(self, body: Any) -> tuple[Block, ...]:
        """The system blocks that stand outside the list of messages."""

    def tools(self, body: Any) -> tuple[Tool, ...]:
        """The tools that the request offers."""

    def content(self, block: Block, text: str) -> Any:
        """The JSON value that goes into the block's slot to make it say `text`."""

    def compose(self, entries: Sequence[Entry]) -> list[Any]:
        """Write entries (text, calls and results only) as messages of this dialect."""

    def envelope(
        self, system: str, tools: Sequence[Tool], params: dict[str, Any]
    ) -> dict[str, Any]:
        """The body around the messages; takes out of `params` what it could express."""

    def params(self, body: Any) -> dict[str, Any]:
        """The generation parameters, under their common names; see convert.py."""


def by_turns(entries: Sequence[Entry], part: Callable[[Block], Any]) -> list[Any]:
    """Compose messages of user and assistant by turns: results and the user's words share one."""
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
    """The role of a message, or ShapeError with the roles there are."""
    if not isinstance(message, dict):
        # A text in the place of the list is read as one message, for Responses takes it so.
        is_list = bool(place) and isinstance(place[-1], str)
        raise misshapen(message, place, "a list of messages" if is_list else "an object")
    name = message.get("role")
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        raise ShapeError(
            "the message has no role" if name is None else "unknown role",
            where=dotted((*place, "role")),
            fix=f"Use one of {', '.join(roles)}.",
        )
    return role


def misshapen(value: Any, place: Place, wanted: str) -> ShapeError:
    """The error for a value of the wrong type."""
    return ShapeError(
        f"expected {wanted}, found {json_type(value)}",
        where=dotted(place),
        fix="Check the dialect, or see `holdfast request validate --help`.",
    )
