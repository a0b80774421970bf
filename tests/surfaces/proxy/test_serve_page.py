"""What docs/how-to/serve.md shows works as it is written, at another port."""

from __future__ import annotations

import io
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest

from holdfast.settings import UpstreamEntry
from holdfast.surfaces.proxy.switches import read_switches
from tests.docs.test_examples import ROOT, Example, examples
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import Running, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

PAGE = ROOT / "docs" / "how-to" / "serve.md"
WRITTEN = "http://127.0.0.1:8787"
EXAMPLES = examples(PAGE)
CURLS = [
    line
    for example in EXAMPLES
    if example.language == "sh"
    for line in example.code.splitlines()
    if line.startswith("curl ")
]


@pytest.fixture(scope="module")
def proxy() -> Iterator[Running]:
    with running_proxy() as running:
        yield running


@pytest.mark.parametrize("command", CURLS)
def test_a_command_of_the_page_is_answered(proxy: Running, command: str) -> None:
    assert WRITTEN in command
    done = subprocess.run(
        command.replace(WRITTEN, proxy.url),
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 127:
        pytest.skip("curl is not installed")
    assert done.stdout.startswith("HTTP/1.1 200")
    assert "x-holdfast-saved: " in done.stdout
    assert "x-holdfast-warning: " in done.stdout
    assert "offline model" in done.stdout


PROGRAMS = [one for one in EXAMPLES if one.language == "py"]
"""Those of AWS have no offline model to ask."""
OF_AWS = [one for one in PROGRAMS if "boto3" in one.code]


def printed_by(example: Example, proxy: Running) -> str:
    assert WRITTEN in example.code
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only our own warnings are errors
        names: dict[str, Any] = {"__name__": "example"}
        exec(example.code.replace(WRITTEN, proxy.url), names)
        if "client" in names:
            names["client"].close()
    return printed.getvalue()


@pytest.mark.parametrize(
    "example", [one for one in PROGRAMS if one not in OF_AWS], ids=lambda one: f"line {one.line}"
)
def test_a_program_of_the_page_works(proxy: Running, example: Example) -> None:
    printed = printed_by(example, proxy)
    assert "offline model" in printed
    if "payment" in example.code:
        assert "12:07 ERROR payment 4711 failed: card expired" in printed


def test_the_program_for_bedrock_works() -> None:
    [example] = OF_AWS
    with Upstream(says(text("Yes."))) as upstream:
        settings = {"upstreams": {"bedrock": UpstreamEntry(upstream.url, key=KEY)}}
        with running_proxy(settings) as proxy:
            assert printed_by(example, proxy) == "Yes.\n"


def test_every_switch_of_the_page_is_one() -> None:
    text = PAGE.read_text("utf-8")
    names = "bypass budget no-cite offer-expand cite-policy cite-tools read-only session".split()
    for name in names:
        assert f"`x-holdfast-{name}: " in text
    headers = {
        "x-holdfast-bypass": "on",
        "x-holdfast-budget": "8000",
        "x-holdfast-no-cite": "on",
        "x-holdfast-offer-expand": "when_cited",
    }
    switches = read_switches(headers)
    assert switches.bypass
    assert switches.limit == 8000
    assert not switches.cite
    assert switches.offer_expand == "when_cited"
