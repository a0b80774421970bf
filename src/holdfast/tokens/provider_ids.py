"""Parse provider and model names.

An id is `provider:model`, with a transport in front if a program serves the model: `openai:gpt-4o`,
`claude:sonnet`, `[cli]gemini:flash`, `opencode:openai/gpt-5.2-codex`. Names in the form of gateways
and Bedrock are accepted too; provider_ids.toml holds all names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from holdfast.errors import SettingsError

MAX_LENGTH = 512
"""Maximum characters of an id; real names are far shorter."""

_TRANSPORT = re.compile(r"\s*\[([^\[\]]*)\]")
_GATEWAY = re.compile(r"(?P<vendor>[\w.-]+)/(?P<model>.+)", re.DOTALL)
_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:[^/]*/(?P<model>.+)", re.DOTALL)
_VERSION = re.compile(
    r"(?:[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest|00\d))?(?:-v\d+)?(?::\d+)?(?::(?:free|thinking))?$"
)


class ProviderId(msgspec.Struct, frozen=True):
    """A provider, one of its models, and the transport that reaches it."""

    transport: str
    """`cli` for a command-line program; empty for the provider's API."""
    provider: str
    """Provider's name in lower case, with aliases resolved."""
    model: str
    """Model's name as the provider writes it."""

    @classmethod
    def parse(cls, provider_id: str) -> ProviderId:
        """Parse an id in any spelling; raise `SettingsError` if it is invalid."""
        return _parse(_validated(provider_id))

    @property
    def id(self) -> str:
        """Return `provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def key(self) -> str:
        """Return `provider:model` in lower case, for comparison and look-up."""
        return self.id.lower()

    @property
    def is_local(self) -> bool:
        """Return whether the model runs on the user's own machine."""
        return self.provider in _names().local

    @property
    def is_program(self) -> bool:
        """Return whether a command-line program with its own prompt serves the model.

        The transport decides if there is one. Otherwise names of programs count (`codex:…`); if an
        API has the same name, only short model names that the API lacks count (`gemini:flash`). An
        unknown provider is assumed to be a program.
        """
        if self.transport:
            return self.transport == "cli"
        names = _names()
        if self.provider in names.programs:
            return self.provider not in names.programs_and_apis or self.key in names.stands_for
        return self.provider not in names.providers

    def format(self) -> str:
        """Return the id with its transport, so that `parse` returns an equal value."""
        return f"[{self.transport}]{self.id}" if self.transport else self.id

    def maker_references(self) -> tuple[ProviderId, ...]:
        """Return the references that name the model's maker, if the id names no host.

        A host sets its own prices, so another host's price must not be used for it.
        """
        names = _names()
        is_open = self.provider == "unknown" or self.provider in names.programs
        return tuple(id_ for id_ in self.references() if is_open or id_.provider == self.provider)

    def references(self) -> tuple[ProviderId, ...]:
        """Return the ids under which the same model may be listed, closest first.

        After the id itself come the model behind a short name and the vendor behind a gateway, then
        each of them without date and version. A local model has no other id.
        """
        return _references(self)


def normalize_provider_id(provider_id: str) -> str:
    """Return the id as `provider:model`, without its transport and with aliases resolved."""
    return ProviderId.parse(provider_id).id


def provider_named(text: str) -> str | None:
    """Return the provider named by a word (`openai`, or `any-name:*`); None if it names none."""
    name = _provider(text.removesuffix(":*"))
    return name if text.endswith(":*") or name in _names().providers else None


def priced_as(provider: str) -> str:
    """Return the provider's name in genai-prices."""
    return _names().priced_as.get(provider, provider)


def named_from_prices(provider: str) -> str:
    """Return Holdfast's name of a provider in genai-prices."""
    ours = {theirs: ours for ours, theirs in _names().priced_as.items()}
    return ours.get(provider, provider)


def maker_id(listed: str) -> ProviderId | None:
    """Return the maker's id of a model in a host's list; None if it is ambiguous.

    Variants with another price (`…:batch`) and open models, which any host may serve, return None.
    """
    if ":" in listed or listed.lower().startswith(_names().tagged):
        return None
    maker, model = _bedrock_vendor(listed) or ("", listed)
    if not maker and (gateway := _GATEWAY.fullmatch(listed)):
        maker, model = gateway["vendor"], gateway["model"]
    maker = _provider(maker) if maker else _owner(model) or ""
    if not maker or "/" in model or model.lower().startswith(_names().tagged):
        return None
    return ProviderId("", maker, model)


def host_order(provider: str) -> tuple[int, str]:
    """Return the sort key of a host among the hosts that list other makers' models."""
    hosts = _names().listed_elsewhere.hosts
    return (hosts.index(provider) if provider in hosts else len(hosts), provider)


class _Bedrock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    regions: frozenset[str]
    vendors: frozenset[str]


class _Hosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hosts: tuple[str, ...]


