"""A trial without a key: the offline model opens few refs, and the demo's bill is not a loss."""

from __future__ import annotations

import re

import pytest

from tests.surfaces.proxy.demo import build_log, tool_turns
from tests.surfaces.proxy.harness import ask, running_proxy

TURNS = 12


@pytest.mark.parametrize("policy", ["auto", "always"])
def test_a_session_with_the_offline_model_opens_little_and_saves(policy: str) -> None:
    with running_proxy({"cite_policy": policy}) as proxy:
        tool_turns(proxy, "s", [build_log(n) for n in range(TURNS)])
        engine = proxy.service.engine
        turns = proxy.do(engine.store.turns(engine.session("s").scope))
        pages = [ask(proxy.url + path).body.decode() for path in ("/", "/sessions/s")]
    usages = [turn.usage for turn in turns]
    assert len(usages) == TURNS
    assert sum(usage.expansions for usage in usages) <= TURNS // 4
    assert sum(usage.input for usage in usages) <= sum(usage.untouched for usage in usages)
    assert sum(usage.demo_saved_cost or 0 for usage in usages) > 0
    for page in pages:
        amounts = re.findall(r"≈ \$[\d.]+ at list price \(demo\)", page)
        assert len(amounts) >= 2, "the cost and the saving"
