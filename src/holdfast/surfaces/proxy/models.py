"""The list of models for a client: the vendor's, and those in the settings.

Clients show this list to people, or refuse names outside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.upstream.upstreams import Family
from holdfast.wire.strict import encode, parse

OFFLINE_NAME = "offline"
"""The offline model's name in the list; it accepts any name."""
_PATHS = frozenset({"/v1/models", "/v1beta/models", "/v1alpha/models"})
_EPOCH = "1970-01-01T00:00:00Z"
_METHODS = ["generateContent", "countTokens"]


def lists_models(method: str, path: str) -> bool:
    """Whether a request asks for the list."""
    return method == "GET" and path.rstrip("/") in _PATHS


def model_list(family: Family, names: Iterable[str], vendors: bytes = b"") -> bytes:
    """Return a list in a family's format: the vendor's, if there is one, then `names`.

    A vendor's list that cannot be parsed is forwarded unchanged.
    """
    key = "models" if family == "gemini" else "data"
    body: Any = parse(vendors) if vendors else _empty(family)
    entries = body.get(key) if isinstance(body, dict) else None
    if not isinstance(entries, list):
        return vendors
    vendors_names = {_name(entry) for entry in entries}
    added = [_entry(family, name) for name in names if name not in vendors_names]
    return encode({**body, key: [*entries, *added]})


def _empty(family: Family) -> dict[str, Any]:
    if family == "gemini":
        return {"models": []}
    if family == "anthropic":
        return {"data": [], "has_more": False, "first_id": None, "last_id": None}
    return {"object": "list", "data": []}


def _entry(family: Family, name: str) -> dict[str, Any]:
    if family == "gemini":
        model = {"name": f"models/{name}", "displayName": name}
        return {**model, "supportedGenerationMethods": _METHODS}
    if family == "anthropic":
        return {"type": "model", "id": name, "display_name": name, "created_at": _EPOCH}
    return {"id": name, "object": "model", "created": 0, "owned_by": "holdfast"}


def _name(entry: object) -> str:
    if not isinstance(entry, dict):
        return ""
    name = entry.get("id") or entry.get("name")
    return name.removeprefix("models/") if isinstance(name, str) else ""
