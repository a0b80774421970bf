"""With citations off, or several answers asked for, what folds take out still leaves a ref."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    ask_model,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import REF, says, text
from tests.surfaces.proxy.upstream import Upstream

OFF: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "setting": ({"enable_content_citations": False}, {}),
    "header": ({}, {"x-holdfast-no-cite": "on"}),
}
RESULTS = [log(40, n) for n in range(9)]


@pytest.mark.parametrize("how", OFF)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_folds_take_out_leaves_a_ref_that_opens(dialect: str, how: str) -> None:
    settings, switches = OFF[how]
    headers = {**KEYS, **switches, "x-holdfast-budget": "3000"}
    asked_body = request_in(dialect, chat(*RESULTS))
    with Upstream(says(text("Well."))) as upstream, running_proxy(settings, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, asked_body, headers=headers)
        assert answered.status == 200, answered.body
        [got] = upstream.requests
        shown = set(REF.findall(got.texts))
        assert shown
        assert "expand_ref" in got.tools
        [turn] = turns_of(proxy, answered)
        actions = {edit.action for edit in turn.edits}
        assert "fold" in actions
        assert "cite" not in actions
        folds = [edit for edit in turn.edits if edit.action in ("fold", "drop")]
        assert {edit.ref_id for edit in folds} <= shown
        engine = proxy.service.engine
        key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
        messages = json.loads(asked_body)[key]
        for edit in folds:
            stored = proxy.do(engine.store.get(engine.scope, edit.ref_id))
            assert stored is not None
            assert json.loads(stored.data) == messages[edit.start : edit.stop]
        for ref in shown:
            opened = proxy.do(engine.expand_ref(ref, {"lines": "1-3"}))
            assert opened.text.startswith(f"[{ref}")


@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"])
def test_where_several_answers_are_asked_for_only_the_record_has_the_ref(dialect: str) -> None:
    value = json.loads(request_in(dialect, chat(*RESULTS)))
    if dialect == "gemini":
        value["generationConfig"] = {"candidateCount": 2}
    else:
        value["n"] = 2
    asked_body = json.dumps(value).encode()
    with Upstream(says(text("Well."))) as upstream, running_proxy({}, upstream.url) as proxy:
        headers = {**KEYS, "x-holdfast-budget": "3000"}
        answered = ask_model(proxy, dialect, asked_body, headers=headers)
        assert answered.status == 200, answered.body
        [got] = upstream.requests
        assert REF.findall(got.texts) == []
        assert "expand_ref" not in got.tools
        [turn] = turns_of(proxy, answered)
        refs = [edit.ref_id for edit in turn.edits if edit.action == "fold"]
        assert refs
        engine = proxy.service.engine
        for ref in refs:
            assert proxy.do(engine.store.get(engine.scope, ref)) is not None
        session = engine.session(answered.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(1)) == asked_body
