"""The bill that `holdfast wrap` prints when its program has ended.

Every figure is one of docs/reference/bill.md. An estimate has ≈ in front of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

from holdfast.store.records import UsageTotal
from holdfast.surfaces.proxy.report import percent
from holdfast.surfaces.proxy.tally import Failure, RunReport

from ._output import counted

_MOST_CAUSES = 5
_CENT = Decimal("0.01")
_ADVICE = {
    400: "the provider refused the request as it is written",
    401: "check your key",
    402: "check your account's credit",
    403: "the key may not use this model",
    404: "check the model's name and the base URL",
    413: "the request is too large",
    429: "wait, or check the limits of your plan",
    503: "try again later",
    529: "the provider is overloaded: try again later",
}
_OURS = {
    "UpstreamError": "{provider} could not be reached",
    "BrokenOffError": "{provider} broke off its answer",
    "BudgetExceededError": "the request does not fit its limit",
    "ContextOptimizationError": "the request does not fit its limit",
    "AllowanceError": "the daily limit of the settings is used up",
}


def bill(report: RunReport) -> list[str]:
    """Return the lines of the bill."""
    first, *lines = _lines(report)
    return [f"holdfast: {first}", *(f"  {line}" for line in lines)]


def _lines(report: RunReport) -> Iterator[str]:
    usage = report.usage
    answered = usage.turns - usage.failed
    if answered:
        yield f"{counted(answered, 'request')} answered. {_tokens(usage)}"
        yield from _money(report)
    elif not report.failures:
        yield (
            "no request came through. Does the program take the provider's address from "
            "elsewhere? `holdfast doctor` looks for the usual causes."
        )
    else:
        yield "no request was answered."
    if usage.overflows:
        yield (
            f"{counted(usage.overflows, 'request')} would not have fitted the model's window; "
            "no saving is claimed for them."
            if usage.overflows > 1
            else "1 request would not have fitted the model's window; no saving is claimed for it."
        )
    yield from _failures(report.failures)
    if report.unrecorded:
        yield f"{counted(report.unrecorded, 'request')} not counted: the store failed."
    if answered:
        opened = f"The model opened {counted(usage.expansions, 'hidden part')}. "
        lost = "Nothing was lost: `holdfast rebuild` gives every request back."
        yield opened + lost if usage.expansions else lost


def _tokens(usage: UsageTotal) -> str:
    """Return the sentence about input tokens: a saving, a loss or neither."""
    is_demo = _is_demo(usage)
    billed = f"{_about(usage.unreported)}{usage.input:,}"
    what = "sent" if is_demo else "billed"
    if not usage.saved:
        compared = "" if usage.overflows else ", as many as without Holdfast"
        return f"{billed} input tokens {what}{compared}."
    about = _about(usage.estimated)
    share = percent(abs(usage.saved), usage.untouched) if usage.untouched else ""
    of_asked = f" ({about}{share} %)" if share else ""
    instead = f"{billed} {what} instead of {about}{usage.untouched:,}"
    if usage.saved > 0:
        return f"{about}{usage.saved:,} input tokens{of_asked} saved: {instead}."
    return (
        f"Holdfast used {about}{-usage.saved:,} input tokens{of_asked} more than without it: "
        f"{instead}."
    )


def _money(report: RunReport) -> Iterator[str]:
    usage = report.usage
    if usage.cost or usage.saved_cost:
        about = _about(usage.unreported)
        cost = f"{about}{_dollars(usage.cost)} at list price{_classes(usage)}"
        if usage.overflows and not usage.saved_cost:
            yield f"{cost}."
        else:
            yield f"{cost}, {_compared(usage.saved_cost, _about(usage.assumed))}."
    if usage.demo_cost or usage.demo_saved_cost:
        compared = _compared(usage.demo_saved_cost, "≈ ")
        yield (
            "A demo: the offline model answered, and nobody was billed. At list price it would be "
            f"≈ {_dollars(usage.demo_cost)}, {compared}."
        )
    if usage.unpriced:
        models = ", ".join(report.unpriced_models)
        excluded = f": {counted(usage.unpriced, 'request')} not in these dollars"
        yield f"No price is known for {models}{excluded if usage.cost else ''}."


def _classes(usage: UsageTotal) -> str:
    """Return the token counts with separate prices, so that readers can check the dollars."""
    classes = {
        "read from the provider's cache": usage.cached,
        "written to the provider's cache": usage.cache_written,
        "of output": usage.output,
    }
    parts = ", ".join(f"{tokens:,} {what}" for what, tokens in classes.items() if tokens)
    return f" (tokens: {parts})" if parts else ""


def _compared(saved: float, about: str) -> str:
    """Return how an amount compares to that without Holdfast."""
    if not saved:
        return "as much as without Holdfast"
    if abs(Decimal(str(saved))) < _CENT:
        return f"{about}the same as without Holdfast, to the cent"
    return f"{about}{_dollars(abs(saved))} {'less' if saved > 0 else 'more'} than without Holdfast"


def _failures(failures: tuple[tuple[Failure, int], ...]) -> Iterator[str]:
    for failure, number in failures[:_MOST_CAUSES]:
        yield f"{counted(number, 'request')} failed: {_cause(failure)}."
    remaining = sum(number for _, number in failures[_MOST_CAUSES:])
    if remaining:
        yield f"{counted(remaining, 'request')} failed for other reasons: see `holdfast stats`."


def _cause(failure: Failure) -> str:
    ours = _OURS.get(failure.error)
    if ours is not None:
        provider = failure.provider or "the provider"
        return f"{ours.format(provider=provider)} ({failure.status})"
    who = f" from {failure.provider}" if failure.provider else " from Holdfast"
    error = f" ({failure.error})" if failure.error else ""
    advice = _ADVICE.get(failure.status, "try again later" if failure.status >= 500 else "")
    return f"{failure.status}{who}{error}{': ' if advice else ''}{advice}"


def _is_demo(usage: UsageTotal) -> bool:
    """Return whether only the offline model answered, which nobody is billed for."""
    return bool(usage.demo_cost) and not usage.cost


def _about(estimates: int) -> str:
    return "≈ " if estimates else ""


def _dollars(amount: float) -> str:
    """Return an amount to the cent; less than one is not rounded to nothing."""
    exact = Decimal(str(amount))
    if 0 < exact < _CENT:
        return "less than $0.01"
    return f"${exact.quantize(_CENT, ROUND_HALF_UP):,}"
