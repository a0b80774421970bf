"""The extractive model: digests of condense/digest.py, measured in tokens."""

from __future__ import annotations

from holdfast.condense import digest as condensed
from holdfast.condense.digest import Count, Digest
from holdfast.models.protocol import Completion
from holdfast.tokens.vocabulary import count_ordinary


def count(text: str) -> int:
    """Return the tokens of a text in the vocabulary of citations, the same for every model."""
    return count_ordinary("o200k_base", text)


def digest(content: str, most: int, question: str = "", *, counted: Count = count) -> Digest:
    """Quote at most `most` tokens of a content."""
    return condensed.digest(content, most, question, counted)


class ExtractiveModel:
    """A model that cannot fail: it quotes the parts of a prompt that bear on the system text."""

    name = "extractive"
    window = 100_000_000

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Quote at most `max_tokens` of the prompt; see `CompletionModel`."""
        quoted = digest(prompt, max_tokens, system)
        return Completion(quoted.text, count(prompt), quoted.tokens, 0.0, self.name)
