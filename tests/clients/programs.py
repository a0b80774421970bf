"""Coding agents as people run them: how to install, configure and start each.

All run without a terminal and without a network: with a separate home, a short environment, and a
proxy address without a listener for every other host. None may ask for permission. Without an
address they are left as people have them, so that `holdfast wrap` configures them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tests.clients.mcp_tools import SERVER, mcp_config
from tests.surfaces.proxy.gatekeeper import KEY

NOBODY = "http://127.0.0.1:9"
PROMPT = (
    "The files 0.log to 15.log are in the current folder. Read them one by one, 0.log first. {}"
)


@dataclass(frozen=True)
class Program:
    """A coding agent; `tools` are the names of its tools for commands, newest first."""

    name: str
    package: str
    """As npm or PyPI knows it."""
    dialect: str
    tools: tuple[str, ...]
    arguments: Callable[[str, str], list[str]]
    """From the provider's address, empty to be wrapped, and the prompt."""
    environment: Callable[[str], Mapping[str, str]]
    prepare: Callable[[Path, str], None] = field(default=lambda *_: None)
    """Writes the program's configuration files."""
    from_npm: bool = True
    module: str = ""
    """The module of the tests that is the program, where it is an agent of a framework."""
    note: str = ""
    """The difference to the other rows of the same program."""
    talk: Literal["once", "one process", "continued"] = "once"
    """Whether it is asked once, or twice: in one process, or with `--continue`."""
    mcp_tools: int = 0
    """Tools of the MCP server that it is given; the model looks for one of them first."""
    writes_code: bool = False
    """The model calls functions in Python instead of tools."""

    @property
    def label(self) -> str:
        return f"{self.package}, {self.note}" if self.note else self.package

    def executable(self, folder: Path) -> Path:
        """Where it is found once it is installed in this folder."""
        if self.from_npm:
            return folder / "npm" / "node_modules" / ".bin" / self.name
        return folder / self.name / "bin" / self.name


def script_call(path: str) -> str:
    """The program with which Codex's newest models show a file: their one tool runs scripts."""
    shown = json.dumps({"cmd": f"cat {path}", "max_output_tokens": 20_000})
    first = '// @exec: {"max_output_tokens": 20000}'
    return f"{first}\nconst shown = await tools.exec_command({shown}); text(shown.output);"


def command_call(tool: str, path: str) -> dict[str, Any]:
    """The arguments with which a tool shows a file."""
    shown = f"cat {path}"
    if tool == "exec_command":
        return {"cmd": shown, "max_output_tokens": 20_000}
    if tool == "shell":
        return {"command": ["bash", "-lc", shown]}
    return {"command": shown, "description": f"Show {path}"}


def surroundings(home: Path) -> dict[str, str]:
    """The environment that every program gets."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "NO_COLOR": "1",
        "HTTP_PROXY": NOBODY,
        "HTTPS_PROXY": NOBODY,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _claude_arguments(url: str, prompt: str) -> list[str]:
    del url
    return ["-p", prompt, "--output-format", "text", "--allowedTools", "Bash,Read"]


def _claude_in_one_process(url: str, prompt: str) -> list[str]:
    del url, prompt
    formats = ["--input-format", "stream-json", "--output-format", "stream-json"]
    return ["-p", *formats, "--verbose", "--allowedTools", "Bash,Read"]


def _claude_with_mcp(tools: int) -> Callable[[str, str], list[str]]:
    def arguments(url: str, prompt: str) -> list[str]:
        words = _claude_arguments(url, prompt)
        words[-1] += f",mcp__{SERVER}"
        return [*words, "--mcp-config", json.dumps(mcp_config(tools)), "--strict-mcp-config"]

    return arguments


def _claude_environment(url: str) -> dict[str, str]:
    # At an address that is not Anthropic's, Claude Code sends every schema unless this is set: so
    # it is set where the address represents Anthropic's, and `holdfast wrap` must set it itself.
    return {
        **({"ANTHROPIC_BASE_URL": url, "ENABLE_TOOL_SEARCH": "true"} if url else {}),
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex_arguments(url: str, prompt: str) -> list[str]:
    del url
    always = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["exec", *always, prompt]


def _newest_codex_home(home: Path, url: str) -> None:
    """A model that Codex sends all tools in an item, without a list of tools in the body."""
    _codex_home(home, url, "gpt-5.6-sol")


def _default_codex_home(home: Path, url: str) -> None:
    """The model that Codex chooses for a user who chose none."""
    _codex_home(home, url, "")


def _codex_home(home: Path, url: str, model: str = "gpt-5") -> None:
    (home / ".codex").mkdir()
    chosen = "check_for_update_on_startup = false\n"
    if model:
        chosen += f'model = "{model}"\n'
    if not url:
        (home / ".codex" / "config.toml").write_text(chosen)
        return
    (home / ".codex" / "config.toml").write_text(
        chosen
        + f"""
