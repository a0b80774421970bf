"""The command line sees every tenant of the proxy, and with --tenant one of them."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.engine import Holdfast
from holdfast.store import Scope, open_store
from tests.fitting.test_citing import chat, log
from tests.support.citing import CITES
from tests.surfaces.harness import Cli

TENANTS = ("default", "key-1", "key-2")


@pytest.fixture
def bodies(cli: Cli) -> dict[str, bytes]:
    """Send a request of each tenant, in a session with the tenant's name and a separate log."""
    bodies = {
        name: json.dumps(chat(log(90 + n, n), question=f"Is {name} well?")).encode()
        for n, name in enumerate(TENANTS)
    }

    async def work() -> None:
        store = await open_store(None, folder=cli.folder / ".local/share/holdfast")
        for name, body in bodies.items():
            engine = Holdfast(store, Scope("local", name), options=CITES)
            session = engine.session(f"session of {name}")
            await engine.observe(session, await session.fit(body))
        await store.close()

    asyncio.run(work())
    return bodies


def test_tenants_are_listed(cli: Cli, bodies: dict[str, bytes]) -> None:
    listed = cli("store", "tenants").json
    assert {row["tenant"] for row in listed} == {*bodies}
    assert {(row["sessions"], row["turns"], row["refs"]) for row in listed} == {(1, 1, 1)}
    assert "key-1" in cli("store", "tenants", "--output", "table").out


def test_figures_are_of_all_or_of_one(cli: Cli, bodies: dict[str, bytes]) -> None:
    sums = cli("stats", "--by", "session").json
    assert sums["totals"]["turns"] == 3
    assert {row["name"] for row in sums["by_session"]} == {f"session of {name}" for name in bodies}
    assert cli("stats", "--tenant", "key-1").json["totals"]["turns"] == 1
    assert cli("stats", "--tenant", "nobody").json["totals"]["turns"] == 0
    assert len(cli("store", "refs").json) == 3
    assert len(cli("store", "refs", "--tenant", "key-2").json) == 1
    assert cli("store", "stats").json["refs"] == 3
    assert cli("store", "stats", "--tenant", "key-2").json["turns"] == 1
    assert cli("store", "verify").json["read"] >= 3
    assert cli("store", "gc").json["refs"] == 0


def test_a_session_and_a_ref_are_found_whosever_they_are(
    cli: Cli, bodies: dict[str, bytes]
) -> None:
    for name, body in bodies.items():
        assert cli("rebuild", f"session of {name}", "1").out.encode() == body
        other = "key-2" if name == "key-1" else "key-1"
        assert cli("rebuild", f"session of {name}", "1", "--tenant", other).code == 2
        [info] = cli("store", "refs", "--tenant", name).json
        opened = cli("expand", info["ref_id"], "--lines", "3-3")
        assert f"step {TENANTS.index(name)}-2 went well" in opened.out
        assert cli("expand", info["ref_id"], "--tenant", other).code == 2
        assert cli("expand", info["ref_id"], "--raw").out.startswith("0000 INFO")


def test_an_export_is_of_one_tenant(cli: Cli, bodies: dict[str, bytes]) -> None:
    several = cli("store", "export", "all.jsonl")
    assert several.code == 2
    assert "3 tenants have records here" in several.err
    assert all(name in several.err for name in bodies)
    assert cli("store", "export", str(cli.folder / "one.jsonl"), "--tenant", "key-1").code == 0
    moved = cli("store", "import", str(cli.folder / "one.jsonl"), "--tenant", "key-3")
    assert moved.code == 0
    assert {row["tenant"] for row in cli("store", "tenants").json} == {*bodies, "key-3"}
