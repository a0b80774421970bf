"""A guard made from the settings in force.

configured: after the guard; the only file of it that knows settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.guard.guard import ContextGuard
from holdfast.guard.targets import TargetContextConfig
from holdfast.guard.telemetry import Listener, log
from holdfast.settings import Settings


def guard_from_settings(
    settings: Settings,
    targets: Iterable[TargetContextConfig],
    *,
    listener: Listener | None = None,
    **arguments: Any,
) -> ContextGuard:
    """Return a guard that debugs if `context_debug` is set; without a listener, into the log.

    The other arguments are those of `ContextGuard`.
    """
    debug = settings.context_debug
    if debug and listener is None:
        listener = log
    return ContextGuard(targets, listener=listener, debug=debug, **arguments)
