"""Count tokens: accuracy on recorded requests, and speed beside tiktoken, litellm and langchain."""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import splintr
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.measure import best_ms, peak_bytes
from benchmarks.wire import conversation
from holdfast import count, read
from holdfast.tokens import Calibration, TokenCount
from holdfast.tokens.vocabulary import Memory, count_ordinary
from tests.recorded import DATA, PLATFORMS, requests, trajectories

TARGETS = {
    "openai-chat": (0.5, 5),
    "openai-responses": (1, 8),
    "anthropic": (2, 8),
    "gemini": (2, 10),
    "other": (5, 25),
}
USUAL_TARGET = (3, 12)


def run(console: Console) -> None:
    """Print the tables."""
    if (DATA / "usage" / "dev.jsonl.gz").exists():
        scored = _scored()
        _accuracy(console, scored)
        _calibration(console, scored)
    else:
        console.print("(recorded requests are not on this machine: set HOLDFAST_DATA)")
    encodings = load_encodings()
    if encodings is None:
        console.print("(tiktoken and litellm are not installed: `make bench` installs them)")
        return
    texts = _texts()
    _speed(console, texts, encodings)
    _agreement(console, texts, encodings)


# --- accuracy ----------------------------------------------------------------------------------


def _scored() -> list[tuple[dict[str, Any], TokenCount]]:
    """Every recorded request whose input can be worked out, with its count."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dialect, record in requests():
            if record["derivable"] and not record["has_media"] and not record["suspect"]:
                counted = count(
                    record["request"],
                    dialect=dialect,
                    model=record["model"] or record["resp_model"] or "",
                    platform=PLATFORMS.get(record["host"], ""),
                )
                found.append((record, counted))
    return found


def _accuracy(console: Console, scored: list[tuple[dict[str, Any], TokenCount]]) -> None:
    table = Table(title="Input tokens, counted against reported: absolute error, median / p95 in %")
    columns = ("provider", "n", "error", "target", "n ≥ 1,000", "error ≥ 1,000", "bound holds")
    for column in (*columns, "bound above count"):
        table.add_column(column, justify="left" if column == "provider" else "right")
    groups = defaultdict(list)
    for record, counted in scored:
        reported = record["reported"]["input_tokens"]
        error = abs(counted.tokens - reported) / reported * 100
        holds = counted.upper >= reported
        row = (error, reported, holds, counted.upper / counted.tokens - 1, counted.tokens)
        groups[record["provider"]].append(row)
        groups["all"].append(row)
    for provider in sorted(groups, key=lambda name: (name == "all", name)):
        rows = groups[provider]
        large = [row[0] for row in rows if row[1] >= 1000]
        excess = [row[3] for row in rows if row[4] > 200]
        target = TARGETS.get(provider, USUAL_TARGET)
        table.add_row(
            provider,
            f"{len(rows):,}",
            _pair([row[0] for row in rows]),
            "" if provider == "all" else f"{target[0]} / {target[1]}",
            f"{len(large):,}",
            _pair(large),
            f"{100 * statistics.fmean(row[2] for row in rows):.1f} %",
            f"{100 * statistics.median(excess):.1f} %" if excess else "",
        )
    console.print(table)


def _pair(errors: list[float]) -> str:
    if len(errors) < 2:
        return "-"
    p95 = statistics.quantiles(errors, n=20, method="inclusive")[-1]
    return f"{statistics.median(errors):.2f} / {p95:.1f}"


def _calibration(console: Console, scored: list[tuple[dict[str, Any], TokenCount]]) -> None:
    """Replay the reports of every model as if it had never been seen."""
    groups = defaultdict(list)
    for record, _ in scored:
        groups[record["provider"], record["model"]].append(record)
    plain, corrected, halved, models = [], [], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (_, model), records in groups.items():
            if len(records) < 30:
                continue
            calibration = Calibration()
            before, after = [], []
            for number, record in enumerate(records):
                made_up = f"never-seen-{hash(model)}"
                counted = count(record["request"], model=made_up)
                reported = record["reported"]["input_tokens"]
                if number >= 20:
                    before.append(abs(counted.tokens - reported) / reported)
                    better = calibration.correct(counted).tokens
                    after.append(abs(better - reported) / reported)
                calibration.observe(counted, reported)
            if statistics.median(before) > 0.02:
                models += 1
                plain.append(statistics.median(before))
                corrected.append(statistics.median(after))
                halved += corrected[-1] <= plain[-1] / 2
    console.print(
        f"Calibration, {models} models as if never seen: median error after 20 reports "
        f"{100 * statistics.median(plain):.1f} % → {100 * statistics.median(corrected):.1f} %, "
        f"at least halved for {halved}.\n"
    )


# --- speed -------------------------------------------------------------------------------------


def load_encodings() -> dict[str, Any] | None:
    """tiktoken's encodings, from the vocabularies that litellm brings: nothing is fetched."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a newer one
    try:
        import litellm  # noqa: PLC0415
        import tiktoken  # noqa: PLC0415
    except ImportError:
        return None
    folder = Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    return {name: tiktoken.get_encoding(name) for name in ("o200k_base", "cl100k_base")}


