"""What every condenser of structured content must keep, as checks that its tests share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from holdfast.condense.condenser import Condensed, Condenser, Passage
from holdfast.condense.source import Source

SHORT = 200
"""A scalar up to this size must be complete in a passage."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=40)
    | st.text("ab \n", min_size=180, max_size=1600)
)
keys = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    "id name title url snippet error status fields columns rows properties object results".split()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
rows = st.lists(st.dictionaries(keys, scalars, max_size=5), min_size=3, max_size=5)


def source(value: Any, **named: str) -> Source:
    return Source(json.dumps(value, ensure_ascii=False).encode(), **named)


def scalars_of(value: Any) -> list[str]:
    """Every string and number in a value, as text."""
    if isinstance(value, dict):
        return [text for child in value.values() for text in scalars_of(child)]
    if isinstance(value, list):
        return [text for child in value for text in scalars_of(child)]
    if isinstance(value, str):
        return [value]
    return [] if value is None or isinstance(value, bool) else [json.dumps(value)]


def check(condenser: Condenser, content: Source) -> tuple[Condensed, list[Passage]]:
    """What holds for any content: it is survived, short, placed and the same twice."""
    score = condenser.sniff(content)
    assert 0 <= score <= 1
    said, parts = condenser.condense(content), list(condenser.passages(content))
    again = Source(content.data, tool=content.tool, url=content.url)
    assert (condenser.condense(again), list(condenser.passages(again))) == (said, parts)
    assert len(said.title) <= 200
    assert "\n" not in said.title
    assert all(part.where for part in parts)
    return said, parts


def check_complete(value: Any, parts: list[Passage]) -> None:
    """Every short scalar is whole in some passage."""
    texts = [part.text for part in parts]
    whole = "\0".join(texts)
    for scalar in scalars_of(value):
        if len(scalar) <= SHORT:
            assert scalar.strip() in whole
