"""Read the gateway's servers from the file format that MCP hosts use.

The format is that of Claude Code, Claude Desktop, Cursor and Gemini CLI (`mcpServers`) and of VS
Code (`servers`); other fields of these hosts are ignored. `${VAR}` is replaced from the
environment. A wrong entry becomes a server with a fault, and the others work. Values of `env` and
`headers` are secrets and never shown.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from holdfast.errors import SettingsError
from holdfast.fitting.policy import matches

Transport = Literal["stdio", "http", "sse"]

MOST_SERVERS = 200
_MOST_BYTES = 1_000_000
_LONGEST_SHOWN = 15
"""Maximum characters of a path segment that is shown; a longer one may be a key."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A default ends where the next variable begins; otherwise each would be read to the end of the
# text.
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^${}]*+))?\}")
_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a server, and which of its tools are allowed."""

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """All variables of its process except PATH, HOME and the like."""
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    allowed: tuple[str, ...] = ("*",)
    """Names or patterns of tools that may be listed and called: `includeTools`."""
    forbidden: tuple[str, ...] = ()
    """Names or patterns of tools that may not: `excludeTools`."""
    always: tuple[str, ...] = ()
    """Names or patterns of tools that are always listed in full: `alwaysLoad`."""
    timeout_seconds: float = 60.0
    """Maximum duration of a call without progress."""
    fault: str = ""
    """Why it cannot be used; empty if it can."""

    def __repr__(self) -> str:
        return f"<ServerSpec {self.name}, {self.transport}>"

    @property
    def target(self) -> str:
        """Return the program or URL without secrets, for people."""
        if self.transport == "stdio":
            return self.command
        parts = urlsplit(self.url)
        # The URL may have credentials before the host and a key in its path or query.
        is_short = all(len(part) <= _LONGEST_SHOWN for part in parts.path.split("/"))
        return (
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path if is_short else '/…'}"
        )

    @property
    def fingerprint(self) -> str:
        """Return a hash of the program or URL; a server with another one has another card."""
        parts = (self.name, self.transport, self.command, *self.args, self.url)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def allows(self, tool: str) -> bool:
        """Return whether a tool of this server may be listed and called."""
        return _any(self.allowed, tool) and not _any(self.forbidden, tool)

    def pins(self, tool: str) -> bool:
        """Return whether the owner wants a tool to be listed in full."""
        return _any(self.always, tool)


def read_config(path: Path, environment: Mapping[str, str]) -> list[ServerSpec]:
    """Return the servers of a file, in order."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(
            f"the list of servers cannot be read: {error.strerror}",
            where=str(path),
            fix="Name another file with --config.",
        ) from error
    if len(data) > _MOST_BYTES:
        raise SettingsError(
            "the list of servers is larger than 1 MB", where=str(path), fix="Split it."
        )
    return parse_config(data, str(path), environment)


def parse_config(data: bytes, where: str, environment: Mapping[str, str]) -> list[ServerSpec]:
    """Return the servers of the text of such a file."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise SettingsError(
            f"not JSON: {str(error)[:100]}", where=where, fix='Write {"mcpServers": {…}}.'
        ) from None
    entries = document.get("mcpServers", document.get("servers")) if _is_object(document) else None
    if not isinstance(entries, dict):
        raise SettingsError(
            "there is no object mcpServers", where=where, fix='Write {"mcpServers": {…}}.'
        )
    if len(entries) > MOST_SERVERS:
        raise SettingsError(
            f"there are more than {MOST_SERVERS} servers", where=where, fix="Use several files."
        )
    return [_spec(name, entry, environment) for name, entry in entries.items()]


def build_entry(
    target: Sequence[str], env: Mapping[str, str], headers: Mapping[str, str]
) -> dict[str, Any]:
    """Return the entry of a server at a URL, or of a program with its arguments."""
    first, *arguments = target
    is_address = re.match(r"https?://", first) is not None
    if is_address and (env or arguments):
        raise SettingsError(
            "a server at an address has no variables and no arguments", fix="Use --header."
        )
    if headers and not is_address:
        raise SettingsError("a program has no headers", fix="Use --env.")
    if not is_address:
        entry = {"command": first, "args": arguments, "env": dict(env)}
    else:
        entry = {"type": _transport(_FileEntry(url=first)), "url": first, "headers": dict(headers)}
    return {key: value for key, value in entry.items() if value not in ({}, [])}


def with_server(data: bytes, name: str, entry: Mapping[str, Any]) -> bytes:
    """Return such a file with a server added or replaced; the rest is unchanged."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "a server's name is at most 64 letters, digits, dots, dashes and underscores",
            fix="Give it such a name: its tools are called by it.",
        )
    try:
        document = msgspec.json.decode(data) if data.strip() else {}
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise SettingsError("the file is not JSON", fix="Mend it first, or name another.") from None
    if not _is_object(document):
        raise SettingsError("the file is not a JSON object", fix='Write {"mcpServers": {}}.')
    key = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    servers = document.setdefault(key, {})
    if not _is_object(servers):
        raise SettingsError(f"{key} is no object", where=key, fix="Write an object.")
    servers[name] = dict(entry)
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _spec(name: str, entry: Any, environment: Mapping[str, str]) -> ServerSpec:
    safe_name = (
        name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64] or "-"
    )
    try:
        return _parse_entry(safe_name, entry, environment)
    except (SettingsError, msgspec.ValidationError) as error:
        what = error.what if isinstance(error, SettingsError) else str(error)
        return ServerSpec(name=safe_name, fault=what[:200])


