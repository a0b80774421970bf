"""Whether each request of a conversation begins with the one before it, as prompt caches demand.

Written apart from the package. Cache marks are not part of a prompt, and a text alone is the same
prompt as a list of one text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.surfaces.proxy.gatekeeper import Got

_ITEMS = {"openai-responses": "input", "gemini": "contents"}


def broken_prefixes(requests: Sequence[Got]) -> list[int]:
    """Return the numbers of the requests that do not begin with the request before them."""
    prompts = [_prompt(request) for request in requests]
    return [
        number
        for number, (before, now) in enumerate(pairwise(prompts), 1)
        if now[: len(before)] != before
    ]


def _prompt(request: Got) -> list[str]:
    """Return the parts of a prompt in the order in which providers cache them."""
    value = request.value
    head = [value.get(name) for name in ("tools", "system", "systemInstruction", "instructions")]
    items = value.get(_ITEMS.get(request.dialect, "messages")) or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return [json.dumps(_plain(part), sort_keys=True) for part in (*head, *items)]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _plain(part) for name, part in value.items() if name != "cache_control"}
    if isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain
