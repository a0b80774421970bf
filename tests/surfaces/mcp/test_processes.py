"""The gateway with programs: started late, killed, broken, and given only their own variables."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast.surfaces.mcp.config import ServerSpec
from tests.surfaces.mcp.gateways import gateway_over, host_of, program
from tests.surfaces.mcp.test_gateway import words

pytestmark = pytest.mark.slow


def test_a_server_killed_in_mid_call_ends_in_a_typed_error_and_starts_anew() -> None:
    async def main() -> None:
        async with gateway_over([program()], listing="all") as gateway, host_of(gateway) as host:
            await host.list_tools()
            first = int(words(await host.call_tool("process", {})))
            call = asyncio.ensure_future(host.call_tool("wait", {}))
            while not gateway.upstreams["demo"].is_busy:
                await asyncio.sleep(0)
            os.kill(first, signal.SIGKILL)
            result = await asyncio.wait_for(call, 20)
            assert result.is_error
            error = (result.meta or {})["holdfast/error"]
            assert (error["server"], error["kind"]) == ("demo", "gone")
            second = int(words(await host.call_tool("process", {})))
            assert second != first
            assert gateway.upstreams["demo"].starts == 2

    asyncio.run(main())


def test_broken_servers_never_block_the_rest() -> None:
    async def main() -> None:
        specs = [
            program(),
            ServerSpec(name="missing", command="/no/such/program"),
            ServerSpec(name="mute", command=sys.executable, args=("-c", "pass")),
            ServerSpec(name="wrong", fault="it is wrong"),
            ServerSpec(name="nowhere", transport="http", url="http://127.0.0.1:9/mcp"),
        ]
        async with gateway_over(specs, listing="all") as gateway, host_of(gateway) as host:
            names = [tool.name for tool in (await host.list_tools()).tools]
            assert "demo__echo" in names
            states = {name: each.state for name, each in gateway.upstreams.items()}
            assert states == {
                "demo": "ready",
                "missing": "failed",
                "mute": "failed",
                "wrong": "off",
                "nowhere": "failed",
            }
            assert gateway.upstreams["missing"].reason == "its program cannot be found"

    asyncio.run(main())


def test_a_failing_server_waits_longer_each_time() -> None:
    async def main() -> None:
        spec = ServerSpec(name="mute", command=sys.executable, args=("-c", "pass"))
        async with gateway_over([spec]) as gateway, host_of(gateway) as host:
            await host.list_tools()
            upstream = gateway.upstreams["mute"]
            assert (upstream.starts, upstream.is_startable) == (1, False)
            await host.list_tools()  # at once: it is not tried again
            assert upstream.starts == 1

    asyncio.run(main())


def test_lists_are_kept_so_that_the_next_gateway_starts_nobody(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'holdfast.db'}"

    async def main() -> tuple[list[str], int]:
        async with (
            gateway_over([program()], store=store, listing="all") as gateway,
            host_of(gateway) as host,
        ):
            names = [tool.name for tool in (await host.list_tools()).tools]
            return names, gateway.upstreams["demo"].starts

    first, starts = asyncio.run(main())
    assert starts == 1
    assert asyncio.run(main()) == (first, 0)


def test_a_program_sees_no_variable_that_its_entry_does_not_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOMEBODYS_SECRET", "x")
    monkeypatch.setenv("HOLDFAST_SERVE_TOKEN", "y")

    async def main() -> set[str]:
        spec = program(env={"NAMED": "1"})
        async with gateway_over([spec], listing="all") as gateway, host_of(gateway) as host:
            await host.list_tools()
            result = await host.call_tool("variables", {})
            return set(result.structured_content["result"])

    names = asyncio.run(main())
    assert "NAMED" in names
    assert not {"SOMEBODYS_SECRET", "HOLDFAST_SERVE_TOKEN"} & names


FLOOD = """
import sys
sys.stdin.readline()
while True:
    sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
"""


def test_a_message_without_an_end_does_not_fill_the_memory() -> None:
    async def main() -> None:
        spec = ServerSpec(name="flood", command=sys.executable, args=("-c", FLOOD))
        async with (
            gateway_over([spec], most_bytes=1_000_000) as gateway,
            host_of(gateway) as host,
        ):
            await asyncio.wait_for(host.list_tools(), 30)
            assert gateway.upstreams["flood"].state == "failed"

    asyncio.run(main())


def test_no_program_outlives_the_gateway() -> None:
    async def main() -> int:
        async with gateway_over([program()], listing="all") as gateway, host_of(gateway) as host:
            await host.list_tools()
            return int(words(await host.call_tool("process", {})))

    pid = asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_ref_of_the_gateway_opens_in_another_engine_of_the_store(tmp_path: Path) -> None:
    from holdfast.engine import Holdfast  # noqa: PLC0415

    store = f"sqlite:///{tmp_path / 'holdfast.db'}"

    async def main() -> None:
        async with (
            gateway_over([program()], store=store, listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            result = await host.call_tool("log", {"lines": 4000})
            (ref,) = (result.meta or {})["holdfast/refs"]
        async with Holdfast.open(store) as engine:
            part = await engine.expand_ref(ref, {"lines": "4001-4001"})
            assert part.content == "99999 ERROR cannot reach db-3: connection refused"

    asyncio.run(main())
