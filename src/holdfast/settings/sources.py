"""Collect values from the settings file, the environment and arguments, with their errors.

A value is taken from the first of: argument, environment (`HOLDFAST_<KEY>`), file, default. The
file is the one named by `HOLDFAST_CONFIG`, else the first `holdfast.toml` from the working
directory upwards, else the one in the user's configuration folder. A single entry of a table can be
set by `HOLDFAST_UPSTREAMS__OPENAI__KEY` or the argument `upstreams__openai__key`.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast import _toml
from holdfast.errors import SettingsError
from holdfast.settings.keys import NESTED, PREFIX, Key, TracedValue

FILE_NAME = "holdfast.toml"
MAX_FILE_BYTES = 262_144

_CONFIG_VARIABLE = "HOLDFAST_CONFIG"
_RESERVED_VARIABLES = frozenset({_CONFIG_VARIABLE, "HOLDFAST_DATA"})
"""Variables that are not settings: the path of the settings file, and the test data folder."""

_OTHER_FILE = f"Mend it, or name another file with {_CONFIG_VARIABLE}."
_SEE_SAMPLE = "Compare with `holdfast config --sample`."
_LIST_ALL = "`holdfast config --sample` prints a file with every setting."
_LISTED_PROBLEMS = 10
_DEEPEST_TABLE = 5


class _RawValue(NamedTuple):
    """A value from a source, for a name that may not be a setting."""

    name: str
    value: object
    origin: str
    is_text: bool = False


def gather(
    keys: tuple[Key, ...],
    cwd: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    arguments: Mapping[str, object],
    removed: Mapping[str, str],
) -> tuple[list[TracedValue], list[SettingsError]]:
    """Read every source, highest precedence last, and collect all problems.

    `removed` maps former settings to advice. A variable of a former setting is an error at once,
    because ignoring a key could send requests to an unexpected upstream; other unknown variables
    are reported only by `unknown_variables`.
    """
    by_name = {key.name: key for key in keys}
    traced = {key.name: TracedValue(key, key.default, "default") for key in keys}
    problems: list[SettingsError] = []
    values: list[_RawValue] = []
    try:
        values += _from_file(Path("" if cwd is None else cwd), environ)
    except SettingsError as problem:
        problems.append(problem)
    values += _from_environment(keys, environ, removed)
    values += [_RawValue(*item, "argument") for item in arguments.items() if item[1] is not None]

    for item in values:
        name, *path = item.name.split(NESTED)
        key = by_name.get(name)
        if key is None or (path and not key.is_table):
            problems.append(_unknown(item, by_name, removed))
            continue
        before = traced[name]
        try:
            if path:
                value = key.with_entry(before.value, path, item.value, is_text=item.is_text)
            else:
                value = key.convert(item.value, is_text=item.is_text)
        except ValueError as error:
            problems.append(_invalid_value(item, key, error))
        else:
            is_added = path and before.origin != "default"
            origin = f"{before.origin}, {item.origin}" if is_added else item.origin
            traced[name] = TracedValue(key, value, origin)
    return list(traced.values()), problems


def _from_environment(
    keys: Iterable[Key], environ: Mapping[str, str], removed: Iterable[str]
) -> Iterator[_RawValue]:
    names = [key.name for key in keys] + list(removed)
    tables = tuple(f"{key.variable}{NESTED}" for key in keys if key.is_table)
    for variable in map(_variable, names):
        yield from _from_variable(variable, environ)
    for variable in sorted(name for name in environ if name.startswith(tables)):
        yield from _from_variable(variable, environ)


def _from_variable(variable: str, environ: Mapping[str, str]) -> Iterator[_RawValue]:
    if text := environ.get(variable):
        name = variable.removeprefix(PREFIX).lower()
        yield _RawValue(name, text, f"environment {variable}", is_text=True)


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _from_file(cwd: Path, environ: Mapping[str, str]) -> Iterator[_RawValue]:
    path = _find_file(cwd, environ)
    if path is None:
        return
    text = _read(path)
    try:
        values = _toml.parse(text)
    except _toml.TomlError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise SettingsError(f"not TOML: {error.reason}", where=where, fix=_SEE_SAMPLE) from None
    lines = _toml.key_lines(text)
    for name, value in values.items():
        yield _RawValue(name, value, f"file {path}:{lines[name]}")


def _find_file(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    if named := environ.get(_CONFIG_VARIABLE):
        return cwd / named
    folders = [*_upwards(cwd), *_user_folder(environ)]
    # A broken link counts as found, so that the mistake is reported.
    return next((f / FILE_NAME for f in folders if os.path.lexists(f / FILE_NAME)), None)


def _upwards(folder: Path) -> Iterator[Path]:
    try:
        start = folder.absolute()
    except OSError:  # the working directory was deleted
        return
    yield start
    yield from start.parents


def _user_folder(environ: Mapping[str, str]) -> Iterator[Path]:
    if base := environ.get("XDG_CONFIG_HOME") or environ.get("APPDATA"):
        yield Path(base) / "holdfast"
    elif home := environ.get("HOME"):
        yield Path(home) / ".config" / "holdfast"


def user_data_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the data folder if `data_dir` is auto; None if no home is known."""
    environ = os.environ if environ is None else environ
    if base := environ.get("XDG_DATA_HOME") or environ.get("LOCALAPPDATA"):
        return Path(base) / "holdfast"
    home = environ.get("HOME")
    return Path(home) / ".local" / "share" / "holdfast" if home else None


