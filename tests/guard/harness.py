"""A guard with explicit costs of outputs: the text "600" is 600 tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from holdfast.guard import (
    ContextGuard,
    GuardMessage,
    TargetContextConfig,
)

PROVIDER, MODEL = "openai", "gpt-4o"
_Kind = TypeVar("_Kind")


def target(limit: int, name: str = MODEL) -> TargetContextConfig:
    """A target with exactly this limit."""
    return TargetContextConfig(PROVIDER, name, limit, buffer_tokens=0, max_output_tokens=0)


class Told(list[GuardMessage]):
    """A listener that remembers."""

    def __call__(self, message: GuardMessage) -> None:
        self.append(message)

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        return [message for message in self if isinstance(message, kind)]


class Handles:
    """A store with handles of a given size, and its stored outputs."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.outputs: list[str] = []

    def handle(self, _output: str) -> str:
        return str(self.tokens)

    def keep(self, output: str) -> None:
        self.outputs.append(output)


class AwaitedHandles(Handles):
    """The same, to be awaited: the output is kept when the event loop comes back."""

    def keep(self, output: str) -> Awaitable[None]:  # type: ignore[override]  # the other colour
        async def work() -> None:
            await asyncio.sleep(0)
            self.outputs.append(output)

        return work()


def guard(*limits: int, **arguments: Any) -> ContextGuard:
    """A guard over targets `gpt-4o`, `gpt-4o-1`, … with these limits."""
    names = [MODEL, *(f"{MODEL}-{number}" for number in range(1, len(limits)))]
    targets = [target(limit, name) for limit, name in zip(limits, names, strict=True)]
    return ContextGuard(targets, estimate=int, **arguments)