model_provider = "scripted"
[model_providers.scripted]
name = "OpenAI"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    )


def _gemini_home(home: Path, url: str) -> None:
    if not url:
        return  # a new user has only a key
    chosen = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
        "telemetry": {"enabled": False},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(chosen))


def _gemini_environment(url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": KEY,
        **({"GOOGLE_GEMINI_BASE_URL": url} if url else {}),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _opencode_environment(url: str) -> dict[str, str]:
    package, name = ("@ai-sdk/openai-compatible", "scripted") if url else ("", "openai")
    return _opencode_configuration(url, name, "gpt-5", package)


def _opencode_with_claude(url: str) -> dict[str, str]:
    return _opencode_configuration(url, "anthropic", "claude-sonnet-4-5")


def _opencode_configuration(url: str, name: str, model: str, package: str = "") -> dict[str, str]:
    limit = {"context": 200_000, "output": 8_000}
    provider: dict[str, Any] = {
        "options": {"apiKey": KEY},
        "models": {model: {"name": model, "tool_call": True, "limit": limit}},
    }
    if package:
        provider["npm"] = package
    if url:
        provider["options"]["baseURL"] = f"{url}/v1"
    chosen = {"provider": {name: provider}, "autoupdate": False, "share": "disabled"}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(chosen),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _aider_arguments(url: str, prompt: str) -> list[str]:
    switches = (
        "--yes-always --no-git --no-check-update --analytics-disable --no-show-model-warnings "
        "--no-show-release-notes --no-pretty --no-stream --map-tokens 0 --edit-format ask "
        "--no-detect-urls"
    )
    model = ["--model", "openai/gpt-4o"]
    model += ["--openai-api-base", f"{url}/v1"] if url else []
    files = [f"{number}.log" for number in range(16)]
    key = ["--openai-api-key", KEY]
    return [*switches.split(), *model, *key, "--message", prompt, *files]


def _agent_environment(url: str) -> dict[str, str]:
    """A script of our own that takes its addresses where the vendors' SDKs do."""
    addresses = {"GOOGLE_GEMINI_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"} if url else {}
    return {"PYTHONPATH": str(Path(__file__).parents[2]), **addresses}


_CLAUDE = Program(
    "claude",
    "@anthropic-ai/claude-code",
    "anthropic",
    ("Bash",),
    _claude_arguments,
    _claude_environment,
)
_CODEX = Program(
    "codex",
    "@openai/codex",
    "openai-responses",
    ("exec_command", "shell_command", "shell", "exec"),
    _codex_arguments,
    lambda _: {"SCRIPTED_KEY": KEY, "OPENAI_API_KEY": KEY},
    _codex_home,
    note="gpt-5",
)
_OPENCODE = Program(
    "opencode",
    "opencode-ai",
    "openai-chat",
    ("bash",),
    lambda url, prompt: ["run", "-m", f"{'scripted' if url else 'openai'}/gpt-5", prompt],
    _opencode_environment,
)
PROGRAMS = (
    _CLAUDE,
    *(
        replace(_CLAUDE, arguments=_claude_with_mcp(n), mcp_tools=n, note=f"{n} MCP tools")
        for n in (30, 80)
    ),
    replace(
        _CLAUDE, arguments=_claude_in_one_process, talk="one process", note="two prompts, one run"
    ),
    replace(_CLAUDE, talk="continued", note="--continue"),
    _CODEX,
    replace(_CODEX, prepare=_newest_codex_home, note="gpt-5.6-sol"),
    replace(_CODEX, prepare=_default_codex_home, note="default model"),
    Program(
        "gemini",
        "@google/gemini-cli",
        "gemini",
        ("run_shell_command",),
        lambda _, prompt: ["-p", prompt, "--yolo", "-m", "gemini-2.5-flash"],
        _gemini_environment,
        _gemini_home,
    ),
    _OPENCODE,
    replace(
        _OPENCODE,
        dialect="anthropic",
        arguments=lambda _, prompt: ["run", "-m", "anthropic/claude-sonnet-4-5", prompt],
        environment=_opencode_with_claude,
        note="Anthropic",
    ),
    Program(
        "aider",
        "aider-chat",
        "openai-chat",
        (),
        _aider_arguments,
        lambda _: {},
        from_npm=False,
    ),
    Program(
        "pydantic-ai",
        "pydantic-ai",
        "gemini",
        ("read_log",),
        lambda _, prompt: ["pydantic-ai, google", prompt],
        _agent_environment,
        module="tests.clients.frameworks",
        note="Google",
    ),
    Program(
        "smolagents",
        "smolagents",
        "openai-chat",
        (),
        lambda _, prompt: ["smolagents, code", prompt],
        _agent_environment,
        module="tests.clients.frameworks",
        note="CodeAgent",
        writes_code=True,
    ),
)
