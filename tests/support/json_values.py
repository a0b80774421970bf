"""Values of JSON for property tests."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy


def scalars(text: SearchStrategy[str]) -> SearchStrategy[object]:
    """Return every kind of scalar; `text` gives the strings."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.none() | st.booleans() | numbers | text
