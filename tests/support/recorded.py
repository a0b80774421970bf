"""Real requests and conversations, where this machine has them; never part of the project.

They are looked for in $HOLDFAST_DATA, else in `../shared/data` beside the repository.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[3] / "shared" / "data")
WIRES = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "converse": "converse",
    "cohere": "cohere",
}

PLATFORMS = {
    "vertex": "vertex",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "ollama": "ollama",
    "ollama.com": "ollama",
    "localhost": "local",
    "gpustack": "gpustack",
    "azure": "azure",
    "ai-gateway.vercel.sh": "vercel",
    "api.fireworks.ai": "fireworks",
    "databricks": "databricks",
    "router.huggingface.co": "huggingface",
}
"""The provider of a recorded request, by host."""

needs_usage = pytest.mark.skipif(
    not (DATA / "usage" / "dev.jsonl.gz").exists(),
    reason="recorded requests are not on this machine; set HOLDFAST_DATA",
)
needs_trajectories = pytest.mark.skipif(
    not (DATA / "trajectories").exists(),
    reason="recorded trajectories are not on this machine; set HOLDFAST_DATA",
)


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every recorded request that is in a dialect we read, with the dialect."""
    with gzip.open(DATA / "usage" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["wire"] in WIRES:
                yield WIRES[record["wire"]], record


def trajectories() -> Iterator[dict[str, Any]]:
    """Every recorded agent conversation, as chat messages."""
    for path in sorted((DATA / "trajectories").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