def _texts() -> list[str]:
    """About 10 MB of what agents read: recorded if it is there, else made."""
    texts: list[str] = []
    if (DATA / "trajectories").exists():
        for trajectory in trajectories():
            texts.extend(
                m["content"] for m in trajectory["messages"] if isinstance(m.get("content"), str)
            )
    else:
        texts = [m["content"] for m in conversation(10_000_000, 4000) if m.get("content")]
    found, total = [], 0
    for text in texts[:: max(1, len(texts) // 6000)]:
        if text and total < 10_000_000:
            found.append(text)
            total += len(text)
    return found


def _agreement(console: Console, texts: list[str], encodings: dict[str, Any]) -> None:
    for name, encoding in encodings.items():
        wrong = sum(count_ordinary(name, t) != len(encoding.encode_ordinary(t)) for t in texts)
        size = sum(len(text.encode()) for text in texts) / 1e6
        console.print(
            f"{name}: {wrong} of {len(texts):,} texts ({size:.1f} MB) differ from tiktoken"
        )
    console.print()


def _speed(console: Console, texts: list[str], encodings: dict[str, Any]) -> None:
    table = Table(title="Text that was not counted before, o200k (target: 4 times tiktoken)")
    for column in ("", "MB/s", "ms per MB", "tiktoken MB/s", "times as fast"):
        table.add_column(column, justify="left" if not column else "right")
    encode = encodings["o200k_base"].encode_ordinary
    tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
    halves = {"a fresh process": texts[::2], "one that has counted as much before": texts[1::2]}
    for name, half in halves.items():
        size = sum(len(text.encode()) for text in half) / 1e6
        ours = _seconds(tokenizer.encode_ordinary, half)
        theirs = _seconds(encode, half)
        speed = f"{size / ours:.1f}", f"{ours / size * 1000:.0f}", f"{size / theirs:.1f}"
        table.add_row(name, *speed, f"{theirs / ours:.1f}")
        ratios.note(f"count: new text, tiktoken, {name}", theirs, ours)
    console.print(table)
    _incremental(console)
    memory = Memory()
    used = peak_bytes(
        lambda: [memory.count("o200k_base", f"text number {n}") for n in range(100_000)]
    )
    console.print(f"Memory of 100,000 counts: {used / 1e6:.0f} MB; at most 200,000 are kept.\n")


def _seconds(encode: Callable[[str], Any], texts: list[str]) -> float:
    start = time.perf_counter()
    for text in texts:
        encode(text)
    return time.perf_counter() - start


def _incremental(console: Console) -> None:
    import litellm  # noqa: PLC0415
    from langchain_core.messages import convert_to_messages  # noqa: PLC0415
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415

    table = Table(title="One message added to a conversation, ms (target: 1 ms at 1,000 messages)")
    for column in (
        "messages",
        "MB",
        "cold",
        "from bytes",
        "from a view",
        "litellm",
        "langchain",
        "x litellm",
    ):
        table.add_column(column, justify="right")
    for number in (100, 1000, 10_000):
        messages = conversation(number * 600, 1100)[:number]
        if "tool_calls" in messages[-1]:
            messages.pop()
        bodies = [
            json.dumps({"model": "gpt-4o", "messages": [*messages, *extra]}).encode()
            for extra in ([{"role": "user", "content": "go on"}] * n for n in range(1, 12))
        ]
        start = time.perf_counter()
        count(bodies[0], model="gpt-4o")
        cold = (time.perf_counter() - start) * 1000
        times = []
        for body in bodies[1:]:
            start = time.perf_counter()
            count(body, model="gpt-4o")
            times.append((time.perf_counter() - start) * 1000)
        ours = min(times)
        known = read(bodies[0])
        count(known, model="gpt-4o")
        views = []
        for body in bodies[1:]:
            known = read(body, previous=known)
            start = time.perf_counter()
            count(known, model="gpt-4o")
            views.append((time.perf_counter() - start) * 1000)
        view = min(views)
        theirs = best_ms(
            lambda m=messages: litellm.token_counter(model="gpt-4o", messages=m),  # type: ignore[misc]
            repeats=2,
        )
        ratios.note(f"count: one added to {number:,} from bytes, litellm", theirs, ours)
        ratios.note(f"count: one added to {number:,} from a view, litellm", theirs, view)
        chain = convert_to_messages(messages)
        langchain = best_ms(lambda c=chain: count_tokens_approximately(c), repeats=3)  # type: ignore[misc]
        table.add_row(
            f"{number:,}",
            f"{len(bodies[0]) / 1e6:.1f}",
            f"{cold:.0f}",
            f"{ours:.2f}",
            f"{view:.3f}",
            f"{theirs:.0f}",
            f"{langchain:.1f} (guess)",
            f"{theirs / ours:,.0f} / {theirs / view:,.0f}",
        )
    console.print(table)
