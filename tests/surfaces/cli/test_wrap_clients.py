"""`holdfast wrap`: the environment that Claude Code and Gemini CLI are started with."""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces.cli._clients import ClientTarget, pointed, program_environment, upstream_of
from holdfast.surfaces.cli._gemini_cli import signed_in
from tests.surfaces.harness import run_process

URL = "http://127.0.0.1:4711"
TOOL_SEARCH = "ENABLE_TOOL_SEARCH"
SMALL_MODEL = "ANTHROPIC_DEFAULT_HAIKU_MODEL"
CHOICE = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
TELLS = """#!{python}
import json, os, sys
names = ("ENABLE_TOOL_SEARCH", "GEMINI_CLI_HOME")
home = os.environ.get(names[1])
text = open(home + "/.gemini/settings.json").read() if home else None
print(json.dumps([sys.argv[1:], [os.environ.get(name) for name in names], text]), flush=True)
if "--dies" in sys.argv:
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder in a separate home."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def told(work: Path, program: str, **variables: str) -> ClientTarget:
    """Return the environment of a program that is started with these variables."""
    return pointed(program, URL, {"HOME": str(work.parent)} | variables)


def told_process(folder: Path, program: str, *arguments: str, **variables: str) -> Any:
    """Return the arguments, variables and file that a wrapped program of this name sees."""
    (folder / program).write_text(TELLS.format(python=sys.executable))
    (folder / program).chmod(0o755)
    command = ("wrap", "--offline", "--store", "memory:", "--", program, *arguments)
    paths: dict[str, Any] = {"PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(folder)}
    done = run_process(*command, folder=folder, **paths | variables)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_claude_code_keeps_its_tool_search_and_its_small_model(work: Path) -> None:
    variables = told(work, "claude").variables
    assert variables[TOOL_SEARCH] == "true"
    assert variables[SMALL_MODEL] == "claude-haiku-4-5"
    assert variables["ANTHROPIC_BASE_URL"] == URL


@pytest.mark.parametrize("choice", ["false", "auto:5", ""])
def test_a_tool_search_that_the_user_chose_stays(work: Path, choice: str) -> None:
    assert TOOL_SEARCH not in told(work, "claude", **{TOOL_SEARCH: choice}).variables


@pytest.mark.parametrize(
    "file",
    [".claude/settings.json", "work/.claude/settings.json", "work/.claude/settings.local.json"],
)
def test_the_choices_in_claude_codes_own_settings_stay(work: Path, file: str) -> None:
    chosen = {TOOL_SEARCH: "false", "ANTHROPIC_SMALL_FAST_MODEL": "mine"}
    write(work.parent / file, {"env": chosen})
    variables = told(work, "claude").variables
    assert TOOL_SEARCH not in variables
    assert SMALL_MODEL not in variables


def test_a_folder_of_settings_that_the_user_named_is_read(work: Path) -> None:
    write(work / "other" / "settings.json", {"env": {TOOL_SEARCH: "false"}})
    named = told(work, "claude", CLAUDE_CONFIG_DIR=str(work / "other"))
    assert TOOL_SEARCH not in named.variables


@pytest.mark.parametrize("broken", ["{", "[]", '{"env": 3}', '{"env": {"A": 1}}', "\x00"])
def test_settings_that_cannot_be_read_change_nothing(work: Path, broken: str) -> None:
    write(work.parent / ".claude" / "settings.json", broken)
    assert told(work, "claude").variables[TOOL_SEARCH] == "true"


@pytest.mark.parametrize(
    "elsewhere",
    [{"ANTHROPIC_BASE_URL": "https://gateway.example"}, {"CLAUDE_CODE_USE_VERTEX": "1"}],
    ids=["gateway", "vertex"],
)
def test_where_claude_code_would_not_have_asked_anthropic_nothing_is_switched_on(
    work: Path, elsewhere: dict[str, str]
) -> None:
    variables = told(work, "claude", **elsewhere).variables
    assert TOOL_SEARCH not in variables
    assert SMALL_MODEL not in variables


def test_with_a_key_of_anthropics_claude_code_finds_its_own_small_model(work: Path) -> None:
    variables = told(work, "claude", ANTHROPIC_API_KEY="sk-ant-api03-made-up").variables
    assert SMALL_MODEL not in variables


def test_an_address_in_the_users_settings_becomes_the_upstream(work: Path) -> None:
    """Claude Code puts its settings above the environment: they would lead past the proxy."""
    address = "https://gateway.example"
    write(work.parent / ".claude" / "settings.json", {"env": {"ANTHROPIC_BASE_URL": address}})
    target = told(work, "claude")
    assert target.arguments == ("--settings", json.dumps({"env": {"ANTHROPIC_BASE_URL": URL}}))
    assert TOOL_SEARCH not in target.variables
    seen = program_environment("claude", {"HOME": str(work.parent)})
    assert upstream_of("anthropic", seen) == address
    assert upstream_of("anthropic", program_environment("codex", {})) == ""


def test_an_address_in_a_projects_settings_is_not_followed(work: Path) -> None:
    """The author of a repository must not choose where keys are sent."""
    chosen = {"env": {"ANTHROPIC_BASE_URL": "https://gateway.example"}}
    write(work / ".claude" / "settings.json", chosen)
    assert told(work, "claude").arguments == ()
    seen = program_environment("claude", {"HOME": str(work.parent)})
    assert upstream_of("anthropic", seen) == ""


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-4-8", "claude-opus-4-8[1m]"),
        ("claude-opus-4-8[1m]", None),
        ("claude-sonnet-4-5", None),
        ("opus", None),
    ],
)
def test_a_model_with_a_window_of_a_million_keeps_it(
    work: Path, model: str, expected: str | None
) -> None:
    with_key = told(work, "claude", ANTHROPIC_API_KEY="key", ANTHROPIC_MODEL=model)
    assert with_key.variables.get("ANTHROPIC_MODEL") == expected
    # Under a login the longer window may be billed apart.
    assert "ANTHROPIC_MODEL" not in told(work, "claude", ANTHROPIC_MODEL=model).variables


def gemini_home(
    work: Path, *arguments: str, in_terminal: bool = False, **variables: str
) -> AbstractContextManager[dict[str, str]]:
    """Return what Gemini CLI is started with, as variables."""
    environment = {"HOME": str(work.parent)} | variables
    return signed_in(environment, arguments, in_terminal=in_terminal)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_gemini_cli_with_only_a_key_signs_in_with_it(work: Path) -> None:
    with gemini_home(work, "-p", "hello", GEMINI_API_KEY="key") as variables:
        folder = Path(variables["GEMINI_CLI_HOME"], ".gemini")
        assert read(folder / "settings.json") == CHOICE
    assert not folder.exists()
    assert not (work.parent / ".gemini").exists()


def test_the_users_own_files_are_there_and_stay_as_they_are(work: Path) -> None:
    users = work.parent / ".gemini"
    write(users / "settings.json", '{"ui": {"theme": "GitHub"}, "a": "//"} // a comment')
    write(users / "GEMINI.md", "Be brief.")
    write(users / "tmp" / "chat.json", "[]")
    write(work.parent / ".env", "GEMINI_API_KEY=key")
    with gemini_home(work, "-p", "hello") as variables:
        home = Path(variables["GEMINI_CLI_HOME"])
        assert (
            read(home / ".gemini" / "settings.json")
            == {"ui": {"theme": "GitHub"}, "a": "//"} | CHOICE
        )
        assert (home / ".gemini" / "GEMINI.md").read_text() == "Be brief."
        assert (home / ".gemini" / "tmp" / "chat.json").read_text() == "[]"
        assert (home / ".env").read_text() == "GEMINI_API_KEY=key"
    assert "// a comment" in (users / "settings.json").read_text()
    assert sorted(path.name for path in users.iterdir()) == ["GEMINI.md", "settings.json", "tmp"]


def test_files_that_gemini_cli_writes_arrive_at_the_users(work: Path) -> None:
    users = work.parent / ".gemini"
    write(users / "state.json", "old")
    with gemini_home(work, "-p", "hello") as variables:
        folder = Path(variables["GEMINI_CLI_HOME"], ".gemini")
        write(folder / "history" / "chat.json", "[1]")
        write(folder / "new.json", "new")
        (folder / "new.json").replace(folder / "state.json")
        write(folder / "settings.json", {"ui": {"theme": "Dracula"}} | CHOICE)
    assert (users / "history" / "chat.json").read_text() == "[1]"
    assert (users / "state.json").read_text() == "new"
    assert read(users / "settings.json") == {"ui": {"theme": "Dracula"}, "security": {"auth": {}}}


def test_a_choice_that_the_user_makes_meanwhile_is_kept(work: Path) -> None:
    chosen = {"security": {"auth": {"selectedType": "oauth-personal"}}}
    with gemini_home(work, "-p", "hello") as variables:
        write(Path(variables["GEMINI_CLI_HOME"], ".gemini", "settings.json"), chosen)
    assert read(work.parent / ".gemini" / "settings.json") == chosen


@pytest.mark.parametrize("place", [".gemini", "work/.gemini"], ids=["user", "project"])
@pytest.mark.parametrize(
    "settings",
    [{"security": {"auth": {"selectedType": "oauth-personal"}}}, {"security": 1}, "{", "[]"],
    ids=["login", "unknown", "broken", "no object"],
)
def test_settings_that_choose_or_cannot_be_read_are_left_alone(
    work: Path, place: str, settings: Any
) -> None:
    write(work.parent / place / "settings.json", settings)
    with gemini_home(work, "-p", "hello", GEMINI_API_KEY="key") as variables:
        assert variables == {}


@pytest.mark.parametrize("place", ["", "work/.env", "work/.gemini/.env", ".gemini/.env", ".env"])
def test_another_way_to_sign_in_is_left_alone(work: Path, place: str) -> None:
    chosen: dict[str, Any] = {"GOOGLE_GENAI_USE_VERTEXAI": "true"}
    if place:
        write(work.parent / place, 'A=1\nexport GOOGLE_GENAI_USE_VERTEXAI="true"\n')
        chosen = {}
    with gemini_home(work, "-p", "hello", **chosen) as variables:
        assert variables == {}


def test_an_address_that_the_user_gave_gemini_keeps_its_own_way_to_sign_in(work: Path) -> None:
    address = "https://gateway.example"
    with gemini_home(work, "-p", "hello", GOOGLE_GEMINI_BASE_URL=address) as variables:
        assert variables == {}


def test_in_a_terminal_gemini_cli_asks_the_user_itself(work: Path) -> None:
    with gemini_home(work, in_terminal=True, GEMINI_API_KEY="key") as variables:
        assert variables == {}


@pytest.mark.skipif(os.name != "posix", reason="the program is a script")
def test_a_wrapped_program_sees_all_of_that(tmp_path: Path) -> None:
    address = {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
    write(tmp_path / "other" / "settings.json", address)
    arguments, variables, _ = told_process(tmp_path, "claude", "-p", "hello")
    assert arguments == ["-p", "hello"]
    assert variables[0] == "true"
    other = {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
    arguments, variables, _ = told_process(tmp_path, "claude", "-p", "hello", **other)
    assert arguments[0] == "--settings"
    assert arguments[2:] == ["-p", "hello"]
    assert variables[0] is None


@pytest.mark.skipif(os.name != "posix", reason="the program is a script")
@pytest.mark.parametrize("arguments", [(), ("--dies",)], ids=["ends", "is killed"])
def test_the_temporary_home_is_gone_afterwards(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    _, variables, text = told_process(tmp_path, "gemini", *arguments, GEMINI_API_KEY="key")
    assert json.loads(text) == CHOICE
    home = Path(variables[1])
    assert home.is_relative_to(tmp_path)
    assert not home.exists()
