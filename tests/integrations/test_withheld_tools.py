"""The tools left in a fitted call are exactly those that each framework offers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.integrations._session import Fit
from holdfast.integrations.google_adk import HoldfastPlugin
from holdfast.integrations.llama_index import HoldfastAgent
from holdfast.integrations.pydantic_ai import HoldfastCapability
from tests.integrations import test_google_adk, test_llama_index, test_pydantic_ai
from tests.integrations.reading import Reader

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks


async def with_adk(reader: Reader) -> None:
    async with Holdfast.open("memory:") as engine:
        await test_google_adk.run(reader, HoldfastPlugin(engine))


async def with_llama_index(reader: Reader) -> None:
    async with Holdfast.open("memory:") as engine:
        await test_llama_index.run(reader, HoldfastAgent, store=engine)


async def with_pydantic_ai(reader: Reader) -> None:
    async with Holdfast.open("memory:") as engine:
        capability = HoldfastCapability[None](engine)
        await test_pydantic_ai.run(test_pydantic_ai.agent(reader, capability))


@pytest.mark.parametrize(
    ("left", "offered"),
    [
        (None, {"read_log", "expand_ref"}),
        (frozenset({"expand_ref"}), {"expand_ref"}),
        (frozenset({"read_log"}), {"read_log"}),
        (frozenset(), set()),
    ],
)
@pytest.mark.parametrize("run", [with_adk, with_llama_index, with_pydantic_ai])
def test_a_framework_offers_the_tools_that_are_left(
    run: Callable[[Reader], Awaitable[None]],
    left: frozenset[str] | None,
    offered: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Fit, "tools", property(lambda _: left))
    reader = Reader(logs=0)

    async def main() -> None:
        await run(reader)

    asyncio.run(main())
    assert reader.requests
    for request in reader.requests:
        assert set(_names(request["tools"])) == offered


def _names(tools: Any) -> list[str]:
    return re.findall(r"'name': '(\w+)'", str(tools))
