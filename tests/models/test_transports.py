"""How models are reached: by address, by program, by Pydantic AI; and that some may not be."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
    SettingsError,
)
from holdfast.models import command
from holdfast.models.embedding import open_embedder
from holdfast.models.http import HttpModel, _fix, retry_after
from holdfast.models.opening import open_model
from holdfast.models.protocol import Completion
from holdfast.models.pydantic_models import PydanticModel
from holdfast.settings import Settings, UpstreamEntry
from tests.workers.test_workers import until


def at(url: str = "", key: str = "") -> dict[str, Any]:
    return {"upstreams": {"openai": UpstreamEntry(url, key=key)}}


posix = pytest.mark.skipif(sys.platform == "win32", reason="runs a script")


def asked(model: Any, prompt: str = "Hello", system: str = "Be kind.") -> Completion:
    async def main() -> Completion:
        answer: Completion = await model.complete(prompt, system=system, max_tokens=50)
        return answer

    return asyncio.run(main())


# --- which transport -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider_id", "settings", "kind"),
    [
        ("extractive", {}, "ExtractiveModel"),
        ("[cli]claude:haiku", {}, "CommandModel"),
        ("gemini:flash", {}, "CommandModel"),
        ("codex:gpt-5.2-codex", {}, "CommandModel"),
        ("openai:gpt-5-mini", at(key="sk-1"), "HttpModel"),
        ("ollama:qwen3", at("http://localhost:11434"), "HttpModel"),
        ("mine:own", at("http://localhost:1/v1"), "HttpModel"),
        ("anthropic:claude-haiku-4-5", at(key="sk-1"), "PydanticModel"),
        ("openai:gpt-5-mini", {}, "PydanticModel"),
        ("[cli]mine:x", {"summarization_commands": {"mine": ["cat"]}}, "CommandModel"),
    ],
)
def test_an_id_says_how_its_model_is_reached(
    provider_id: str, settings: dict[str, Any], kind: str
) -> None:
    model = open_model(provider_id, Settings(**settings))
    assert type(model).__name__ == kind
    assert model.window > 10_000
    assert "sk-1" not in repr(model)


def test_an_unknown_program_and_a_wrong_address_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match="no program of this name"):
        open_model("[cli]nobody:x", Settings())
    with pytest.raises(SettingsError, match="no HTTP address"):
        open_model("openai:x", Settings(**at("ftp://example.com")))


def test_a_program_s_own_prompt_is_no_room_for_ours() -> None:
    assert open_model("[cli]claude:haiku", Settings()).window == 140_000


@pytest.mark.parametrize("provider_id", ["[cli]claude:haiku", "openai:x", "anthropic:claude-x"])
def test_a_switch_forbids_models_of_others(provider_id: str) -> None:
    settings = Settings(forbid_model_calls=True, **at(key="sk-1"))
    with pytest.raises(ModelRefusedError, match="may not be asked"):
        open_model(provider_id, settings)
    here = Settings(forbid_model_calls=True, **at("http://127.0.0.1:9"))
    assert open_model("openai:x", here).name == "openai:x"
    assert open_model("extractive", settings).name == "extractive"


# --- by address ----------------------------------------------------------------------------------


def test_where_nobody_listens_is_unavailable() -> None:
    model = HttpModel("openai:x", "x", url="http://127.0.0.1:9", key="sk-1", window=9, timeout=5)
    with pytest.raises(ModelUnavailableError, match="cannot be reached") as raised:
        asked(model)
    assert "sk-1" not in str(raised.value)


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("12") == 12.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("") is None
    assert retry_after("nan") is None
    assert retry_after("-5") is None


@given(st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9,: +-]{0,40}", fullmatch=True))
def test_whatever_asks_to_wait_gives_seconds_or_nothing(text: str) -> None:
    seconds = retry_after(text)
    assert seconds is None or seconds >= 0


# --- by program ----------------------------------------------------------------------------------


def program(folder: Path, script: str, *, timeout: float = 20.0) -> Any:
    path = folder / "program.py"
    path.write_text(script)
    settings = Settings(
        summarization_commands={"mine": [sys.executable, str(path), "{model}"]},
        summarization_timeout=timeout,
    )
    return open_model("[cli]mine:tiny", settings)


@posix
def test_a_program_gets_the_prompt_as_its_input_and_no_shell(tmp_path: Path) -> None:
    script = (
        "import os, sys, json\n"
        "print(json.dumps([sys.argv[1:], sys.stdin.read(), os.listdir('.'),"
        " [n for n in os.environ if n.startswith('HOLDFAST_')]]))"
    )
    prompt = "$(touch /tmp/x); `id` & " + "long " * 60_000
    arguments, read, folder, ours = json.loads(asked(program(tmp_path, script), prompt).text)
    assert arguments == ["tiny"]
    assert read == f"Be kind.\n\n{prompt}"
    assert folder == [], "it starts in an empty folder"
    assert ours == [], "our own variables hold our secrets"


@posix
def test_a_program_over_its_time_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(ModelTimeoutError, match="no answer within"):
        asked(program(tmp_path, script, timeout=1.5))
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")

    def has_ended() -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            # A killed child may stay a zombie until init looks.
            return stat.read_text().split(")")[1].split()[0] in "ZX"
        return True

    until(has_ended)  # it was stopped when the answer came, and dies when it is next scheduled


@posix
@pytest.mark.parametrize(
    ("script", "error", "told"),
    [
        ("import sys; sys.exit(7)", ModelUnavailableError, "code 7"),
        ("while True: print('x' * 100_000)", ModelAnswerError, "more than"),
    ],
    ids=["fails", "says too much"],
)
def test_a_program_that_fails_is_told_by_type(
    tmp_path: Path, script: str, error: type[ModelError], told: str
) -> None:
    with pytest.raises(error, match=told):
        asked(program(tmp_path, script))


_LEAVES_A_CHILD = """\
import os, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open({pid!r}, "w").write(str(child.pid))
{rest}
"""


@posix
@pytest.mark.parametrize("rest", ["print('Short.')", "time.sleep(600)"], ids=["ends", "hangs"])
def test_a_child_that_a_program_leaves_behind_holds_nobody_up(tmp_path: Path, rest: str) -> None:
    """In a separate session, which no group reaches, with the program's output still open."""
    pid = tmp_path / "pid"
    model = program(tmp_path, _LEAVES_A_CHILD.format(pid=str(pid), rest=rest), timeout=3.0)
    try:
        if "print" in rest:
            assert asked(model).text == "Short."
        else:
            with pytest.raises(ModelTimeoutError, match="no answer within"):
                asked(model)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


