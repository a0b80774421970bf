"""The ratios of the benchmarks, on file: what falls by more than a third is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import effort, ratios
from rich.console import Console


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Return a console, with a separate file of ratios."""
    monkeypatch.setattr(ratios, "FILE", tmp_path / "ratios.json")
    monkeypatch.setattr(ratios, "_noted", {})
    return Console(record=True, width=100)


def test_what_fell_by_more_than_a_third_is_named(console: Console) -> None:
    ratios.note("fit: litellm", 90, 3)
    ratios.note("count: tiktoken", 8, 2)
    ratios.save(console)
    ratios.note("fit: litellm", 57, 3)
    ratios.note("count: tiktoken", 6, 2)
    ratios.note("new: nobody", 1, 1)
    assert not ratios.compare(console)
    told = console.export_text()
    assert "fit: litellm: 19 times, was 30" in told
    assert "--save" in told
    assert "tiktoken" not in told


def test_a_benchmark_that_did_not_run_keeps_its_ratio(console: Console) -> None:
    ratios.FILE.write_text('{"store: the limit": 0.5}')
    ratios.note("fit: litellm", 90, 3)
    ratios.save(console)
    assert ratios.saved() == {"fit: litellm": 30.0, "store: the limit": 0.5}
    assert ratios.compare(console)


def test_what_takes_more_calls_is_named() -> None:
    before = {"count": 300, "fit": 300, "gone": 1}
    now = {"count": 400, "fit": 401, "new": 5}
    assert effort.worse(now, before) == ["fit: 401 calls, were 300"]


def test_every_way_is_on_file() -> None:
    on_file = json.loads(effort.FILE.read_text())
    assert len(on_file) == 17
    assert all(number > 0 for number in on_file.values())
