"""holdfast doctor: what works, what does not, and the next step for each."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tests.surfaces.harness import run_process
from tests.surfaces.proxy.harness import running_proxy


def findings(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, Any]]:
    done = run_process(
        "doctor", "--output", "json", *arguments, folder=folder, stdin=b"", **variables
    )
    assert not done.stderr, done.stderr
    return done.returncode, {row["check"]: row for row in json.loads(done.stdout)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_fresh_installation_has_no_fault_and_says_what_could_be_added(tmp_path: Path) -> None:
    code, rows = findings(tmp_path, HOLDFAST_SERVE_PORT=str(free_port()))
    assert code == 0
    assert rows["store"]["state"] == rows["port"]["state"] == "ok"
    assert rows["upstreams"]["fix"].startswith("Give `holdfast serve --openai URL`")
    assert rows["key openai"]["state"] == "note"
    assert rows["extra postgres"]["state"] == "ok"


def test_keys_are_said_to_be_there_and_never_shown(tmp_path: Path) -> None:
    secrets = {
        "ANTHROPIC_API_KEY": "sk-of-the-client",
        "HOLDFAST_UPSTREAMS__ANTHROPIC__KEY": "sk-of-ours",
    }
    done = run_process("doctor", "--no-network", folder=tmp_path, stdin=b"", **secrets)
    assert b"ANTHROPIC_API_KEY and the setting upstreams.anthropic" in b" ".join(
        done.stdout.split()
    )
    assert b"sk-of" not in done.stdout + done.stderr


def test_an_upstream_at_which_nobody_listens_is_a_fault(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    code, rows = findings(tmp_path, HOLDFAST_UPSTREAMS__OPENAI__URL=nobody)
    assert code == 1
    assert rows["upstream openai"]["state"] == "fault"
    assert "refused" in rows["upstream openai"]["result"]
    code, rows = findings(tmp_path, "--no-network", HOLDFAST_UPSTREAMS__OPENAI__URL=nobody)
    assert (code, rows["upstream openai"]["state"]) == (0, "ok")


def test_a_proxy_that_runs_is_told_from_another_program(tmp_path: Path) -> None:
    with running_proxy() as proxy:
        port = proxy.url.rpartition(":")[2]
        code, rows = findings(tmp_path, HOLDFAST_SERVE_PORT=port)
        assert (code, rows["port"]["state"]) == (0, "ok")
        assert "a Holdfast proxy answers" in rows["port"]["result"]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        code, rows = findings(tmp_path, HOLDFAST_SERVE_PORT=port)
        assert (code, rows["port"]["state"]) == (1, "fault")
        assert rows["port"]["fix"] == "Stop the program on this port, or use `--port`."


def test_a_store_that_cannot_be_opened_is_a_fault_with_its_next_step(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database " * 500)
    code, rows = findings(tmp_path, "--store", f"sqlite:///{tmp_path}/broken.db")
    assert (code, rows["store"]["state"]) == (1, "fault")
    assert rows["store"]["fix"]
