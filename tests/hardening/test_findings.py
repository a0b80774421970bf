"""What the fuzzer found, each as small as it became: faults that must not come back."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, NamedTuple

import pytest

from tests.hardening.asks import Asked
from tests.hardening.driving import Answer, era
from tests.hardening.shapes import KEYS


class Finding(NamedTuple):
    """A request, and what is to become of it."""

    target: str
    body: dict[str, Any]
    status: int
    settings: dict[str, Any] | None = None


CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
FINDINGS = {
    # The name of the model is the client's: it was a 502, as if an upstream had failed.
    "control characters in the model": Finding(CHAT, {"model": "\u202e\0", "messages": []}, 400),
    "a blank model": Finding(CHAT, {"model": " ", "messages": []}, 400),
    "a model of 5,000 letters": Finding(RESPONSES, {"model": "a" * 5000, "input": "Hi"}, 400),
    "brackets for a model": Finding("/v1beta/models/%5B%5D:countTokens", {"contents": []}, 400),
    # It was sent and answered, but never written down: such a model has no price.
    "control characters in a model that needs no limit": Finding(
        RESPONSES, {"model": "\0", "input": "Hi"}, 200, {"request_limit": 900}
    ),
}


def _asked(finding: Finding) -> Asked:
    headers = [(name.encode(), value.encode()) for name, value in KEYS.items()]
    body = json.dumps(finding.body).encode()
    return Asked("POST", finding.target, [(b"host", b"localhost"), *headers], body)


@pytest.mark.filterwarnings("ignore::holdfast.tokens.counting.UnknownModelWarning")
@pytest.mark.parametrize("finding", FINDINGS.values(), ids=FINDINGS)
def test_what_the_fuzzer_found_is_mended(finding: Finding) -> None:
    async def main() -> tuple[Answer, list[str]]:
        async with era(**(finding.settings or {})) as proxy:
            return await proxy.judged(_asked(finding), random.Random(0))

    answer, wrong = asyncio.run(main())
    assert wrong == []
    assert answer.status == finding.status
