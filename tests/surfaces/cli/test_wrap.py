"""`holdfast wrap`: a program gets a separate proxy and a bill at its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.surfaces.cli._clients import pointed, upstream_of
from tests.surfaces.harness import environment, run_process
from tests.surfaces.proxy.faults import stall
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.upstream import Upstream

URL = "http://127.0.0.1:4711"
ASKS = """
import json, os, sys, urllib.request
key = os.environ.get("OPENAI_API_KEY", "key")
body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello there?"}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"content-type": "application/json", "authorization": "Bearer " + key},
)
answer = json.loads(urllib.request.urlopen(request).read())
print(answer["choices"][0]["message"]["role"], sys.argv[1:])
sys.exit(7)
"""


def test_a_program_asks_through_the_proxy_and_its_exit_code_is_ours(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    store = f"sqlite:///{tmp_path}/wrapped.db"
    command = ("--", sys.executable, "asks.py", "--its-own", "option")
    done = run_process("wrap", "--offline", "--store", store, *command, folder=tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout.decode().strip() == "assistant ['--its-own', 'option']"
    told = done.stderr.decode()
    assert told.startswith("holdfast: 1 request answered. ")
    assert "A demo: the offline model answered, and nobody was billed." in told
    assert "Nothing was lost" in told
    stats = run_process("stats", "--store", store, "--output", "json", folder=tmp_path)
    assert json.loads(stats.stdout)["totals"]["turns"] == 1


def test_requests_go_where_they_would_have_gone(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    done = run_process(
        *("wrap", "--store", "memory:", "--", sys.executable, "asks.py"),
        folder=tmp_path,
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",  # nobody listens there
    )
    assert b"502" in done.stderr  # the program's own words about the answer it got
    assert b"holdfast: no request was answered.\n" in done.stderr
    assert b"  1 request failed: 127.0.0.1:9 could not be reached (502).\n" in done.stderr


def test_a_program_that_calls_nobody_is_told_of(tmp_path: Path) -> None:
    done = run_process(
        *("wrap", "--offline", "--store", "memory:", "--", sys.executable, "-c", "pass"),
        folder=tmp_path,
    )
    assert done.returncode == 0
    assert b"holdfast: no request came through." in done.stderr


def test_a_program_that_is_not_there_comes_with_how_to_install_it(tmp_path: Path) -> None:
    done = run_process("wrap", "claude", folder=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2
    assert b"npm install -g @anthropic-ai/claude-code" in done.stderr
    done = run_process("wrap", "no-such-program", folder=tmp_path)
    assert done.returncode == 2
    assert b"the path to one" in done.stderr


def test_our_own_secrets_do_not_reach_the_program(tmp_path: Path) -> None:
    code = "import os; print([name for name in os.environ if name.startswith('HOLDFAST_')])"
    done = run_process(
        *("wrap", "--offline", "--store", "memory:", "--", sys.executable, "-c", code),
        folder=tmp_path,
        HOLDFAST_UPSTREAMS__OPENAI__KEY="sk-ours",
    )
    assert done.stdout.decode().strip() == "[]"


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_signal_ends_the_program_and_then_the_proxy(tmp_path: Path) -> None:
    waits = "import sys, time; print('up', flush=True); time.sleep(600)"
    arguments = ["wrap", "--offline", "--store", "memory:", "--", sys.executable, "-c", waits]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)  # which a terminal would have sent to both
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in told


LEAVES_A_CHILD = """
import os, subprocess, sys
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, __file__, "child"])
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    sys.exit(5)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
def test_a_signal_ends_the_answer_of_a_process_that_the_program_left_behind(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES_A_CHILD + ASKS)
    command = (sys.executable, "-m", "holdfast", "wrap", "--store", "memory:", "--")
    with Upstream() as provider:
        provider.always = stall
        with subprocess.Popen(
            [*command, sys.executable, "leaves.py"],
            cwd=tmp_path,
            env=environment(tmp_path, OPENAI_BASE_URL=f"{provider.url}/v1", OPENAI_API_KEY=KEY),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            program = int(process.stdout.readline())
            assert provider.waiting.acquire(timeout=60), "the child does not ask"
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            while is_running(program):  # until the proxy has seen that it ended
                pass
            while process.poll() is None:  # one that comes too early is for the program
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=10)
            _, told = process.communicate()
        assert provider.left.acquire(timeout=60)
    assert process.returncode == 5
    assert b"holdfast/surfaces" not in told


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_codex_gets_a_provider_for_this_run() -> None:
    with_key = pointed("codex", URL, {"OPENAI_API_KEY": "sk"})
    assert with_key.arguments[:2] == ("-c", "model_provider=holdfast")
    assert 'env_key = "OPENAI_API_KEY"' in with_key.arguments[3]
    assert f'base_url = "{URL}/v1"' in with_key.arguments[3]
    assert "requires_openai_auth = true" in pointed("codex", URL, {}).arguments[3]


def test_the_configuration_that_opencode_was_given_is_kept() -> None:
    given = {"theme": "dark", "provider": {"openai": {"options": {"timeout": 5}}, "mine": {}}}
    target = pointed("opencode", URL, {"OPENCODE_CONFIG_CONTENT": json.dumps(given)})
    config = json.loads(target.variables["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "dark"
    assert config["provider"]["mine"] == {}
    assert config["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": f"{URL}/v1"}
    assert config["provider"]["google"]["options"] == {"baseURL": f"{URL}/v1beta"}


def test_what_a_program_was_pointed_at_becomes_the_upstream() -> None:
    variables = {
        "OPENAI_API_BASE": "http://localhost:11434/v1/",
        "ANTHROPIC_BASE_URL": "https://gateway.example/anthropic",
    }
    assert upstream_of("openai", variables) == "http://localhost:11434"
    assert upstream_of("anthropic", variables) == "https://gateway.example/anthropic"
    assert upstream_of("gemini", variables) == ""
