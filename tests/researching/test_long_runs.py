"""The cases of the seed's testing strategy (003-50 to 53, 60), through a whole research."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.allocate.manager import token_counter
from holdfast.compat import ContentStore, Payload
from holdfast.expand.retrieval import ACTION
from holdfast.researching import verify
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from tests.researching.made import Scripted, claim, researched, texts

ACTIONS = 50
REF = re.compile(r"ref:\w+:[0-9a-f]{16}")
count = token_counter("openai:gpt-4o")


class Opener(Scripted):
    """A model that plans six questions and opens three sources for each before it claims."""

    def __init__(self, window: int) -> None:
        super().__init__(self.respond, window)
        self.opened: list[str] = []

    def respond(self, prompt: str) -> str:
        if "sub-questions" in prompt:
            return "\n".join(f"How long was the bridge in part {n}?" for n in range(6))
        if "Here is what you asked to open" in prompt:
            self.opened.append(prompt.partition("Here is what you asked to open")[2])
            return claim("S1", "In part 3 the bridge")
        if "List what they say" in prompt:
            return "\n".join(map(self._opening, list(dict.fromkeys(REF.findall(prompt)))[:3]))
        if "still open" in prompt:
            round_ = sum("still open" in each for each in self.prompts)
            return "\n".join(f"Who repaired bridge {n} of round {round_}?" for n in range(3))
        return "Nothing more [F1]."

    def _opening(self, ref: str) -> str:
        how = {"ContentID": ref, "ExcerptOnly": True, "SearchTerms": "part 90, repaired"}
        return json.dumps({"action": ACTION, "parameters": how})


def act(budget: int, paragraphs: int) -> dict[str, int]:
    """Case 1: more was read than the budget; every prompt fits it, and all of them together."""
    sources = texts(ACTIONS, paragraphs=paragraphs)
    model = Opener(window=6_000)
    done = researched("How long were the bridges?", sources, model=model, budget=budget)
    report = done.report
    whole = sum(count(source.text) for source in sources)
    assert report.sources_read == ACTIONS
    assert len(model.opened) >= 2
    assert whole > budget
    assert report.source_tokens == whole
    assert report.usage.tokens <= budget
    assert all(count(prompt) < model.window for prompt in model.prompts)
    assert report.findings
    return {
        "tokens of sources": whole,
        "tokens asked": report.usage.tokens,
        "calls": report.usage.calls,
        "largest prompt": max(map(count, model.prompts)),
    }


@pytest.mark.slow
def test_fifty_actions_do_not_exhaust_a_budget() -> None:
    act(50_000, paragraphs=40)


@pytest.mark.campaign
def test_fifty_actions_do_not_exhaust_200_000_tokens(
    record_property: Callable[[str, object], None],
) -> None:
    for name, figure in act(200_000, paragraphs=150).items():
        record_property(name, figure)


def test_what_is_retrieved_is_what_was_cited() -> None:
    """Case 2: excerpts are about the requested terms and occur in their source."""
    sources = texts(6, paragraphs=100)
    model = Opener(window=8_000)
    researched("How long were they?", sources, model=model)
    excerpts = [each for shown in model.opened for each in _excerpts(shown)]
    assert len(excerpts) >= 6
    for text, location in excerpts:
        first, last = map(int, re.findall(r"\d+", location))
        [source] = [each for each in sources if text in each.text]
        assert text in "\n".join(source.text.split("\n")[first - 1 : last])
        assert "part 90" in text or "repaired" in text


def _excerpts(shown: str) -> list[tuple[str, str]]:
    """Return the excerpts of an opened content, as the model sees them, with their places."""
    results: list[Any] = json.loads(shown[shown.index("[") : shown.rindex("]") + 1])
    opened = [json.loads(result["message"]) for result in results if result["success"]]
    return [(each["text"], each["location"]) for answer in opened for each in answer["excerpts"]]


def test_payload_and_store_hold_the_same_and_are_cleared_together() -> None:
    """Case 3."""
    store = open_memory()
    done = researched("How long were they?", texts(6), store=store)

    async def work() -> None:
        contents, run = ContentStore(store), done.report.run
        payload = Payload(contents, run)
        listed = {record.ref_id for record in await payload.sources()}
        assert listed == {entry.ref for entry in done.state.readable}
        assert all([await payload.content(ref) for ref in listed])
        assert not (await verify(done.report, store, Scope())).faults
        assert await contents.cleanup_for_agent_run(run) == len(listed)
        assert await Payload(contents, run).sources() == []
        assert [await store.get(Scope(), ref) for ref in listed] == [None] * len(listed)
        assert (await verify(done.report, store, Scope())).faults

    asyncio.run(work())
