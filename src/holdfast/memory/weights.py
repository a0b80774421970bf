"""The weight of each ranking signal, as data with its source.

The score is a linear sum. Signals of words, of meaning and of shape are in standard deviations from
their mean in the scope; the others are 0 or 1.

The weights were chosen by hand in steps of a quarter up to one and of a half above, close to a fit
that is not shipped: the licences of LoCoMo and BEAM allow measuring with them, not shipping weights
trained on them. The weights for MiniLM and DENSITY come from a grid of such steps on the dev half
of LoCoMo. docs/discussions/recall.md has what each signal is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.models.minilm import MiniLmEmbedder
from holdfast.models.protocol import Embedder

DENSITY = 1.0
"""Price of a piece when pieces are selected: this much for each factor e of its tokens."""

WITH_VECTORS: Mapping[str, float] = MappingProxyType(
    {
        "words": 0.25,  # BM25 of the piece, with the names in the question
        "words_around": 0.5,  # BM25 of the turn with two turns before and after, without names
        "words_of_episode": 0.5,
        "rarest_words": 0.25,
        "meaning": 0.25,  # the vectors of the turn
        "meaning_around": 0.25,
        "speaker": 1.5,  # the question names the speaker
        "date": 3.0,  # said on, or mentioning, a day that the question asks about
        "user": 1.5,
        "assistant": 0.5,  # if the question asks about an assistant's reply
        "wish": 2.5,  # if the question asks for advice
        "rule": 2.0,  # a standing instruction, for every question
        "length": 0.25,
        "pieces": -0.75,  # penalty for a reply of many pieces
        "answers": 0.5,  # the turn before ends with a question
        "time": 0.5,  # mentions a time
        "names": 0.25,
        "first_person": 0.5,
    }
)
WORDS_ONLY: Mapping[str, float] = MappingProxyType(
    {
        **{name: weight for name, weight in WITH_VECTORS.items() if "meaning" not in name},
        "words_around": 0.75,  # takes part of the weight of the missing vectors
    }
)
_BY_EMBEDDER: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        # Alone, MiniLM's vectors find 90 % of the evidence in LoCoMo, WordLlama's 85 %.
        MiniLmEmbedder.name: MappingProxyType(
            {**WITH_VECTORS, "meaning": 0.75, "meaning_around": 0.5}
        )
    }
)


def weights_of(embedder: Embedder | None) -> Mapping[str, float]:
    """Return the weight of each signal for the embedder that reads turns and questions."""
    if embedder is None:
        return WORDS_ONLY
    return _BY_EMBEDDER.get(embedder.name, WITH_VECTORS)
