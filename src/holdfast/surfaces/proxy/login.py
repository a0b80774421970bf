"""Login of a person with a browser: a form once, then a cookie that expires.

A browser cannot send our header, and a token in an address would be stored in histories and logs.
The cookie is signed with the token itself: changing the token ends every login, without state on
the server.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from http.cookies import CookieError, SimpleCookie

from holdfast.settings import Settings
from holdfast.surfaces.proxy.tenants import own_tokens, token_names
from holdfast.surfaces.proxy.worker_counters import Peers

COOKIE = "holdfast_login"
LOGIN = "/login"
LOGOUT = "/logout"
LIFE_SECONDS = 12 * 3600
MOST_TRIES = 10
"""Wrong tokens in a minute from one address; a token that can be guessed so is none."""
MOST_HEADER_TRIES = 100
"""The same for tokens in headers: programs send them with every request, a wrong one too."""
_MINUTE = 60.0
_MOST_KNOWN = 1_000
_MOST_ADDRESSES = 1_000
_OPEN = (LOGIN, "/static/")
"""Paths without a login: the form, and its styles."""
_PAGES = (
    "/sessions", "/refs", "/tenants", "/tools", "/stats", "/metrics", "/lost", "/live",
    "/accuracy", "/settings", "/export.", LOGOUT,
)  # fmt: skip
_FORMS = ("/delete", "/put-back")
"""The ends of the paths that a page may post to."""


class Logins:
    """The open logins, and failed attempts."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        peers: Peers | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._workers = peers.total if peers is not None else 1
        self._most_tries = max(1, MOST_TRIES // self._workers)
        self._notes = peers.folder / "logouts" if peers is not None else None
        """Where workers read which logins the others have ended."""
        self._ended: dict[str, int] = {}
        """Logins that were ended by hand, until they would have expired."""
        self._failed: OrderedDict[str, list[float]] = OrderedDict()
        self._most_header_tries = max(1, MOST_HEADER_TRIES // self._workers)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        """Addresses with the tokens that were right there, as hashes."""

    def refuses_guess(self, address: str, credentials: Collection[str]) -> bool:
        """Return whether the tokens in a request's headers are ignored for now.

        After too many wrong tokens from an address, correct ones are refused too, because any
        answer to a guess helps an attacker. Tokens that were valid there before stay valid, so that
        nobody can lock out others on the same gateway.
        """
        if not credentials:
            return False
        is_right = bool(token_names(credentials, self._settings))
        pairs = [
            hashlib.sha256(f"{address} {credential}".encode()).digest()
            for credential in credentials
        ]
        if is_right and any(pair in self._known for pair in pairs):
            return False
        place = f"{address} headers"
        waits = self._tries(place) >= self._most_header_tries
        if is_right and not waits:
            for pair in pairs:
                self._known[pair] = None
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        elif not is_right:
            self._note_failure(place)
        return waits

    def begin(self, token: str, address: str) -> str | None:
        """A cookie for who shows a token; None if it is none."""
        now = self._clock()
        if not token_names([token], self._settings):
            self._note_failure(address)
            return None
        signed = f"{int(now) + LIFE_SECONDS}.{secrets.token_hex(16)}"
        return f"{signed}.{_signature(token, signed)}"

    def must_wait(self, address: str) -> bool:
        """Whether too many wrong tokens came from an address."""
        return self._tries(address) >= self._most_tries

    def _tries(self, place: str) -> int:
        """Return how many wrong tokens came in the last minute."""
        since = self._clock() - _MINUTE
        tries = [at for at in self._failed.get(place, ()) if at > since]
        if place in self._failed:
            self._failed[place] = tries[-self._most_header_tries :]
        return len(tries)

    def _note_failure(self, place: str) -> None:
        self._failed.setdefault(place, []).append(self._clock())
        self._failed.move_to_end(place)
        while len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def token_of(self, header: str) -> str | None:
        """The name of the token in a cookie header; None if there is none."""
        value = _cookie(header)
        signed, _, signature = value.rpartition(".")
        expires, _, nonce = signed.partition(".")
        if not (expires.isascii() and expires.isdigit() and len(expires) < 15):
            return None
        valid = None
        for name, token in own_tokens(self._settings).items():
            if hmac.compare_digest(signature.encode(), _signature(token, signed).encode()):
                valid = name
        if valid is None or int(expires) <= self._clock() or self._is_over(nonce):
            return None
        return valid

    def _is_over(self, nonce: str) -> bool:
        """Whether a login was ended by hand, in this process or in another."""
        if nonce in self._ended:
            return True
        if self._notes is None or not self._notes.exists():
            return False
        return nonce in self._notes.read_text().splitlines()

    def end(self, header: str) -> None:
        """Log out: the cookie becomes invalid everywhere."""
        if self.token_of(header) is None:
            return
        expires, nonce, _ = _cookie(header).split(".")
        now = self._clock()
        self._ended = {old: until for old, until in self._ended.items() if until > now}
        self._ended[nonce] = int(expires)
        if self._notes is not None:
            with self._notes.open("a") as notes:
                notes.write(f"{nonce}\n")

    def lets_in(self, path: str, method: str, cookie: str) -> bool:
        """Whether a request without a token may pass: to the form, or to pages with a login.

        Never to a provider, because a page of another site could make the browser spend money
        there.
        """
        if path.startswith(_OPEN):
            return True
        is_page = path == "/" or path.startswith(_PAGES)
        proper = method in ("GET", "HEAD") or path == LOGOUT or _changes(path, method)
        return is_page and proper and self.token_of(cookie) is not None


def _changes(path: str, method: str) -> bool:
    """Whether a request is one of the dashboard's forms: safety.py sees that its page sent it."""
    return method == "POST" and path.endswith(_FORMS)


def wants_form(path: str, method: str, accept: str) -> bool:
    """Whether who has no token is a person with a browser, to be shown the form."""
    is_page = path == "/" or path.startswith(_PAGES)
    return method == "GET" and is_page and "text/html" in accept


def cookie_header(value: str, *, secure: bool) -> str:
    """What sets the cookie; an empty value takes it away."""
    life = LIFE_SECONDS if value else 0
    parts = (f"{COOKIE}={value}", "Path=/", f"Max-Age={life}", "HttpOnly", "SameSite=Strict")
    return "; ".join((*parts, "Secure") if secure else parts)


def _cookie(header: str) -> str:
    jar = SimpleCookie()
    try:
        jar.load(header)
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""


def _signature(token: str, signed: str) -> str:
    return hmac.new(token.encode(), f"login.{signed}".encode(), hashlib.sha256).hexdigest()
