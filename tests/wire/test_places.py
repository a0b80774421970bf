"""Names of the places in a conversation: what a client adds and takes away again does not count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.wire import read
from holdfast.wire.places import head_of

MARK = {"cache_control": {"type": "ephemeral"}}


def conversation(*, marked: bool, text: str = "why?") -> dict[str, Any]:
    part = {"type": "text", "text": text}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": [{**part, **MARK} if marked else part]},
            {"role": "assistant", "content": "Because."},
        ],
    }


def place(body: dict[str, Any], **layout: Any) -> str:
    return head_of(read(json.dumps(body, **layout), "anthropic"))


@pytest.mark.parametrize("layout", [{}, {"separators": (",", ":")}, {"indent": 2}])
def test_a_mark_that_has_moved_on_leaves_the_place_as_it_was(layout: dict[str, Any]) -> None:
    marked, plain = (place(conversation(marked=mark), **layout) for mark in (True, False))
    assert marked == plain
    assert place(conversation(marked=False, text="how?"), **layout) != plain


def test_white_space_says_nothing() -> None:
    body = conversation(marked=False)
    assert place(body) == place(body, separators=(",", ":")) == place(body, indent=2)
