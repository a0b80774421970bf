"""A user who lacks an optional dependency reads which extra it is, and how to install it.

Each program below runs in a separate process in which some modules cannot be found, as in an
environment with the core install only. tests/surfaces/test_wheel.py has such an environment.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.errors import MissingExtraError
from holdfast.extras import EXTRAS, extra_with, install_command
from holdfast.integrations.claude_agent_sdk import HoldfastHooks
from tests.surfaces.harness import ROOT, environment

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ADAPTERS = sorted(
    path.stem
    for path in (ROOT / "src" / "holdfast" / "integrations").glob("*.py")
    if not path.stem.startswith("_") and path.stem != "claude_agent_sdk"
)
HIDING = """
import os, sys

HIDDEN = tuple(os.environ["HIDDEN_MODULES"].split(","))


class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *how):
        hidden = name in HIDDEN or name.startswith(tuple(f"{each}." for each in HIDDEN))
        return None if hidden else self.finder.find_spec(name, *how)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""
"""Python imports a module `sitecustomize` when it starts. `find_spec` returns None for a hidden
module, as it does for one that is not installed."""


def run_without(
    modules: tuple[str, ...], *arguments: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python in an environment in which modules are not installed."""
    (folder / "hiding").mkdir(exist_ok=True)
    (folder / "hiding" / "sitecustomize.py").write_text(HIDING)
    hidden = {"PYTHONPATH": str(folder / "hiding"), "HIDDEN_MODULES": ",".join(modules)}
    return subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **hidden, **variables),
        timeout=60,
        check=False,
    )


def command_for(extra: str) -> str:
    return f"{sys.executable} -m pip install 'holdfast[{extra}]'"


def modules_of(*extras: str) -> tuple[str, ...]:
    return tuple(module for extra in extras for module in EXTRAS[extra].modules)


COMMANDS = [
    ("mcp", ["mcp"], {}),
    ("mcp", ["mcp", "--http"], {}),
    ("mcp", ["mcp", "test", "time", "--config", "mcp.json"], {}),
    ("mcp", ["mcp", "call", "time", "now", "--config", "mcp.json"], {}),
    ("postgres", ["store", "stats", "--store", "postgresql://me@localhost/db"], {}),
    ("otel", ["serve", "--port", "0"], {"HOLDFAST_OTEL_ENDPOINT": "http://localhost:4318"}),
    ("embed", ["memory", "recall", "anything"], {"HOLDFAST_EMBEDDER": "minilm"}),
    ("embed", ["tools", "search", "anything"], {"HOLDFAST_EMBEDDER": "minilm"}),
]


@pytest.mark.parametrize(
    ("extra", "command", "variables"), COMMANDS, ids=[" ".join(each[1]) for each in COMMANDS]
)
def test_a_command_that_needs_an_extra_says_how_to_install_it(
    tmp_path: Path, extra: str, command: list[str], variables: dict[str, str]
) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"time": {"command": "true"}}}')
    done = run_without(modules_of(extra), "-m", "holdfast", *command, folder=tmp_path, **variables)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "internal error" not in done.stderr
    assert command_for(extra) in done.stderr


def test_commands_that_only_look_at_the_list_of_mcp_servers_need_no_extra(tmp_path: Path) -> None:
    for command in (["add", "time", "--", "true"], ["list"]):
        done = run_without(modules_of("mcp"), "-m", "holdfast", "mcp", *command, folder=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extra", "code", "kind"),
    [
        ("research", "from holdfast.extract.pdf import read_pdf as f; f(b'%PDF')", "ExtractError"),
        ("research", "from holdfast.extract.word import read_word as f; f(b'PK')", "ExtractError"),
        (
            "models",
            "import asyncio; from holdfast.models.pydantic_models import PydanticModel as M; "
            "m = M('x', 'openai:gpt-4o', window=9999, timeout=9); "
            "asyncio.run(m.complete('Hello', max_tokens=9))",
            "ModelRefusedError",
        ),
    ],
)
def test_a_part_of_the_library_that_needs_an_extra_says_how_to_install_it(
    tmp_path: Path, extra: str, code: str, kind: str
) -> None:
    done = run_without(modules_of(extra), "-c", code, folder=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"holdfast.errors.{kind}")
    assert command_for(extra) in last


def test_the_semantic_cache_says_which_extra_it_needs(tmp_path: Path) -> None:
    done = run_without(
        modules_of("embeddings"), "-m", "holdfast", "memory", "answers", "list", "--output", "json",
        folder=tmp_path, HOLDFAST_ENABLE_SEMANTIC_CACHE="true",
    )  # fmt: skip
    assert command_for("embeddings") in done.stdout


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_without_its_framework_names_its_extra(tmp_path: Path, adapter: str) -> None:
    extra = adapter.replace("_", "-")
    code = f"""
try:
    import holdfast.integrations.{adapter}
except ImportError as error:
    print(type(error).__name__, str(error), sep=": ")
"""
    done = run_without(modules_of(extra), "-c", code, folder=tmp_path)
    assert done.stdout.startswith("MissingExtraError: "), done.stderr
    assert f"the extra {extra} is not installed" in done.stdout
    assert command_for(extra) in done.stdout


def test_the_claude_agent_sdk_is_no_extra_and_is_named_itself() -> None:
    with pytest.raises(MissingExtraError, match="pip install claude-agent-sdk"):
        HoldfastHooks("memory:").options()


def test_a_framework_that_is_too_old_is_not_called_missing(tmp_path: Path) -> None:
    old = tmp_path / "litellm"
    old.mkdir()
    (old / "__init__.py").write_text("")
    (old / "integrations").mkdir()
    (old / "integrations" / "__init__.py").write_text("")
    (old / "integrations" / "custom_logger.py").write_text("")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import holdfast.integrations.litellm"
    )
    done = run_without(("nothing",), "-c", code, folder=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert "cannot be imported: cannot import name 'CustomLogger'" in last
    assert "pip install --upgrade 'holdfast[litellm]'" in last


def test_doctor_lists_every_extra_with_its_command(tmp_path: Path) -> None:
    done = run_without(
        modules_of(*EXTRAS), "-m", "holdfast", "doctor", "--no-network", "--output", "json",
        folder=tmp_path, HOLDFAST_SERVE_PORT="1",
    )  # fmt: skip
    for extra in EXTRAS:
        assert f'"extra {extra}"' in done.stdout
        assert command_for(extra) in done.stdout


def test_the_list_of_extras_is_that_of_the_package() -> None:
    assert set(EXTRAS) == set(DECLARED)
    assert {adapter.replace("_", "-") for adapter in ADAPTERS} <= set(EXTRAS)


def test_a_module_leads_to_its_extra() -> None:
    assert extra_with("mcp_types.version") == "mcp"
    assert extra_with("opentelemetry") == "otel"
    assert extra_with("docx.opc") == "research"
    assert extra_with("mcpserver") == extra_with("json") == extra_with(None) == ""


def test_the_command_names_the_interpreter_as_one_would_type_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert install_command("holdfast[mcp]") == ".venv/bin/python -m pip install 'holdfast[mcp]'"
    monkeypatch.chdir("/usr")
    assert f"{tmp_path}/.venv/bin/python -m pip" in install_command("holdfast[mcp]")
    monkeypatch.setattr(sys, "executable", "/home/a user/python")
    assert install_command("mcp").startswith("'/home/a user/python' -m pip")