class _NameTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed content of provider_ids.toml."""

    providers: frozenset[str]
    local: frozenset[str]
    programs: frozenset[str]
    programs_and_apis: frozenset[str]
    tagged: tuple[str, ...]
    provider_aliases: dict[str, str]
    id_aliases: dict[str, str]
    bare_models: dict[str, str]
    bedrock: _Bedrock
    vendors: dict[str, str]
    stands_for: dict[str, str]
    listed_elsewhere: _Hosts
    priced_as: dict[str, str]


@cache
def _names() -> _NameTable:
    text = files(__package__).joinpath("provider_ids.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _NameTable)


def _validated(provider_id: str) -> str:
    if not isinstance(provider_id, str):
        raise SettingsError(
            f"a model's name must be text, not {type(provider_id).__name__}", fix=_FIX
        )
    if not provider_id.strip():
        raise SettingsError("the model's name is empty", fix=_FIX)
    if len(provider_id) > MAX_LENGTH:
        raise SettingsError(f"the model's name is longer than {MAX_LENGTH} characters", fix=_FIX)
    if not provider_id.isprintable():
        raise SettingsError("the model's name holds control characters", fix=_FIX)
    return provider_id


_FIX = "Write it as the provider does (gpt-4o), or as provider:model (openai:gpt-4o)."


@lru_cache(maxsize=1024)
def _parse(text: str) -> ProviderId:
    transport = ""
    while prefix := _TRANSPORT.match(text):
        transport, text = transport or prefix[1].strip().lower(), text[prefix.end() :]
    provider, model = _split(text.strip())
    provider, model = _provider(provider), model.strip()
    alias = _names().id_aliases.get(f"{provider}:{model}".lower().removeprefix("unknown:"))
    if alias is not None:
        provider, _, model = alias.partition(":")
    if not model:
        raise SettingsError("the provider id names no model", fix=_FIX)
    return ProviderId(transport, provider, model)


def _provider(name: str) -> str:
    name = name.strip().lower()
    return _names().provider_aliases.get(name, name)


def _split(text: str) -> tuple[str, str]:
    """Split an id into provider and model; the provider is `unknown` if nothing indicates it."""
    if arn := _ARN.fullmatch(text):
        return "bedrock", arn["model"]
    before, colon, after = text.partition(":")
    if colon and _is_provider(before):
        return before, after
    if _is_bedrock(text):
        return "bedrock", text
    if owner := _owner(text):
        return owner, text
    if gateway := _GATEWAY.fullmatch(text):
        return _split_gateway(gateway["vendor"], gateway["model"])
    if colon and before.lower().startswith(_names().tagged):
        return "ollama", text
    if colon and before.strip():
        return before, after
    return "unknown", after if colon else text


def _split_gateway(vendor: str, model: str) -> tuple[str, str]:
    if _is_bedrock(model):
        return "bedrock", model
    return (vendor, model) if _is_provider(vendor) else ("unknown", f"{vendor}/{model}")


def _is_provider(name: str) -> bool:
    return _provider(name) in _names().providers


def _is_bedrock(text: str) -> bool:
    return _bedrock_vendor(text) is not None


def _bedrock_vendor(text: str) -> tuple[str, str] | None:
    """Split `us.anthropic.claude-…` into its vendor and the vendor's model."""
    names = _names().bedrock
    vendor, _, model = text.partition(".")
    if vendor.lower() in names.regions:
        vendor, _, model = model.partition(".")
    if vendor.lower() in names.vendors and model:
        return vendor, model
    return None


def _owner(text: str) -> str | None:
    """Return the maker of a bare model name, by its prefix."""
    lowered = text.lower()
    if ":" in lowered and lowered.startswith(_names().tagged):
        return None
    beginnings = [start for start in _names().bare_models if lowered.startswith(start)]
    return _names().bare_models[max(beginnings, key=len)] if beginnings else None


@lru_cache(maxsize=4096)
def _references(id_: ProviderId) -> tuple[ProviderId, ...]:
    if id_.is_local:
        return (id_,)
    names = dict.fromkeys(_names_of(id_))
    undated = [msgspec.structs.replace(name, model=_undated(name)) for name in names]
    return tuple(names | dict.fromkeys(undated))


def _undated(id_: ProviderId) -> str:
    model = _VERSION.sub("", id_.model) or id_.model
    # Gateways write claude-sonnet-4.5 for Anthropic's claude-sonnet-4-5.
    return model.replace(".", "-") if id_.provider == "anthropic" else model


def _names_of(id_: ProviderId) -> Iterator[ProviderId]:
    yield id_
    names = _names()
    if stands_for := names.stands_for.get(id_.key):
        yield ProviderId.parse(stands_for)
    if vendor := names.vendors.get(id_.provider):
        yield ProviderId("", vendor, id_.model)
    if bedrock := _bedrock_vendor(id_.model):
        yield ProviderId("", _provider(bedrock[0]), bedrock[1])
    gateway = _GATEWAY.fullmatch(id_.model)
    if gateway and _is_provider(gateway["vendor"]):
        yield ProviderId("", _provider(gateway["vendor"]), gateway["model"])
    if owner := _owner(id_.model):
        yield ProviderId("", owner, id_.model.removeprefix("models/"))
