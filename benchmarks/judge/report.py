"""Tables of the results: shares with intervals, paired differences, tokens, calls, openings."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.judge.results import Result

PAIRS = (
    ("proxy", "full"),
    ("proxy", "citation"),
    ("citation", "full"),
    ("citation", "truncation"),
    ("proxy", "headroom"),
    ("proxy", "llmtrim"),
    ("late", "late-hand"),
    ("late", "late-full"),
    ("assembled", "last"),
)
"""Which conditions are compared, question by question."""
_REFERENCES = {"whole": "full", "late": "late-full", "talk": "last"}
"""The condition that a layout's tokens are a ratio of."""
_Z = 1.959964
"""Standard deviations on either side that hold 95 %."""
_RESAMPLES = 4_000


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return the Wilson score interval of a share, 95 %."""
    if not total:
        return 0.0, 1.0
    share, z2 = right / total, _Z * _Z
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    spread = math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    half = _Z * spread / (1 + z2 / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar(better: int, worse: int) -> float:
    """Return the exact two-sided p-value of McNemar's test."""
    total = better + worse
    if not total:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(min(better, worse) + 1))
    return min(1.0, math.ldexp(tail, 1 - total))


def difference(pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float, float]:
    """Return the mean difference of paired answers and its bootstrap interval, 95 %."""
    deltas = [int(first) - int(second) for first, second in pairs]
    chance = random.Random(28)
    means = sorted(
        statistics.fmean(chance.choices(deltas, k=len(deltas))) for _ in range(_RESAMPLES)
    )
    low, high = means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]
    return statistics.fmean(deltas), low, high


def report_lines(results: Sequence[Result], layouts: Mapping[str, str]) -> Iterator[str]:
    """Yield the report in Markdown; `layouts` is the layout of each condition."""
    by_condition: defaultdict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        by_condition[result.condition][result.question] = result
    names = sorted(by_condition, key=lambda name: (*_place(name, layouts), name))
    yield (
        "| condition | right | share (95 %) | prompt tokens, mean | of the reference | "
        "completion tokens, mean | calls, mean / max | openings valid | "
        "empty / canned / client calls | seconds, mean |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name in names:
        reference = by_condition.get(_REFERENCES[layout_of(name, layouts)], {})
        yield _row(name, by_condition[name], reference)
    yield ""
    yield (
        "| paired | questions | only the first right | only the second right | "
        "difference (95 %) | p (McNemar) |"
    )
    yield "|---|---|---|---|---|---|"
    for first in names:
        for base, second in PAIRS:
            if first.split("[")[0] == base and second in by_condition:
                yield _pair(first, second, by_condition[first], by_condition[second])
    yield from _late_lines(names, by_condition)


def layout_of(condition: str, layouts: Mapping[str, str]) -> str:
    """Return the layout of a condition; settings in brackets do not matter."""
    return layouts[condition.split("[", maxsplit=1)[0]]


def _place(name: str, layouts: Mapping[str, str]) -> tuple[int, int]:
    layout = list(_REFERENCES).index(layout_of(name, layouts))
    return layout, list(layouts).index(name.split("[", maxsplit=1)[0])


def _row(name: str, results: Mapping[str, Result], reference: Mapping[str, Result]) -> str:
    rows = list(results.values())
    right = sum(row.right for row in rows)
    low, high = wilson(right, len(rows))
    openings = sum(row.openings for row in rows)
    valid = sum(row.valid_openings for row in rows)
    cells = [
        name,
        f"{right} / {len(rows)}",
        f"{right / len(rows):.2f} ({low:.2f}-{high:.2f})",
        f"{statistics.fmean(row.prompt_tokens for row in rows):,.0f}",
        token_ratio(results, reference),
        f"{statistics.fmean(row.completion_tokens for row in rows):.0f}",
        f"{statistics.fmean(row.calls for row in rows):.2f} / {max(row.calls for row in rows)}",
        f"{valid} / {openings}" if openings else "-",
        " / ".join(
            str(sum(values))
            for values in (
                [row.empty for row in rows],
                [row.canned for row in rows],
                [row.client_call for row in rows],
            )
        ),
        f"{statistics.fmean(row.seconds for row in rows):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def token_ratio(results: Mapping[str, Result], reference: Mapping[str, Result]) -> str:
    """Return prompt tokens as a ratio of the reference's, on the questions that both have."""
    shared = results.keys() & reference.keys()
    total = sum(reference[question].prompt_tokens for question in shared)
    if not total:
        return "-"
    return f"{sum(results[question].prompt_tokens for question in shared) / total:.2f}"


def _pair(first: str, second: str, ours: Mapping[str, Result], theirs: Mapping[str, Result]) -> str:
    pairs = [(ours[q].right, theirs[q].right) for q in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        return f"| {first} - {second} | 0 | | | | |"
    better = sum(a and not b for a, b in pairs)
    worse = sum(b and not a for a, b in pairs)
    mean, low, high = difference(pairs)
    interval = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    p = f"{mcnemar(better, worse):.3f}"
    return f"| {first} - {second} | {len(pairs)} | {better} | {worse} | {interval} | {p} |"


def _late_lines(
    names: Sequence[str], by_condition: Mapping[str, Mapping[str, Result]]
) -> Iterator[str]:
    hand = by_condition.get("late-hand", {})
    for name in names:
        shared = by_condition[name].keys() & hand.keys()
        reached = sum(hand[question].right for question in shared)
        if name.split("[")[0] == "late" and reached:
            right = sum(by_condition[name][question].right for question in shared)
            yield ""
            yield f"{name}: {right / reached:.2f} of what the passage put in by hand reaches."
