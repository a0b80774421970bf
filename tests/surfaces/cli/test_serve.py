"""`holdfast serve`: its output at the start. The proxy itself: tests/surfaces/proxy."""

from __future__ import annotations

import json
import shlex
import socket

import pytest

from holdfast.settings import Settings
from holdfast.surfaces.cli.serve import _greet
from holdfast.surfaces.proxy.server import ProxyAddresses
from tests.surfaces.harness import Cli


def test_the_greeting_leads_to_the_dashboard_and_every_client(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = ProxyAddresses("http://127.0.0.1:9", {"openai": "http://up"}, answers_offline=False)
    _greet(Settings(store_url="memory:"), started)
    said = capsys.readouterr().err
    assert "  dashboard → http://127.0.0.1:9/\n" in said
    assert "  export OPENAI_BASE_URL=http://127.0.0.1:9/v1\n" in said
    for name in ("ANTHROPIC", "GOOGLE_GEMINI"):
        assert f"  export {name}_BASE_URL=http://127.0.0.1:9\n" in said
    assert "  gemini    → no upstream: give --gemini URL, or --offline\n" in said


def test_the_advice_for_a_taken_port_is_right_for_serve_and_for_make(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = cli("serve", "--port", str(taken.getsockname()[1]), "--store", "memory:")
    assert refused.code == 2
    assert "Choose another port with --port (under make: `make run PORT=…`;" in refused.err


@pytest.mark.parametrize("token", ["", "a-token-of-20-characters"])
def test_the_example_of_the_greeting_shows_a_token_where_one_is_wanted(
    token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it the first request was refused; the token itself belongs in no terminal."""
    started = ProxyAddresses("http://127.0.0.1:9", {}, answers_offline=True)
    _greet(Settings(store_url="memory:", serve_token=token), started)
    example = capsys.readouterr().err.partition("Or try it:\n")[2]
    words = shlex.split(example.replace("\\\n", ""))
    assert ("x-holdfast-token: $HOLDFAST_SERVE_TOKEN" in words) == bool(token)
    assert json.loads(words[words.index("-d") + 1])["model"] == "gpt-4o"
    assert not token or token not in example
