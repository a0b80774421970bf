"""Combine several signals per text into one score, with weights from the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from holdfast.search.arrays import Floats


def deviations(values: Floats) -> Floats:
    """Return values as deviations from their mean, so that signals of any unit can be added."""
    if not len(values):
        return values
    spread = float(values.std())
    scaled: Floats = (values - values.mean()) / np.float32(spread if spread > 1e-9 else 1.0)
    return scaled


def weight_signals(
    signals: Mapping[str, Floats], weights: Mapping[str, float]
) -> dict[str, Floats]:
    """Return each signal times its weight; signals without a weight are left out."""
    return {
        name: signals[name] * np.float32(weight)
        for name, weight in weights.items()
        if name in signals
    }


def add_signals(parts: Iterable[Floats], shape: tuple[int, ...]) -> Floats:
    """Return the sum of weighted signals; a signal may be one number for all texts."""
    scores = np.zeros(shape, np.float32)
    for part in parts:
        scores += part
    return scores
