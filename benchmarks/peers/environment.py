"""An environment for each peer: they disagree about the versions of what they stand on."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".venv-peers"
VERSIONS = {
    "headroom": "headroom-ai==0.42.0",
    "litellm": "litellm==1.103.7",
    "llmtrim": "llmtrim==0.13.7",
    "openai_agents": "openai-agents==0.24.0",
}
_RUNTIMES = {"xllamacpp": "xllamacpp==2026.10.11549"}
"""Packages that have an environment of their own too, but are no peers: see benchmarks/judge."""
# Peers fetch prices and models, report to their makers, and keep what they saw in the home folder;
# figures must depend on none of these, and nothing of the data may leave.
QUIET = {
    "DO_NOT_TRACK": "1",
    "HEADROOM_WORKSPACE_DIR": str(PLACE / "headroom" / "state"),
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}


def python(peer: str) -> Path:
    """The interpreter of a peer's environment, made when it is first asked for."""
    folder = PLACE / peer
    interpreter = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    package = (VERSIONS | _RUNTIMES)[peer]
    done = folder / package
    if not done.exists():
        print(f"installing {package} in {folder.relative_to(ROOT)}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(interpreter), "-m", "pip", "install", "--quiet", package]
        subprocess.run(install, check=True, stdout=sys.stderr)  # noqa: S603
        done.touch()
    return interpreter


def beside(peer: str, *packages: str) -> None:
    """Make a peer's packages, without what they stand on, importable in this process.

    For a peer that runs with our versions of the rest; ours come first on the path.
    """
    folder = PLACE / peer
    done = folder / "-".join(package.replace("==", "_") for package in packages)
    if not done.exists():
        print(f"installing {', '.join(packages)} in {folder.relative_to(ROOT)}", file=sys.stderr)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*install, "--target", folder, *packages], check=True, stdout=sys.stderr)  # noqa: S603
        done.touch()
    sys.path.append(str(folder))


def start(peer: str, *arguments: str) -> subprocess.Popen[str]:
    """A peer's adapter as a process that takes and gives JSON lines."""
    return subprocess.Popen(  # noqa: S603
        [python(peer), "-m", f"benchmarks.peers.{peer}", *arguments],
        cwd=ROOT,
        env={**os.environ, **QUIET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
