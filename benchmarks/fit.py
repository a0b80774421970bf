"""Make requests fit: what it costs in time, and in money with the vendors' prompt caches."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.count import load_encodings
from benchmarks.measure import best_ms
from benchmarks.wire import conversation
from holdfast import count, read, repair
from holdfast.errors import HoldfastError
from holdfast.fitting import FitState, fit
from holdfast.tokens import vocabulary
from holdfast.trim import AnchorPreservationManager, ContextOptimizationEngine, Piece
from holdfast.trim.pieces import pieces_of
from holdfast.wire import Conversation
from tests.support.recorded import DATA, trajectories

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


SIZES = (100, 1000, 10_000, 100_000)
"""Messages. They are small, so that the longest body is one that the reader still takes."""


def _made(number: int, per_result: int = 120) -> list[dict[str, Any]]:
    messages = conversation(number * per_result // 2, per_result)[:number]
    while messages[-1]["role"] != "tool":
        messages.pop()
    return messages


def _body(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": MODEL, "messages": messages}).encode()


def _speed(console: Console) -> None:
    table = Table(title="Trim to half, ms (target at 1,000: 20 counted before, 3 with state)")
    for column in (
        "messages",
        "MB",
        "first sight",
        "counted before",
        "with state, one exchange added",
        "anchors",
        "choosing",
        "KB a message, kept",
        "at most",
    ):
        table.add_column(column, justify="right")
    for number in SIZES:
        messages = _made(number)
        body = _body(messages)
        whole = read(body, "openai-chat")
        limit = count(whole, model=MODEL).tokens // 2
        repeats = max(1, min(15, 20_000 // number))
        manager, engine = AnchorPreservationManager(), ContextOptimizationEngine()
        pieces = _pieces(whole)
        kept, most = _memory(lambda: _first_sight(body, limit))  # noqa: B023
        row = (
            _ms(lambda: _first_sight(body, limit), repeats),  # noqa: B023
            _counted_before(body, limit, repeats),
            _with_state(messages, limit),
            _ms(lambda: manager.identify(whole.messages), repeats),  # noqa: B023
            _ms(lambda: engine.select(pieces), repeats),  # noqa: B023
        )
        first, counted, turn = row[:3]
        ratios.note(f"fit: {number:,} messages, first sight, one exchange added", first, turn)
        ratios.note(f"fit: {number:,} messages, first sight, counted before", first, counted)
        each = (f"{size / len(messages) / 1000:.2f}" for size in (kept, most))
        table.add_row(
            f"{len(messages):,}", f"{len(body) / 1e6:.2f}", *(f"{ms:,.2f}" for ms in row), *each
        )
    console.print(table)
    console.print("first sight: from bytes, no text counted before. Memory: of first sight.\n")
    _peers(console)


def _pieces(whole: Conversation) -> list[Piece]:
    anchors = AnchorPreservationManager().identify(whole.messages)
    origins = [(n, n + 1) for n in range(len(whole.messages))]
    return pieces_of(whole, count(whole, model=MODEL), anchors, origins)


def _first_sight(body: bytes, limit: int) -> object:
    vocabulary.shared.forget()
    return fit(body, dialect="openai-chat", limit=limit)


def _counted_before(body: bytes, limit: int, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        whole = read(body, "openai-chat")
        count(whole, model=MODEL)
        times.append(_ms(lambda: fit(whole, model=MODEL, limit=limit), 1))  # noqa: B023
    return min(times)


def _ms(run: Callable[[], object], repeats: int) -> float:
    """Of the fastest run, without one before it: what takes seconds is not run in vain."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def _memory(run: Callable[[], object]) -> tuple[int, int]:
    """Bytes that the result of a run keeps alive, and the most that there were."""
    gc.collect()
    tracemalloc.start()
    result = run()
    gc.collect()
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return kept, most


