"""Clients of a proxy that may die at any moment; they remember its responses.

A request is acknowledged when its client has the last byte of a response that does not report the
store as unavailable; from then on `rebuild` must restore it.
"""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Callable
from typing import NamedTuple

from tests.fitting.test_citing import chat, log
from tests.hardening.shapes import KEYS
from tests.provider.request import Got
from tests.surfaces.proxy.harness import DIALECTS, ask, path_of, request_in
from tests.surfaces.proxy.spoken import REF, call, says, text
from tests.wire.responses.streams import Script

MOST_RESULTS = 6
"""Tool results of a conversation; then another begins, so that sessions stay short."""


class Acknowledged(NamedTuple):
    """A request whose client has the whole answer."""

    session: str
    body: bytes

    @property
    def place(self) -> str:
        """Which it is, shortly."""
        return f"{self.session}: {self.body[-100:]!r}"


class Talker(threading.Thread):
    """One client: sends requests to the proxy's current address."""

    def __init__(self, board: Board, name: str, chance: random.Random) -> None:
        super().__init__(name=name, daemon=True)
        self._board = board
        self._chance = chance
        self._results: list[str] = []
        self._talks = 0

    def run(self) -> None:
        while (url := self._board.address()) is not None:
            if len(self._results) >= MOST_RESULTS or not self._results:
                self._results = []
                self._talks += 1
            lines = self._chance.choice((3, 60, 90, 200))
            self._results.append(log(lines, seed=self._chance.randrange(10**6)))
            self._ask(url)

    def _ask(self, url: str) -> None:
        dialect = DIALECTS[self._talks % len(DIALECTS)]
        stream = self._chance.random() < 0.5
        question = f"What went wrong in {self.name}, {self._talks}?"
        body = request_in(dialect, chat(*self._results, question=question), stream=stream)
        headers = dict(KEYS)
        if self._talks % 2:  # the others are known by their beginning
            headers["x-holdfast-session"] = f"{self.name}-{self._talks}"
        try:
            answer = ask(url + path_of(dialect, stream=stream), body, headers)
        except (OSError, http.client.HTTPException):
            self._board.lost(url)
            return
        self._board.answered(answer.status, answer.headers, body, answer.body)


class Board:
    """The current address of the proxy, and the responses of all talkers."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._url: str | None = ""
        self._acknowledged: list[Acknowledged] = []
        self._count = 0
        self.strange: list[str] = []
        """Unexpected responses, even after a kill."""

    def address(self) -> str | None:
        """Where the proxy is; waits until there is one, None: go home."""
        with self._news:
            self._news.wait_for(lambda: self._url != "")
            return self._url

    def open(self, url: str) -> None:
        with self._news:
            self._url = url
            self._news.notify_all()

    def shut(self) -> None:
        """There is no proxy now."""
        with self._news:
            self._url = ""

    def go_home(self) -> None:
        with self._news:
            self._url = None
            self._news.notify_all()

    def lost(self, url: str) -> None:
        """Remove the address of a dead proxy."""
        with self._news:
            if self._url == url:
                self._url = ""
            self._news.notify_all()

    def answered(self, status: int, headers: dict[str, str], body: bytes, answer: bytes) -> None:
        with self._news:
            if status != 200:
                self.strange.append(f"{status}: {answer[:300]!r}")
            elif "unavailable" not in headers.get("x-holdfast-warning", ""):
                session = headers["x-holdfast-session"]
                self._acknowledged.append(Acknowledged(session, body))
            self._count += 1
            self._news.notify_all()

    def wait_for_answers(self, more: int, patience: float = 60.0) -> bool:
        """Wait until some more requests have been answered; False if they never are."""
        with self._news:
            wanted = self._count + more
            return self._news.wait_for(lambda: self._count >= wanted or not self._url, patience)

    def taken(self) -> list[Acknowledged]:
        """Return the requests acknowledged since the last call."""
        with self._news:
            acknowledged, self._acknowledged = self._acknowledged, []
            return acknowledged


def model(chance: random.Random) -> Callable[[Got], Script]:
    """Return a model that opens refs as often as it answers."""

    def turn(request: Got) -> Script:
        cited = REF.findall(request.texts) if "expand_ref" in request.tools else []
        if not cited or chance.random() < 0.5:
            return says(text("It went ", "well."))
        asked = {"ref_id": chance.choice(cited), "lines": "1-3"}
        name = f"call_{chance.randrange(10**9)}"
        return says(text("Let me look. "), call("expand_ref", asked, name))

    return turn
