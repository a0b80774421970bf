"""The environments of the peers' proxies, which need more than their libraries do."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers.environment import PLACE, ROOT, VERSIONS


def python(peer: str) -> Path:
    """The interpreter of a proxy's environment, made when it is first asked for."""
    folder = PLACE / f"{peer}_proxy"
    wanted = VERSIONS[peer].replace("==", "[proxy]==")
    done = folder / wanted
    interpreter = folder / "bin" / "python"
    if not done.exists():
        print(f"installing {wanted} in {folder.relative_to(ROOT)}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(interpreter), "-m", "pip", "install", "--quiet", wanted]
        subprocess.run(install, check=True, stdout=sys.stderr)  # noqa: S603
        done.touch()
    return interpreter
