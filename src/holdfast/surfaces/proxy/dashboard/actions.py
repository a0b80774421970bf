"""What a person can change on the pages: delete a session, put something back.

actions: after live, before pages. Each is a form that is sent by POST; the gate refuses what pages
of other sites send. Whoever may see a session may do this with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.requests import Request

from holdfast.errors import StoreError
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.gathering import Gathering

_MOST_BYTES = 10_000


async def fields_of(request: Request) -> Mapping[str, str]:
    """The fields of a form; none if the body is more than a form would be."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return {}
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


async def delete(gathering: Gathering, name: str) -> str:
    """Delete a session; where to go then."""
    scope = gathering.scope.of(name)
    if await gathering.store.session(scope) is None:
        raise StoreError("there is no such session")
    await gathering.store.delete_session(scope)
    return links.sessions()


async def put_back(gathering: Gathering, name: str, fields: Mapping[str, str]) -> str:
    """Have what a ref stands for whole from the next request on, or no longer; where to go then."""
    if await gathering.store.session(gathering.scope.of(name)) is None:
        raise StoreError("there is no such session")
    session = gathering.engine.session(name)
    await session.put_back(fields.get("ref", ""), whole=fields.get("whole") != "no")
    turn = fields.get("turn", "")
    number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 10 else 0
    return links.turn(name, number) if number else links.session(name)
