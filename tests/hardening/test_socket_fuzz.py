"""Any bytes on a connection get responses in order or an end, and the proxy survives.

The proxy is a separate process, so that its memory can be distinguished from the fuzzer's.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]

from tests.hardening.births import Child, Nursery, nursery
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.lines import wire_bytes
from tests.surfaces.proxy.harness import ask

PATIENCE = 20.0
CHECK_EVERY = 200
"""Connections between two looks at the health of the proxy."""
_GROWTH_BYTES = 64 * 2**20
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")


def _spoken(address: tuple[str, int], data: bytes) -> bytes:
    """Send everything, close the sending side, and read until the proxy closes."""
    answer = b""
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has closed the connection already: its response is read
        try:
            while piece := connection.recv(65_536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


def _fault(answer: bytes) -> str:
    """Return the violation in a response; empty if there is none."""
    if answer and not _STATUS.match(answer):
        return f"no HTTP: {answer[:200]!r}"
    statuses = [int(status) for status in _STATUS.findall(answer)]
    bad = [status for status in statuses if status >= 500 and status != 501]
    return f"status {bad[0]}: {answer[-300:]!r}" if bad else ""


def _health(child: Child, mother: Nursery, url: str) -> tuple[list[str], int]:
    """Return the faults of the proxy so far, and its memory."""
    wrong = [
        f"log: {line[:300]}"
        for line in mother.logged().splitlines()
        if '"bug"' in line or "Traceback" in line
    ]
    if ask(f"{url}/healthz").body != b"ok\n":
        wrong.append("it is not healthy")
    process = psutil.Process(child.pid)
    if process.num_fds() > 100:
        wrong.append(f"{process.num_fds()} descriptors are open")
    return wrong, process.memory_info().rss


def _shout(campaign: Campaign, folder: Path, most: int) -> None:
    with nursery(folder) as mother:
        settings = {"store_url": "memory:", "serve_port": 0, "max_body_bytes": 1_000_000}
        child = mother.born("proxy", settings=settings)
        url = child.announced["url"]
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        resident: list[int] = []
        for number in campaign.rounds(most):
            data = wire_bytes(campaign.chance(number))
            try:
                wrong = _fault(_spoken(address, data))
            except TimeoutError:
                wrong = "no answer, and no end"
            if wrong:
                campaign.found(f"round {number}: {wrong} | {data[:1500]!r}")
            if number % CHECK_EVERY == CHECK_EVERY - 1:
                faults, held = _health(child, mother, url)
                resident.append(held)
                for fault in faults:
                    campaign.found(f"by round {number}: {fault}")
        child.kill()
    # A store in memory grows by its records: a tenth of a kilobyte or so per request.
    if len(resident) > 20 and resident[-1] - resident[len(resident) // 2] > _GROWTH_BYTES:
        campaign.found(f"memory grew: {[held >> 20 for held in resident]}")
    if resident:
        campaign.figures["resident MB"] = f"{resident[0] >> 20} to {resident[-1] >> 20}"


@short_and_full("connections", 400, 50_000)
def test_any_bytes_on_a_connection_are_answered_or_ended(
    campaign: Campaign, tmp_path: Path, connections: int
) -> None:
    _shout(campaign, tmp_path, connections)
