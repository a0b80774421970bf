"""Count tokens: accuracy on recorded requests, and speed beside tiktoken, litellm and langchain."""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import splintr
from rich.console import Console
from rich.table import Table

from benchmarks import figures, ratios
from benchmarks.measure import best_ms, compare_by_turns, peak_bytes
from benchmarks.wire import conversation
from holdfast import count, read
from holdfast.tokens import Calibration, TokenCount
from holdfast.tokens.vocabulary import CountCache, count_ordinary
from holdfast.wire import Conversation
from tests.support.recorded import DATA, PLATFORMS, requests, trajectories

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
        figures.record("calibration", [_calibration(console, scored)])
        figures.record("counting-accuracy", _accuracy_page(scored))
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


def _accuracy_page(scored: list[tuple[dict[str, Any], TokenCount]]) -> list[str]:
    """Return the table of docs/discussions/counting.md."""
    groups = defaultdict(list)
    for record, counted in scored:
        reported = record["reported"]["input_tokens"]
        error = abs(counted.tokens - reported) / reported * 100
        for name in (record["provider"], "all"):
            groups[name].append((error, reported, counted.upper >= reported))
    above = [c.upper / c.tokens - 1 for _, c in scored if c.tokens > 200]
    rows = []
    for provider in sorted(groups, key=lambda name: (name == "all", -len(groups[name]))):
        errors = groups[provider]
        large = [error for error, reported, _ in errors if reported >= 1000]
        rows.append(
            (
                _PROVIDERS.get(provider, provider),
                f"{len(errors):,}",
                _pair([error for error, _, _ in errors]),
                f"{_pair(large)} ({len(large)})" if 1 < len(large) < 20 else _pair(large),
                f"{100 * statistics.fmean(holds for _, _, holds in errors):.1f} %",
            )
        )
    head = ("provider", "requests", "median / p95", "1,000 tokens and more", "bound holds")
    bound = (
        f"The upper bound is {100 * statistics.median(above):.1f} % above the count at the median "
        "(requests of more than 200 tokens)."
    )
    return [*figures.table(head, rows), "", bound]


_PROVIDERS = {"other": "gateways, local servers"}


def _pair(errors: list[float]) -> str:
    if len(errors) < 2:
        return "-"
    p95 = statistics.quantiles(errors, n=20, method="inclusive")[-1]
    return f"{statistics.median(errors):.2f} / {p95:.1f}"


def _calibration(console: Console, scored: list[tuple[dict[str, Any], TokenCount]]) -> str:
    """Replay the reports of every model as if it had never been seen, and say what it brought."""
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
    line = (
        f"Recorded requests of {models} models, replayed as if the models had never been seen: the "
        f"median error after 20 reports falls from {100 * statistics.median(plain):.1f} % to "
        f"{100 * statistics.median(corrected):.1f} %, and is at least halved for {halved} of them."
    )
    console.print(line + "\n")
    return line


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
    lines = []
    for name, encoding in encodings.items():
        wrong = sum(count_ordinary(name, t) != len(encoding.encode_ordinary(t)) for t in texts)
        size = sum(len(text.encode()) for text in texts) / 1e6
        lines.append(
            f"- {name}: {wrong} of {len(texts):,} texts ({size:.1f} MB) differ from tiktoken"
        )
        console.print(lines[-1])
    console.print()
    if (DATA / "trajectories").exists():
        figures.record("counting-agreement", lines)


