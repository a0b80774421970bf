"""The fuzzer's findings, minimised: faults that must not return."""

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
    """A request, and its expected result."""

    target: str
    body: dict[str, Any]
    status: int
    settings: dict[str, Any] | None = None


CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HEADERS = [(n.encode(), v.encode()) for n, v in {"host": "localhost", **KEYS}.items()]
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
    # One of its tools cannot be read, so that they counted as 127, and ours made them too many.
    "as many tools as there may be": Finding(
        CHAT,
        {
            "model": "gpt-4o",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [
                {},
                *({"type": "function", "function": {"name": f"f{n}"}} for n in range(127)),
            ],
        },
        200,
    ),
}


def _asked(finding: Finding) -> Asked:
    return Asked("POST", finding.target, HEADERS, json.dumps(finding.body).encode())


@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
@pytest.mark.parametrize("finding", FINDINGS.values(), ids=FINDINGS)
def test_what_the_fuzzer_found_is_mended(finding: Finding) -> None:
    async def main() -> tuple[Answer, list[str]]:
        async with era(**(finding.settings or {})) as proxy:
            return await proxy.judged(_asked(finding), random.Random(0))

    answer, wrong = asyncio.run(main())
    assert wrong == []
    assert answer.status == finding.status


def test_the_dashboard_shows_sessions_whose_system_text_a_policy_kept_out() -> None:
    """Regression: it was a 500, because text around the messages was read although it was not
    stored.
    """
    system = "Log in at https://ann:correct-horse-battery@example.org/a"
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "system": system, "messages": []}
    body["messages"] = [{"role": "user", "content": "Hi"}]
    asked = Asked("POST", "/v1/messages", HEADERS, json.dumps(body).encode())

    async def main() -> list[tuple[Answer, list[str]]]:
        async with era(privacy_policy="refuse") as proxy:
            both = (asked, Asked("GET", "/", HEADERS, b""))
            return [await proxy.judged(request, random.Random(0)) for request in both]

    assert [(answer.status, wrong) for answer, wrong in asyncio.run(main())] == [(200, [])] * 2
