"""Settings that one look cannot show to be obeyed: overrides of a model's limits, and debugging.

The others are tried with two values each in test_settings_wiring.py.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import Holdfast
from holdfast.settings import ModelLimits, Settings
from tests.surfaces.proxy.harness import ask, path_of, request_in
from tests.surfaces.proxy.test_final_turn import budget, crowded
from tests.surfaces.proxy.test_server import Process
from tests.wiring.library import with_engine
from tests.wiring.proxy import HEADERS, proxied

WINDOW = 4_000
OVERRIDES = {"openai:gpt-4o": ModelLimits(context_window=WINDOW)}


def long_talk(turns: int = 60, **extra: Any) -> dict[str, Any]:
    """Questions and answers, of some 8,000 tokens."""
    messages = []
    for n in range(turns):
        messages.append({"role": "user", "content": f"{n}: " + "why " * 60})
        messages.append({"role": "assistant", "content": f"{n}: " + "so " * 60})
    messages.append({"role": "user", "content": "And now?"})
    return {"model": "gpt-4o", "messages": messages, **extra}


def tokens_fitted(overrides: dict[str, ModelLimits], **extra: Any) -> int:
    async def work(engine: Holdfast) -> int:
        return (await engine.session("s").fit(long_talk(**extra))).tokens

    return with_engine(work, model_context_overrides=overrides)


def tokens_sent(overrides: dict[str, ModelLimits], **extra: Any) -> int:
    with proxied(model_context_overrides=overrides) as (proxy, upstream):
        body = request_in("openai-chat", long_talk(**extra))
        assert ask(proxy.url + path_of("openai-chat"), body, HEADERS).status == 200
        return upstream.requests[0].tokens


@pytest.mark.parametrize("tokens", [tokens_fitted, tokens_sent])
def test_an_override_of_the_window_is_obeyed(tokens: Any) -> None:
    assert tokens({}) > WINDOW
    assert 0 < tokens(OVERRIDES) <= WINDOW - WINDOW // 4 - 256


@pytest.mark.parametrize("tokens", [tokens_fitted, tokens_sent])
def test_the_answer_that_the_request_asks_for_is_left_free(tokens: Any) -> None:
    """What fits beside an ordinary answer is folded for a long one, which leaves less than it."""
    room = WINDOW - 2_000 - 256
    assert tokens(OVERRIDES, turns=16) > room
    assert 0 < tokens(OVERRIDES, turns=16, max_tokens=2_000) <= room


@pytest.mark.parametrize("tokens", [tokens_fitted, tokens_sent])
def test_an_override_of_the_mode_is_obeyed(tokens: Any) -> None:
    alone = {"openai:gpt-4o": ModelLimits(context_window=WINDOW, mode="input_only")}
    assert tokens(alone, max_tokens=3_500) > WINDOW - 3_500
    assert tokens(alone, max_tokens=3_500) <= WINDOW - 256


def test_an_override_in_the_file_reaches_the_commands(tmp_path: Path) -> None:
    text = '[model_context_overrides]\n"openai:gpt-4o" = { context_window = 4000 }\n'
    (tmp_path / "holdfast.toml").write_text(text)
    settings = Settings.load(cwd=tmp_path, environ={})
    assert tokens_fitted(dict(settings.model_context_overrides)) <= WINDOW


@pytest.mark.parametrize(("debug", "shown"), [("true", True), ("false", False)])
def test_serve_shows_the_looks_of_the_guard_where_context_debug_is_set(
    debug: str, shown: bool, tmp_path: Path
) -> None:
    """A request that can only go out as a final turn: what the guard saw is in the log."""
    (tmp_path / "holdfast.toml").write_text(f"context_debug = {debug}\n")
    process = Process(tmp_path, "--store", "memory:")
    body = request_in("openai-chat", crowded(2))
    limit = {"x-holdfast-budget": str(budget("openai-chat", 2, bare=True) + 120)}
    answered = ask(process.url + path_of("openai-chat"), body, HEADERS | limit)
    assert answered.headers["x-holdfast-final"] == "true"
    process.process.send_signal(signal.SIGTERM)
    _, said = process.end()
    assert ("context-guard/" in said) is shown
