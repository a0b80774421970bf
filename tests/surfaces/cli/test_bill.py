"""The bill of `holdfast wrap`: equal for equal runs, with failures listed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from holdfast.store.records import UsageTotal, summed
from holdfast.surfaces.cli._bill import bill
from holdfast.surfaces.proxy.tally import Failure, RunReport
from tests.provider.prompt_cache import PromptCache
from tests.provider.request import Got
from tests.surfaces.harness import run_process
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

AGENT = """
import json, os, urllib.request

MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "read_log", "description": "Read a log.", "input_schema": {"type": "object"}}
SYSTEM = {"type": "text", "text": "You look after a server. " * 300, **MARK}


def log(number):
    return "\\n".join(f"{n:04} INFO step {number}-{n} took {n * 7 % 13} ms" for n in range(600))


def ask(messages):
    *before, last = messages
    marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **MARK}]}
    body = {"model": "claude-opus-4-5", "max_tokens": 1000, "system": [SYSTEM], "tools": [TOOL],
            "messages": [*before, marked]}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["KEY"],
         "anthropic-version": "2023-06-01"})
    return json.loads(urllib.request.urlopen(request).read())


messages = []
for question in ("What went wrong?", "And then?"):
    messages.append({"role": "user", "content": [{"type": "text", "text": question}]})
    while True:
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not calls:
            break
        results = [{"type": "tool_result", "tool_use_id": each["id"], "content": log(each["id"])}
                   for each in calls]
        messages.append({"role": "user", "content": results})
"""


def reading(got: Got) -> Script:
    """Read four logs for each question, then answer it."""
    messages = got.value["messages"]
    blocks = [block for message in messages for block in message["content"]]
    read = sum(block["type"] == "tool_use" for block in blocks)
    questions = sum(block["type"] == "text" for m in messages if m["role"] == "user"
                    for block in m["content"])  # fmt: skip
    if read < 4 * questions:
        return says(text("Let me look."), call("read_log", {"path": f"{read}"}, f"toolu_{read}"))
    return says(text("It went well."))


def bill_of(folder: Path, upstream: Upstream, key: str = "key-of-the-test") -> str:
    """Run the agent once and return the terminal's text after its own output."""
    (folder / "agent.py").write_text(AGENT)
    done = run_process(
        *("wrap", "--store", f"sqlite:///{folder}/wrapped.db"),
        *("--", sys.executable, "agent.py"),
        folder=folder,
        ANTHROPIC_BASE_URL=upstream.url,
        KEY=key,
    )
    return done.stderr.decode()


@pytest.mark.slow
def test_two_identical_runs_have_identical_bills(tmp_path: Path) -> None:
    """Though counts were calibrated by the first one, and the store knows its session."""
    with Upstream() as upstream:
        upstream.always = reading
        bills = []
        for _ in range(3):
            upstream.cache = PromptCache()  # the runs are a day apart: nothing is cached
            bills.append(bill_of(tmp_path, upstream))
        assert upstream.refused == []
    assert "10 " in bills[0]
    assert bills[0] == bills[1] == bills[2]


@pytest.mark.slow
def test_a_key_that_is_refused_is_told_with_the_providers_word_for_it(tmp_path: Path) -> None:
    with Upstream() as upstream:
        told = bill_of(tmp_path, upstream, key="another-key").splitlines()
    first = told.index("holdfast: no request was answered.")
    assert told[first + 1] == (
        f"  1 request failed: 401 from {urlsplit(upstream.url).netloc} (authentication_error): "
        "check your key."
    )
    assert "Nothing was lost" not in told


# --- sentences ------------------------------------------------------------------------------------


def usage(**figures: Any) -> UsageTotal:
    return msgspec.structs.replace(summed("total", ()), **{"turns": 1, **figures})


def told(failures: tuple[tuple[Failure, int], ...] = (), **figures: Any) -> str:
    return "\n".join(bill(RunReport(usage(**figures), failures, ("qwen3",))))


def test_a_saving() -> None:
    said = told(turns=3, untouched=1_000, input=250, expansions=2, estimated=1)
    assert said.splitlines() == [
        "holdfast: 3 requests answered. ≈ 750 input tokens (≈ 75 %) saved: 250 billed instead of "
        "≈ 1,000.",
        "  The model opened 2 hidden parts. Nothing was lost: `holdfast rebuild` gives every "
        "request back.",
    ]


