"""The README's first request: a citation, its opening, and the headers of both."""

from __future__ import annotations

from pathlib import Path

from holdfast.engine import Holdfast
from tests.surfaces.proxy.harness import ask, running_proxy, turns_of

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "log.json"
REF = "ref:log:cab84b229e5cf58c"


def test_the_first_request_is_cited_opened_and_answered_as_the_readme_shows() -> None:
    readme = (EXAMPLE.parents[2] / "README.md").read_text("utf-8")
    with running_proxy({"cite_policy": "auto"}) as proxy:
        answered = ask(f"{proxy.url}/v1/messages", EXAMPLE.read_bytes())
        for header in ("calls", "input-tokens", "saved"):
            assert f"x-holdfast-{header}: {answered.headers[f'x-holdfast-{header}']} " in readme
        text = answered.json["content"][0]["text"]
        assert f"From the stored {REF}, line 612" in text
        assert "row=1837 AmbiguousTimeError: 2026-10-25 02:30 occurs twice" in text
        assert f"holdfast expand {REF} --lines 611-613" in readme
        engine: Holdfast = proxy.service.engine
        part = proxy.do(engine.expand_ref(REF, {"lines": "611-613"}))
        assert part.content.count("\n") == 3
        proxy.settled()
        [turn] = turns_of(proxy, answered)
        assert {edit.action for edit in turn.edits} == {"cite", "offer"}
        session = engine.session(answered.headers["x-holdfast-session"])
        rebuilt = proxy.do(session.rebuild(turn.number))
        assert rebuilt == EXAMPLE.read_bytes()
