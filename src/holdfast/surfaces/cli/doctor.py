"""doctor: the command that checks the installation and says what to fix."""

from __future__ import annotations

import http.client
import platform
import shutil
import socket
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

import holdfast
from holdfast.calling.upstreams import OFFICIAL, Family, Upstreams
from holdfast.errors import HoldfastError
from holdfast.extras import EXTRAS, how_to_install, is_installed
from holdfast.settings import Settings, environment_for_programs
from holdfast.store import Store
from holdfast.store.postgres.address import without_password

from ._clients import INSTALLS
from ._context import OUTPUT, STORE, CommandContext, shared_options, with_store
from ._output import Output, table
from .stats import fetch

_PATIENCE_SECONDS = 5.0
State = Literal["ok", "note", "fault"]
_COLOURS: dict[State, str] = {"ok": "green", "note": "yellow", "fault": "bold red"}
_KEYS: dict[Family, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "cohere": ("CO_API_KEY", "COHERE_API_KEY"),
}


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    state: State
    told: str
    """What was seen; never a secret."""
    do: str = ""
    """The next step; nothing where all is well."""


@shared_options(*STORE, *OUTPUT)
def doctor(
    context: CommandContext,
    network: Annotated[
        bool, typer.Option("--network/--no-network", help="Connect to upstreams.")
    ] = True,
) -> None:
    """Check the installation: version, store, port, upstreams, keys, programs and extras.

    Keys are reported as present or missing, never shown. Upstreams get a connection but no request.
    The exit code is 1 if something cannot work as configured.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --no-network
      holdfast doctor --output json | jq '.[] | select(.state == "fault")'
    """
    settings = context.settings
    findings = [finding for check in _checks(network) for finding in check(settings)]
    out = Output(settings)

    def draw(console: Console) -> None:
        rows = [
            (f.what, Text(f.state, style=_COLOURS[f.state]), f"{f.told} {f.do}".rstrip())
            for f in findings
        ]
        console.print(table("check", "state", "result and next step", rows=rows))

    out.emit([finding._asdict() for finding in findings], draw)
    if any(finding.state == "fault" for finding in findings):
        raise typer.Exit(1)


def _checks(network: bool) -> Iterator[Callable[[Settings], Iterator[Finding]]]:
    yield from (_versions, _store, _port)
    yield _reached if network else _named
    yield from (_keys, _programs, _extras)


def _versions(_: Settings) -> Iterator[Finding]:
    told = f"holdfast {holdfast.__version__}, Python {platform.python_version()}"
    yield Finding("version", "ok", f"{told}, {platform.system()}.")


def _store(settings: Settings) -> Iterator[Finding]:
    """Whether the store opens, and whether what is in it is sound."""

    async def work(opened: Store) -> tuple[str, int]:
        scopes = await opened.scopes()
        return opened.url, len([damage for s in scopes for damage in await opened.verify(s)])

    try:
        url, damages = with_store(settings, work)
    except HoldfastError as error:
        yield Finding("store", "fault", f"{error.what} ({error.where}).", error.fix or "")
        return
    if damages:
        told = f"{without_password(url)}: {damages:,} contents are damaged."
        yield Finding("store", "fault", told, "`holdfast store verify` names them.")
    else:
        yield Finding("store", "ok", f"{without_password(url)} is sound.")


def _port(settings: Settings) -> Iterator[Finding]:
    """Whether the proxy's port is free, or a proxy of ours there already."""
    host, port = settings.serve_host, settings.serve_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as knock:
        knock.settimeout(_PATIENCE_SECONDS)
        try:
            taken = knock.connect_ex((host, port)) == 0
        except OSError:
            taken = False
    if not taken:
        yield Finding("port", "ok", f"{host}:{port} is free for `holdfast serve`.")
        return
    try:
        fetch(
            f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            settings.serve_token,
        )
    except HoldfastError as error:
        # A proxy that wants its token is a proxy of ours; others say other things.
        ours = "token" in error.what
        told = f"{host}:{port} is in use, and {error.what}."
        do = error.fix or "" if ours else "End what listens there, or choose `--port`."
        yield Finding("port", "note" if ours else "fault", told, do)
    else:
        yield Finding("port", "ok", f"a Holdfast proxy answers at {host}:{port}.")


def _named(settings: Settings) -> Iterator[Finding]:
    """The upstreams that the settings name."""
    try:
        upstreams = Upstreams(settings).addresses()
    except HoldfastError as error:
        yield Finding("upstreams", "fault", f"{error.what} ({error.where}).", error.fix or "")
        return
    for name, url in upstreams.items():
        yield Finding(f"upstream {name}", "ok", url)
    if not upstreams:
        do = "Give `holdfast serve --openai URL`, or run a program with `holdfast wrap`."
        yield Finding("upstreams", "note", "none is set: the offline model answers.", do)


def _reached(settings: Settings) -> Iterator[Finding]:
    """Whether somebody listens where the upstreams are; no request and no key goes out."""
    for finding in _named(settings):
        url = finding.told
        parts = urlsplit(url)
        if finding.state != "ok" or not parts.hostname:
            yield finding
            continue
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=_PATIENCE_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            why = error.strerror or type(error).__name__
            do = "Check the address and the network; behind a company's proxy, its certificate."
            yield finding._replace(state="fault", told=f"{url} cannot be reached: {why}.", do=do)
        else:
            yield finding._replace(told=f"{url} answers the door.")
        finally:
            connection.close()


def _keys(settings: Settings) -> Iterator[Finding]:
    """Which keys are there, for clients and in the settings."""
    environment = environment_for_programs()
    for family, names in _KEYS.items():
        places = [name for name in names if environment.get(name)]
        if settings.upstream(family).key:
            places.append(f"the setting upstreams.{family}")
        if places:
            yield Finding(f"key {family}", "ok", f"there, in {' and '.join(places)}.")
        else:
            told = f"not in {names[0]} nor in the settings."
            yield Finding(f"key {family}", "note", told, f"Needed only for {OFFICIAL[family]}.")


def _programs(_: Settings) -> Iterator[Finding]:
    """Which programs `holdfast wrap` would find."""
    there = [name for name in INSTALLS if shutil.which(name)]
    told = f"{', '.join(there)} can be run with `holdfast wrap`." if there else "none is installed."
    yield Finding("programs", "ok" if there else "note", told)


def _extras(_: Settings) -> Iterator[Finding]:
    """Which optional parts are installed."""
    for extra, about in EXTRAS.items():
        if is_installed(extra):
            yield Finding(f"extra {extra}", "ok", f"installed: {about.gives}.")
        else:
            told = f"not installed: {about.gives}."
            yield Finding(f"extra {extra}", "note", told, how_to_install(extra))
