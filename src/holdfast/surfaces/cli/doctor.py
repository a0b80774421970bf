"""doctor: the command that checks the installation and lists the next steps."""

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
from holdfast.errors import HoldfastError
from holdfast.extras import EXTRAS, how_to_install, is_installed
from holdfast.settings import Settings, environment_for_programs
from holdfast.store import Store
from holdfast.store.opening import FILE_NAME
from holdfast.store.postgres.address import without_password
from holdfast.store.rules import MEMORY_URL
from holdfast.upstream.upstreams import OFFICIAL, Family, Upstreams

from ._clients import INSTALLS
from ._context import OUTPUT, STORE, CommandContext, shared_options, with_store
from ._output import Output, counted, table
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


class CheckResult(NamedTuple):
    """The result of one check."""

    check: str
    state: State
    result: str
    """A sentence for people, without secrets."""
    fix: str = ""
    """The next step; empty if nothing needs to be done."""


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
    results = [result for check in _checks(network) for result in check(settings)]
    out = Output(settings)

    def draw(console: Console) -> None:
        rows = [
            (r.check, Text(r.state, style=_COLOURS[r.state]), f"{r.result} {r.fix}".rstrip())
            for r in results
        ]
        console.print(table("check", "state", "result and next step", rows=rows))

    out.emit([result._asdict() for result in results], draw)
    if any(result.state == "fault" for result in results):
        raise typer.Exit(1)


def _checks(network: bool) -> Iterator[Callable[[Settings], Iterator[CheckResult]]]:
    yield from (_versions, _store, _port)
    yield _reached if network else _named
    yield from (_keys, _programs, _extras)


def _versions(_: Settings) -> Iterator[CheckResult]:
    version = f"holdfast {holdfast.__version__}, Python {platform.python_version()}"
    yield CheckResult("version", "ok", f"{version}, {platform.system()}.")


def _store(settings: Settings) -> Iterator[CheckResult]:
    """Check that the store opens and that its contents match their hashes."""

    async def work(opened: Store) -> tuple[str, int]:
        scopes = await opened.scopes()
        return opened.url, len([damage for s in scopes for damage in await opened.verify(s)])

    try:
        url, damages = with_store(settings, work)
    except HoldfastError as error:
        yield CheckResult("store", "fault", f"{error.what} ({error.where}).", error.fix or "")
        return
    if url == MEMORY_URL and not settings.store_url:
        place = settings.data_folder
        where = place / FILE_NAME if place else FILE_NAME
        yield CheckResult("store", "ok", f"nothing is stored yet; it will be in {where}.")
    elif damages:
        text = f"{without_password(url)}: {counted(damages, 'damaged content')}."
        yield CheckResult("store", "fault", text, "`holdfast store verify` lists them.")
    else:
        yield CheckResult(
            "store", "ok", f"{without_password(url)}: all contents match their hashes."
        )


def _port(settings: Settings) -> Iterator[CheckResult]:
    """Check that the proxy's port is free, or that a Holdfast proxy uses it."""
    host, port = settings.serve_host, settings.serve_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PATIENCE_SECONDS)
        try:
            is_used = probe.connect_ex((host, port)) == 0
        except OSError:
            is_used = False
    if not is_used:
        yield CheckResult("port", "ok", f"{host}:{port} is free for `holdfast serve`.")
        return
    try:
        fetch(
            f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            settings.serve_token,
        )
    except HoldfastError as error:
        # Only a Holdfast proxy asks for a token.
        is_proxy = "token" in error.what
        text = f"{host}:{port} is in use, and {error.what}."
        fix = error.fix or "" if is_proxy else "Stop the program on this port, or use `--port`."
        yield CheckResult("port", "note" if is_proxy else "fault", text, fix)
    else:
        yield CheckResult("port", "ok", f"a Holdfast proxy answers at {host}:{port}.")


def _named(settings: Settings) -> Iterator[CheckResult]:
    """List the upstreams that the settings name."""
    try:
        upstreams = Upstreams(settings).addresses()
    except HoldfastError as error:
        yield CheckResult("upstreams", "fault", f"{error.what} ({error.where}).", error.fix or "")
        return
    for name, url in upstreams.items():
        yield CheckResult(f"upstream {name}", "ok", url)
    if not upstreams:
        fix = "Give `holdfast serve --openai URL`, or run a program with `holdfast wrap`."
        yield CheckResult("upstreams", "note", "none is set: the offline model answers.", fix)


def _reached(settings: Settings) -> Iterator[CheckResult]:
    """Connect to the upstreams, without sending a request or a key."""
    for result in _named(settings):
        url = result.result
        parts = urlsplit(url)
        if result.state != "ok" or not parts.hostname:
            yield result
            continue
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=_PATIENCE_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            why = error.strerror or type(error).__name__
            text = f"{url} cannot be reached: {why}."
            fix = "Check the address, the network and, behind a company proxy, its certificate."
            yield result._replace(state="fault", result=text, fix=fix)
        else:
            yield result._replace(result=f"{url} accepts connections.")
        finally:
            connection.close()


def _keys(settings: Settings) -> Iterator[CheckResult]:
    """Check which API keys are set, in the environment and in the settings."""
    environment = environment_for_programs()
    for family, names in _KEYS.items():
        places = [name for name in names if environment.get(name)]
        if settings.upstream(family).key:
            places.append(f"the setting upstreams.{family}")
        if places:
            yield CheckResult(f"key {family}", "ok", f"set, in {' and '.join(places)}.")
        else:
            text = f"not set, neither in {names[0]} nor in the settings."
            yield CheckResult(f"key {family}", "note", text, f"Needed only for {OFFICIAL[family]}.")


def _programs(_: Settings) -> Iterator[CheckResult]:
    """List the agents that `holdfast wrap` can run."""
    names = ", ".join(name for name in INSTALLS if shutil.which(name))
    text = f"{names} can be run with `holdfast wrap`." if names else "none is installed."
    yield CheckResult("programs", "ok" if names else "note", text)


def _extras(_: Settings) -> Iterator[CheckResult]:
    """List the optional parts of Holdfast."""
    for extra, about in EXTRAS.items():
        if is_installed(extra):
            yield CheckResult(f"extra {extra}", "ok", f"installed: {about.gives}.")
        else:
            text = f"not installed: {about.gives}."
            yield CheckResult(f"extra {extra}", "note", text, how_to_install(extra))
