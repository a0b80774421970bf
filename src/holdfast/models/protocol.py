"""What Holdfast needs of a model: to complete a prompt, or to place texts in a space of meaning.

protocol: the first word of models; it knows no provider. A model raises nothing but the branches of
`ModelError`, whatever its transport does, and none of its errors holds a prompt, an answer or a
key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Completion(NamedTuple):
    """What a model said, and what it took."""

    text: str
    input_tokens: int = 0
    """As the provider reports them; 0 if it does not."""
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None if neither the provider nor a price list says."""
    model: str = ""
    """The model that answered, as the provider names it."""
    cut: bool = False
    """It ended because it was as long as it may be: its last sentence is torn."""

    def __repr__(self) -> str:
        return f"<Completion, {len(self.text)} characters, {self.output_tokens} tokens>"


class CompletionModel(Protocol):
    """A model that goes on from a prompt."""

    @property
    def name(self) -> str:
        """`provider:model`, `[cli]claude:haiku`, or `extractive`."""

    @property
    def window(self) -> int:
        """Tokens that a prompt and its answer may have together."""

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Answer a prompt in at most so many tokens.

        Raises:
            ModelError: it gave no usable answer; the branch says whether to ask again.
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
