"""The list of servers: as hosts write it, malformed, and as it is shown."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.surfaces.mcp.config import ServerSpec, build_entry, parse_config, with_server
from tests.surfaces.harness import Cli


def parsed(entry: Any, **environment: str) -> ServerSpec:
    (spec,) = parse_config(json.dumps({"mcpServers": {"x": entry}}).encode(), "f", environment)
    return spec


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "uvx", "args": ["mcp-server-time"]}, "stdio"),
        ({"type": "stdio", "command": "uvx"}, "stdio"),
        ({"url": "https://a.example/mcp"}, "http"),
        ({"type": "streamable-http", "url": "https://a.example/mcp"}, "http"),
        ({"httpUrl": "https://a.example/sse"}, "http"),
        ({"url": "https://a.example/sse?key=1"}, "sse"),
        ({"type": "sse", "url": "https://a.example/events"}, "sse"),
    ],
)
def test_every_host_s_way_of_writing_a_server_is_read(entry: Any, transport: str) -> None:
    spec = parsed(entry)
    assert (spec.transport, spec.fault) == (transport, "")


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ([], "not an object"),
        ({}, "no command and no url"),
        ({"command": "  "}, "no command"),
        ({"command": ["uvx"]}, "str"),
        ({"command": "x", "args": "y"}, "array"),
        ({"command": "x", "args": ["a\0b"]}, "null character"),
        ({"type": "carrier pigeon", "url": "https://a"}, "must be stdio, http or sse"),
        ({"url": "ftp://a.example"}, "must begin with http"),
        ({"url": "https://"}, "must begin with http"),
        ({"url": "https://a", "headers": {"X": "a\r\nY: b"}}, "line break"),
        ({"command": "x", "env": {"KEY": "${NO_SUCH}"}}, "has no NO_SUCH"),
        ({"command": "x", "timeout": 0}, "timeout"),
        ({"command": "x", "timeout": -5}, "timeout"),
        ({"command": "x", "disabled": True}, "switched off"),
    ],
)
def test_an_entry_that_is_wrong_has_a_fault_and_spoils_no_other(entry: Any, fault: str) -> None:
    document = {"mcpServers": {"x": entry, "y": {"command": "uvx"}}}
    bad, good = parse_config(json.dumps(document).encode(), "f", {})
    assert fault in bad.fault
    assert (good.name, good.fault) == ("y", "")


def test_what_a_shell_would_obey_is_an_argument_like_any_other() -> None:
    hostile = ["; rm -rf /", "$(id)", "`id`", "| cat", "> /tmp/x", "&& true", "$HOME", "*"]
    spec = parsed({"command": "echo", "args": hostile})
    assert list(spec.args) == hostile


def test_variables_are_filled_in_once_and_not_again() -> None:
    entry = {"command": "x", "args": ["${A}", "${env:A}", "${B:-two}", "$A"]}
    assert parsed(entry, A="${B}").args == ("${B}", "${B}", "two", "$A")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/mcp?key=s3cret", "https://a.example/mcp"),
        ("https://ann:s3cret@a.example:8443/mcp", "https://a.example:8443/mcp"),
        ("https://a.example/s/s3cret-0123456789abcdef/mcp", "https://a.example/…"),
        ("https://a.example/mcp#s3cret", "https://a.example/mcp"),
    ],
)
def test_no_secret_of_an_address_is_shown(url: str, shown: str) -> None:
    spec = parsed({"url": url})
    assert spec.target == shown
    assert "s3cret" not in repr(spec)


@settings(max_examples=30)
@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.none(), max_size=2)
)
def test_any_json_is_servers_or_a_settings_error(value: Any) -> None:
    for document in (value, {"mcpServers": value}, {"servers": {"x": value, "y": {}}}):
        with suppress(SettingsError):
            specs = parse_config(msgspec.json.encode(document), "f", {})
            assert all(spec.fault for spec in specs)


# --- adding --------------------------------------------------------------------------------------


def test_an_address_that_speaks_sse_is_added_as_such() -> None:
    assert build_entry(["https://a.example/sse"], {}, {})["type"] == "sse"
    assert build_entry(["https://a.example/mcp"], {}, {})["type"] == "http"


@pytest.mark.parametrize(
    ("target", "env", "headers"),
    [
        (["https://a.example/mcp"], {"A": "1"}, {}),
        (["https://a.example/mcp", "more"], {}, {}),
        (["uvx"], {}, {"A": "1"}),
    ],
)
def test_what_a_server_cannot_take_is_refused_and_not_dropped(
    target: list[str], env: dict[str, str], headers: dict[str, str]
) -> None:
    with pytest.raises(SettingsError):
        build_entry(target, env, headers)


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "a\nb", "a" * 65])
def test_a_name_that_tools_cannot_be_called_by_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="name"):
        with_server(b"", name, {"command": "x"})


def test_adding_keeps_what_else_a_host_s_file_holds(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    file.write_text('{"theme": "dark", "mcpServers": {"old": {"command": "x", "odd": [1]}}}')
    link = tmp_path / "linked.json"
    link.symlink_to(file)
    done = cli("mcp", "add", "new", "--config", str(link), "--", "uvx", "mcp-server-time")
    assert done.code == 0
    document = json.loads(file.read_text())
    assert document["theme"] == "dark"
    assert document["mcpServers"]["old"] == {"command": "x", "odd": [1]}
    assert document["mcpServers"]["new"] == {"command": "uvx", "args": ["mcp-server-time"]}
    assert link.is_symlink()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["no json", "[]", '{"mcpServers": 3}'])
def test_a_file_that_is_none_is_left_alone(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    done = cli("mcp", "add", "new", "--config", str(file), "--", "uvx")
    assert done.code != 0
    assert file.read_text() == text


def test_an_entry_that_cannot_be_used_yet_is_told(cli: Cli, tmp_path: Path) -> None:
    file = str(tmp_path / "servers.json")
    address = ("https://a.example/mcp", "--header", "Authorization: Bearer ${NO_SUCH_TOKEN}")
    done = cli("mcp", "add", "new", *address, "--config", file)
    assert done.code == 0
    assert "the environment has no NO_SUCH_TOKEN" in done.err