def _speed(console: Console, texts: list[str], encodings: dict[str, Any]) -> None:
    table = Table(title="Text that was not counted before, o200k, CPU (target: 4 times tiktoken)")
    for column in ("", "MB/s", "ms per MB", "tiktoken MB/s", "times as fast"):
        table.add_column(column, justify="left" if not column else "right")
    encode = encodings["o200k_base"].encode_ordinary
    tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
    lines = []
    halves = {"a fresh process": texts[::2], "one that has counted as much before": texts[1::2]}
    for name, half in halves.items():
        parts = [half[n::_TURNS] for n in range(_TURNS)]
        size = sum(len(text.encode()) for text in half) / 1e6 / _TURNS
        compared = compare_by_turns(
            (
                lambda part=part: [encode(text) for text in part],  # type: ignore[misc]
                lambda part=part: [tokenizer.encode_ordinary(text) for text in part],  # type: ignore[misc]
            )
            for part in parts
        )
        ours, theirs = compared.ours, compared.theirs
        speed = f"{size / ours * 1000:.1f}", f"{ours / size:.0f}", f"{size / theirs * 1000:.1f}"
        table.add_row(name, *speed, f"{compared.ratio:.1f}")
        ratios.note_ratio(f"count: new text, tiktoken, {name}", compared.ratio)
        lines.append(f"New text in {name}: {compared.ratio:.1f} times as fast as tiktoken.")
    console.print(table)
    figures.record("counting-speed", [*lines, "", *_incremental(console)])
    memory = CountCache()
    used = peak_bytes(
        lambda: [memory.count("o200k_base", f"text number {n}") for n in range(100_000)]
    )
    console.print(f"Memory of counts after 100,000 texts: {used / 1e6:.0f} MB at the peak.\n")


_TURNS = 9
"""Rounds of a comparison: its ratio is the median of theirs."""
_BATCH = 5
"""Our counts in a round: the first of them finds the processor's caches filled by the peer."""


def _rounds(
    peer: Callable[[], object], requests: Sequence[bytes | Conversation]
) -> Iterator[tuple[Callable[[], object], Callable[[], object]]]:
    """Yield rounds of one count by the peer and a batch of ours, each of a longer request."""
    for start in range(0, len(requests), _BATCH):
        batch = requests[start : start + _BATCH]
        yield peer, lambda batch=batch: [count(each, model="gpt-4o") for each in batch]  # type: ignore[misc]


def _incremental(console: Console) -> list[str]:
    """Print the table, and return that of docs/discussions/counting.md."""
    import litellm  # noqa: PLC0415
    from langchain_core.messages import convert_to_messages  # noqa: PLC0415
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415

    table = Table(title="One message added to a conversation, CPU ms (target: 1 at 1,000 messages)")
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
    rows = []
    for number in (100, 1000, 10_000):
        messages = conversation(number * 600, 1100)[:number]
        if "tool_calls" in messages[-1]:
            messages.pop()
        bodies = [
            json.dumps({"model": "gpt-4o", "messages": [*messages, *extra]}).encode()
            for extra in (
                [{"role": "user", "content": "go on"}] * n for n in range(1, _TURNS * _BATCH + 2)
            )
        ]
        start = time.process_time()
        count(bodies[0], model="gpt-4o")
        cold = (time.process_time() - start) * 1000

        def peer(m: list[Any] = messages) -> object:
            return litellm.token_counter(model="gpt-4o", messages=m)

        peer()
        known = read(bodies[0])
        count(known, model="gpt-4o")
        views = []
        for body in bodies[1:]:
            known = read(body, previous=known)
            views.append(known)
        from_bytes = compare_by_turns(_rounds(peer, bodies[1:]), batch=_BATCH)
        from_view = compare_by_turns(_rounds(peer, views), batch=_BATCH)
        ratios.note_ratio(f"count: one added to {number:,} from bytes, litellm", from_bytes.ratio)
        ratios.note_ratio(f"count: one added to {number:,} from a view, litellm", from_view.ratio)
        chain = convert_to_messages(messages)
        langchain = best_ms(lambda c=chain: count_tokens_approximately(c), repeats=3)  # type: ignore[misc]
        table.add_row(
            f"{number:,}",
            f"{len(bodies[0]) / 1e6:.1f}",
            f"{cold:.0f}",
            f"{from_bytes.ours:.2f}",
            f"{from_view.ours:.3f}",
            f"{from_bytes.theirs:.0f}",
            f"{langchain:.1f} (guess)",
            f"{from_bytes.ratio:,.0f} / {from_view.ratio:,.0f}",
        )
        rows.append(
            (
                f"{number:,}",
                *(f"{from_bytes.ours:.2f}", f"{float(f'{from_bytes.ratio:.3g}'):,g}"),
                *(f"{from_view.ours:.3f}", f"{float(f'{from_view.ratio:.3g}'):,g}"),
            )
        )
    console.print(table)
    head = ("one message added to", "from bytes, CPU ms", "times litellm")
    return figures.table((*head, "from a view, CPU ms", "times litellm"), rows)
