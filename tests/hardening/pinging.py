"""Asks a server whether it lives, every ten milliseconds, and writes down how long that took.

Run as a program beside the one that throws bombs, so that neither's work is in the other's times:
`python pinging.py host port`. Each line is when a ping was due, and when it was answered. One that
is late because the one before it was not answered yet counts from when it was due.
"""

from __future__ import annotations

import socket
import sys
import time

EVERY = 0.01
_REQUEST = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


def main(host: str, port: int) -> None:
    """Ping until the reader of this output is gone."""
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    due = time.monotonic()
    while True:
        time.sleep(max(0.0, due - time.monotonic()))
        connection.sendall(_REQUEST)
        answer = connection.recv(4096)
        while not answer.endswith(b"ok\n"):
            piece = connection.recv(4096)
            if not piece:
                return
            answer += piece
        sys.stdout.write(f"{due} {time.monotonic()}\n")
        sys.stdout.flush()
        due += EVERY


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
