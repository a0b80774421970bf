"""How well the proxy counts, what its strategies did, and the settings it runs with.

about: after layout, before pages. Values in, HTML out. Settings show their origin; secrets show
that they are set, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.settings import Settings
from holdfast.surfaces.proxy.dashboard.frame import current
from holdfast.surfaces.proxy.dashboard.html import a, h2, p, section
from holdfast.surfaces.proxy.dashboard.layout import (
    number,
    owner_cell,
    page,
    percent,
    remark,
    table,
)
from holdfast.tokens.calibration import ModelAccuracy
from holdfast.trim.engine import Effect


class AccuracyRow(NamedTuple):
    """How well a model's counts did for a tenant."""

    accuracy: ModelAccuracy
    owner: str = ""
    """The tenant's display name; empty if the page is about one."""


def accuracy_page(models: Sequence[AccuracyRow], effects: Sequence[Effect]) -> str:
    """How far counts are from what providers report, by model; and what trimming did."""
    owned = any(owner for _, owner in models)
    rows = [
        (
            model.model,
            number(model.observed),
            percent(model.first_error, 1),
            percent(model.plain_error, 1),
            percent(model.corrected_error, 1),
            *([owner_cell(owner)] if owned else []),
        )
        for model, owner in models
    ]
    columns: tuple[str, ...] = (
        "Model",
        "Reports",
        "Error at first",
        "Error lately",
        "Error, corrected",
    )
    columns += (current().noun.title(),) if owned else ()
    counted = (
        table("Median error of the count against what providers report", columns, rows, words=(5,))
        if rows
        else remark("No provider has reported usage yet; the offline model counts as we do.")
    )
    done = [
        (effect.strategy, number(effect.runs), number(effect.reached), number(effect.failed),
         number(effect.tokens_saved), ", ".join(effect.lost))
        for effect in effects
    ]  # fmt: skip
    trimmed = (
        table("Since the proxy was started", ("Strategy", "Runs", "Reached its target", "Failed",
                                              "Tokens saved", "Lost anchors"), done)
        if done
        else remark("Nothing had to be trimmed since the proxy was started.")
    )  # fmt: skip
    return page(
        "How well it counts",
        section(h2("Counting"), counted),
        section(h2("Strategies"), trimmed),
        here="ModelAccuracy",
    )


def settings_page(settings: Settings) -> str:
    """Every setting in force, and where it comes from."""
    origins = {traced.key.name: (traced.value, traced.origin) for traced in Settings.trace()}
    rows = []
    for key in Settings.defined():
        value = getattr(settings, key.name)
        traced, origin = origins[key.name]
        # A value from neither the settings file nor the environment came from the command line.
        where = origin if traced == value else "command line"
        rows.append((key.name, str(key.shown(value)), where, key.help))
    columns = ("Setting", "Value", "From", "What it does")
    return page(
        "Settings",
        remark("What the proxy runs with. To change one, set its variable or its line in "
               "holdfast.toml, and start the proxy again."),
        table("Every setting and its origin", columns, rows, words=(1, 2, 3)),
        p(a("How well it counts", href="/accuracy")),
        here="Settings",
    )  # fmt: skip
