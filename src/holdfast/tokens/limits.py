"""Return how many tokens a model accepts and how many of them a request may use.

This module counts nothing and reads no settings: overrides arrive as arguments. Each field is
looked up separately, in this order: session override, model override, provider override, the
provider's own statement, limits.toml, the price lists, the default for unknown models.
"""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from holdfast.errors import HoldfastWarning, SettingsError

from . import prices as price_lists
from .prices import Prices
from .provider_ids import ProviderId, normalize_provider_id, provider_named

Mode = Literal["input_only", "combined"]
"""Whether the window holds input only, or input and output together."""

DEFAULT_BUFFER_TOKENS = 256
DEFAULT_OUTPUT_TOKENS = 16_384
"""Tokens reserved for an answer of unknown length, or a quarter of the window if that is less."""

_OVERRIDES = "model_context_overrides"
_REMEMBERED = 1024
_Tokens = Annotated[int, Meta(ge=0)]
_Window = Annotated[int, Meta(ge=1)]


class ModelContextLimits(msgspec.Struct, frozen=True):
    """The token limits of one model."""

    provider: str
    model: str
    context_window: int
    """Maximum input tokens; in `combined` mode, input and output together."""
    max_output_tokens: int
    """Maximum tokens of one answer. Informational: it is never subtracted on its own."""
    output_reserved: int | None = None
    """Tokens to reserve for the answer; None lets `output_reserve` decide."""
    mode: Mode = "input_only"

    @property
    def input_budget(self) -> int:
        """Return the input tokens of a one-off request.

        This is the window, less the output's reserve if they share it.
        """
        return max(self.context_window - output_reserve(self), 0)


