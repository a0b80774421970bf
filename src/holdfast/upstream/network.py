"""Send a request to an upstream, once, and read its answer as it comes.

network: beside upstreams; for the proxy, and for the client in a program. A connection whose answer
was not read to its end is dropped, never used again; nothing is retried, and no redirect is
followed.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from yarl import URL

from holdfast.errors import ProviderError

_CONNECT_SECONDS = 15.0
_CHUNK = 65_536
_LARGE_BODY = 4_000_000
"""A larger body is sent in parts: the system copies the bytes that it cannot send at once, 30 MB in
25 ms, while the event loop waits."""
_WAITING_BYTES = 16_384
"""Read ahead of the client: an upstream that sends byte by byte makes as many pieces of them."""
_END_SECONDS = 1.0
"""How long an upstream may take to end a stream after its last word, to be used again."""
# Headers that the HTTP library would add if the client did not send them.
_NOT_ADDED = ("accept", "accept-encoding", "content-type", "user-agent")


class UpstreamError(ProviderError):
    """The upstream could not be reached, or did not answer as it should."""

    def __init__(self, what: str, *, status: int = 502, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


class BrokenOffError(UpstreamError):
    """The upstream closed the connection before its response was complete.

    The client should see a broken connection, as without us, because it can recover from that. An
    error in the provider's format would make it give up.
    """


class UpstreamReply(Protocol):
    """An upstream's answer whose body has not been read yet."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it comes; BrokenOffError where it breaks off."""


class RequestSender(Protocol):
    """A way to send a request: over the network, or to the offline model."""

    def send(self, url: str, method: str, headers: Mapping[str, str], body: bytes) -> _Sent:
        """Send a request; the answer is read inside `async with`."""


class _Sent(Protocol):
    async def __aenter__(self) -> UpstreamReply: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None: ...


class _HttpReply:
    def __init__(self, response: aiohttp.ClientResponse, url: str) -> None:
        self._url = url
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except TimeoutError as error:
            raise _broken_off("fell silent in the middle of its answer", self._url, 504) from error
        except (aiohttp.ClientError, OSError) as error:
            # aiohttp keeps the error with the answer, and its traceback would lead back here.
            cause = error.with_traceback(None)
            raise _broken_off("broke off its answer", self._url) from cause


class HttpSending:
    """Sends over the network, with connections that are kept and used again."""

    def __init__(self, *, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_SECONDS, sock_read=self._idle_seconds
            ),
            trust_env=False,
            read_bufsize=_WAITING_BYTES,
            max_line_size=_CHUNK,
            max_field_size=_CHUNK,
            skip_auto_headers=_NOT_ADDED,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def open_connections(self) -> int:
        """Connections to upstreams, in use or kept."""
        connector = self._session.connector if self._session is not None else None
        if not isinstance(connector, aiohttp.TCPConnector):
            return 0
        idle = sum(map(len, connector._conns.values()))
        return idle + len(connector._acquired)

    @asynccontextmanager
    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes],
        *,
        raw: bool = False,
    ) -> AsyncIterator[UpstreamReply]:
        """Send a request; the response is read inside `async with`, undecoded if `raw`.

        A body in pieces is sent piece by piece. Some upstreams compress although they were not
        asked to: responses that we read are decompressed.
        """
        if self._session is None:
            raise UpstreamError("the connections are not open", status=503)
        if isinstance(body, bytes) and len(body) > _LARGE_BODY:
            headers = {**headers, "content-length": str(len(body))}  # else it would go in chunks
            body = _in_parts(body)
        try:
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                auto_decompress=not raw,
            )
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise failure(error, url) from error
        try:
            if not 200 <= response.status <= 599:
                raise UpstreamError(
                    f"the upstream answered with status {response.status}, which ends no request",
                    where=place_of(url),
                    fix=_CHECK_ADDRESS,
                )
            yield _HttpReply(response, url)
        finally:
            if not response.content.at_eof():
                response.close()  # closes the connection with its unread bytes
            response.release()


async def _in_parts(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), _CHUNK):
        yield body[at : at + _CHUNK]


def place_of(url: str) -> str:
    """Return host and port of an address, which may be logged."""
    parts = URL(url, encoded=True)
    host = f"[{parts.host}]" if ":" in (parts.host or "") else parts.host
    return f"{host}:{parts.port}"


def failure(error: BaseException, url: str) -> UpstreamError:
    """Why there is no answer, without the words of libraries: they might hold content."""
    if _went_away(error):
        return _broken_off("closed the connection without an answer", url)
    place = place_of(url)
    for kinds, status, what, fix in _FAILURES:
        if isinstance(error, kinds) or isinstance(getattr(error, "os_error", None), kinds):
            return UpstreamError(f"the upstream {what}", status=status, where=place, fix=fix)
    if isinstance(error, OSError):
        return UpstreamError(
            f"the upstream cannot be reached ({_reason(error)})", where=place, fix=_CHECK_ADDRESS
        )
    return UpstreamError("the upstream's answer is no HTTP", where=place, fix=_CHECK_ADDRESS)


def _went_away(error: BaseException) -> bool:
    """Return whether an established connection was closed, in order or by a reset."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False  # it was never made
    return isinstance(error, aiohttp.ServerDisconnectedError) or (
        isinstance(error, OSError) and error.errno in _GONE
    )


def _reason(error: OSError) -> str:
    """The system's own name for a failure, such as EHOSTUNREACH."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _broken_off(what: str, url: str, status: int = 502) -> BrokenOffError:
    where = place_of(url)
    return BrokenOffError(f"the upstream {what}", status=status, where=where, fix="Try again.")


_GONE = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE)
_CHECK_ADDRESS = "Check the upstream's address with `holdfast config`, and that it is running."

# The order matters: earlier classes are special cases of later ones.
_FAILURES: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (
        aiohttp.ClientConnectorCertificateError,
        502,
        "has a TLS certificate that is not trusted",
        "Check its address, or let this machine trust who signed it (SSL_CERT_FILE).",
    ),
    (
        aiohttp.ClientSSLError,
        502,
        "cannot agree on TLS with the proxy",
        "Check whether its address begins with https or http.",
    ),
    (
        aiohttp.ClientConnectorDNSError,
        502,
        "has a name that DNS does not know",
        "Check the upstream's address with `holdfast config`, and this machine's network.",
    ),
    (
        aiohttp.ConnectionTimeoutError,
        504,
        f"did not take a connection within {_CONNECT_SECONDS:.0f} seconds",
        _CHECK_ADDRESS,
    ),
    (
        TimeoutError,
        504,
        "did not answer in time",
        "Try again; `upstream_idle_seconds` is how long the proxy waits.",
    ),
    (ConnectionRefusedError, 502, "refused the connection: nothing listens there", _CHECK_ADDRESS),
    (ConnectionResetError, 502, "reset the connection before it was made", _CHECK_ADDRESS),
)


_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream")


def is_stream(reply: UpstreamReply) -> bool:
    """Whether an answer comes as events."""
    return reply.headers.get("content-type", "").lower().startswith(_STREAMS)


async def ended(chunks: AsyncGenerator[bytes]) -> None:
    """Wait a while for the end of a stream whose last event has come."""
    with suppress(TimeoutError, UpstreamError):
        async with asyncio.timeout(_END_SECONDS):
            async for _ in chunks:
                pass
