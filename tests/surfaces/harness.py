"""The command line under test: in this process for speed, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces.cli import main

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "src" / "holdfast" / "surfaces" / "cli" / "tour.json"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs `holdfast …` in a folder of its own, with nothing configured."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capture.readouterr()
        with pytest.raises(SystemExit) as end:
            main(arguments)
        out, err = self.capture.readouterr()
        assert "Traceback" not in out + err
        return Result(int(end.value.code or 0), out, err)

    def write(self, name: str, content: str | bytes | dict[str, Any]) -> str:
        path = self.folder / name
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """The variables of a program that finds nothing of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return kept | {"HOME": str(folder), "PYTHONUTF8": "1"} | variables


def run_process(
    *arguments: str, folder: Path, stdin: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the program as users do, in an environment of its own."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=environment(folder, **variables),
        timeout=60,
        check=False,
    )
