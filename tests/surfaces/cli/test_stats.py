"""`holdfast stats`: the store's sums in a table, and a running proxy's while they grow."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from holdfast.engine import Holdfast
from holdfast.store.records import UsageTotal
from holdfast.surfaces.cli import stats
from holdfast.surfaces.proxy.report import dollars, row
from tests.budget.made import counted
from tests.fitting.test_citing import chat, log
from tests.surfaces.harness import Cli
from tests.surfaces.proxy.harness import Running, ask, running_proxy

CHAT = "/v1/chat/completions"
TOKEN = "token-of-the-proxy"


def say(proxy: Running, session: str, model: str, question: str) -> None:
    body = chat(log(120), question=question) | {"model": model}
    headers = {"x-holdfast-session": session, "x-holdfast-token": TOKEN}
    assert ask(proxy.url + CHAT, body, headers).status == 200
    proxy.settled()


@pytest.fixture
def proxy(cli: Cli) -> Iterator[Running]:
    store = f"sqlite:///{cli.folder / 'requests.db'}"
    with running_proxy({"store_url": store, "serve_token": TOKEN}) as running:
        cli.monkeypatch.setenv("HOLDFAST_STORE_URL", store)
        cli.monkeypatch.setenv("HOLDFAST_SERVE_TOKEN", TOKEN)
        say(running, "one", "gpt-4o", "Is step 7 well?")
        say(running, "two", "gpt-4o-mini", "And step 9?")
        say(running, "two", "gpt-4o-mini", "And step 11?")
        yield running


def test_help_says_what_the_columns_mean(cli: Cli) -> None:
    said = cli("stats", "--help").out
    for word in ("untouched", "share of untouched", "--watch", "holdfast stats --by day"):
        assert word in said


def test_an_empty_store_says_what_to_do(cli: Cli) -> None:
    drawn = cli("stats", "--output", "table")
    assert (drawn.code, drawn.out) == (0, "")
    assert "holdfast serve" in drawn.err
    assert cli("stats").json["totals"]["turns"] == 0


@pytest.mark.usefixtures("proxy")
def test_rows_add_up_to_the_totals_in_each_way_of_summing(cli: Cli) -> None:
    rows = {by: cli("stats", "--by", by).json for by in ("model", "session", "day")}
    assert [row["name"] for row in rows["model"]["by_model"]] == [
        "gpt-4o (offline)",
        "gpt-4o-mini (offline)",
    ]
    assert [row["turns"] for row in rows["session"]["by_session"]] == [2, 1]
    assert len(rows["day"]["by_day"]) == 1
    for by, found in rows.items():
        assert set(found) == {"totals", f"by_{by}"}
        for field in ("turns", "untouched", "predicted", "saved", "failed", "cost"):
            summed = sum(row[field] for row in found[f"by_{by}"])
            assert summed == pytest.approx(found["totals"][field]), (by, field)
    totals = rows["model"]["totals"]
    assert totals["saved"] == totals["untouched"] - totals["input"] > 0


@pytest.mark.usefixtures("proxy")
def test_the_table_has_a_row_for_each_and_one_for_all(cli: Cli) -> None:
    totals = cli("stats").json["totals"]
    drawn = cli("stats", "--output", "table").out.splitlines()
    assert re.match(r"model +requests +failed +untouched +billed +saved +cached ", drawn[0])
    assert drawn[2].startswith("gpt-4o ")
    [total] = [line for line in drawn if line.startswith("total ")]
    for field in ("untouched", "input", "saved"):
        assert f"{totals[field]:,}" in total
    # The offline model answered: no real money, and its list price is shown separately.
    assert total.split()[-2:] == ["-", "-"]
    assert (totals["cost"], totals["saved_cost"]) == (0.0, 0.0)
    demo = f"≈ ${dollars(totals['demo_cost'])}, ≈ ${dollars(totals['demo_saved_cost'])} less than"
    assert demo in " ".join(" ".join(drawn).split())


@pytest.mark.usefixtures("proxy")
def test_quality_is_told_by_another_process_from_the_store(cli: Cli) -> None:
    told = cli("stats", "--quality").json
    totals = cli("stats").json["totals"]
    [cite] = [row for row in told["edits"] if row["action"] == "cite"]
    assert cite["turns"] == totals["turns"] == 3
    assert cite["from_tokens"] - cite["to_tokens"] > totals["saved"] > 0
    assert told["accuracy"] == []  # the offline model counts as we do, and teaches nothing
    drawn = cli("stats", "--quality", "--output", "table")
    assert re.search(rf"^cite +{cite['edits']} +3 +{cite['from_tokens']:,} ", drawn.out, re.M)
    assert "No provider has reported usage" in drawn.err


def test_quality_tells_how_far_counts_were_from_reports(cli: Cli) -> None:
    async def learn() -> None:
        async with Holdfast.open(f"sqlite:///{cli.folder / 'store.db'}") as engine:
            for reported in (110, 110, 110):
                engine.calibration.observe(counted(100), reported)

    asyncio.run(learn())
    cli.monkeypatch.setenv("HOLDFAST_STORE_URL", f"sqlite:///{cli.folder / 'store.db'}")
    [row] = cli("stats", "--quality").json["accuracy"]
    assert row["observed"] == 3
    assert row["first_error"] == pytest.approx(10 / 110)
    assert " 9.1% " in cli("stats", "--quality", "--output", "table").out


@pytest.mark.usefixtures("proxy")
def test_a_narrow_terminal_shows_fewer_columns_but_every_name_and_number_whole(cli: Cli) -> None:
    cli.monkeypatch.setenv("COLUMNS", "80")
    totals = cli("stats").json["totals"]
    drawn = cli("stats", "--output", "table").out
    assert "…" not in drawn
    assert "gpt-4o-mini " in drawn
    assert "cached" not in drawn
    assert f"{totals['saved']:,}" in drawn
    assert f"≈ ${dollars(totals['demo_saved_cost'])} less" in " ".join(drawn.split())


def test_a_running_proxy_is_asked_with_its_token(cli: Cli, proxy: Running) -> None:
    found = cli("stats", "--watch", "--by", "session", "--url", proxy.url).json
    assert set(found) == {"totals", "by_session", "process"}
    assert found["totals"] == cli("stats").json["totals"]
    assert found["process"]["added_seconds_count"] == 3
    cli.monkeypatch.setenv("HOLDFAST_SERVE_TOKEN", "another")
    refused = cli("stats", "--watch", "--url", proxy.url)
    assert refused.code == 2
    assert "serve_token" in refused.err


def test_watched_figures_are_by_session_most_recently_used_first(cli: Cli, proxy: Running) -> None:
    watched = cli("stats", "--watch", "--url", proxy.url).json
    assert [row["name"] for row in watched["by_session"]] == ["two", "one"]


def test_where_no_proxy_answers_the_next_step_is_named(cli: Cli) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        nobody = cli("stats", "--watch", "--url", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert nobody.code == 2
    assert "holdfast serve" in nobody.err
    for wrong in ("127.0.0.1:8787", "ftp://host", "http://host:port"):
        refused = cli("stats", "--watch", "--url", wrong)
        assert refused.code == 2
        assert "not an HTTP address" in refused.err


def test_a_live_table_follows_the_proxy_until_it_is_interrupted(proxy: Running) -> None:
    seen = b""
    ours, theirs = pty.openpty()
    watching = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "stats", "--watch", "--by", "model", "--url", proxy.url],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "160"},
        cwd=Path.cwd(),
    )
    os.close(theirs)
    try:
        while b"3 answered" not in seen:
            seen += os.read(ours, 65_536)
        assert b"gpt-4o-mini" in seen
        say(proxy, "three", "gpt-4.1", "And step 13?")
        while b"4 answered" not in seen or b"gpt-4.1" not in seen:
            seen += os.read(ours, 65_536)
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=30)
        assert (watching.returncode, said) == (0, b"")
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)


def test_tools_that_were_set_aside_are_told_below_the_table(cli: Cli) -> None:
    names = ("lazy", "lazy_saved", "tool_searches", "tool_calls", "lazy_calls")
    counts = dict.fromkeys(UsageTotal.__struct_fields__, 0) | {"name": "total", "turns": 40}
    told = {"totals": row(UsageTotal(**counts)), "by_model": []}  # type: ignore[arg-type]
    assert "set aside" not in shown(told)
    used = dict(zip(names, (10, 250_000, 9, 20, 15), strict=True))
    told["totals"] = row(UsageTotal(**counts | used))  # type: ignore[arg-type]
    line = (
        "tools set aside: in 10 (25%) requests, 250,000 tokens of schemas; 9 searches, "
        "15 (75%) of 20 tool calls"
    )
    assert line in shown(told)
    assert "tools set aside" in cli("stats", "--help").out


def shown(figures: Any) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(stats.drawn(figures, "model", 120))
    return console.export_text()
