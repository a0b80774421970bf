"""What providers reported for real requests, where this machine has them."""

from __future__ import annotations

import statistics
import warnings
from collections import defaultdict

from holdfast import count
from tests.support.recorded import PLATFORMS, needs_usage, requests

# Median and 95th percentile of the absolute error in percent; slightly above the current values, so
# that a change for the worse fails. `make bench` prints the figures.
REACHED = {
    "openai-chat": (0.1, 1),
    "openai-responses": (0.1, 9),
    "anthropic": (1.2, 7.2),
    "gemini": (0.1, 10.5),
    "other": (0.5, 22),
    "mistral": (0.8, 15),
    "xai": (1.2, 18),
    "bedrock": (1.4, 14),
}


@needs_usage
def test_counts_stay_as_close_to_the_reports_as_they_are() -> None:
    errors = defaultdict(list)
    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dialect, record in requests():
            if not record["derivable"] or record["has_media"] or record["suspect"]:
                continue
            reported = record["reported"]["input_tokens"]
            counted = count(
                record["request"],
                dialect=dialect,
                model=record["model"] or record["resp_model"] or "",
                platform=PLATFORMS.get(record["host"], ""),
            )
            assert counted.note == ""
            errors[record["provider"]].append(abs(counted.tokens - reported) / reported * 100)
            held.append(counted.upper >= reported)
    for provider, (middle, most) in REACHED.items():
        assert statistics.median(errors[provider]) <= middle, provider
        assert statistics.quantiles(errors[provider], n=20, method="inclusive")[-1] <= most, (
            provider
        )
    assert statistics.fmean(held) >= 0.99
