"""Every metric after one known request: a value that is dropped, doubled or swapped shows."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.jobs import Attempt
from holdfast.store.queue import Depth, QueueFigures
from holdfast.store.records import Edit, TurnUsage
from holdfast.surfaces.proxy.metrics import Metrics
from holdfast.surfaces.proxy.seen import RequestSeen
from tests.store.harness import turn

USAGE = TurnUsage(
    predicted=2, untouched=1009, input=5, cached=7, output=11, expansions=13, expansion_tokens=17,
    lazy_saved=19, tool_searches=23, tool_calls=29, lazy_calls=31, cost=0.25, saved_cost=0.5,
)  # fmt: skip
MODEL = "gpt-4o"
BY_MODEL = {
    "untouched_tokens_total": 1009, "sent_tokens_total": 2, "input_tokens_total": 5,
    "cached_tokens_total": 7, "output_tokens_total": 11, "expansions_total": 13,
    "expansion_tokens_total": 17, "lazy_saved_tokens_total": 19, "tool_searches_total": 23,
    "tool_calls_total": 29, "lazy_tool_calls_total": 31, "cache_hits_total": 1,
    "cost_dollars_total": 0.25, "saved_tokens": 1004, "saved_dollars": 0.5,
}  # fmt: skip
EDITS = tuple(
    Edit(action=action, why="long", where="message 1") for action in ("cite", "fold", "cite")
)


def seen() -> RequestSeen:
    request = RequestSeen(dialect="openai-chat", family="openai")
    request.model, request.store_failed = MODEL, True
    request.total, request.upstream, request.client = 8.0, 4.0, 1.0
    return request


def figures(metrics: Metrics) -> dict[str, object]:
    shown = asyncio.run(metrics.figures())
    assert "process_cpu_seconds_total" in shown
    return {name: value for name, value in shown.items() if not name.startswith("process_")}


def one(value: float, **labels: str) -> list[dict[str, object]]:
    return [{**labels, "value": value}]


def test_a_request_is_in_every_metric_with_its_own_value() -> None:
    metrics = Metrics(lambda: 3, lambda: 37)
    done = turn(2, model=MODEL, usage=USAGE, edits=EDITS, warnings=("a", "b"), prefix_share=0.75)
    metrics.count(seen(), 200, done)
    metrics.overran("deadline")
    metrics.failed("prepare")
    metrics.answered("exact")
    metrics.tried(Attempt(kind="fold", state="done", seconds=1.5, cost=41, error=""))
    assert figures(metrics) == {
        **{name: one(value, model=MODEL) for name, value in BY_MODEL.items()},
        "requests_total": one(
            1, family="openai", dialect="openai-chat", model=MODEL, status="200"
        ),
        "added_seconds_count": 1.0, "added_seconds_sum": 3.0,
        "request_seconds_count": 1.0, "request_seconds_sum": 8.0,
        "store_failures_total": 1.0, "open_requests": 3.0, "open_streams": 37.0,
        "edits_total": [{"action": "cite", "value": 2.0}, {"action": "fold", "value": 1.0}],
        "answers_total": one(1, tier="exact"), "warnings_total": 2.0,
        "overruns_total": one(1, reason="deadline"),
        "internal_errors_total": one(1, step="prepare"),
        "jobs_total": one(1, kind="fold", state="done"),
        "job_cost_tokens_total": one(41, kind="fold"),
        "job_seconds_count": one(1, kind="fold"), "job_seconds_sum": one(1.5, kind="fold"),
        "prefix_share_count": 1.0, "prefix_share_sum": 0.75,
    }  # fmt: skip


def test_a_first_turn_that_failed_has_no_prefix_and_no_price() -> None:
    metrics = Metrics(lambda: 0, lambda: 0)
    request = seen()
    request.store_failed, request.family = False, ""
    usage = msgspec.structs.replace(USAGE, failed=True, cached=0, cost=None, saved_cost=None)
    metrics.count(request, 502, turn(1, model=MODEL, usage=usage, prefix_share=0.75))
    shown = figures(metrics)
    expected = {
        "failed_turns_total": one(1, model=MODEL),
        "cost_dollars_total": one(0, model=MODEL), "saved_dollars": one(0, model=MODEL),
        "prefix_share_count": 0.0, "store_failures_total": 0.0,
        "requests_total": one(
            1, family="unknown", dialect="openai-chat", model=MODEL, status="502"
        ),
    }  # fmt: skip
    assert {name: shown[name] for name in expected} == expected
    assert "cache_hits_total" not in shown


def test_the_queue_is_told_by_kind_and_state() -> None:
    depths = [
        Depth(kind="fold", state="queued", jobs=3, waiting_seconds=1.5),
        Depth(kind="sum", state="running", jobs=2, waiting_seconds=0.5),
    ]
    lines = Metrics.queue_text(QueueFigures(depths=depths, cost_today=43)).decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'holdfast_jobs_depth{kind="fold",state="queued"} 3.0',
        'holdfast_jobs_depth{kind="sum",state="running"} 2.0',
        'holdfast_jobs_age_seconds{kind="fold",state="queued"} 1.5',
        'holdfast_jobs_age_seconds{kind="sum",state="running"} 0.5',
        "holdfast_jobs_cost_today_tokens 43.0",
    ]
