"""settings: the only module that reads the environment and the settings file.

Each setting is one field of `Settings`: its type with bounds, what it means, its default. From
that field come the environment variable, the key of `holdfast.toml`, the checks, the output of
`holdfast config` and the sample file.

A value is taken from the first of: argument, environment (`HOLDFAST_<KEY>`), file, default.
The file is the one named by `HOLDFAST_CONFIG`, else the first `holdfast.toml` found from the
working directory upwards, else the one in the user's configuration folder. An empty variable
and an argument of None count as not given.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta, inspect

from . import _toml
from .errors import SettingsError

FILE_NAME = "holdfast.toml"
PREFIX = "HOLDFAST_"
MAX_FILE_BYTES = 262_144

_CONFIG_VARIABLE = "HOLDFAST_CONFIG"
_RESERVED_VARIABLES = frozenset({_CONFIG_VARIABLE, "HOLDFAST_DATA"})
"""Variables that are no settings: the settings file, and the data folder of the tests."""

_OTHER_FILE = f"Mend it, or name another file with {_CONFIG_VARIABLE}."
_SEE_SAMPLE = "Compare with `holdfast config --sample`."
_LISTED_PROBLEMS = 10

_T = TypeVar("_T")
Secret = Annotated[_T, Meta(extra={"secret": True})]
"""The type of a setting that is never printed: `Secret[str]`."""

_Limit = Literal["context_window", "max_output_tokens", "output_reserved", "cli_overhead"]

_SCALARS = (
    inspect.BoolType,
    inspect.FloatType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.StrType,
)


class Key(NamedTuple):
    """One setting, as its field defines it."""

    name: str
    type: inspect.Type
    annotation: Any
    default: object
    help: str
    secret: bool

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def choices(self) -> tuple[str, ...]:
        """The only valid values; empty if they cannot be listed."""
        if isinstance(self.type, inspect.LiteralType):
            return tuple(str(value) for value in self.type.values)
        return ()

    @property
    def expects(self) -> str:
        """What a valid value is, in words: "a whole number, at least 1"."""
        match self.type:
            case inspect.LiteralType():
                return f"one of {', '.join(self.choices)}"
            case inspect.IntType(ge=least, le=int(most)):
                return f"a whole number, from {least} to {most}"
            case inspect.IntType(ge=least):
                kind = "a whole number"
            case inspect.FloatType(ge=least):
                kind = "a number"
            case inspect.BoolType():
                return "true or false"
            case inspect.StrType():
                return "text"
            case inspect.DictType() | inspect.StructType():
                return "a table"
            case _:
                return "a list"
        return kind if least is None else f"{kind}, at least {least}"

    def shown(self, value: object) -> object:
        """Return the value as it may be printed: a secret is masked."""
        return "********" if self.secret and value else value

    def convert(self, value: object, *, is_text: bool) -> object:
        """Return the value in the setting's type, or raise `ValueError`.

        Text from the environment is parsed first: tables and lists are written there as JSON.
        """
        if is_text and not isinstance(self.type, _SCALARS):
            value = msgspec.json.decode(str(value))
        return msgspec.convert(value, self.annotation, strict=not is_text)


class Traced(NamedTuple):
    """The value of one setting, and where it came from."""

    key: Key
    value: Any
    origin: str
    """`argument`, `environment HOLDFAST_X`, `file PATH:LINE` or `default`."""


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """What every table of settings can do; `Settings` is the table of Holdfast."""

    @classmethod
    def defined(cls) -> tuple[Key, ...]:
        """Return all settings in the order they are defined."""
        return tuple(_keys(cls))

    @classmethod
    def load(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **arguments: object,
    ) -> Self:
        """Return the settings in force, or raise a `SettingsError` that names every problem."""
        traced = cls.trace(cwd=cwd, environ=environ, **arguments)
        return cls(**{key.name: value for key, value, _ in traced})

    @classmethod
    def trace(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **arguments: object,
    ) -> list[Traced]:
        """Return each setting in force with its origin, or raise as `load` does."""
        environ = os.environ if environ is None else environ
        traced, problems = _gather(cls.defined(), cwd, environ, arguments)
        if problems:
            raise _joined(problems)
        return traced

    @classmethod
    def check(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> list[SettingsError]:
        """Return everything that is wrong, unknown `HOLDFAST_*` variables included."""
        environ = os.environ if environ is None else environ
        _, problems = _gather(cls.defined(), cwd, environ, {})
        return [*problems, *_unknown_variables(cls.defined(), environ)]

    @classmethod
    def sample(cls) -> str:
        """Return a settings file with each default behind a `#`, ready to be changed."""
        head = (
            f"# {FILE_NAME}: every setting with its default.\n"
            "# Remove the # before a key to change it. The environment variable named\n"
            "# beside it sets the same, and wins over this file.\n"
        )
        return head + "".join(
            f"\n# {key.help}\n# {key.expects.capitalize()}. Environment: {key.variable}\n"
            f"#{key.name} = {_toml.literal(key.default)}\n"
            for key in cls.defined()
        )

    def __repr__(self) -> str:
        shown = (f"{key.name}={key.shown(getattr(self, key.name))!r}" for key in self.defined())
        return f"{type(self).__name__}({', '.join(shown)})"


class Settings(Definitions, frozen=True, kw_only=True):
    """Every setting of Holdfast. A key arrives with the code that obeys it, never before."""

    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Largest request body that is read, in bytes.")
    ] = 33_554_432
    max_json_keys: Annotated[
        int, Meta(ge=1, description="Most object keys that a request body may hold.")
    ] = 800_000
    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="When the command line uses colour; auto: in a terminal."),
    ] = "auto"
    output: Annotated[
        Literal["auto", "table", "json"],
        Meta(description="What commands print; auto: a table in a terminal, JSON in a pipe."),
    ] = "auto"
    data_dir: Annotated[
        str, Meta(description="Folder for what Holdfast keeps; auto: the user's data folder.")
    ] = "auto"
    store_url: Annotated[
        Secret[str],
        Meta(
            description="Where originals are kept: memory:, sqlite:///path or postgresql://…; "
            "empty: holdfast.db in data_dir."
        ),
    ] = ""
    model_context_overrides: Annotated[
        dict[str, dict[_Limit, Annotated[int, Meta(ge=0)]]],
        Meta(
            description="Limits that win over our own, by model or provider: "
            '{ "gemini:flash" = { context_window = 1000000, output_reserved = 8192 } }.'
        ),
    ] = {}
    cite_threshold: Annotated[
        int, Meta(ge=1, description="Tool results of more characters than this are cited.")
    ] = 1000
    cite_max_tokens: Annotated[
        int, Meta(ge=60, description="Most tokens that a citation may cost.")
    ] = 400
    privacy_policy: Annotated[
        Literal["allow", "mask", "refuse"],
        Meta(
            description="Secrets and personal data in what is cited: allow, "
            "mask them in citations, or refuse to store it."
        ),
    ] = "allow"
    content_ttl_hours: Annotated[
        float, Meta(ge=0, description="How long originals stay fresh, in hours; 0 is for good.")
    ] = 0.0
    enable_token_management: Annotated[
        bool,
        Meta(
            description="Whether the proxy makes requests fit; off: everything passes through, "
            "byte for byte."
        ),
    ] = True
    enable_content_citations: Annotated[
        bool,
        Meta(description="Whether results of an agent's actions are cited; else they stay whole."),
    ] = True
    content_archive_enabled: Annotated[
        bool, Meta(description="Whether the content archive keeps originals on the disk.")
    ] = False
    content_archive_ttl_hours: Annotated[
        float, Meta(ge=0, description="How long the archive keeps an original, in hours.")
    ] = 72.0
    research_archive_dir: Annotated[
        str, Meta(description="Folder of the content archive; empty: archive in data_dir.")
    ] = ""
    serve_host: Annotated[
        str,
        Meta(
            description="Address that the proxy listens on; others than this machine's own "
            "need serve_token."
        ),
    ] = "127.0.0.1"
    serve_port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port of the proxy; 0: any that is free.")
    ] = 8787
    serve_token: Annotated[
        Secret[str],
        Meta(
            description="What clients of the proxy must send, as x-holdfast-token or as "
            "their API key."
        ),
    ] = ""
    serve_names: Annotated[
        list[str],
        Meta(description="Host names that the proxy answers to, beside this machine's own."),
    ] = []
    serve_offline: Annotated[
        bool,
        Meta(
            description="Whether the proxy's offline model answers for families without an "
            "upstream; where no upstream is set at all, it does."
        ),
    ] = False
    openai_upstream: Annotated[
        str,
        Meta(
            description="Address of an API like OpenAI's, such as https://api.openai.com or "
            "http://localhost:11434; empty without openai_key: none."
        ),
    ] = ""
    openai_key: Annotated[
        Secret[str], Meta(description="Key for openai_upstream; empty: the client's own.")
    ] = ""
    anthropic_upstream: Annotated[
        str,
        Meta(description="Address of Anthropic's API; empty without anthropic_key: none."),
    ] = ""
    anthropic_key: Annotated[
        Secret[str], Meta(description="Key for anthropic_upstream; empty: the client's own.")
    ] = ""
    gemini_upstream: Annotated[
        str,
        Meta(description="Address of Gemini's API; empty without gemini_key: none."),
    ] = ""
    gemini_key: Annotated[
        Secret[str], Meta(description="Key for gemini_upstream; empty: the client's own.")
    ] = ""
    upstream_idle_seconds: Annotated[
        float, Meta(ge=1, description="How long the proxy waits for the next byte of an upstream.")
    ] = 300.0
    request_limit: Annotated[
        int, Meta(ge=0, description="Most input tokens of a request; 0: what the model can take.")
    ] = 0
    max_expansion_rounds: Annotated[
        int,
        Meta(ge=1, description="How often one answer may open stored content before it must end."),
    ] = 8
    max_expansion_tokens: Annotated[
        int, Meta(ge=200, description="Most tokens of stored content that one answer may open.")
    ] = 16_000
    context_debug: Annotated[
        bool,
        Meta(
            description="Whether the proxy logs what was decided of each request's context, and "
            "the guard's looks at it: ids and numbers, no content."
        ),
    ] = False
    on_store_failure: Annotated[
        Literal["pass", "refuse"],
        Meta(
            description="What the proxy does while the store is unavailable: pass requests "
            "through as they are, or refuse them."
        ),
    ] = "pass"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="How the proxy logs: lines of key=value, or of JSON."),
    ] = "text"
    otel_endpoint: Annotated[
        str,
        Meta(
            description="OpenTelemetry collector that gets a span per request, such as "
            "http://localhost:4318; empty: none. Needs the extra otel."
        ),
    ] = ""

    @property
    def data_folder(self) -> Path | None:
        """The folder that `data_dir` means; None if there is nowhere."""
        return user_data_folder() if self.data_dir == "auto" else Path(self.data_dir)


class _Given(NamedTuple):
    """A value that some source gives for a name, which may be no setting at all."""

    name: str
    value: object
    origin: str
    is_text: bool = False


def _keys(definitions: type[Definitions]) -> Iterator[Key]:
    for field, info in zip(
        msgspec.structs.fields(definitions),
        inspect.type_info(definitions).fields,  # type: ignore[attr-defined]  # a StructType
        strict=True,
    ):
        yield Key(
            name=field.name,
            type=info.type.type,
            annotation=field.type,
            default=info.default_factory() if info.default is msgspec.NODEFAULT else info.default,
            help=info.type.extra_json_schema["description"],
            secret=bool(info.type.extra and info.type.extra.get("secret")),
        )


def _gather(
    keys: tuple[Key, ...],
    cwd: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    arguments: Mapping[str, object],
) -> tuple[list[Traced], list[SettingsError]]:
    """Ask every source, the strongest last, and collect all that is wrong with any of them."""
    known = {key.name: key for key in keys}
    traced = {key.name: Traced(key, key.default, "default") for key in keys}
    problems: list[SettingsError] = []
    given: list[_Given] = []
    try:
        given += _from_file(Path("" if cwd is None else cwd), environ)
    except SettingsError as problem:
        problems.append(problem)
    given += _from_environment(keys, environ)
    given += [_Given(*item, "argument") for item in arguments.items() if item[1] is not None]

    for item in given:
        key = known.get(item.name)
        if key is None:
            problems.append(_unknown(item, known))
            continue
        try:
            value = key.convert(item.value, is_text=item.is_text)
        except ValueError as error:
            problems.append(_unfit(item, key, error))
        else:
            traced[key.name] = Traced(key, value, item.origin)
    return list(traced.values()), problems


def _from_environment(keys: Iterable[Key], environ: Mapping[str, str]) -> Iterator[_Given]:
    for key in keys:
        if text := environ.get(key.variable):
            yield _Given(key.name, text, f"environment {key.variable}", is_text=True)


def _from_file(cwd: Path, environ: Mapping[str, str]) -> Iterator[_Given]:
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
        yield _Given(name, value, f"file {path}:{lines[name]}")


def _find_file(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    if named := environ.get(_CONFIG_VARIABLE):
        return cwd / named
    folders = [*_upwards(cwd), *_user_folder(environ)]
    # A broken link counts as found: silence about it would hide the mistake.
    return next((f / FILE_NAME for f in folders if os.path.lexists(f / FILE_NAME)), None)


def _upwards(folder: Path) -> Iterator[Path]:
    try:
        here = folder.absolute()
    except OSError:  # the working directory was deleted under us
        return
    yield here
    yield from here.parents


def _user_folder(environ: Mapping[str, str]) -> Iterator[Path]:
    if base := environ.get("XDG_CONFIG_HOME") or environ.get("APPDATA"):
        yield Path(base) / "holdfast"
    elif home := environ.get("HOME"):
        yield Path(home) / ".config" / "holdfast"


def user_data_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return where Holdfast keeps things if `data_dir` is auto; None if nowhere."""
    environ = os.environ if environ is None else environ
    if base := environ.get("XDG_DATA_HOME") or environ.get("LOCALAPPDATA"):
        return Path(base) / "holdfast"
    home = environ.get("HOME")
    return Path(home) / ".local" / "share" / "holdfast" if home else None


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


