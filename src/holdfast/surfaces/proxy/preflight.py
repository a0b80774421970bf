"""The checks of settings that `serve` makes before it listens; `config --check` makes the same."""

from __future__ import annotations

import sys
from collections.abc import Callable

from holdfast.errors import HoldfastError, SettingsError
from holdfast.models.embedding import tool_embedder
from holdfast.settings import Settings
from holdfast.store.opening import check_url
from holdfast.surfaces.proxy import spans, tenants
from holdfast.surfaces.proxy.safety import is_loopback
from holdfast.upstream.upstreams import Upstreams


def problems(settings: Settings) -> list[HoldfastError]:
    """Return every reason for which `serve` would refuse these settings."""
    refusals = []
    for check in _CHECKS:
        try:
            check(settings)
        except HoldfastError as error:
            refusals.append(error)
    return refusals


def check(settings: Settings) -> None:
    """Raise the first of the problems."""
    for problem in problems(settings):
        raise problem


def check_access(settings: Settings) -> None:
    """Raise if other machines could use the proxy without a token."""
    host = settings.serve_host
    if not is_loopback(host) and not tenants.own_tokens(settings):
        raise SettingsError(
            "other machines could use the proxy and its keys",
            where=f"serve_host {host}",
            fix="Set serve_token (HOLDFAST_SERVE_TOKEN), or listen on 127.0.0.1.",
        )


def _check_workers(settings: Settings) -> None:
    if settings.serve_workers == 1:
        return
    where = f"serve_workers {settings.serve_workers}"
    if sys.platform == "win32":
        raise SettingsError(
            "several workers need a system that can fork", where=where, fix="Set it to 1."
        )
    if settings.store_url.startswith("memory:"):
        raise SettingsError(
            "each worker would have a store of its own",
            where=f"{where}, store_url {settings.store_url}",
            fix="Choose a store that workers can share (sqlite:///path, or none for the default "
            "file), or one worker.",
        )


def _check_store(settings: Settings) -> None:
    if settings.store_url:
        check_url(settings.store_url)


_CHECKS: tuple[Callable[[Settings], object], ...] = (
    tenants.check,
    check_access,
    _check_workers,
    _check_store,
    Upstreams,
    spans.configured,
    tool_embedder,
)
