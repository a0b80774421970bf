"""The choice between condensers, ours and other packages'."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.condense import kinds
from holdfast.condense.condenser import Condensed, Passage
from holdfast.condense.source import Source


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    kinds.condensers.cache_clear()
    yield
    kinds.condensers.cache_clear()


class Offered:
    """A condenser of another package."""

    kind = "offered"

    def sniff(self, source: Source) -> float:
        return 1.0 if source.data.startswith(b"%OFFERED") else 0.0

    def condense(self, source: Source) -> Condensed:
        return Condensed(title="Offered", unit="bytes", total=len(source.data), notes=())

    def passages(self, source: Source) -> Sequence[Passage]:
        return [Passage(source.text, "lines 1-1")]


class Broken(Offered):
    kind = "broken"

    def condense(self, source: Source) -> Condensed:
        raise RuntimeError(source.text)

    def passages(self, source: Source) -> Sequence[Passage]:
        raise RuntimeError(source.text)


class BadNose(Offered):
    kind = "bad_nose"

    def sniff(self, source: Source) -> float:
        raise RuntimeError(source.text)


def offer(monkeypatch: pytest.MonkeyPatch, **loads: Any) -> None:
    points = [SimpleNamespace(name=name, load=load) for name, load in loads.items()]
    monkeypatch.setattr(kinds, "entry_points", lambda **_: points)


def test_what_nobody_knows_is_text() -> None:
    assert kinds.kind_of(Source(b"Dear all, we meet on Monday.")) == "text"
    assert kinds.kind_of(Source(b"")) == "text"


def test_a_named_kind_is_condensed_as_that_kind() -> None:
    assert kinds.condenser_for(Source(b"Dear all"), "log").kind == "log"


def test_an_unknown_kind_is_condensed_by_its_looks() -> None:
    assert kinds.named("minutes") is None
    assert kinds.condenser_for(Source(b"Dear all"), "minutes").kind == "text"


def test_kinds_have_names_of_their_own() -> None:
    names = [one.kind for one in kinds.OURS]
    assert len(set(names)) == len(names)
    assert all(kinds.named(name) is one for name, one in zip(names, kinds.OURS, strict=True))


def test_a_condenser_of_another_package_takes_what_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, offered=Offered)
    source = Source(b"%OFFERED 1")
    assert kinds.kind_of(source) == "offered"
    assert kinds.condenser_for(source).condense(source).title == "Offered"
    assert kinds.kind_of(Source(b"Dear all")) == "text"


def test_a_condenser_that_cannot_be_loaded_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load() -> None:
        raise ImportError("no such module")

    offer(monkeypatch, lost=load, hollow=object)
    assert kinds.kind_of(Source(b"Dear all")) == "text"
    assert "lost" in caplog.text
    assert "hollow" in caplog.text


def test_a_condenser_that_fails_gives_way_to_text_and_tells_no_content(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    offer(monkeypatch, broken=Broken, nose=BadNose)
    source = Source(b"%OFFERED secret-word")
    one = kinds.condenser_for(source)
    assert one.kind == "broken"
    assert one.condense(source).title.startswith("Text")
    assert "secret-word" in one.passages(source)[0].text
    assert "broken" in caplog.text
    assert "secret-word" not in caplog.text
