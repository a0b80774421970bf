"""docs/reference/bill.md: its example matches the formula, in exact dollars."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import msgspec

from holdfast.engine.bill import ExpansionUsage
from holdfast.store.records import TurnUsage
from holdfast.store.rules import total
from holdfast.surfaces.cli._bill import bill
from holdfast.surfaces.proxy.tally import RunReport
from tests.engine.test_accounting import SHORT, anthropic, used
from tests.store.harness import turn

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bill.md"
PRICES = tuple(map(Decimal, ("5", "0.5", "6.25", "25")))
"""Dollars per million tokens: new, read, written for five minutes, output."""


def rows() -> list[tuple[str, list[int], Decimal]]:
    """Return the rows of the table: their names, tokens by class, dollars."""
    lines = [line.split("|")[2:-1] for line in PAGE.read_text().splitlines()]
    cells = [[cell.strip().replace(",", "") for cell in line] for line in lines if len(line) == 6]
    return [
        (what, [int(count) for count in counts], Decimal(dollars))
        for what, *counts, dollars in cells
        if what.startswith(("billed", "untouched"))
    ]


def example() -> list[TurnUsage]:
    model, lives = "claude-opus-4-5", SHORT
    unchanged = used(
        anthropic(0, written=20_000, output=400),
        model=model, predicted=20_000, untouched=20_000, cache_lives=lives,
    )  # fmt: skip
    cited = used(
        anthropic(0, cached=20_000, written=3_000, output=500),
        model=model, predicted=23_000, untouched=52_000, cache_lives=lives,
        known=20_000, asked_known=20_000,
    )  # fmt: skip
    opened = used(
        [anthropic(0, cached=23_000, written=1_500, output=60),
         anthropic(0, cached=24_500, written=4_000, output=300)],
        model=model, predicted=24_500, untouched=53_500, cache_lives=lives,
        known=23_000, asked_known=52_000, expanded=ExpansionUsage(1, 4_000, rounds=1),
    )  # fmt: skip
    return [unchanged, cited, opened]


def test_every_row_is_its_tokens_at_their_prices() -> None:
    assert len(rows()) == 7
    for what, counts, dollars in rows():
        exact = sum(n * price for n, price in zip(counts, PRICES, strict=True)) / 1_000_000
        assert exact == dollars, what


def test_the_table_is_what_the_formula_gives() -> None:
    turns = example()
    billed = [row for row in rows() if row[0] != "untouched"]
    untouched = [row for row in rows() if row[0] == "untouched"]
    cost = [billed[0][2], billed[1][2], billed[2][2] + billed[3][2]]
    assert [usage.cost for usage in turns] == [float(amount) for amount in cost]
    for usage, paid, (_, counts, dollars) in zip(turns, cost, untouched, strict=True):
        assert usage.saved_cost == float(dollars - paid)
        read, written, output = counts[1:]
        assert (usage.untouched_cached, usage.untouched_written) == (read, written)
        assert (usage.untouched, usage.untouched_output) == (sum(counts[:3]), output)
    text = " ".join(PAGE.read_text().split())
    whole, without = sum(cost), sum((row[2] for row in untouched), Decimal(0))
    assert f"a loss of ${(cost[2] - untouched[2][2]).normalize()}:" in text
    assert f"cost ${whole} in the place of ${without}, and saved ${without - whole:.3f}:" in text


def test_the_bill_on_the_page_is_the_one_that_is_printed() -> None:
    turns = [turn(n, usage=usage) for n, usage in enumerate(example(), 1)]
    usage = msgspec.structs.replace(total("total", turns))
    assert "\n".join(bill(RunReport(usage))) in PAGE.read_text()
