"""Every setting is obeyed: run with two values, in the library and in the proxy, and it shows.

A setting that means nothing in one of the two stands there with the reason. Nothing looks for a
name in the code: a setting that is read and then ignored would pass such a search (X01).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.settings import Settings
from tests.surfaces.harness import run_process
from tests.wiring import constants
from tests.wiring.library import LIBRARY
from tests.wiring.proxy import PROXY
from tests.wiring.wired import Wired

ELSEWHERE = {"model_context_overrides", "context_debug"}
"""Tested in test_settings_in_fit.py, over several requests each."""


def wired(table: dict[str, Wired | str]) -> list[Any]:
    return [
        pytest.param(entry, id=name) for name, entry in table.items() if isinstance(entry, Wired)
    ]


@pytest.mark.parametrize("table", [LIBRARY, PROXY], ids=["library", "proxy"])
def test_every_setting_stands_in_the_table_with_a_test_or_a_reason(
    table: dict[str, Wired | str],
) -> None:
    assert set(table) | ELSEWHERE == {key.name for key in Settings.defined()}
    assert all(entry for entry in table.values())


@pytest.mark.parametrize("setting", wired(LIBRARY))
def test_the_library_does_otherwise_with_another_value(setting: Wired, tmp_path: Path) -> None:
    seen = [observed(setting, value, tmp_path / name) for value, name in values_of(setting)]
    assert seen[0] != seen[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize("setting", wired(PROXY))
def test_the_proxy_does_otherwise_with_another_value(setting: Wired, tmp_path: Path) -> None:
    seen = [observed(setting, value, tmp_path / name) for value, name in values_of(setting)]
    assert seen[0] != seen[1]


@pytest.mark.parametrize("constant", wired({**constants.LIBRARY}))
def test_the_library_does_otherwise_with_another_constant(constant: Wired, tmp_path: Path) -> None:
    seen = [observed(constant, value, tmp_path / name) for value, name in values_of(constant)]
    assert seen[0] != seen[1]


@pytest.mark.slow
@pytest.mark.parametrize("constant", wired({**constants.PROXY}))
def test_the_proxy_does_otherwise_with_another_constant(constant: Wired, tmp_path: Path) -> None:
    seen = [observed(constant, value, tmp_path / name) for value, name in values_of(constant)]
    assert seen[0] != seen[1]


def values_of(setting: Wired) -> list[tuple[object, str]]:
    return [(setting.first, "first"), (setting.second, "second")]


def observed(setting: Wired, value: object, folder: Path) -> object:
    folder.mkdir()
    return setting.observe(value, folder)


# --- the command line ------------------------------------------------------------------------


def printed(folder: Path, *, color: str = "auto", output: str) -> bytes:
    done = run_process(
        "config",
        "models",
        "openai:gpt-4o",
        folder=folder,
        HOLDFAST_COLOR=color,
        HOLDFAST_OUTPUT=output,
    )
    return done.stdout


def test_the_command_line_obeys_color(tmp_path: Path) -> None:
    coloured, plain = (
        printed(tmp_path, color=color, output="table") for color in ("always", "never")
    )
    assert b"\x1b[" in coloured
    assert b"\x1b[" not in plain


def test_the_command_line_obeys_output(tmp_path: Path) -> None:
    assert json.loads(printed(tmp_path, output="json"))
    assert printed(tmp_path, output="table").startswith(b"model ")
