"""Servers, hosts and the conformance suite from npm and PyPI, installed into build/mcp.

Nothing here is pinned: `make mcp` tests the gateway with the current versions. Debian's newest
Node is too old for the suite, so Node comes from npm as well.
"""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "build" / "mcp"
NODE = FOLDER / "npm" / "node_modules" / ".bin" / "node"
_INSTALL_SECONDS = 900.0


class Package(NamedTuple):
    """A program of npm or PyPI."""

    program: str
    requirements: tuple[str, ...]
    """As npm or pip is asked for them."""
    from_npm: bool = False

    @property
    def path(self) -> Path:
        """Where it lies once it is installed."""
        if self.from_npm:
            return FOLDER / "npm" / "node_modules" / ".bin" / self.program
        return FOLDER / self.program / "bin" / self.program

    @property
    def command(self) -> list[str]:
        """How it is started."""
        return [str(NODE), str(self.path)] if self.from_npm else [str(self.path)]


def from_npm(program: str, package: str) -> Package:
    """A program of npm, with the Node that runs it."""
    return Package(program, (package, "node@22"), from_npm=True)


def from_pypi(program: str, *more: str) -> Package:
    """Return a program of PyPI, in a separate environment; `more` are its constraints."""
    return Package(program, (program, *more))


def missing(package: Package) -> str:
    """Install a program if it is missing; why that cannot be done, else empty."""
    if package.path.exists() and (NODE.exists() or not package.from_npm):
        return ""
    try:
        ran = _npm(package) if package.from_npm else _pip(package)
    except (OSError, subprocess.SubprocessError) as error:
        return f"could not be installed: {error}"
    if ran.returncode or not package.path.exists():
        return f"could not be installed: {(ran.stderr or ran.stdout)[-200:].strip()}"
    return ""


def _npm(package: Package) -> subprocess.CompletedProcess[str]:
    folder = FOLDER / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    # Node's own package fetches the program for this machine in a script.
    command = ["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts"]
    return _run([*command, "--prefix", str(folder), *package.requirements])


def _pip(package: Package) -> subprocess.CompletedProcess[str]:
    folder = FOLDER / package.program
    venv.create(folder, with_pip=True)
    return _run([str(folder / "bin" / "pip"), "install", "--quiet", *package.requirements])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
    )
