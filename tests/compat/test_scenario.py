"""Long research: searches, pages and queries stay far below a window, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import holdfast
from holdfast import Holdfast, Settings
from holdfast.cite import CitingRules
from holdfast.compat import ContentStore
from holdfast.compat.actions import action_message
from holdfast.fitting import FitOptions
from holdfast.store.opening import open_memory
from tests.compat.made import page, query, search

WINDOW = 200_000
TASK = "Research quantum computing commercialization timeline"
NAMES = {page: "Web Page Content", search: "Google Custom Search", query: "Execute SQL Query"}

RESEARCH = [(search, n) for n in range(5)] + [(page, n) for n in range(10)]
RESEARCH += [(query, n) for n in range(3)]
FIFTY = [((page, search, query)[n % 3], n) for n in range(50)]


def tokens(messages: list[dict[str, Any]]) -> int:
    return holdfast.count({"model": "gpt-4o", "messages": messages}).tokens


def conversation(steps: list[Any], store: ContentStore, *, cited: bool) -> list[dict[str, Any]]:
    """Return an agent's conversation after all its actions, one per turn."""

    async def work() -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
        for make, seed in steps:
            action = {"name": NAMES[make]}
            messages.append({"role": "assistant", "content": f"Next: {json.dumps(action)}"})
            messages.append(
                await action_message(
                    [make(seed)],
                    [action],
                    "agent",
                    settings=Settings(enable_content_citations=cited),
                    store=store,
                )
            )
        return messages

    return asyncio.run(work())


@pytest.mark.parametrize("steps", [RESEARCH, FIFTY], ids=["research", "fifty actions"])
def test_citations_cost_a_tenth_and_every_original_can_be_opened(steps: list[Any]) -> None:
    store = ContentStore(open_memory())
    cited = conversation(steps, store, cited=True)
    whole = conversation(steps, store, cited=False)
    assert tokens(whole) > WINDOW
    assert tokens(cited) < WINDOW / 4
    assert tokens(cited) <= 0.1 * tokens(whole)
    for (make, seed), message in zip(steps, cited[2::2], strict=True):
        [entry] = json.loads(message["content"].partition("\n")[2])
        value = make(seed)["result"]["Params"][1]["Value"]
        found = asyncio.run(store.get_content(entry["contentId"]))
        assert found is not None
        text = found.full_content
        assert (text if isinstance(value, str) else json.loads(text)) == value


@pytest.mark.parametrize("steps", [RESEARCH, FIFTY], ids=["research", "fifty actions"])
def test_fit_does_the_same_for_tool_results(steps: list[Any]) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for n, (make, seed) in enumerate(steps):
        value = make(seed)["result"]["Params"][1]["Value"]
        call = {"id": f"c{n}", "type": "function",
                "function": {"name": make.__name__, "arguments": "{}"}}  # fmt: skip
        text = value if isinstance(value, str) else json.dumps(value)
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
        ]
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
             for name in ("page", "search", "query")]  # fmt: skip
    body = {"model": "gpt-4o", "messages": messages, "tools": tools}

    async def work() -> None:
        # As the seed documents have it: every long result is cited, however much room there is.
        rules = CitingRules(policy="always")
        engine = Holdfast(open_memory(), options=FitOptions(cites=True, opens=True, rules=rules))
        fitted = await engine.fit(body, limit=WINDOW)
        sent = json.loads(fitted.body)
        assert holdfast.validate(fitted.body) == []
        assert holdfast.count(sent).tokens <= 0.1 * holdfast.count(body).tokens
        assert holdfast.count(sent).tokens < WINDOW / 4
        assert len(sent["messages"]) == len(messages)
        for stored, message in zip(fitted.contents, messages[2::2], strict=True):
            found = await engine.store.get(engine.scope, stored.ref_id)
            assert found is not None
            assert found.data.decode() == message["content"]

    asyncio.run(work())
