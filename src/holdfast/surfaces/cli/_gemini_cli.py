"""gemini cli: a temporary home in which Gemini CLI signs in with a key although it has an address.

Read from Gemini CLI 0.61. If its settings choose no way to sign in and no terminal is there to
ask, `GOOGLE_GEMINI_BASE_URL` makes it take the way of gateways before it looks for a key, and then
it refuses that way ("Invalid auth method selected"). Only settings can prevent it, and it reads
settings of the system only if root owns them. So it gets a temporary home for this run: its
folder there holds links to everything in the user's, and settings that choose the key as well.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.temporary import remove_stale_folders, temporary_folder

_FOLDER = ".gemini"
_SETTINGS = "settings.json"
_OTHER_LINKS = (".env", ".agents")
"""Other entries of the home that the client reads."""
_HOME = "GEMINI_CLI_HOME"
_ADDRESS = "GOOGLE_GEMINI_BASE_URL"
_OTHER_WAYS = (
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GEMINI_CLI_USE_COMPUTE_ADC",
    "CLOUD_SHELL",
)
"""Variables that choose another way to sign in than a key, if they are `true`."""
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LINE = re.compile(r"\s*(?:export\s+)?([A-Z_]+)\s*=\s*[\"']?([^\"'\s#]*)")


@contextmanager
def signed_in(
    environment: Mapping[str, str], arguments: Sequence[str], *, in_terminal: bool
) -> Iterator[dict[str, str]]:
    """Yield the variables with which the client signs in with a key; empty if it needs none.

    It needs none where it can ask the user, and where the user chose: in settings, by a variable,
    in a `.env` file, or by an address of their own. New files in the temporary home are copied to
    the user's folder at the end.
    """
    home = Path(environment.get(_HOME) or environment.get("HOME") or Path.home()).absolute()
    chosen = {**_dotenv(home), **environment}
    asks = in_terminal and not arguments
    has_choice = environment.get(_ADDRESS) or any(
        chosen.get(name) == "true" for name in _OTHER_WAYS
    )
    settings = None if asks or has_choice else _without_choice(home)
    if settings is None:
        yield {}
        return
    remove_stale_folders()
    with temporary_folder("gemini") as temporary:
        written = _with_choice(settings)
        try:
            _fill(temporary, home, written)
        except OSError:  # Windows allows links only to some users
            yield {}
            return
        try:
            yield {_HOME: str(temporary)}
        finally:
            _give_back(temporary / _FOLDER, home / _FOLDER, written)


def _without_choice(home: Path) -> dict[str, Any] | None:
    """Return the user's settings; None if they, or the project's, choose a way to sign in."""
    settings = _read(home / _FOLDER / _SETTINGS)
    project = _read(Path(_FOLDER, _SETTINGS))
    if settings is None or project is None or _choice(settings) or _choice(project):
        return None
    return settings


def _read(path: Path) -> dict[str, Any] | None:
    """Return the settings of a file, empty if there is none; None if they cannot be read."""
    try:
        text = path.read_text("utf-8")
        settings = json.loads(_COMMENT.sub(lambda match: match[1] or " ", text))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return settings if isinstance(settings, dict) else None


def _choice(settings: Mapping[str, Any]) -> Any:
    """Return the way to sign in that settings choose; anything unreadable counts as a choice."""
    value: Any = settings
    for name in ("security", "auth", "selectedType"):
        value = value.get(name, {}) if isinstance(value, dict) else value
    return value


def _with_choice(settings: dict[str, Any]) -> dict[str, Any]:
    security = settings.get("security", {})
    auth = {**security.get("auth", {}), "selectedType": "gemini-api-key"}
    return {**settings, "security": {**security, "auth": auth}}


def _fill(temporary: Path, home: Path, settings: Mapping[str, Any]) -> None:
    """Make a home whose files are links to the user's, but for the settings."""
    folder = temporary / _FOLDER
    folder.mkdir()
    originals = list((home / _FOLDER).iterdir()) if (home / _FOLDER).is_dir() else []
    for original in originals:
        if original.name != _SETTINGS:
            (folder / original.name).symlink_to(original)
    for name in _OTHER_LINKS:
        if (home / name).exists():
            (temporary / name).symlink_to(home / name)
    (folder / _SETTINGS).write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _give_back(folder: Path, users: Path, written: Mapping[str, Any]) -> None:
    """Move everything that is new or was replaced in the temporary folder to the user's."""
    settings = _read(folder / _SETTINGS)
    if settings == written:
        (folder / _SETTINGS).unlink(missing_ok=True)
    elif settings is not None and _choice(settings) == _choice(written):
        del settings["security"]["auth"]["selectedType"]  # ours, not the user's
        (folder / _SETTINGS).write_text(json.dumps(settings, indent=2), encoding="utf-8")
    new = [path for path in folder.iterdir() if not path.is_symlink()]
    if new:
        users.mkdir(mode=0o700, exist_ok=True)
    for path in new:
        with suppress(OSError):  # a full disk must not hide how the program ended
            if path.is_file():
                shutil.copy2(path, users / path.name)
            else:
                shutil.copytree(path, users / path.name, dirs_exist_ok=True)


def _dotenv(home: Path) -> dict[str, str]:
    """Return the variables of the `.env` file that the client reads: the nearest one, or home's."""
    cwd = Path.cwd()
    for folder in (cwd, *cwd.parents, home):
        for path in (folder / _FOLDER / ".env", folder / ".env"):
            try:
                lines = path.read_text("utf-8").splitlines()
            except (OSError, ValueError):
                continue
            return {match[1]: match[2] for line in lines if (match := _LINE.match(line))}
    return {}
