"""The tenant of a request, derived from its credentials, never from its body.

A tenant is a workspace of the store: its sessions, refs, hidden calls, calibration and every cache
are separate, and no lock of the store is shared. Its name is a keyed hash of the client's
credential: the store alone does not allow reading or testing a key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs
from weakref import WeakValueDictionary

from holdfast.engine import Holdfast
from holdfast.errors import SettingsError, ShapeError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.upstreams import signature_of
from holdfast.upstream.upstreams import Family, Upstream
from holdfast.workers import work_for

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.incoming_request import IncomingRequest

ANONYMOUS = "anonymous"
"""The tenant of all clients without a credential."""
TENANT_HEADER = f"{PREFIX}tenant"
TOKEN_HEADER = f"{PREFIX}token"
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Where clients put the key of a provider, or in its place the token of the proxy."""

_KEYS_READ: dict[Family, tuple[str, ...]] = {
    "openai": ("authorization", "api-key"),
    "anthropic": ("x-api-key", "authorization"),
    "gemini": ("x-goog-api-key", "authorization"),
    "bedrock": ("authorization",),
    "cohere": ("authorization",),
}
"""Where each vendor looks for a key; Gemini in its query too."""

_SIGNER = re.compile(r"\bCredential=([A-Za-z0-9]{1,128})/")
_DIGITS = 24
"""Of a keyed hash: two of a million keys share them once in 10^17."""
_MOST_ENGINES = 256
"""Each has half a megabyte of places and names at most; sessions have one bound for all."""
_MOST_NAMES = 1_000
"""Hashes of credentials, with the tenant of each."""
_LONGEST_NAME = 100


class RequestCredentials(NamedTuple):
    """The credentials of a request."""

    keys: frozenset[str] = frozenset()
    """Keys of providers; most clients send one, some the same in two headers."""
    tokens: frozenset[str] = frozenset()
    """Names of the proxy's own tokens; that of `serve_token` is empty."""
    header: str = ""
    """The tenant that it names itself."""
    signer: str = ""
    """The id of the AWS key of its signature. That is no secret, and only AWS can check the
    signature: it separates tenants, and gives access to nothing."""


def credentials(headers: Collection[tuple[str, str]], query: str = "") -> frozenset[str]:
    """All that could be a key: in headers, or in Gemini's query.

    A client that sends several is known by all of them: were it known by one, a placeholder that
    many clients send beside their key would make them the same.
    """
    signed = signature_of(headers)  # another one with every request, and no secret
    values = [
        plain_key(value)
        for name, value in headers
        if name.lower() in KEY_HEADERS and value != signed
    ]
    values += parse_qs(query).get("key", []) if "key=" in query else []
    return frozenset(filter(None, values))


def plain_key(value: str) -> str:
    """The key in a header; the scheme before it is written in any case (RFC 9110, 11.1)."""
    scheme, *key = value.split(None, 1) or [""]
    return "".join(key).strip() if scheme.lower() == "bearer" else value.strip()


