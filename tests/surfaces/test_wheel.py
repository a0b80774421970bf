from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.surfaces.harness import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MOST_WHEEL_BYTES = 5_000_000
OFFLINE = ("NewConnectionError", "NameResolutionError", "ProxyError", "from versions: none")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is published."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("holdfast-*.whl")
    return wheel


def installed(folder: Path, requirement: str) -> Path:
    """An environment with nothing but a requirement in it: the folder of its programs.

    uv installs in a tenth of pip's time; where it is not, pip does it.
    """
    venv.create(folder / "empty", with_pip=False)
    scripts = folder / "empty" / ("Scripts" if os.name == "nt" else "bin")
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".venv" / ".uv" / "bin"))
    if uv is None:
        pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
        done = run(*pip, "install", "--no-compile", requirement, cwd=folder)
    else:
        done = run(
            uv, "pip", "install", "-q", "--python", scripts / "python", requirement, cwd=folder
        )
    if done.returncode and any(word in done.stderr for word in OFFLINE):
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stderr
    return scripts


@pytest.mark.slow
def test_wheel_installs_into_an_empty_environment_and_runs(tmp_path: Path, wheel: Path) -> None:
    scripts = installed(tmp_path, str(wheel))
    assert "holdfast tour" in run(scripts / "holdfast", "--help", cwd=tmp_path).stdout
    tour = run(scripts / "holdfast", "tour", cwd=tmp_path)
    assert "breaks no rule of the provider" in tour.stdout, tour.stderr
    mcp = run(scripts / "holdfast", "mcp", cwd=tmp_path)
    assert mcp.returncode == 2
    assert "the extra mcp is not installed" in mcp.stderr
    assert "empty/bin/python" in mcp.stderr or os.name == "nt"
    assert list((tmp_path / "empty").rglob("holdfast/py.typed"))
    assert wheel.stat().st_size < MOST_WHEEL_BYTES


@pytest.mark.campaign
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_each_extra_installs_and_runs_alone(tmp_path: Path, wheel: Path, extra: str) -> None:
    scripts = installed(tmp_path, f"{wheel}[{extra}]")
    assert run(scripts / "holdfast", "--version", cwd=tmp_path).returncode == 0
    module = f"holdfast.integrations.{extra.replace('-', '_')}"
    if (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").exists():
        imported = run(scripts / "python", "-c", f"import {module}", cwd=tmp_path)
        assert imported.returncode == 0, imported.stderr
