"""Why a request failed, in words: what its status or its error means, and what to do.

trouble: after layout, before pulse. Nothing is quoted of an error: its text may hold what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast import errors
from holdfast.engine.accounting import CLIENT_LEFT
from holdfast.store.records import Turn
from holdfast.surfaces.proxy.dashboard.html import Html
from holdfast.surfaces.proxy.dashboard.layout import (
    moment,
    remark,
    session_link,
    table,
    turn_link,
)
from holdfast.surfaces.proxy.dashboard.views import TurnRow
from holdfast.surfaces.proxy.seen import Refused

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
    "AllowanceError": "This key has used its share of the day (daily_tokens, daily_dollars).",
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
"""What means the same whoever says it."""
OK = 400


def why_failed(status: int, error: str = "") -> str:
    """What a failure means."""
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


def failures_table(rows: Sequence[TurnRow], refused: Sequence[Refused] = ()) -> Html:
    """Requests without an answer, with why; the newest first."""
    if not rows and not refused:
        return remark("None in the sessions last used.")
    cells: list[tuple[float, str, str, str, str]] = [
        (
            row.turn.started_at,
            turn_link(row.session, row.turn.number),
            session_link(row.session, row.title),
            str(row.turn.status),
            why_failed(row.turn.status),
        )
        for row in rows
    ]
    cells += [
        (
            each.at,
            each.error or "refused",
            session_link(each.session) if each.session else each.model,
            str(each.status),
            why_failed(each.status, each.error),
        )
        for each in refused
    ]
    cells.sort(key=lambda cell: -cell[0])
    shown = [(first, *rest, moment(at)) for at, first, *rest in cells]
    columns = ("Request", "Session", "Status", "Why", "Time (UTC)")
    return table("Failures, the newest first", columns, shown, words=(1, 3, 4))
