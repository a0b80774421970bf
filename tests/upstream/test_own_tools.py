"""Calls of our tools, in any spelling of their names."""

from __future__ import annotations

import pytest

from holdfast.upstream.own_tools import OwnTools

SPELLINGS = ["Expand_Ref", "functions.expand_ref", "default_api:expandRef", "expand-ref"]


@pytest.mark.parametrize("name", ["expand_ref", *SPELLINGS])
def test_other_spellings_mean_our_tool(name: str) -> None:
    assert OwnTools({"expand_ref"}, {"read_log"}).name_of(name) == "expand_ref"


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_client_with_a_tool_of_a_similar_name_gets_its_calls(name: str) -> None:
    tools = OwnTools({"expand_ref"}, {"ExpandRef"})
    assert tools.name_of(name) == ""
    assert tools.name_of("expand_ref") == "expand_ref"


@pytest.mark.parametrize("name", ["", "expand", "read_log", "x" * 100_000 + "expand_ref"])
def test_other_names_mean_none(name: str) -> None:
    assert name not in OwnTools({"expand_ref"}, {"read_log"})