def environment_for_programs() -> dict[str, str]:
    """Return the environment for other programs, without our variables, which hold secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def _read(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and str(path) != os.devnull:
            raise SettingsError(
                "the settings file is not a regular file", where=str(path), fix=_OTHER_FILE
            )
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(
            f"the settings file cannot be read: {error.strerror}", where=str(path), fix=_OTHER_FILE
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(
            f"the settings file is larger than {MAX_FILE_BYTES:,} bytes",
            where=str(path),
            fix=_OTHER_FILE,
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            "the settings file is not UTF-8", where=f"{path}:{line}", fix="Save it as UTF-8."
        ) from None


def unknown_variables(
    keys: tuple[Key, ...], environ: Mapping[str, str], removed: Iterable[str]
) -> list[SettingsError]:
    """Return a problem for each variable with our prefix that sets nothing.

    Variables of removed settings are reported by `gather`.
    """
    variables = {key.variable for key in keys}
    accepted = variables | _RESERVED_VARIABLES | set(map(_variable, removed))
    tables = tuple(f"{key.variable}{NESTED}" for key in keys if key.is_table)
    return [
        _unknown(_RawValue(name, environ[name], "environment"), variables)
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in accepted and not name.startswith(tables)
    ]


def _unknown(
    item: _RawValue, names: Iterable[str], removed: Mapping[str, str] | None = None
) -> SettingsError:
    if advice := (removed or {}).get(item.name):
        return SettingsError(f"unknown setting {item.name!r}", where=_place(item), fix=advice)
    if isinstance(item.value, dict) and item.origin.startswith("file "):
        return _unknown_table(item, item.value, names)
    return SettingsError(
        f"unknown setting {item.name[:100]!r}",
        where=_place(item),
        fix=_did_you_mean(item.name, names) or _LIST_ALL,
    )


def _unknown_table(
    item: _RawValue, table: Mapping[str, object], names: Iterable[str]
) -> SettingsError:
    """Return the problem of a table that is no setting, such as `[holdfast]` around settings."""
    header = item.name
    while len(table) == 1 and header.count(".") < _DEEPEST_TABLE:
        name, inner = next(iter(table.items()))
        if not isinstance(inner, dict):
            break
        header, table = f"{header}.{name}", inner  # [tool.holdfast] is a table in a table
    title = f"[{header[:100]}]"
    if not table.keys() & set(names):
        fix = _did_you_mean(item.name, names) or _LIST_ALL
        return SettingsError(f"unknown table {title}", where=_place(item), fix=fix)
    return SettingsError(
        f"the settings file has a table {title}, and settings belong to no table",
        where=_place(item),
        fix=f"Delete the line `{title}`, and move its settings above any other table.",
    )


def _invalid_value(item: _RawValue, key: Key, error: ValueError) -> SettingsError:
    inside_table = key.is_table and " - at " in str(error)
    reason = f": {str(error)[:200]}" if inside_table else ""
    return SettingsError(
        f"{key.name} must be {key.expects}{reason}",
        where=_place(item),
        fix=_did_you_mean(str(item.value), key.choices)
        or "Compare with `holdfast config --sample`.",
    )


def _place(item: _RawValue) -> str:
    return item.origin.removeprefix("file ")


def _did_you_mean(word: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(word[:100], names, n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


def join_problems(problems: list[SettingsError]) -> SettingsError:
    """Return one error that names every problem."""
    if len(problems) == 1:
        return problems[0]
    summary = "; ".join(f"{p.what} (at {p.where})" for p in problems[:_LISTED_PROBLEMS])
    return SettingsError(
        f"{len(problems)} problems with the settings: {summary}",
        fix="Run `holdfast config --check` to see them one by one.",
    )
