"""All of an upstream's answer that comes in one piece, as the client is to have it.

sending: after upstreams, before exchange. The network itself is in calling/.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.calling.network import Reply, UpstreamError
from holdfast.errors import ProviderError
from holdfast.surfaces.proxy.upstreams import returned_headers


class Got(NamedTuple):
    """An answer of the upstream that came in one piece."""

    status: int
    headers: dict[str, str]
    body: bytes


async def received(reply: Reply, most: int) -> Got:
    """All of an answer, unless it is larger than any answer should be."""
    if 300 <= reply.status < 400:
        raise UpstreamError(
            "the upstream sends us elsewhere", fix="Give its new address in the settings."
        )
    headers = returned_headers(reply.headers, changed=True)
    parts = []
    size = 0
    async for chunk in reply.chunks():
        size += len(chunk)
        if size > most:
            raise ProviderError(
                f"the upstream's answer has more than {most:,} bytes", fix="Ask for less at once."
            )
        parts.append(chunk)
    return Got(reply.status, headers, b"".join(parts))