@posix
def test_a_program_that_reads_nothing_is_answered_all_the_same(tmp_path: Path) -> None:
    assert asked(program(tmp_path, "print('Short.')"), "long " * 200_000).text == "Short."


@posix
def test_an_argument_that_no_program_can_be_given_is_told() -> None:
    command = [sys.executable, "a\0b"]
    model = open_model("[cli]mine:tiny", Settings(summarization_commands={"mine": command}))
    with pytest.raises(ModelRefusedError, match="cannot be run"):
        asked(model)


def test_a_program_that_is_not_there_says_what_to_do() -> None:
    model = open_model("[cli]x:y", Settings(summarization_commands={"x": ["no-such-program-9"]}))
    with pytest.raises(ModelRefusedError, match="Install no-such-program-9"):
        asked(model)


CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Short.",
    "total_cost_usd": 0.002,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 5},
    "modelUsage": {"claude-haiku-4-5": {}},
}
GEMINI = {
    "response": "Short.",
    "stats": {"models": {"gemini-flash": {"tokens": {"prompt": 43, "candidates": 5}}}},
}
CODEX = "\n".join(
    [
        "warning: something",
        '{"type": "thread.started"}',
        '{"type": "item.completed", "item": {"type": "reasoning", "text": "Hm."}}',
        '{"type": "item.completed", "item": {"type": "agent_message", "text": "Short."}}',
        '{"type": "turn.completed", "usage": {"input_tokens": 43, "output_tokens": 5}}',
    ]
)


@posix
@pytest.mark.parametrize(
    ("name", "printed"),
    [("claude", json.dumps(CLAUDE)), ("gemini", json.dumps(GEMINI)), ("codex", CODEX)],
)
def test_the_programs_that_are_known_are_understood(
    name: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / name
    fake.write_text(f"#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{printed}\nEND\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    answer = asked(open_model(f"[cli]{name}:small", Settings()))
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("Short.", 43, 5)
    assert answer.cost == (0.002 if name == "claude" else None)


@pytest.mark.parametrize("number", ["1e999", "-5", "NaN", '"7"', "[]"])
def test_what_a_provider_says_of_its_own_cost_is_a_number_or_nothing(number: str) -> None:
    claude = json.dumps(CLAUDE).replace('"input_tokens": 3', f'"input_tokens": {number}')
    claude = claude.replace("0.002", number)
    completion = command.PROGRAMS["claude"].reply(claude.encode())
    assert (completion.text, completion.input_tokens) == ("Short.", 0)
    assert completion.cost is None


def test_no_program_that_is_known_may_use_tools_that_change_anything() -> None:
    claude = command.PROGRAMS["claude"].arguments
    assert claude[claude.index("--tools") + 1] == ""
    codex = command.PROGRAMS["codex"].arguments
    assert codex[codex.index("--sandbox") + 1] == "read-only"
    gemini = command.PROGRAMS["gemini"].arguments
    assert gemini[gemini.index("--approval-mode") + 1] == "default"


@posix
@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_what_a_program_tells_of_its_own_failure_is_no_answer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {"claude": CLAUDE | {"is_error": True}, "gemini": {"error": {"message": "quota"}}}
    fake = tmp_path / name
    fake.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(printed[name])}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ModelUnavailableError, match="tells of an error") as raised:
        asked(open_model(f"[cli]{name}:small", Settings()))
    assert raised.value.where == f"[cli]{name}:small"


# --- by Pydantic AI ------------------------------------------------------------------------------


@pytest.mark.slow
def test_pydantic_ai_reaches_what_it_knows() -> None:
    pytest.importorskip("pydantic_ai")
    answer = asked(PydanticModel("test:test", "test", window=9, timeout=20))
    assert answer.text
    assert answer.input_tokens > 0
    with pytest.raises(ModelRefusedError, match="cannot ask this provider"):
        asked(PydanticModel("nobody:x", "nobody:x", window=9, timeout=20))


def test_without_pydantic_ai_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    with pytest.raises(ModelRefusedError, match=r"holdfast\[models\]"):
        asked(PydanticModel("mistral:x", "mistral:x", window=9, timeout=20))


# --- vectors -------------------------------------------------------------------------------------


def test_there_is_an_embedder_only_where_wordllama_is() -> None:
    pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    embedder = open_embedder()
    assert embedder is not None
    near, same, far, nothing = embedder.embed(["a red car", "the red car", "tax law", ""])
    assert len(near) == embedder.dimensions
    assert sum(map(float.__mul__, near, same)) > sum(map(float.__mul__, near, far))
    assert not any(nothing)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "Check key in"),
        (403, "Check key in"),
        (404, "Check the name of the model"),
        (301, "leads elsewhere"),
        (400, "Ask it by hand"),
        (402, "Ask it by hand"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, words: str) -> None:
    assert words in _fix(status)