def _unknown_variables(keys: Iterable[Key], environ: Mapping[str, str]) -> list[SettingsError]:
    known = {key.variable for key in keys}
    return [
        _unknown(_Given(name, environ[name], "environment"), known)
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known | _RESERVED_VARIABLES
    ]


def _unknown(item: _Given, known: Iterable[str]) -> SettingsError:
    return SettingsError(
        f"unknown setting {item.name[:100]!r}",
        where=_place(item),
        fix=_did_you_mean(item.name, known) or "Run `holdfast config` to see all settings.",
    )


def _unfit(item: _Given, key: Key, error: ValueError) -> SettingsError:
    inside_table = isinstance(key.type, inspect.DictType) and " - at " in str(error)
    reason = f": {str(error)[:200]}" if inside_table else ""
    return SettingsError(
        f"{key.name} must be {key.expects}{reason}",
        where=_place(item),
        fix=_did_you_mean(str(item.value), key.choices)
        or "Compare with `holdfast config --sample`.",
    )


def _place(item: _Given) -> str:
    return item.origin.removeprefix("file ")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word[:100], known, n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


def _joined(problems: list[SettingsError]) -> SettingsError:
    if len(problems) == 1:
        return problems[0]
    listed = "; ".join(f"{p.what} (at {p.where})" for p in problems[:_LISTED_PROBLEMS])
    return SettingsError(
        f"{len(problems)} problems with the settings: {listed}",
        fix="Run `holdfast config --check` to see them one by one.",
    )
