"""Fetch web pages within limits of size, time and redirects, and never from a private network.

A name is resolved once, and the connection goes to the checked address, so that DNS rebinding has
no effect. Every redirect is checked like the first URL. No cookies, keys or proxies are used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.errors import ResearchError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PART = 65_536
_AGENT = "holdfast-research"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All allocated IPv6 addresses; others may lead into this machine."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses as IPv6-only networks write them (RFC 6052)."""


class FetchLimits(NamedTuple):
    """Limits for fetching pages."""

    bytes: int = 10_000_000
    seconds: float = 20.0
    """For one page with all its redirects."""
    redirects: int = 5
    allowed: frozenset[str] = frozenset()
    """Private addresses that may be read, as numbers: the pages of an intranet."""


class FetchedPage(NamedTuple):
    """The bytes of a page."""

    data: bytes
    url: str
    """The URL after the last redirect."""


async def fetch(url: str, limits: FetchLimits) -> FetchedPage:
    """Fetch a page.

    Raises:
        ResearchError: if the URL is invalid or private, or there is no page within the limits.
    """
    try:
        async with asyncio.timeout(limits.seconds):
            return await _follow_redirects(url, limits)
    except TimeoutError:
        raise ResearchError(f"the page took longer than {limits.seconds:g} seconds") from None
    except ResearchError:
        raise
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if isinstance(error.__cause__, ResearchError):
            raise error.__cause__ from None
        raise ResearchError(f"the page cannot be reached: {type(error).__name__}") from None


async def _follow_redirects(url: str, limits: FetchLimits) -> FetchedPage:
    connector = aiohttp.TCPConnector(resolver=_CheckedResolver(limits), use_dns_cache=False)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": _AGENT}
    ) as session:
        for _ in range(limits.redirects + 1):
            check_url(url, limits)
            async with session.get(url, allow_redirects=False) as response:
                if response.status in _REDIRECTS and "location" in response.headers:
                    url = urljoin(url, response.headers["location"])
                    continue
                if response.status != 200:
                    raise ResearchError(f"the page answered {response.status}")
                return FetchedPage(await _body(response, limits), url)
    raise ResearchError(f"the page redirects more than {limits.redirects} times")


async def _body(response: aiohttp.ClientResponse, limits: FetchLimits) -> bytes:
    """Return the decompressed body; counted while reading, since a length header may be false."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(_PART):
        size += len(part)
        if size > limits.bytes:
            raise ResearchError(f"the page has more than {limits.bytes:,} bytes")
        parts.append(part)
    return b"".join(parts)


def check_url(url: str, limits: FetchLimits) -> None:
    """Raise if a URL must not be fetched, as far as this is known without resolving its name."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ResearchError("the address is not a valid URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ResearchError("the address is not an HTTP URL")
    if parts.username or parts.password:
        raise ResearchError("the address holds a user name")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    check_address(str(address), limits)


def check_address(address: str, limits: FetchLimits) -> None:
    """Raise if an address belongs to this machine or to a network that is not public."""
    ip = _embedded_ipv4(ipaddress.ip_address(address.partition("%")[0]))
    is_public = ip.is_global and not ip.is_multicast and (ip.version == 4 or ip in _UNICAST)
    if not is_public and str(ip) not in limits.allowed:
        raise ResearchError("the address is private", fix="Read it yourself and give the file.")


def _embedded_ipv4(ip: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address embeds, if any."""
    if ip.version == 4:
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


class _CheckedResolver(AbstractResolver):
    """Resolves names to allowed addresses; one forbidden address rejects the whole name."""

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name after checking all of them."""
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        for info in infos:
            check_address(str(info[4][0]), self._limits)
        return [
            ResolveResult(
                hostname=host,
                host=str(info[4][0]),
                port=port,
                family=info[0],
                proto=info[2],
                flags=socket.AI_NUMERICHOST,
            )
            for info in infos
        ]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources."""
