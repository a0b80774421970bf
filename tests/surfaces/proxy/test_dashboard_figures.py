"""Every figure of the overview and of the exported files, each field with a unique number."""

from __future__ import annotations

import csv
import json

import pytest

from holdfast.store.records import UsageTotal
from holdfast.surfaces.proxy.dashboard.exports import days_csv, days_json, turns_csv
from holdfast.surfaces.proxy.dashboard.pulse import Pulse, three_answers
from holdfast.surfaces.proxy.dashboard.views import Totals
from tests.store.harness import turn
from tests.surfaces.proxy.demo import Seen
from tests.surfaces.proxy.test_metrics_values import EDITS, MODEL, USAGE

TOTALS = Totals(
    requests=211, failed=3001, answered=4002, untouched=50_030, billed=6004, saved=44_026,
    cost=12.5, saved_cost=3.25, expansions=15_013, expansion_tokens=16_014, cached=1501,
    lazy=18_016, lazy_saved=19_017, tool_searches=20_018, tool_calls=22_020, lazy_calls=21_019,
)  # fmt: skip
DAY = UsageTotal(
    name="2026-11-18", turns=2, predicted=3, untouched=1009, input=5, cached=7, output=11,
    expansions=13, expansion_tokens=17, cost=0.25, saved_cost=0.5, failed=19,
)  # fmt: skip


@pytest.mark.parametrize(
    "figure",
    [
        "tokens asked50,030", "tokens billed6,004", "tokens saved44,026 (88 %)", "cost$12.50",
        "money saved$3.25", "16,014 in 15,013 openings", "caches1,501 (25 %)", "211 requests",
        "50,030 tokens asked · 3,001 failed · 4,002 answered from memory",
        "opened 15,013 hidden parts", "19,017 tokens of tool schemas set aside in 18,016 requests",
        "21,019 of 22,020 tool calls were of these, after 20,018 searches",
        "101 sessions", "103 originals", "7 are damaged",
    ],
)  # fmt: skip
def test_the_overview_shows_each_figure_in_its_place(figure: str) -> None:
    pulse = Pulse(totals=TOTALS, sessions=101, refs=103, damaged=7, size=5_000_000)
    shown = Seen(str(three_answers(pulse))).text.replace("\N{NO-BREAK SPACE}", " ")
    assert figure in shown


def test_a_turn_is_exported_with_each_figure_in_its_column() -> None:
    made = turn(
        3, model=MODEL, usage=USAGE, edits=EDITS, warnings=("a", "b"), prefix_share=0.123456,
        milliseconds=7.77, status=200, started_at=41.0,
    )  # fmt: skip
    [row] = csv.DictReader(turns_csv([made]).decode().splitlines())
    assert row == {
        "turn": "3", "started_at": "41.0", "model": MODEL, "status": "200",
        "tokens_asked": "1009", "tokens_predicted": "2", "tokens_billed": "5",
        "tokens_saved": "1004", "cached": "7", "output": "11", "opened": "13", "cost": "0.25",
        "saved_cost": "0.5", "edits": "3", "prefix_kept": "0.1235", "milliseconds": "7.8",
        "warnings": "a; b",
    }  # fmt: skip


def test_a_day_is_exported_with_each_figure_in_its_column() -> None:
    [row] = csv.DictReader(days_csv([DAY]).decode().splitlines())
    assert row == {
        "day": "2026-11-18", "requests": "2", "failed": "19", "tokens_asked": "1009",
        "tokens_billed": "5", "tokens_saved": "1004", "cached": "7", "output": "11",
        "opened": "13", "cost": "0.25", "saved_cost": "0.5",
    }  # fmt: skip
    [told] = json.loads(days_json([DAY]))
    assert (told["name"], told["untouched"], told["input"], told["saved"]) == (
        "2026-11-18", 1009, 5, 1004,
    )  # fmt: skip