def _parse_entry(name: str, entry: Any, environment: Mapping[str, str]) -> ServerSpec:
    if not _is_object(entry):
        raise SettingsError("the entry is not an object")
    missing: list[str] = []

    def substitute(value: Any) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: _value(match, environment, missing), value)
        if isinstance(value, list):
            return [substitute(each) for each in value]
        if isinstance(value, dict):
            return {key: substitute(each) for key, each in value.items()}
        return value

    values = {key: substitute(entry[key]) for key in _FIELDS if key in entry}
    if missing:
        raise SettingsError(f"the environment has no {', '.join(sorted(set(missing)))}")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise SettingsError("it is switched off in the file")
    fields = msgspec.convert(values, _FileEntry)
    transport = _transport(fields)
    _check(fields, transport)
    always = fields.always_load
    return ServerSpec(
        name=name,
        transport=transport,
        command=os.path.expanduser(fields.command),  # noqa: PTH111 - a name on PATH is not a path
        args=tuple(fields.args),
        env=fields.env,
        cwd=fields.cwd,
        url=fields.http_url or fields.url,
        headers=fields.headers,
        allowed=tuple(fields.include_tools) if fields.include_tools is not None else ("*",),
        forbidden=tuple(fields.exclude_tools),
        always=(("*",) if always else ()) if isinstance(always, bool) else tuple(always),
        timeout_seconds=fields.timeout / 1000,
    )


class _FileEntry(msgspec.Struct, rename="camel", kw_only=True):
    """An entry of the file, as hosts write it."""

    type: str = ""
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    http_url: str = ""
    headers: dict[str, str] = {}
    include_tools: list[str] | None = None
    exclude_tools: list[str] = []
    always_load: list[str] | bool = []
    timeout: float = 60_000
    """In milliseconds, as in Gemini CLI."""


_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(_FileEntry))


def _transport(entry: _FileEntry) -> Transport:
    if entry.type:
        if entry.type not in _TRANSPORTS:
            raise SettingsError("the type must be stdio, http or sse")
        return _TRANSPORTS[entry.type]
    if entry.command or not (entry.url or entry.http_url):
        return "stdio"
    # Gemini CLI names streamable HTTP `httpUrl`; elsewhere it is `url`, unless that ends in /sse.
    is_old = not entry.http_url and entry.url.partition("?")[0].rstrip("/").endswith("/sse")
    return "sse" if is_old else "http"


def _check(entry: _FileEntry, transport: Transport) -> None:
    if not 0 < entry.timeout < math.inf:
        raise SettingsError("the timeout must be a positive number of milliseconds")
    if transport == "stdio":
        if not entry.command.strip():
            raise SettingsError("the entry has no command and no url")
        if "\0" in "".join((entry.command, *entry.args, *entry.env, *entry.env.values())):
            raise SettingsError("a value contains a null character")
        return
    url = entry.http_url or entry.url
    if not re.match(r"https?://[^/\s]", url):
        raise SettingsError("the url must begin with http:// or https://")
    if any(re.search(r"[\r\n\0]", part) for pair in entry.headers.items() for part in pair):
        raise SettingsError("a header contains a line break")


def _value(match: re.Match[str], environment: Mapping[str, str], missing: list[str]) -> str:
    name, default = match[1], match[2]
    if name in environment:
        return environment[name]
    if default is None:
        missing.append(name)
    return default or ""


def _any(patterns: tuple[str, ...], tool: str) -> bool:
    return any(pattern == "*" or matches(pattern, tool) for pattern in patterns)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
