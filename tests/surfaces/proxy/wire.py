"""An upstream in bytes, for what passes through as it comes."""

from __future__ import annotations

import re
import socket
import threading

PATIENCE = 20.0
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Wire:
    """An upstream without checks: it records the received bytes and sends its script."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.answer = OK
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.got.append(whole_request(connection))
                connection.sendall(self.answer)


def whole_request(connection: socket.socket) -> bytes:
    """A request, read to the end that it announces."""
    connection.settimeout(PATIENCE)
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    while length and len(body) < int(length[1]):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
