"""Sums of usage: the same whichever way turns are summed, in every store, losses included."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import apsw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.store import Scope, Store, Turn
from holdfast.store.records import TurnUsage, UsageTotal
from holdfast.store.sqlite import driver
from holdfast.surfaces.proxy.report import report
from tests.store.harness import HERE, Opener, session, turn

DAY = 86_400.0
WAYS = ("model", "session", "day")
COUNTS = (
    "turns",
    "failed",
    "predicted",
    "untouched",
    "input",
    "cached",
    "output",
    "expansions",
    "expansion_tokens",
    "lazy_saved",
    "tool_searches",
    "tool_calls",
    "lazy_calls",
    "cache_written",
    "cache_written_hour",
    "unreported",
    "estimated",
    "assumed",
    "unpriced",
    "overflows",
    "saved",
)
MONEY = ("cost", "saved_cost", "demo_cost", "demo_saved_cost")
_users = map("user {}".format, itertools.count())

tokens = st.integers(0, 2_000_000)
dollars = st.none() | st.integers(-(10**12), 10**12).map(lambda billionths: billionths / 1e9)
usages = st.builds(
    TurnUsage,
    predicted=tokens,
    untouched=tokens,
    input=tokens,
    cached=tokens,
    cache_written=tokens,
    cache_written_hour=tokens,
    output=tokens,
    expansions=st.integers(0, 9),
    expansion_tokens=tokens,
    cost=dollars,
    saved_cost=dollars,
    demo_cost=dollars,
    demo_saved_cost=dollars,
    unreported=st.booleans(),
    estimated=st.booleans(),
    assumed=st.booleans(),
    unpriced=st.booleans(),
    overflows=st.booleans(),
    failed=st.booleans(),
    lazy_saved=tokens,
    tool_searches=st.integers(0, 9),
    tool_calls=st.integers(0, 9),
    lazy_calls=st.integers(0, 9),
)
written = st.lists(
    st.tuples(
        st.sampled_from(("s1", "s2", "s3")),
        st.sampled_from(("", "gpt-5", "claude-opus-4-5")),
        st.integers(0, 5).map(lambda n: n * DAY / 2),
        usages,
    ),
    max_size=9,
)


def exact_sum(amounts: Iterable[float | None]) -> Decimal:
    """Dollars to the billionth, added as decimals: no order of them gives another sum."""
    return sum((Decimal(str(amount or 0)) for amount in amounts), Decimal(0))


async def write(store: Store, scope: Scope, rows: list[tuple[str, str, float, TurnUsage]]) -> None:
    numbers: dict[str, int] = {}
    for name, model, at, usage in rows:
        number = numbers[name] = numbers.get(name, 0) + 1
        added: Turn = turn(number, model=model, started_at=at, usage=usage)
        await store.add_turn(scope.of(name), added, session(name, turns=number), {})


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=written)
def test_every_way_of_summing_gives_the_sum_of_the_turns(
    opener: Opener, rows: list[tuple[str, str, float, TurnUsage]]
) -> None:
    scope = Scope(next(_users), "sums", "")

    async def work(store: Store) -> None:
        await write(store, scope, rows)
        told = await report(store, [scope], WAYS)  # type: ignore[arg-type]
        turns = [usage for *_, usage in rows]
        exact = {name: sum(getattr(usage, name) for usage in turns) for name in COUNTS[1:]}
        exact["turns"] = len(turns)
        assert told["totals"]["lazy"] == sum(usage.lazy_saved > 0 for usage in turns)
        money = {name: exact_sum(getattr(usage, name) for usage in turns) for name in MONEY}
        for way in WAYS:
            sums: list[UsageTotal] = await store.usage(scope, by=way)  # type: ignore[arg-type]
            for name in COUNTS:
                assert sum(getattr(one, name) for one in sums) == exact[name]
                assert sum(row[name] for row in told[f"by_{way}"]) == exact[name]
                assert told["totals"][name] == exact[name]
            for name in MONEY:
                assert exact_sum(getattr(one, name) for one in sums) == money[name]
                assert told["totals"][name] == float(money[name])

    opener.run(work)


def test_a_loss_is_summed_as_a_loss(opener: Opener) -> None:
    loss = TurnUsage(untouched=100, input=350, cost=0.5, saved_cost=-0.25)
    failed = TurnUsage(failed=True, cost=0.0, saved_cost=0.0)

    async def work(store: Store) -> None:
        await write(store, HERE, [("s1", "m", 0.0, loss), ("s1", "m", 1.0, failed)])
        [total] = await store.usage(HERE)
        assert (total.turns, total.failed, total.saved, total.saved_cost) == (2, 1, -250, -0.25)

    opener.run(work)


def test_a_file_without_failed_turns_is_brought_up_to_date(tmp_path: Path) -> None:
    """Stores made before failed turns were counted apart are opened with all they hold."""
    path = tmp_path / "store.db"
    first, *_ = driver._steps()
    with apsw.Connection(str(path)) as db:
        db.execute(first)
        db.execute(f"PRAGMA application_id = {driver.APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
        db.execute(
            "INSERT INTO turns VALUES ('blue', 'ann', 's1', 1, 0.0, 'm', 10, 30, 12, 0, 1, 0, 0,"
            ' 0.5, 0.25, \'{"number": 1, "started_at": 0.0}\')'
        )
    db.close()

    async def work(store: Store) -> None:
        [total] = await store.usage(HERE)
        assert (total.turns, total.failed, total.saved) == (1, 0, 18)
        # An earlier version's savings are an estimate; its money was not unknown.
        assert (total.cost, total.estimated, total.assumed, total.unpriced) == (0.5, 1, 1, 0)

    Opener(f"sqlite:///{path}").run(work)
