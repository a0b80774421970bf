"""The bill's figures for the untouched run, compared with the same run without the proxy.

The provider of the tests has a prompt cache with the rules of each vendor, and its own counts.
"""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from tests.fitting.test_citing import chat, in_dialect, log
from tests.provider.prompt_cache import PromptCache
from tests.surfaces.proxy.harness import KEYS, ask, path_of, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream, UpstreamTurn
from tests.wire.responses.streams import Script

MODELS = {
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "anthropic": "claude-opus-4-5",
    "gemini": "gemini-2.5-flash",
}
RATES = {  # new, read, written for five minutes, output
    "gpt-5": ("1.25", "0.125", "0", "10"),
    "claude-opus-4-5": ("5", "0.5", "6.25", "25"),
    "gemini-2.5-flash": ("0.3", "0.03", "0", "2.5"),
}
MARK = {"type": "ephemeral"}


DEVIATION = {"anthropic": 0.006, "openai-chat": 0.035, "openai-responses": 0.025, "gemini": 0.16}
"""Measured, by how well each provider's counts are known: 0.5, 3.3, 2.2 and 15 %."""


def requests_in(dialect: str) -> list[bytes]:
    """Ten requests of an agent that reads a log before each; Claude's client moves its mark."""
    bodies = []
    for turns in range(1, 11):
        results = [log(120, seed=n) for n in range(turns)]
        body = json.loads(in_dialect(chat(*results) | {"model": MODELS[dialect]}, dialect))
        if dialect == "anthropic":
            body.setdefault("max_tokens", 1_000)
            body["messages"][-1]["content"][-1]["cache_control"] = MARK
        bodies.append(json.dumps(body).encode())
    return bodies


def cost_of(dialect: str, answers: list[Script]) -> Decimal:
    """Return the cost of the provider's answers."""
    total = Decimal(0)
    for each in answers:
        # Anthropic reports input without cached tokens; the others report all input.
        new = each.input if dialect == "anthropic" else each.input - each.cached
        counts = (new, each.cached, each.written, each.output)
        rates = map(Decimal, RATES[MODELS[dialect]])
        total += sum((n * rate for n, rate in zip(counts, rates, strict=True)), Decimal(0))
    return total / 1_000_000


@pytest.mark.parametrize("dialect", sorted(MODELS))
def test_the_untouched_cost_is_what_the_run_costs_without_the_proxy(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Script] = []
    truthful = UpstreamTurn.truthful

    def kept(self: UpstreamTurn, script: Script) -> Script:
        answers.append(truthful(self, script))
        return answers[-1]

    monkeypatch.setattr(UpstreamTurn, "truthful", kept)
    path = path_of(dialect)
    with Upstream() as upstream:
        upstream.always = says(text("It went well."))
        upstream.cache = PromptCache()
        for body in requests_in(dialect):
            assert ask(upstream.url + path, body, KEYS).status == 200
        direct = cost_of(dialect, answers)
        answers.clear()
        upstream.cache = PromptCache()
        with running_proxy({}, upstream.url) as proxy:
            for body in requests_in(dialect):
                assert ask(proxy.url + path, body, KEYS).status == 200
            proxy.settled()
            totals = ask(proxy.url + "/stats").json["totals"]
    assert totals["cost"] == pytest.approx(float(cost_of(dialect, answers)), abs=1e-9)
    # Billed values are exact; untouched ones are counted by us, with an assumption about the cache.
    untouched = totals["cost"] + totals["saved_cost"]
    assert untouched == pytest.approx(float(direct), rel=DEVIATION[dialect])
    assert totals["saved"] > 0
