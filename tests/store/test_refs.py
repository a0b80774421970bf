"""The bytes that are stored and hashed are the same for the same content."""

from __future__ import annotations

import pytest

from holdfast.errors import StoreError
from holdfast.store.refs import canonical


@pytest.mark.parametrize(
    ("content", "data"),
    [
        ("é\r\n", "é\r\n".encode()),
        (b"\xff\x00", b"\xff\x00"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        ({"b": 1, "a": [None, "é"]}, '{"a":[null,"é"],"b":1}'.encode()),
        ({2: "two", 1: "one"}, b'{"1":"one","2":"two"}'),
    ],
)
def test_text_and_bytes_stay_as_they_are_and_values_become_sorted_json(
    content: object, data: bytes
) -> None:
    assert canonical(content) == data


@pytest.mark.parametrize("content", [{(1, 2): "secret"}, object(), {"secret": object()}])
def test_what_is_no_json_value_is_refused_without_a_word_of_it(content: object) -> None:
    with pytest.raises(StoreError) as caught:
        canonical(content)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
