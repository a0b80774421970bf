"""Make requests fit: what it costs in time, and in money with the vendors' prompt caches."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import best_ms
from benchmarks.wire import conversation
from holdfast import count, read, repair
from holdfast.errors import HoldfastError
from holdfast.fitting import FitState, fit
from holdfast.tokens.vocabulary import count_ordinary
from holdfast.trim import AnchorPreservationManager
from tests.recorded import DATA, trajectories

# Share of the price of plain input: read from the cache, written to it.
PRICES = {"Anthropic-like": (0.1, 1.25), "OpenAI-like": (0.5, 1.0)}
MODEL = "gpt-4o"


def run(console: Console) -> None:
    """Print the tables."""
    _speed(console)
    if (DATA / "trajectories").exists():
        _cost(console)
    else:
        console.print("(recorded trajectories are not on this machine: set HOLDFAST_DATA)")


def _speed(console: Console) -> None:
    table = Table(title="Trim to half, ms")
    columns = (
        "messages",
        "counted before",
        "with state, one exchange added",
        "langchain",
        "litellm",
    )
    for column in (*columns, "anchors"):
        table.add_column(column, justify="right")
    for number in (100, 1000, 10_000):
        messages = conversation(number * 420, 800)[:number]
        while messages[-1]["role"] != "tool":
            messages.pop()
        whole = read({"model": MODEL, "messages": messages}, "openai-chat")
        limit = count(whole, model=MODEL).tokens // 2
        cold = best_ms(lambda: fit(whole, model=MODEL, limit=limit), repeats=3)  # noqa: B023
        stated = _with_state(messages, limit * 3)
        anchors = best_ms(lambda: AnchorPreservationManager().identify(whole.messages), repeats=5)  # noqa: B023
        table.add_row(
            f"{len(messages):,}",
            f"{cold:.1f}",
            f"{stated:.2f}",
            _langchain(messages, limit),
            _litellm(messages, limit),
            f"{anchors:.2f}",
        )
    console.print(table)


def _with_state(messages: list[dict[str, Any]], limit: int) -> float:
    state: FitState | None = None
    times = []
    for extra in range(8):
        more = [{"role": "user", "content": "go on"}] * extra
        body = json.dumps({"model": MODEL, "messages": [*messages, *more]}).encode()
        start = time.perf_counter()
        state = fit(body, dialect="openai-chat", limit=limit, state=state).state
        times.append((time.perf_counter() - start) * 1000)
    return min(times[1:])


def _langchain(messages: list[dict[str, Any]], limit: int) -> str:
    try:
        from langchain_core.messages import convert_to_messages, trim_messages  # noqa: PLC0415
        from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415
    except ImportError:
        return "not installed"
    chain = convert_to_messages(messages)

    def took(counter: Any) -> float:
        return best_ms(
            lambda: trim_messages(chain, max_tokens=limit, token_counter=counter),
            repeats=1,
            seconds=0,
        )

    if len(messages) > 1000:
        return f"{took(count_tokens_approximately):.0f} guessing"

    def exact(some: list[Any]) -> int:
        return sum(4 + count_ordinary("o200k_base", str(m.content)) for m in some)

    return f"{took(exact):.0f} ({took(count_tokens_approximately):.0f} guessing)"


def _litellm(messages: list[dict[str, Any]], limit: int) -> str:
    if len(messages) > 1000:
        return "-"
    try:
        from litellm.utils import trim_messages  # noqa: PLC0415
    except ImportError:
        return "not installed"
    ms = best_ms(
        lambda: trim_messages(list(messages), model=MODEL, max_tokens=limit), repeats=1, seconds=0
    )
    return f"{ms:.0f}"


# --- cost over a whole conversation ------------------------------------------------------------

Policy = Callable[[list[dict[str, Any]], int], list[dict[str, Any]]]


def _sliding(messages: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Drop the oldest exchanges, a little every turn; no anchor but the system text."""
    exchanges = read({"messages": messages}, "openai-chat").exchanges
    each = count({"messages": messages}, model=MODEL).message_tokens
    total, start = sum(each) + 3, 0
    for exchange in exchanges:
        if total <= limit:
            break
        if exchange.kind != "system":
            total -= sum(each[exchange.start : exchange.stop])
            start = exchange.stop
    return [m for m in messages[:start] if m["role"] == "system"] + messages[start:]