def test_a_loss_is_a_sentence_and_no_saving_below_zero() -> None:
    said = told(untouched=22_526, input=22_755, cost=0.12, saved_cost=-0.0312, output=9)
    assert said.splitlines()[:2] == [
        "holdfast: 1 request answered. Holdfast used 229 input tokens (1 %) more than without it: "
        "22,755 billed instead of 22,526.",
        "  $0.12 at list price (tokens: 9 of output), $0.03 more than without Holdfast.",
    ]


def test_a_tie() -> None:
    said = told(untouched=500, input=500, cost=0.5, cached=300, cache_written=200)
    assert said.splitlines()[:2] == [
        "holdfast: 1 request answered. 500 input tokens billed, as many as without Holdfast.",
        "  $0.50 at list price (tokens: 300 read from the provider's cache, 200 written to the "
        "provider's cache), as much as without Holdfast.",
    ]


def test_requests_that_exceed_the_window_are_told_and_save_nothing() -> None:
    said = told(untouched=500, input=500, cost=0.5, overflows=1).splitlines()
    assert said[:3] == [
        "holdfast: 1 request answered. 500 input tokens billed.",
        "  $0.50 at list price.",
        "  1 request would not have fitted the model's window; no saving is claimed for it.",
    ]
    said = told(turns=9, untouched=900, input=500, overflows=2).splitlines()
    assert said[1] == (
        "  2 requests would not have fitted the model's window; no saving is claimed for them."
    )


@pytest.mark.parametrize("saved", [-0.0049, -1e-9, 1e-9, 0.0099])
def test_less_than_a_cent_is_no_zero_with_a_sign(saved: float) -> None:
    said = told(untouched=10, input=9, cost=0.004, saved_cost=saved, assumed=1)
    assert "less than $0.01 at list price, ≈ the same as without Holdfast, to the cent." in said
    assert "0.00" not in said


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(0.005, "less than $0.01"), (0.01, "$0.01"), (0.125, "$0.13"), (1234.5, "$1,234.50")],
)
def test_dollars_are_rounded_once_and_to_the_cent(cost: float, shown: str) -> None:
    assert f"  {shown} at list price, as much as" in told(input=1, untouched=1, cost=cost)


def test_an_estimate_of_what_was_billed_is_marked_too() -> None:
    said = told(untouched=10, input=9, cost=0.5, saved_cost=0.02, unreported=1, estimated=1)
    assert ": ≈ 9 billed instead of ≈ 10." in said
    assert "≈ $0.50 at list price" in said


def test_money_without_a_price_is_not_told() -> None:
    said = told(untouched=10, input=9, unpriced=1)
    assert "  No price is known for qwen3.\n" in said
    assert "$" not in said
    some = told(turns=3, untouched=10, input=9, cost=0.5, saved_cost=0.5, unpriced=2)
    assert "No price is known for qwen3: 2 requests not in these dollars." in some


def test_a_demo_is_told_apart_and_never_as_money_that_was_saved() -> None:
    said = told(untouched=10, input=9, demo_cost=0.25, demo_saved_cost=0.5, unreported=1)
    assert "1 input tokens (10 %) saved: ≈ 9 sent instead of 10." in said
    assert (
        "A demo: the offline model answered, and nobody was billed. At list price it would be "
        "≈ $0.25, ≈ $0.50 less than without Holdfast."
    ) in said


def test_failures_stand_by_their_cause_the_most_frequent_first() -> None:
    failures = (
        (Failure(401, "Anthropic", "authentication_error"), 14),
        (Failure(429, "OpenAI", "insufficient_quota"), 2),
        (Failure(400, "", "BudgetExceededError"), 1),
        (Failure(502, "Gemini", "UpstreamError"), 1),
        (Failure(418, "my-gateway", ""), 1),
        (Failure(500, "Cohere", ""), 1),
        (Failure(504, "Cohere", ""), 1),
    )
    said = told(failures, turns=14, failed=14).splitlines()
    assert said == [
        "holdfast: no request was answered.",
        "  14 requests failed: 401 from Anthropic (authentication_error): check your key.",
        "  2 requests failed: 429 from OpenAI (insufficient_quota): wait, or check the limits of "
        "your plan.",
        "  1 request failed: the request does not fit its limit (400).",
        "  1 request failed: Gemini could not be reached (502).",
        "  1 request failed: 418 from my-gateway.",
        "  2 requests failed for other reasons: see `holdfast stats`.",
    ]


def test_nothing_at_all() -> None:
    assert told(turns=0).startswith("holdfast: no request came through.")