def _with_state(messages: list[dict[str, Any]], limit: int) -> float:
    """A fold behind it, then one call and its result more with every turn."""
    state = fit(_body(messages), dialect="openai-chat", limit=limit).state
    call, result = messages[-2:]
    times = []
    for turn in range(1, 8):
        name = f"more_{turn}"
        called = {**call["tool_calls"][0], "id": name}
        messages = [
            *messages,
            {**call, "tool_calls": [called]},
            {**result, "tool_call_id": name},
        ]
        body = _body(messages)
        start = time.perf_counter()
        fitted = fit(body, dialect="openai-chat", limit=limit, state=state)
        times.append((time.perf_counter() - start) * 1000)
        state = fitted.state
    return min(times)


def _peers(console: Console) -> None:
    """Ours beside the others' on the same conversation, each as its users call it."""
    messages = _made(1000, per_result=800)
    body = _body(messages)
    limit = count(body, model=MODEL).tokens // 2
    ours = _counted_before(body, limit, 15)
    turn = _with_state(messages, limit)
    rows = {
        "holdfast.fit, first sight": _ms(lambda: _first_sight(body, limit), 15),
        "holdfast.fit, counted before": ours,
        "holdfast.fit, with state, one exchange added": turn,
        **_langchain(messages, limit),
        **_litellm(messages, limit),
    }
    table = Table(title="Trim 1,000 messages (0.5 MB) to half, beside peers (target: 20x)")
    for column in ("", "ms", "times ours, counted before", "with state"):
        table.add_column(column, justify="left" if not column else "right")
    for name, ms in rows.items():
        if not name.startswith("holdfast"):
            ratios.note(f"fit: {name}, counted before", ms, ours)
            ratios.note(f"fit: {name}, with state", ms, turn)
        table.add_row(name, f"{ms:,.1f}", f"{ms / ours:.1f}", f"{ms / turn:,.0f}")
    console.print(table)
    console.print(
        "The peers drop messages; only holdfast keeps anchors. langchain counts the whole list "
        "some ten times\nover, with the counter that it is given: its own guess (a quarter of the "
        "characters), ChatOpenAI (tiktoken,\nnothing remembered), our tokenizer, or our tokenizer "
        "with a memory of texts, which is not langchain's work.\n"
    )


def _langchain(messages: list[dict[str, Any]], limit: int) -> dict[str, float]:
    try:
        from langchain_core.messages import convert_to_messages, trim_messages  # noqa: PLC0415
        from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415
    except ImportError:
        return {}
    chain = convert_to_messages(messages)
    memory = vocabulary.CountCache()

    def exact(some: list[Any]) -> int:
        return sum(4 + vocabulary.count_ordinary("o200k_base", str(m.content)) for m in some)

    def remembered(some: list[Any]) -> int:
        return sum(4 + memory.count("o200k_base", str(m.content)) for m in some)

    counters = {
        "guessing": count_tokens_approximately,
        "ChatOpenAI": _chat_openai(),
        "our tokenizer": exact,
        "our tokenizer and memory": remembered,
    }
    return {
        f"langchain trim_messages, {name}": best_ms(
            lambda: trim_messages(chain, max_tokens=limit, token_counter=counter),  # noqa: B023
            repeats=3,
        )
        for name, counter in counters.items()
        if counter is not None
    }


def _chat_openai() -> Any:
    """langchain's own counter for OpenAI; None if it is not installed."""
    if load_encodings() is None:
        return None
    try:
        from langchain_openai import ChatOpenAI  # noqa: PLC0415
    except ImportError:
        return None
    return ChatOpenAI(model=MODEL, api_key="none")  # it is never called, only asked to count


def _litellm(messages: list[dict[str, Any]], limit: int) -> dict[str, float]:
    try:
        from litellm.utils import trim_messages  # noqa: PLC0415
    except ImportError:
        return {}
    ms = best_ms(
        lambda: trim_messages(list(messages), model=MODEL, max_tokens=limit), repeats=1, seconds=0
    )
    return {"litellm trim_messages": ms}


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
                    folds += bool(fitted.edits)
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
