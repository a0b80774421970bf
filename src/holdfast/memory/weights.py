"""How much each signal counts, as data, and where the numbers come from.

weights: beside ranking, which says what each signal is. The sum is linear. Signals of words, of
meaning and of shape are measured in deviations from their mean in the scope, others are 0 or 1.

The numbers were chosen by hand, in steps of a quarter up to one and of a half beyond it, and are
no fit's: the conversations at hand that have questions with evidence may be used to measure, not to
make what is shipped from them. A fit on them was looked at first, and the steps stand near it.
Those of MiniLM, and the price of a token, are of a grid of such steps on LoCoMo's dev half.
FriendsQA (Apache-2.0) allows more, but has neither assistants nor dates nor wishes. What each would
bring stands in docs/discussions/recall.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.models.minilm import MiniLmEmbedder
from holdfast.models.protocol import Embedder

DENSITY = 1.0
"""What a piece costs when pieces are chosen: so much for each factor e of its tokens."""

WITH_VECTORS: Mapping[str, float] = MappingProxyType(
    {
        "words": 0.25,  # BM25 of the piece, names in the question included
        "words_around": 0.5,  # of the turn with two before and two behind, without names
        "words_of_episode": 0.5,
        "rarest_words": 0.25,
        "meaning": 0.25,  # the vectors of the turn
        "meaning_around": 0.25,
        "speaker": 1.5,  # the question names who says it
        "date": 3.0,  # it was said, or speaks of something, when the question asks about
        "user": 1.5,
        "assistant": 0.5,  # where the question asks for what an assistant said
        "wish": 2.5,  # where the question asks for advice
        "rule": 2.0,  # a standing instruction, whatever is asked
        "length": 0.25,
        "pieces": -0.75,  # a reply of many pieces
        "answers": 0.5,  # the turn before ends with a question
        "time": 0.5,  # it speaks of time
        "names": 0.25,
        "first_person": 0.5,
    }
)
WORDS_ONLY: Mapping[str, float] = MappingProxyType(
    {
        **{name: weight for name, weight in WITH_VECTORS.items() if "meaning" not in name},
        "words_around": 0.75,  # of what meaning would have added
    }
)
_OF_EMBEDDERS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        # Alone they find nine tenths of the evidence in LoCoMo, WordLlama's 85 in a hundred.
        MiniLmEmbedder.name: MappingProxyType(
            {**WITH_VECTORS, "meaning": 0.75, "meaning_around": 0.5}
        )
    }
)


def weights_of(embedder: Embedder | None) -> Mapping[str, float]:
    """How much each signal counts where this embedder reads turns and questions."""
    if embedder is None:
        return WORDS_ONLY
    return _OF_EMBEDDERS.get(embedder.name, WITH_VECTORS)
