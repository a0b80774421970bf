"""The line that `holdfast wrap` prints when its program has ended."""

from __future__ import annotations

from holdfast.store.records import UsageTotal


def bill(used: UsageTotal) -> str:
    """What a run took, in a line."""
    if not used.turns:
        return (
            "holdfast: no call was answered. Is the provider out of reach (`holdfast doctor`), or "
            "does the program take its address from elsewhere?"
        )
    calls = f"{used.turns:,} call{'s' if used.turns > 1 else ''}"
    failed = f" ({used.failed:,} failed)" if used.failed else ""
    share = f" ({100 * used.saved / used.untouched:.0f} %)" if used.untouched else ""
    saved = "saved" if used.saved >= 0 else "more than untouched:"
    money = f", ${used.cost:.2f} (saved ${used.saved_cost:.2f})" if used.cost else ""
    return (
        f"holdfast: {calls}{failed}, {used.untouched:,} input tokens asked, {used.input:,} billed, "
        f"{abs(used.saved):,} {saved}{share}{money}; {used.expansions:,} opened; "
        "nothing lost: `holdfast rebuild` gives every request back."
    )