def presented(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return all that a request's headers show as a token or key, as ASGI gives them."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    tokens = [value.strip() for name, value in pairs if name == TOKEN_HEADER]
    return [*filter(None, tokens), *credentials(pairs)]


def token_names(given: Iterable[str], settings: Settings) -> frozenset[str]:
    """The names of the tokens among some values; that of `serve_token` is empty."""
    names = set()
    for value in given:
        for name, token in own_tokens(settings).items():
            # Every token is compared, in constant time, so that the duration reveals nothing.
            if hmac.compare_digest(value.encode(), token.encode()):
                names.add(name)
    return frozenset(names)


def own_tokens(settings: Settings) -> dict[str, str]:
    """The proxy's tokens by their names."""
    first = {"": settings.serve_token} if settings.serve_token else {}
    return first | {name: token for name, token in settings.serve_tokens.items() if token}


def asking(
    headers: Iterable[tuple[str, str]], query: str, settings: Settings
) -> RequestCredentials:
    """Return the credentials of a request."""
    pairs = [(name.lower(), value) for name, value in headers]
    presented_keys = credentials(pairs, query)
    named = {value.strip() for name, value in pairs if name == TOKEN_HEADER}
    keys = frozenset(key for key in presented_keys if not token_names([key], settings))
    header = next((value.strip() for name, value in pairs if name == TENANT_HEADER), "")
    signer = _SIGNER.search(signature_of(pairs))
    return RequestCredentials(
        keys, token_names(presented_keys | named, settings), header, signer[1] if signer else ""
    )


FirstSeen = Callable[[str, RequestCredentials, Family], None]
"""Takes a tenant, the credentials of its request, and the family of the request's path."""


class Tenants:
    """The engines of those who ask, each over its own workspace."""

    def __init__(
        self, engine: Holdfast, settings: Settings, first_seen: FirstSeen | None = None
    ) -> None:
        self._root = engine
        self._settings = settings
        self._first_seen = first_seen
        """Called once for each credential that this process sees."""
        self._secret = b""
        self._names: dict[bytes, str] = {}
        """Tenants by credentials: clients send the same with every request."""
        self._recent: OrderedDict[str, Holdfast] = OrderedDict()
        self._in_use: WeakValueDictionary[str, Holdfast] = WeakValueDictionary()

    async def of(self, incoming: IncomingRequest) -> Holdfast:
        """The engine for a request."""
        return await self.engine_for(incoming.headers, incoming.query, incoming.route.family)

    async def engine_for(
        self, headers: Collection[tuple[str, str]], query: str, family: Family | None = None
    ) -> Holdfast:
        """Return the engine for a request with these headers."""
        if self._settings.tenant_by == "none":
            return self._root
        proof = proof_of(headers, query)
        tenant = self._names.get(proof)
        if tenant is None:
            who = asking(headers, query, self._settings)
            tenant = await self.name(who)
            while len(self._names) >= _MOST_NAMES:
                self._names.pop(next(iter(self._names)))
            self._names[proof] = tenant
            if self._first_seen is not None and family is not None:
                self._first_seen(tenant, who, family)
        work_for(tenant)  # tenants take turns where work is long
        return await self.engine(tenant)

    async def accounts(
        self, headers: Collection[tuple[str, str]], query: str, upstream: Upstream
    ) -> list[Scope]:
        """Return the tenants whose daily limit a call to an upstream counts for.

        If the settings' key is sent, nobody checks a client's key next to our token: a different
        one in each request would be a different tenant each time. So only the token counts. If the
        client's own key is sent, each key that the vendor may read counts: one of them is the
        account that pays, and the others may be invented.
        """
        who = asking(headers, query, self._settings)
        is_named = any(who.tokens) or self._settings.tenant_by != "key"
        names = [await self.name(who)]
        if not is_named and not upstream.takes_clients_key:
            names = [await self.name(RequestCredentials(tokens=who.tokens))]
        elif not is_named:
            read = _KEYS_READ[upstream.family]
            relevant = [pair for pair in headers if pair[0].lower() in read]
            asked_in = query if upstream.family == "gemini" else ""
            keys = asking(relevant, asked_in, self._settings).keys or who.keys
            payers = [RequestCredentials(frozenset({key})) for key in sorted(keys)]
            payers += [RequestCredentials(signer=who.signer)] * bool(who.signer)
            names = [await self.name(payer) for payer in payers] or names
        return [Scope(self._root.scope.user, name) for name in names]

    async def name(self, who: RequestCredentials) -> str:
        """The tenant that asks: a workspace of the store."""
        if self._settings.tenant_by == "none":
            return self._root.scope.workspace
        if names := sorted(filter(None, who.tokens)):
            return f"team-{names[0]}"
        if self._settings.tenant_by == "header":
            return _named(who.header)
        if who.keys:
            return f"key-{await self._hashed(who.keys)}"
        if who.signer:
            return f"aws-{await self._hashed([who.signer])}"
        return "token" if who.tokens else ANONYMOUS

    async def load_secret(self) -> None:
        """Read the store's key before the first request: one that hangs later holds nobody up."""
        if self._settings.tenant_by != "none":
            self._secret = await self._root.store.secret()

    async def _hashed(self, keys: Iterable[str]) -> str:
        self._secret = self._secret or await self._root.store.secret()
        text = "\0".join(sorted(keys)).encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:_DIGITS]

    async def engine(self, tenant: str) -> Holdfast:
        """Return the engine of a tenant; the longest unused ones are released, and lose nothing."""
        if tenant == self._root.scope.workspace:
            return self._root
        engine = self._in_use.get(tenant)
        if engine is None:
            scope = Scope(self._root.scope.user, tenant)
            fresh = await self._root.of(scope)
            engine = self._in_use.setdefault(tenant, fresh)  # another request may have been first
        self._recent[tenant] = engine
        self._recent.move_to_end(tenant)
        while len(self._recent) > _MOST_ENGINES:
            await self._recent.popitem(last=False)[1].settle()
        return engine

    async def all(self) -> list[str]:
        """Return the tenants with data in the store, most recently used first."""
        user = self._root.scope.user
        return [scope.workspace for scope in await self._root.store.scopes() if scope.user == user]

    async def close(self) -> None:
        """Save the calibration of each tenant."""
        while self._recent:
            await self._recent.popitem()[1].settle()


def load_key(headers: Iterable[tuple[str, str]], query: str, settings: Settings) -> str:
    """Return whose share of the proxy's time a request takes.

    Beside one of our tokens anybody can send credentials that are made up: were they part of the
    key, one tenant would have as many shares as it likes.
    """
    pairs = list(headers)
    if own_tokens(settings):
        who = asking(pairs, query, settings)
        named = who.header if settings.tenant_by == "header" else ""
        if who.tokens:
            return f"token {sorted(who.tokens)} {named}"
    return proof_of(pairs, query).hex()


def proof_of(headers: Iterable[tuple[str, str]], query: str) -> bytes:
    """All that `asking` looks at, as a hash: keys are not kept for longer than their request."""
    proving = (*KEY_HEADERS, TOKEN_HEADER, TENANT_HEADER)
    fields = [pair for pair in headers if pair[0].lower() in proving]
    keys = query if "key=" in query else ""
    return hashlib.sha256(repr((fields, keys)).encode("utf-8", "surrogateescape")).digest()


def _named(header: str) -> str:
    """A tenant that a trusted gateway names."""
    if len(header) > _LONGEST_NAME or not header.isprintable():
        raise ShapeError(
            "a header of the request is not what it should be",
            where=TENANT_HEADER,
            fix=f"Give at most {_LONGEST_NAME} printable characters.",
        )
    return f"named-{header}" if header else ANONYMOUS


def check(settings: Settings) -> None:
    """Raise unless the settings separate tenants as they claim."""
    if settings.tenant_by == "header" and not own_tokens(settings):
        raise SettingsError(
            "anybody could name any tenant",
            where="tenant_by header",
            fix="Set serve_token (HOLDFAST_SERVE_TOKEN) for the gateway that names them.",
        )
    if len(set(own_tokens(settings).values())) < len(own_tokens(settings)):
        raise SettingsError(
            "two tokens are the same", where="serve_tokens", fix="Give each name one of its own."
        )