def _clear_tool_results(messages: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """What langchain's ClearToolUses does: over the limit, all but the last three results go."""
    if count({"messages": messages}, model=MODEL).tokens <= limit:
        return messages
    places = [n for n, m in enumerate(messages) if m["role"] == "tool"][:-3]
    return [{**m, "content": "[cleared]"} if n in places else m for n, m in enumerate(messages)]


def _cost(console: Console) -> None:
    policies: dict[str, Policy | None] = {
        "no trimming": lambda messages, _: messages,
        "sliding window": _sliding,
        "clear tool results": _clear_tool_results,
        "holdfast.fit": None,
    }
    costs: dict[str, Counter[str]] = {name: Counter() for name in policies}
    over: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    turns = folds = 0
    for number, trajectory in enumerate(trajectories()):
        if number % 4:
            continue
        body = {"model": MODEL, "messages": trajectory["messages"]}
        messages = json.loads(repair(body, "openai-chat").body)["messages"]
        limit = count({"messages": messages}, model=MODEL).tokens // 2
        ends = [n for n, m in enumerate(messages) if n and m["role"] == "assistant"]
        if not _can_fit(messages, ends, limit):
            continue
        for name, policy in policies.items():
            state: FitState | None = None
            before: list[str] = []
            for end in ends:
                if policy is None:
                    request = {"model": MODEL, "messages": messages[:end]}
                    fitted = fit(json.dumps(request).encode(), limit=limit, state=state)
                    state = fitted.state
                    sent = json.loads(fitted.body)["messages"]
                    turns += 1
                    folds += bool(fitted.report)
                else:
                    sent = policy(messages[:end], limit)
                each = count({"messages": sent}, model=MODEL)
                over[name] += each.tokens > limit
                lost[name] += _loses_anchor(messages[:end], sent)
                now = [json.dumps(m) for m in sent]
                same = _same(before, now)
                cached = sum(each.message_tokens[:same])
                for kind, (reading, writing) in PRICES.items():
                    costs[name][kind] += cached * reading + (each.tokens - cached) * writing
                before = now
    table = Table(title=f"Input cost of whole conversations at half their size ({turns:,} turns)")
    for column in ("policy", *PRICES, "turns over the limit", "turns that lost an anchor"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name in policies:
        shares = [f"{costs[name][k] / costs['no trimming'][k]:.2f}" for k in PRICES]
        table.add_row(name, *shares, f"{over[name]:,}", f"{lost[name]:,}")
    console.print(table)
    console.print(f"{folds:,} folds in {turns:,} turns\n")


def _same(before: list[str], now: list[str]) -> int:
    """How many messages at the beginning are the same."""
    both = zip(before, now, strict=False)
    return next((n for n, (a, b) in enumerate(both) if a != b), min(len(before), len(now)))


def _can_fit(messages: list[dict[str, Any]], ends: list[int], limit: int) -> bool:
    """Whether every turn's anchors fit, so that all policies are compared on the same turns."""
    state: FitState | None = None
    try:
        for end in ends:
            body = json.dumps({"model": MODEL, "messages": messages[:end]}).encode()
            state = fit(body, limit=limit, state=state).state
    except HoldfastError:
        return False
    return bool(ends)


def _loses_anchor(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    """Whether a question, a rule or system text is gone."""
    messages = read({"messages": before}, "openai-chat").messages
    kept = [m.get("content") for m in after]
    return any(
        before[a.index].get("content") not in kept
        for a in AnchorPreservationManager().identify(messages)
        if a.type != "latest_tool_result"
    )
