"""A session keeps its first definition of expand_ref, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.expand import tool
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
)
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.upstream import Upstream

DESCRIPTION = "Opens what a citation leaves out, in the ways it shows."
PARAMETERS = {
    "type": "object",
    "properties": {
        "ref_id": {"type": "string"},
        "query": {"type": "string"},
        "lines": {"type": "string"},
        "path": {"type": "string"},
        "fields": {"type": "array", "items": {"type": "string"}},
        "offset": {"type": "integer"},
        "limit": {"type": "integer"},
        "pattern": {"type": "string"},
        "around": {"type": "string"},
        "page": {"type": "integer"},
        "max_tokens": {"type": "integer"},
    },
    "required": ["ref_id"],
}
"""The definition until November 2026."""


@contextmanager
def earlier_version() -> Iterator[None]:
    """Offer the tool as earlier versions did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool, "DESCRIPTION", DESCRIPTION)
        patch.setattr(tool, "PARAMETERS", PARAMETERS)
        yield


def conversation(results: int) -> dict[str, Any]:
    return chat(*(log(600, seed=n) for n in range(results)))


def opener(got: Got) -> tuple[str, Any]:
    """The description and the parameters of the tool that a request offers."""
    tools = holdfast.read(got.body, got.dialect).tools
    [ours] = [each for each in tools if each.name == tool.NAME]
    return ours.description, ours.parameters


def tools_bytes(got: Got) -> bytes:
    """Return all bytes around the messages, as sent."""
    return bytes(holdfast.read(got.body, got.dialect).frame.hollow)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_keeps_the_definition_that_it_began_with(
    dialect: str, restarts: bool, tmp_path: Path
) -> None:
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}

    def turn(url: str, results: int) -> None:
        body = request_in(dialect, conversation(results))
        answered = ask(url + path_of(dialect), body, KEYS)
        assert text_of(dialect, answered).endswith("Read.")

    with Upstream() as upstream:
        upstream.always = says(text("Read."))
        if restarts:
            with earlier_version(), running_proxy(settings, upstream.url) as proxy:
                turn(proxy.url, 1)
            with running_proxy(settings, upstream.url) as proxy:
                turn(proxy.url, 2)
                upstream.turns.append(opens("1-5"))
                turn(proxy.url, 3)
        else:
            with running_proxy(settings, upstream.url) as proxy:
                with earlier_version():
                    turn(proxy.url, 1)
                turn(proxy.url, 2)
                upstream.turns.append(opens("1-5"))
                turn(proxy.url, 3)
        assert upstream.refused == []
        first, *others = upstream.requests
        assert len(others) == 3
        assert opener(first)[0] == DESCRIPTION
        assert set(opener(first)[1]["properties"]) == set(PARAMETERS["properties"])
        assert [tools_bytes(got) for got in others] == [tools_bytes(first)] * 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_session_gets_the_present_definition(dialect: str, tmp_path: Path) -> None:
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    with Upstream(says(text("Read.")), says(text("Read."))) as upstream:
        with earlier_version(), running_proxy(settings, upstream.url) as proxy:
            ask_model(proxy, dialect, conversation(1))
        other = chat(log(600), question="What else?")
        with running_proxy(settings, upstream.url) as proxy:
            ask_model(proxy, dialect, other)
        assert [opener(got)[0] for got in upstream.requests] == [DESCRIPTION, tool.DESCRIPTION]
