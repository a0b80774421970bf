"""NumPy arrays that can be appended to, and the array types that searches return."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.int8]]

_FIRST_SIZE = 64


class GrowingArray:
    """An array that is appended to; its memory doubles when it is full."""

    def __init__(self, dtype: Any, width: int = 0) -> None:
        self._buffer = np.empty((_FIRST_SIZE, width) if width else _FIRST_SIZE, dtype=dtype)
        self._size = 0

    def extend(self, values: Any) -> None:
        """Append values."""
        size = self._size + len(values)
        if size > len(self._buffer):
            shape = (max(size, 2 * len(self._buffer)), *self._buffer.shape[1:])
            larger = np.empty(shape, self._buffer.dtype)
            larger[: self._size] = self._buffer[: self._size]
            self._buffer = larger
        self._buffer[self._size : size] = values
        self._size = size

    @property
    def all(self) -> Any:
        """All values, without a copy."""
        return self._buffer[: self._size]

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        return self._buffer.nbytes

    def __len__(self) -> int:
        return self._size
