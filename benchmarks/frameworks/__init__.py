"""The frameworks of the benchmark of adapters: each with its own hook for long histories, and ours.

A file for each, so that one that is not installed does not keep the others from being measured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from holdfast import Holdfast

Step = Callable[[list[Any]], Awaitable[Sequence[Any]]]
"""One call: the framework's messages → those that would be sent."""


class Framework(NamedTuple):
    """A framework's messages and hooks."""

    name: str
    own_name: str
    turn: Callable[[int, str], list[Any]]
    """(number, a tool's result) → a question, a call, its result and an answer."""
    own: Step
    ours: Callable[[Holdfast, int | None], Step]
    """(engine, limit) → the call through our adapter."""
    written: Callable[[Sequence[Any]], dict[str, Any]]
    """Messages as a request, to be counted."""
    copied: Callable[[list[Any]], list[Any]] = list
    """What the framework hands to its hooks."""


def written_as_chat(form: Any) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Messages as a request of OpenAI's chat, by an adapter's own form."""
    return lambda messages: {
        "model": "gpt-4o",
        "messages": [value for message in messages for value in form.write(message)],
    }
