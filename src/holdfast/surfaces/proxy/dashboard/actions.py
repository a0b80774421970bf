"""The changes that a person can make on the pages: delete a session, put a content back.

Each is a form sent by POST; the gate refuses forms from other sites. Everyone who may see a session
may do this with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.requests import Request

from holdfast.errors import StoreError
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.tenant_reader import TenantReader

_MOST_BYTES = 10_000
_MOST_CHOICES = 200
"""Sessions that are deleted with one form; a page lists fewer."""
_MOST_LIST_BYTES = 200_000
_MOST_BESIDE = 10_000


async def fields_of(request: Request) -> Mapping[str, str]:
    """The fields of a form; none if the body is more than a form would be."""
    fields = await _values_of(request, _MOST_BYTES, 20)
    return {name: values[0] for name, values in fields.items()}


async def choices_of(request: Request) -> list[tuple[str, str]]:
    """Return the sessions that are checked on a list, each with its tenant."""
    fields = await _values_of(request, _MOST_LIST_BYTES, _MOST_CHOICES)
    return [links.chosen(value) for value in dict.fromkeys(fields.get("session", ()))]


async def _values_of(request: Request, most_bytes: int, most_fields: int) -> dict[str, list[str]]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            return {}
    try:
        return parse_qs(body.decode("utf-8", "replace"), max_num_fields=most_fields)
    except ValueError:
        return {}


async def delete(gathering: TenantReader, name: str) -> str:
    """Delete a session; where to go then."""
    scope = gathering.scope.of(name)
    if await gathering.store.session(scope) is None:
        raise StoreError("there is no such session")
    await gathering.engine.delete_session(name)
    return links.sessions()


async def delete_row(gathering: TenantReader, name: str) -> None:
    """Delete a session of the list, with the other conversations of its client's session.

    A session that is already deleted is no error.
    """
    record = await gathering.store.session(gathering.scope.of(name))
    if record is None:
        return
    names = {name}
    if record.client_session:
        beside = await gathering.store.sessions(
            gathering.scope, limit=_MOST_BESIDE, client_session=record.client_session
        )
        names |= {each.session for each in beside}
    for each in sorted(names):
        await gathering.engine.delete_session(each)


async def put_back(gathering: TenantReader, name: str, fields: Mapping[str, str]) -> str:
    """Send a ref in full from the next request on, or stop it; return the next address."""
    if await gathering.store.session(gathering.scope.of(name)) is None:
        raise StoreError("there is no such session")
    session = gathering.engine.session(name)
    await session.put_back(fields.get("ref", ""), whole=fields.get("whole") != "no")
    turn = fields.get("turn", "")
    number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 10 else 0
    return links.turn(name, number) if number else links.session(name)