def output_reserve(
    limits: ModelContextLimits, *, output: int | None = None, agent_loop: bool = False
) -> int:
    """Return how many tokens of the window are reserved for the answer.

    A one-off request to an `input_only` model reserves only `output_reserved`, if set. Every other
    request uses the first of these: `output` (the request's own limit for its answer, reasoning
    included), `output_reserved`, or 16,384 tokens capped at a quarter of the window.
    """
    if output is not None and output < 0:
        raise SettingsError("the output limit is below zero", where="output")
    if limits.mode == "input_only" and not agent_loop:
        return limits.output_reserved or 0
    if output is not None:
        return output
    if limits.output_reserved is not None:
        return limits.output_reserved
    return min(DEFAULT_OUTPUT_TOKENS, limits.context_window // 4)


def input_limit(
    limits: ModelContextLimits,
    *,
    output: int | None = None,
    buffer_tokens: int = DEFAULT_BUFFER_TOKENS,
    margin: float = 0.0,
    agent_loop: bool = False,
) -> int:
    """Return the maximum input tokens of a request; 0 means that it must not be sent.

    The answer's reserve is subtracted from the window, then one margin for counting errors:
    `buffer_tokens` or the share `margin` of the remainder, whichever is larger.
    """
    if buffer_tokens < 0:
        raise SettingsError("the buffer is below zero", where="buffer_tokens")
    if not 0 <= margin <= 1:
        raise SettingsError("the margin is not between 0 and 1", where="margin")
    usable = limits.context_window - output_reserve(limits, output=output, agent_loop=agent_loop)
    share = math.ceil(Decimal(str(margin)) * max(usable, 0))
    return max(usable - max(buffer_tokens, share), 0)


class Override(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits that take precedence over the built-in ones; None leaves a field unchanged."""

    context_window: _Window | None = None
    max_output_tokens: _Tokens | None = None
    output_reserved: _Tokens | None = None
    mode: Mode | None = None
    cli_overhead: _Tokens | None = None
    """Tokens of the system prompt that a command-line program sends before the user's text."""


class CliOverhead(NamedTuple):
    """Tokens that a command-line program sends before the user's text, with the source."""

    tokens: int
    source: str


class TracedLimits(NamedTuple):
    """The limits of a model and the source of each field."""

    limits: ModelContextLimits
    origins: Mapping[str, str]
    """By field: `session`, `config KEY`, `provider`, `built-in`, `prices` or `default`."""


class HasOverrides(Protocol):
    """The part of a configuration that the registry reads; `Settings` has it."""

    @property
    def model_context_overrides(self) -> Mapping[str, object]:
        """Return `Override` fields by `provider:model`, or by the provider's name alone."""


class ProviderManager(Protocol):
    """A client that can ask providers for the limits of their models."""

    def model_limits(self, provider_id: str, /) -> Mapping[str, object] | None:
        """Return a model's limits, with the fields of `Override`; None if unknown."""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context_window: _Window
    max_output_tokens: _Tokens
    mode: Mode
    source: str
    name: str = ""
    ids: tuple[str, ...] = ()
    provider: str = ""
    model: str = ""


class _OverheadRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: _Tokens
    source: str


class _LimitTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed content of limits.toml."""

    default: _Row
    family: tuple[_Row, ...]
    overhead: dict[str, _OverheadRow]

    def limits(self) -> Iterator[tuple[str, ModelContextLimits]]:
        for row in self.family:
            for id_ in row.ids:
                yield id_, _limits(row, *id_.split(":", 1))
        yield "_default", _limits(self.default, self.default.provider, self.default.model)

    def sources(self) -> Iterator[tuple[str, str]]:
        for row in self.family:
            yield from ((id_, row.source) for id_ in row.ids)
        yield "_default", self.default.source


def _limits(row: _Row, provider: str, model: str) -> ModelContextLimits:
    return ModelContextLimits(
        provider, model, row.context_window, row.max_output_tokens, mode=row.mode
    )


def _load() -> _LimitTable:
    text = files(__package__).joinpath("limits.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _LimitTable)


_TABLE = _load()

DEFAULT_MODEL_LIMITS: Mapping[str, ModelContextLimits] = MappingProxyType(dict(_TABLE.limits()))
"""Built-in limits by `provider:model`; `_default` is for unknown models."""

LIMIT_SOURCES: Mapping[str, str] = MappingProxyType(dict(_TABLE.sources()))
"""Sources of `DEFAULT_MODEL_LIMITS`, by the same keys."""

CLI_OVERHEAD_PROVENANCE: Mapping[str, CliOverhead] = MappingProxyType(
    {name: CliOverhead(row.tokens, row.source) for name, row in _TABLE.overhead.items()}
)
"""Prompt tokens and their source, by command-line program."""

CLI_SYSTEM_PROMPT_OVERHEAD: Mapping[str, int] = MappingProxyType(
    {name: overhead.tokens for name, overhead in CLI_OVERHEAD_PROVENANCE.items()}
)
"""Prompt tokens by command-line program; `_default` is for unknown programs."""


class ModelContextRegistry:
    """The limits of every model, with the overrides of one configuration applied.

    A key of `config.model_context_overrides` is a model id in any spelling or a provider: `openai`,
    or `my-gateway:*` for a provider without a known name.
    """

    def __init__(
        self,
        config: HasOverrides | None = None,
        provider_manager: ProviderManager | None = None,
        *,
        prices: Prices | None = None,
    ) -> None:
        self.overrides: Mapping[str, object] = (
            {} if config is None else config.model_context_overrides
        )
        self.provider_manager = provider_manager
        self._prices = prices
        # Every request resolves the same few models, and only `provider_manager` can change a
        # result.
        self._unasked = lru_cache(maxsize=_REMEMBERED)(self._trace)
        self._by_model: dict[str, tuple[str, Override]] = {}
        self._by_provider: dict[str, tuple[str, Override]] = {}
        for key, value in self.overrides.items():
            override = (key, _override(value, f'{_OVERRIDES}."{key[:100]}"'))
            provider = provider_named(key)
            if provider is None:
                self._by_model[ProviderId.parse(key).key] = override
            else:
                self._by_provider[provider] = override

    def normalize_provider_id(self, provider_id: str) -> str:
        """Return the id as `provider:model`, without its transport and with aliases resolved."""
        return normalize_provider_id(provider_id)

    def resolve(
        self, provider_id: str, *, session: Mapping[str, object] | None = None
    ) -> ModelContextLimits:
        """Return the limits of a model; fields that no source states take the default."""
        return self.trace(provider_id, session=session).limits

    def trace(
        self, provider_id: str, *, session: Mapping[str, object] | None = None
    ) -> TracedLimits:
        """Return the limits of a model and the source of each field."""
        id_ = ProviderId.parse(provider_id)
        if session is None and self.provider_manager is None:
            return self._unasked(id_)
        return self._trace(id_, session)

    def _trace(self, id_: ProviderId, session: Mapping[str, object] | None = None) -> TracedLimits:
        values: dict[str, object] = {}
        origins: dict[str, str] = {}
        for origin, override in self._levels(id_, session):
            for field in ("context_window", "max_output_tokens", "output_reserved", "mode"):
                value = getattr(override, field)
                if value is not None and field not in values:
                    values[field], origins[field] = value, origin
        stated = {"provider": id_.provider, "model": id_.model} | values
        return TracedLimits(msgspec.convert(stated, ModelContextLimits), origins)

    def known_window(
        self, provider_id: str, *, session: Mapping[str, object] | None = None
    ) -> int | None:
        """Return the context window stated for this exact model; None instead of a default."""
        limits, origins = self.trace(provider_id, session=session)
        return None if origins["context_window"] == "default" else limits.context_window

    def overhead(self, provider_id: str) -> int:
        """Return the prompt tokens of the id's command-line program.

        Return 0 if the model is reached through an API, which adds no program prompt.
        """
        id_ = ProviderId.parse(provider_id)
        if not id_.is_program:
            return 0
        for _, override in self._configured(id_):
            if override.cli_overhead is not None:
                return override.cli_overhead
        default = CLI_SYSTEM_PROMPT_OVERHEAD["_default"]
        return CLI_SYSTEM_PROMPT_OVERHEAD.get(id_.provider, default)

    def _levels(
        self, id_: ProviderId, session: Mapping[str, object] | None
    ) -> Iterator[tuple[str, Override]]:
        """Yield each source's values, highest precedence first."""
        if session is not None:
            yield "session", _override(session, "session")
        yield from self._configured(id_)
        if stated := self._stated(id_):
            yield "provider", stated
        for reference in id_.references():
            if row := DEFAULT_MODEL_LIMITS.get(reference.key):
                yield "built-in", _as_override(row)
                break
        window = (self._prices or price_lists.bundled()).window(id_.id)
        yield "prices", Override(context_window=window)
        yield "default", _as_override(DEFAULT_MODEL_LIMITS["_default"])

    def _configured(self, id_: ProviderId) -> Iterator[tuple[str, Override]]:
        for reference in id_.references():
            if reference.provider == id_.provider and reference.key in self._by_model:
                key, override = self._by_model[reference.key]
                yield f"config {key}", override
        if id_.provider in self._by_provider:
            key, override = self._by_provider[id_.provider]
            yield f"config {key}", override

    def _stated(self, id_: ProviderId) -> Override | None:
        """Ask the provider for its limits; warn and return None if the lookup fails."""
        if self.provider_manager is None:
            return None
        try:
            stated = self.provider_manager.model_limits(id_.id)
            return None if stated is None else _override(stated, f"limits of {id_.id}")
        except Exception as error:  # noqa: BLE001  # code of others, which may raise anything
            warnings.warn(
                f"the limits that {id_.provider} states were passed over: {type(error).__name__}",
                HoldfastWarning,
                stacklevel=2,
            )
            return None


def get_effective_context(provider_id: str, registry: ModelContextRegistry) -> int:
    """Return the window left for the user of a command-line program or an API.

    Only the program's prompt is subtracted, because a one-off request shares no tokens with its
    output. Raise `SettingsError` if the prompt fills the window.
    """
    id_ = registry.normalize_provider_id(provider_id)
    # Pass the full id to `overhead`: the normalized id lacks the transport that marks a program.
    window, overhead = registry.resolve(id_).context_window, registry.overhead(provider_id)
    if not 0 <= overhead < window:
        raise SettingsError(
            f"the program's own prompt of {overhead:,} tokens leaves nothing of a window of "
            f"{window:,}",
            where=id_,
            fix=f"Set cli_overhead or context_window for it in {_OVERRIDES}.",
        )
    if overhead * 2 > window:
        warnings.warn(
            f"more than half of the window of {id_} is the program's own prompt",
            HoldfastWarning,
            stacklevel=2,
        )
    return window - overhead


def _override(value: object, where: str) -> Override:
    try:
        if isinstance(value, Override):
            return value
        return msgspec.convert(value, Override, from_attributes=True)
    except ValueError as error:
        raise SettingsError(
            f"not limits of a model: {str(error)[:200]}",
            where=where,
            fix=f"It takes {', '.join(Override.__struct_fields__)}.",
        ) from None


def _as_override(limits: ModelContextLimits) -> Override:
    return Override(
        context_window=limits.context_window,
        max_output_tokens=limits.max_output_tokens,
        output_reserved=limits.output_reserved,
        mode=limits.mode,
    )
