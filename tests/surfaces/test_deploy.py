"""Image, compose file and unit name only what there is; `make dist` runs the steps of the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.settings import Settings
from tests.surfaces.harness import ROOT

DEPLOY = ROOT / "deploy"
VARIABLES = {key.variable for key in Settings.defined()} | {"HOLDFAST_CONFIG"}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


KEPT = {
    "src", "pyproject.toml", "uv.lock", "README.md", "LICENSE", "deploy/build-constraints.txt",
}  # fmt: skip
"""What the build of the image is given."""


class Step(NamedTuple):
    """One instruction of the Dockerfile."""

    word: str
    rest: str


def steps() -> list[Step]:
    text = (DEPLOY / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [Step(*line.split(" ", 1)) for line in lines]


def of_kind(word: str) -> list[str]:
    return [step.rest for step in steps() if step.word == word]


def test_the_image_is_made_of_what_there_is() -> None:
    assert of_kind("FROM") == ["python:3.13-slim AS build", "python:3.13-slim"]
    [uv] = [rest for rest in of_kind("COPY") if "astral-sh/uv" in rest]
    assert re.fullmatch(r"--from=\S+/uv:\d+\.\d+\.\d+ /uv /usr/local/bin/uv", uv)
    assert of_kind("USER") == ["holdfast"]
    assert of_kind("EXPOSE") == [str(Settings().serve_port)]
    assert json.loads(of_kind("ENTRYPOINT")[0]) == ["holdfast"]
    assert json.loads(of_kind("CMD")[0]) == ["serve"]
    check = of_kind("HEALTHCHECK")[0].partition(" CMD ")[2]
    assert "/healthz" in json.loads(check)[-1]
    named = set(re.findall(r"HOLDFAST_[A-Z_]+", of_kind("ENV")[0]))
    assert named <= VARIABLES
    extras = re.findall(r"--extra (\w+)", of_kind("RUN")[0])
    assert extras
    assert set(extras) <= EXTRAS.keys()


def test_the_image_installs_only_what_is_locked_and_has_a_hash() -> None:
    dependencies, build, install = of_kind("RUN")[:3]
    assert dependencies.startswith("uv sync --frozen --no-dev --no-install-project ")
    assert "--require-hashes --build-constraints deploy/build-constraints.txt" in build
    assert "--no-deps --no-index" in install


def test_what_builds_the_wheel_is_as_locked() -> None:
    """Each package that hatchling needs, with the version and hashes of uv.lock."""
    lock = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    [backend] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    needed, names = set(), [re.split(r"\W", backend)[0]]
    while names:
        name = names.pop()
        needed.add(name)
        names += [each["name"] for each in lock[name].get("dependencies", ())]
    text = (DEPLOY / "build-constraints.txt").read_text()
    constraints = re.findall(r"(?m)^([\w-]+)==(\S+)((?: \\\n    --hash=\S+)+)", text)
    assert {name for name, *_ in constraints} == needed
    for name, version, hashes in constraints:
        package = lock[name]
        assert version == package["version"]
        files = [package["sdist"], *package["wheels"]]
        assert set(re.findall(r"--hash=(\S+)", hashes)) == {file["hash"] for file in files}


def test_the_image_gets_all_that_the_package_is_built_of_and_nothing_else() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"]
    assert all((ROOT / name).exists() for name in kept)
    assert set(kept) == KEPT


def test_the_compose_file_sets_what_the_proxy_reads() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours: dict[str, Any] = services["holdfast"]
    # `__` goes into a table: HOLDFAST_UPSTREAMS__OPENAI__URL.
    assert {name.partition("__")[0] for name in ours["environment"]} <= VARIABLES
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).is_file()
    assert ours["environment"]["HOLDFAST_SERVE_TOKEN"].startswith("${HOLDFAST_SERVE_TOKEN:?")
    assert ours["ports"] == ["${HOLDFAST_PUBLISH:-127.0.0.1}:8787:8787"], "not on all interfaces"
    assert "ports" not in services["postgres"]
    assert ours["cap_drop"] == ["ALL"]
    assert services["postgres"]["image"].startswith("pgvector/pgvector:pg")


def test_the_unit_sets_what_the_proxy_reads() -> None:
    lines = (DEPLOY / "holdfast.service").read_text().splitlines()
    keys = [line.partition("=")[::2] for line in lines if "=" in line and line[0] != "#"]
    assert ("ExecStart", "/opt/holdfast/bin/holdfast serve") in keys
    named = {value.partition("=")[0] for key, value in keys if key == "Environment"}
    assert named == {"HOLDFAST_CONFIG", "HOLDFAST_DATA_DIR"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_in_a_sandbox() -> None:
    unit = str(DEPLOY / "holdfast.service")
    analysis = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", unit],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # Without the directives it is 8.3. Versions of systemd weigh them a little differently.
    exposure = re.findall(r"Overall exposure level for \S+: ([\d.]+)", analysis.stdout)
    assert float(exposure[0]) <= 2.5, analysis.stdout


@pytest.mark.campaign
def test_the_steps_of_the_image_end_in_a_proxy_that_is_healthy(tmp_path: Path) -> None:
    source, installed = tmp_path / "src", tmp_path / "holdfast"
    source.mkdir()
    for name in KEPT - {"src"}:
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src")
    uv = shutil.which("uv") or str(ROOT / ".venv" / ".uv" / "bin" / "uv")
    given = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(installed), "UV_LINK_MODE": "copy"}
    given.pop("VIRTUAL_ENV", None)
    for command in of_kind("RUN")[:3]:
        command = command.replace("/opt/holdfast", str(installed))  # noqa: PLW2901
        command = command.replace("/wheels", str(tmp_path / "wheels"))  # noqa: PLW2901
        command = command.replace("uv ", f"{uv} ", 1)  # noqa: PLW2901
        subprocess.run(["sh", "-c", command], check=True, timeout=600, cwd=source, env=given)
    environment = {
        "PATH": f"{installed}/bin:{os.environ['PATH']}",
        "HOLDFAST_DATA_DIR": str(tmp_path),
        "HOLDFAST_SERVE_HOST": "0.0.0.0",
        "HOLDFAST_SERVE_TOKEN": "t0ken",
    }
    command = "holdfast serve --port 0"
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        port = re.findall(r":(\d+)", said)[0]
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.status == 200
        process.terminate()
