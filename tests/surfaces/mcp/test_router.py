"""The router: a result is stored, read for facts and summarised after its answer."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from mcp.server.mcpserver import MCPServer

from holdfast.facts.fact_reader import KIND as FACTS
from holdfast.jobs.summarising import KIND as SUMMARISE
from holdfast.settings import Settings
from holdfast.surfaces.mcp.gateway import Gateway
from holdfast.surfaces.mcp.own_tools import OWN_TOOLS
from tests.jobs.test_summarising import Says, worked
from tests.privacy.made import run
from tests.surfaces.mcp.gateways import gateway_over, host_of, hosted, in_memory, specs
from tests.surfaces.mcp.test_gateway import words

MODEL = Settings(
    store_url="memory:",
    cite_policy="always",
    summarization_provider="openai:gpt-5-mini",
    background_jobs=False,  # the worker of a test has a model of the test's own
    forbid_model_calls=True,
)
STEPS = [f"Step {n}: node-{n} was drained and restarted after {n * 3} seconds." for n in range(200)]
ORDER = {"order_id": "#W2378156", "status": "pending", "total": 12}
REPORT = json.dumps({**ORDER, "steps": STEPS}, indent=1)
SUMMARY = "Step 7: node-7 was drained and restarted after 21 seconds."


def reporter() -> MCPServer:
    """A server whose only tool gives the report."""
    server = MCPServer("reporter")

    @server.tool(structured_output=False)
    def report(lines: int = 0) -> str:
        """Gives the report on an order, or its first lines."""
        return "\n".join(REPORT.splitlines()[: lines or None])

    return server


async def queued(gateway: Gateway, kind: str) -> list[str]:
    """The contents that a kind of job is queued for."""
    jobs = await gateway.engine.store.jobs.latest(gateway.engine.scope, kind=kind)
    return [job.ref_id for job in jobs]


def test_a_result_is_stored_and_its_facts_and_summary_are_queued_behind_the_extract() -> None:
    async def main() -> None:
        async with hosted({"reporter": reporter()}, listing="all", settings=MODEL) as (
            gateway,
            host,
        ):
            result = await host.call_tool("report", {})
            (ref,) = (result.meta or {})["holdfast/refs"]
            assert words(result).startswith(f"[Stored as {ref}; ")
            engine = gateway.engine
            stored = await engine.store.get(engine.scope, ref)
            assert stored is not None
            assert stored.data.decode() == REPORT
            await engine.settle()
            assert await queued(gateway, SUMMARISE) == [ref]
            assert await queued(gateway, FACTS) == [ref]
            (fact,) = await engine.facts.latest()
            assert fact.text == "order #W2378156: status = pending, total = 12"
            assert fact.source_ref == ref

    asyncio.run(main())


def test_a_result_that_comes_again_is_told_with_its_summary_and_asked_about_once() -> None:
    async def main() -> None:
        async with hosted({"reporter": reporter()}, listing="all", settings=MODEL) as (
            gateway,
            host,
        ):
            first = words(await host.call_tool("report", {}))
            assert words(await host.call_tool("report", {})) == first  # until it is there
            store, model = gateway.engine.store, Says(SUMMARY)
            (attempt,) = await worked(store, model)
            assert (attempt.state, model.calls) == ("done", 1)
            again = words(await host.call_tool("report", {}))
            head, rest = first.split("\n", 1)
            assert again == f"{head}\n- {SUMMARY}\n{rest}"
            assert len(await queued(gateway, SUMMARISE)) == 1
            listed = (await host.list_resources()).resources
            assert [resource.title for resource in listed] == [SUMMARY]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "lines"),
    [(Settings(store_url="memory:", cite_policy="always"), 0), (MODEL, 20)],
    ids=["no model is named", "the result is short"],
)
def test_what_is_not_worth_a_summary_is_not_queued(settings: Settings, lines: int) -> None:
    async def main() -> None:
        async with hosted({"reporter": reporter()}, listing="all", settings=settings) as (
            gateway,
            host,
        ):
            await host.call_tool("report", {"lines": lines})
            await gateway.engine.settle()
            assert await gateway.engine.store.jobs.latest(None) == []

    asyncio.run(main())


def test_a_secret_in_a_model_s_summary_is_masked_wherever_the_summary_is_shown() -> None:
    token = "ghp_" + run(36)
    line = f"Step 7: node-7 logged in with {token} and was restarted."

    async def main() -> None:
        server = MCPServer("leaky")

        @server.tool(structured_output=False)
        def report() -> str:
            """Gives the report."""
            return "\n".join([*STEPS, line, *STEPS])

        settings = msgspec.structs.replace(MODEL, privacy_policy="mask")
        async with (
            gateway_over(
                specs("leaky"), way=in_memory({"leaky": server}), listing="all", settings=settings
            ) as gateway,
            host_of(gateway) as host,
        ):
            await host.call_tool("report", {})
            store = gateway.engine.store
            # The model was asked by a process whose policy allows secrets.
            await worked(store, Says(line))
            (info,) = await store.refs(gateway.engine.scope, limit=2)
            assert token in info.summary, "the summary that is stored holds the secret"
            again = words(await host.call_tool("report", {}))
            assert "logged in with [github token masked] and was restarted" in again
            assert token not in again
            (resource,) = (await host.list_resources()).resources
            assert token not in resource.model_dump_json()
            (search,) = (tool for tool in OWN_TOOLS if tool.name == "search")
            text, value = await search.work(gateway.engine, {"query": "node-7 logged in"})
            assert "github token masked" in text
            assert token not in text + str(value)

    asyncio.run(main())
