from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.surfaces.harness import ROOT

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


@pytest.mark.slow
def test_wheel_installs_into_an_empty_environment_and_runs(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("holdfast-*.whl")

    venv.create(tmp_path / "empty", with_pip=False)
    scripts = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin")
    # Without a pip of its own, and without bytecode of modules that are imported twice at most:
    # 20 seconds of the processor in the place of 28.
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    installed = run(*pip, "install", "--no-compile", wheel, cwd=tmp_path)
    if installed.returncode and any(word in installed.stderr for word in OFFLINE):
        pytest.skip("no package registry can be reached")
    assert installed.returncode == 0, installed.stderr

    assert "holdfast validate" in run(scripts / "holdfast", "--help", cwd=tmp_path).stdout
    tour = run(scripts / "holdfast", "tour", cwd=tmp_path)
    assert "valid: no rule is broken." in tour.stdout, tour.stderr
    assert list((tmp_path / "empty").rglob("holdfast/py.typed"))
