"""The small world that the servers work on: files, a repository, a page, a database, a graph.

It is built anew before each round at the same place and with the same dates, so that two rounds
may be compared letter by letter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8"
    "cf00000001010100a0b2b3b40000000049454e44ae426082"
)
DATE = "2026-01-02T03:04:05+00:00"
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.com"), ("DATE", DATE))
}
_LOG = "".join(f"{n:05} INFO request {n * 7} served in {n % 97} ms\n" for n in range(12_000))
_PAGE = "<html><title>Tides</title><body><article><h1>Tides</h1>{}</article></body></html>"


def build(folder: Path) -> None:
    """Reset the world to its initial state."""
    shutil.rmtree(folder, ignore_errors=True)
    files, repository = folder / "files", folder / "repo"
    files.mkdir(parents=True)
    (files / "small.json").write_text('{"a": 1}\n')
    (files / "big.log").write_text(_LOG + "99999 ERROR cannot reach db-3: connection refused\n")
    (files / "point.png").write_bytes(PIXEL)
    repository.mkdir()
    _git(repository, "init", "--quiet", "--initial-branch", "main")
    for number in range(30):
        lines = [f"{number} {line} {line * 31 % 997}" for line in range(200 * (number % 3 + 1))]
        (repository / f"{number % 5}.txt").write_text("\n".join(lines))
        _git(repository, "add", ".")
        _git(repository, "commit", "--quiet", "--message", f"Step {number}")
    (repository / "0.txt").write_text("changed\n")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, env={**os.environ, **IDENTITY})


class _Pages(BaseHTTPRequestHandler):
    """A page of a few paragraphs at every address."""

    def do_GET(self) -> None:
        texts = (f"<p>On day {n} the water stood {n * 7 % 31} dm high.</p>" for n in range(40))
        body = _PAGE.format("".join(texts)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
        """Say nothing."""


@contextmanager
def pages() -> Iterator[str]:
    """The address of a page on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/tides"
        server.shutdown()
