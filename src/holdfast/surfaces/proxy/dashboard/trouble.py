"""Explanations of failed requests: the meaning of a status or an error, and the next step.

No error text is quoted, because it may contain conversation text.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast import errors
from holdfast.engine.bill import CLIENT_LEFT
from holdfast.store.records import Turn
from holdfast.surfaces.proxy.dashboard.html import Html, h2, section
from holdfast.surfaces.proxy.dashboard.layout import (
    moment,
    number,
    remark,
    session_link,
    table,
    turn_link,
)
from holdfast.surfaces.proxy.dashboard.views import TurnRow
from holdfast.surfaces.proxy.seen import UNKNOWN_MODEL, Refusal

_BY_STATUS = {
    400: "The provider refused the request as it is written.",
    401: "The provider did not take the key: check the client's key.",
    402: "The provider wants to be paid first.",
    403: "The key may not use this model or path.",
    404: "The provider does not know this model or path.",
    408: "The client took too long to send its request.",
    413: "The request is larger than the provider, or max_body_bytes, allows.",
    429: "Too many requests or tokens in too short a time: wait, then try again.",
    CLIENT_LEFT: "The client left before it had its answer.",
    500: "The provider failed.",
    502: "The upstream could not be reached, or broke off its answer.",
    503: "The provider is overloaded, or the store is unavailable.",
    529: "The provider is overloaded.",
}
_TOO_LONG = (
    "The request does not fit its limit, and nothing more may be hidden: raise the limit, or send "
    "less in one message."
)
_BY_ERROR = {
    "BudgetExceededError": _TOO_LONG,
    "ContextOptimizationError": _TOO_LONG,
    "AnchorPreservationError": _TOO_LONG,
    "AllowanceError": "This key has used its share of the day (daily_limit).",
    "LimitError": "The body is larger, or has more keys, than the settings allow.",
    "WireError": "The body is no request of this API.",
    "ShapeError": "The body is no request of this API.",
    "PrivacyError": "privacy_policy = refuse: it holds what may not be stored.",
    "StoreUnavailableError": "The store is unavailable, and on_store_failure is refuse.",
    "UpstreamError": "The upstream could not be reached, or refused.",
    "NoUpstreamError": "No upstream is set for this path.",
    "WrongPathError": "The path belongs to no provider: check the client's base URL.",
    "WrongMethodError": "The client sent GET or another method to a path that takes POST.",
    "BrokenOffError": "The upstream broke off its answer.",
    "SettingsError": "The request names a model or a switch that means nothing.",
}
_EITHERS = frozenset({408, 413, 429, 503})
"""Statuses with the same meaning from the proxy and from a provider."""
OK = 400


def why_failed(status: int, error: str = "") -> str:
    """Return the meaning of a failure."""
    if error:
        kind = getattr(errors, error, None)
        names = [each.__name__ for each in kind.__mro__] if isinstance(kind, type) else [error]
        reason = next((_BY_ERROR[name] for name in names if name in _BY_ERROR), "")
        if reason or status not in _EITHERS:
            ours = "The proxy refused the request." if status < 500 else "The proxy failed."
            return reason or ours
    fallback = "The provider failed." if status >= 500 else "The provider refused the request."
    return _BY_STATUS.get(status, fallback)


def status_word(turn: Turn) -> str:
    """How a turn ended, in a word."""
    if turn.usage.answered:
        return "memory"
    if turn.usage.failed:
        return f"failed {turn.status}"
    return "ok" if turn.status < OK else str(turn.status)


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of a period without an answer; the first page counts and lists the same ones."""

    count: int = 0
    """Failed turns in the store."""
    rows: Sequence[TurnRow] = ()
    """The last of these, the newest first."""
    refused_count: int = 0
    """Requests that were refused before there was a turn to store."""
    refused: Sequence[Refusal] = ()
    """The last of these, the newest first."""
    many: bool = False
    """Whether they are of several tenants."""


def failures_section(failures: Failures) -> Html:
    """Return the section of the first page: how many requests failed, and why the last did."""
    if not failures.count and not failures.refused_count:
        return section(h2("Failed requests"), remark("None in this period."))
    count = len(failures.rows) + len(failures.refused)
    every = failures.count + failures.refused_count
    kinds = [f"{number(failures.count)} failed"] if failures.count else []
    if failures.refused_count:
        kinds.append(f"{number(failures.refused_count)} refused since the proxy was started")
    last = f" The last {count:,} are listed." if count < every else ""
    return section(
        h2("Failed requests"),
        remark(f"{' and '.join(kinds)}.{last}"),
        _table(failures),
    )


def _table(failures: Failures) -> Html:
    """Return the failures with their reasons, the newest first."""
    cells: list[tuple[float, Html | str, Html | str, str, str, str]] = [
        (
            row.turn.started_at,
            turn_link(row.session, row.turn.number, row.tenant),
            session_link(row.session, row.title, row.tenant),
            row.turn.model,
            str(row.turn.status),
            _with_word(why_failed(row.turn.status), row.turn.error),
        )
        for row in failures.rows
    ]
    cells += [
        (
            each.at,
            "refused",
            _session_of(each, failures.many),
            "" if each.model == UNKNOWN_MODEL else each.model,
            str(each.status),
            why_failed(each.status, each.error),
        )
        for each in failures.refused
    ]
    cells.sort(key=lambda cell: -cell[0])
    rows = [(first, *rest, moment(at)) for at, first, *rest in cells]
    columns = ("Request", "Session", "Model", "Status", "Why", "Time (UTC)")
    return table("Failures, the newest first", columns, rows, words=(1, 2, 4, 5))


def _with_word(reason: str, word: str) -> str:
    """Return a reason with the provider's own word for the failure, such as `not_found_error`."""
    return f"{reason.removesuffix('.')} ({word})." if word else reason


def _session_of(refused: Refusal, many: bool) -> Html | str:
    if not refused.session:
        return ""
    return session_link(refused.session, tenant=refused.tenant if many else "")
