"""The interface of a model: completing a prompt, or embedding texts.

A model raises only subclasses of `ModelError`, for any failure of its transport, and none of its
errors contains a prompt, an answer or a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Completion(NamedTuple):
    """A model's answer, and its usage."""

    text: str
    input_tokens: int = 0
    """As the provider reports them; 0 if it does not."""
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None if neither the provider nor a price list has it."""
    model: str = ""
    """The model that answered, as the provider names it."""
    cut: bool = False
    """It ended because it was as long as it may be: its last sentence is torn."""

    def __repr__(self) -> str:
        return f"<Completion, {len(self.text)} characters, {self.output_tokens} tokens>"


class CompletionModel(Protocol):
    """A model that completes prompts."""

    @property
    def name(self) -> str:
        """`provider:model`, `[cli]claude:haiku`, or `extractive`."""

    @property
    def window(self) -> int:
        """Tokens that a prompt and its answer may have together."""

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Answer a prompt in at most `max_tokens` tokens.

        Raises:
            ModelError: it gave no usable answer; the subclass tells whether to retry.
        """


class Embedder(Protocol):
    """Places texts so that those of like meaning are near each other."""

    @property
    def name(self) -> str:
        """Vectors of two names cannot be compared."""

    @property
    def dimensions(self) -> int:
        """Numbers of a vector."""

    @property
    def is_quick(self) -> bool:
        """A text takes less than a millisecond: a few may be embedded on the event loop."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector of length 1 for each text; of a text without words, zeros."""
