"""Look up what a model's tokens cost, and the context window that its vendor states.

The data is a bundled snapshot of genai-prices (made by tools/snapshot_prices.py) or a newer file in
the data folder; nothing is fetched. Prices are standard ones in US dollars per million tokens,
without discounts for batches or service tiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.errors import SettingsError
from holdfast.tokens.files import replace_file
from holdfast.tokens.price_list import (
    Model,
    ModelRates,
    PriceFile,
    Provider,
    Rate,
    TieredRate,
    decode,
    price_problem,
)

from .provider_ids import ProviderId, host_order, maker_id, named_from_prices, priced_as

FILE_NAME = "prices.json"
MAX_FILE_BYTES = 67_108_864

_MILLION = 1_000_000
_REMEMBERED = 4096


class Price(msgspec.Struct, frozen=True):
    """The price of one model at one provider, in US dollars per million tokens."""

    provider: str
    """Name of the provider in genai-prices."""
    model: str
    rates: ModelRates

    @property
    def input(self) -> Decimal | None:
        """Return the rate of uncached input, for small requests if it depends on size."""
        return _at(self.rates.input_mtok, 0)

    @property
    def cache_read(self) -> Decimal | None:
        """Return the rate of cached input; None if the provider has no such rate."""
        return _at(self.rates.cache_read_mtok, 0)

    @property
    def cache_write(self) -> Decimal | None:
        """Return the rate of input written to the cache; None if it costs as other input."""
        return _at(self.rates.cache_write_mtok, 0)

    @property
    def output(self) -> Decimal | None:
        """Return the rate of output, including reasoning."""
        return _at(self.rates.output_mtok, 0)

    def cost(
        self,
        *,
        input_tokens: int,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        cache_write_hour_tokens: int = 0,
    ) -> Decimal:
        """Return the cost of a call in US dollars.

        `input_tokens` includes the cached tokens. Cached tokens without a rate cost as much as
        other input. Tokens cached for an hour cost twice the input rate (Anthropic's rule; price
        lists state only the five-minute rate). Negative counts are treated as zero.
        """
        read, write = max(cache_read_tokens, 0), max(cache_write_tokens, 0)
        hour = max(cache_write_hour_tokens, 0)
        total = max(input_tokens, read + write + hour)
        rates = self.rates
        plain = _at(rates.input_mtok, total) or Decimal(0)
        by_token = (
            (total - read - write - hour) * plain
            + read * _or(_at(rates.cache_read_mtok, total), plain)
            + write * _or(_at(rates.cache_write_mtok, total), plain)
            + hour * plain * 2
            + max(output_tokens, 0) * (_at(rates.output_mtok, total) or Decimal(0))
        )
        return by_token / _MILLION + (_at(rates.requests_kcount, total) or Decimal(0)) / 1000


def _at(rate: Rate, input_tokens: int) -> Decimal | None:
    return rate.at(input_tokens) if isinstance(rate, TieredRate) else rate


def _or(rate: Decimal | None, other: Decimal) -> Decimal:
    return other if rate is None else rate


class ListedModel(NamedTuple):
    """One model of the price lists."""

    id: str
    """Model id as `provider:model`, with Holdfast's name of the provider."""
    price: Price
    context_window: int | None


class Prices:
    """The price lists of all providers."""

    def __init__(self, providers: tuple[Provider, ...]) -> None:
        self._providers = {provider.id: provider for provider in providers}
        self._by_id = {
            (provider.id, model.id.lower()): model
            for provider in providers
            for model in reversed(provider.models)
        }
        # A search takes up to a millisecond, and callers ask for the same few models.
        self._entry = lru_cache(maxsize=_REMEMBERED)(self._find_entry)
        self._window = lru_cache(maxsize=_REMEMBERED)(self._find_window)

    @classmethod
    def read(cls, data: bytes, *, where: str = "") -> Prices:
        """Parse a price file of genai-prices; raise `SettingsError` if it is invalid."""
        return cls(decode(data, where).providers)

    def price(self, provider_id: str, *, at: datetime) -> Price | None:
        """Return the price of a model at a moment; None if it is local or in no list."""
        entry = self._entry(ProviderId.parse(provider_id))
        return entry and Price(entry[0].id, entry[1].id, entry[1].rates(at))

    def window(self, provider_id: str) -> int | None:
        """Return the context window of a model; None if no list states it."""
        return self._window(ProviderId.parse(provider_id))

    def models(self, *, at: datetime) -> Iterator[ListedModel]:
        """Yield every model of every list, in the order of the lists."""
        for provider in self._providers.values():
            name = named_from_prices(provider.id)
            for model in provider.models:
                price = Price(provider.id, model.id, model.rates(at))
                yield ListedModel(f"{name}:{model.id}", price, model.context_window)

    def _find_entry(self, id_: ProviderId) -> tuple[Provider, Model] | None:
        return next(self._search(id_), None)

    def _find_window(self, id_: ProviderId) -> int | None:
        windows = (model.context_window for _, model in self._search(id_))
        return next((window for window in windows if window), None)

    def _search(self, id_: ProviderId) -> Iterator[tuple[Provider, Model]]:
        """Yield the entries that may match an id, best match first."""
        if id_.is_local:
            return
        for reference in id_.references():
            provider = self._provider(reference.provider)
            if provider is not None:
                yield from self._models(provider, reference.model.lower())
        for reference in id_.maker_references():
            yield from self._elsewhere.get(reference.key, ())

    @cached_property
    def _elsewhere(self) -> Mapping[str, Sequence[tuple[Provider, Model]]]:
        """Return the entries of all lists by the maker's id of the model, ordered by `host_order`.

        Only exact names count here, not the conditions of a list.
        """
        entries: dict[str, list[tuple[Provider, Model]]] = {}
        hosts = self._providers.values()
        for host in sorted(hosts, key=lambda host: host_order(named_from_prices(host.id))):
            for model in host.models:
                if id_ := maker_id(model.id):
                    entries.setdefault(id_.key, []).append((host, model))
        return entries

    def _provider(self, name: str) -> Provider | None:
        if exact := self._providers.get(priced_as(name)):
            return exact
        for provider in self._providers.values():
            if provider.provider_match and provider.provider_match.matches(name):
                return provider
        return None

    def _models(self, provider: Provider, name: str) -> Iterator[tuple[Provider, Model]]:
        """Yield the provider's own entry, then those of the providers whose models it hosts."""
        hosted = (self._providers.get(id_) for id_ in provider.fallback_model_providers or ())
        for lister in (provider, *(host for host in hosted if host is not None)):
            model = self._by_id.get((lister.id, name)) or next(
                (model for model in lister.models if model.is_meant(name)), None
            )
            if model is not None:
                yield lister, model


class LoadedPrices(NamedTuple):
    """The active prices and their origin."""

    prices: Prices
    origin: str
    """`bundled`, or the path of the user's file."""
    problem: SettingsError | None = None
    """Why the user's file was ignored, if it was."""


@cache
def _bundled_file() -> PriceFile:
    data = files(__package__).joinpath(FILE_NAME).read_bytes()
    return msgspec.json.decode(data, type=PriceFile)


@cache
def bundled() -> Prices:
    """Return the prices bundled with Holdfast."""
    return Prices(_bundled_file().providers)


def bundled_date() -> date:
    """Return the date of the bundled prices, for results that must not depend on the clock."""
    return _bundled_file().made or date(2026, 1, 1)


def load(folder: Path | None) -> LoadedPrices:
    """Return the prices stored in a folder, or the bundled ones if those are newer.

    An invalid file is reported in `problem` and ignored completely.
    """
    if folder is None or not (path := folder / FILE_NAME).exists():
        return LoadedPrices(bundled(), "bundled")
    try:
        stored_on = datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
        released_on = _bundled_file().made
        if released_on is not None and stored_on < released_on:
            return LoadedPrices(bundled(), "bundled")
        return LoadedPrices(Prices.read(_read(path), where=str(path)), str(path))
    except OSError as error:
        problem = price_problem(f"the prices cannot be read: {error.strerror}", str(path))
    except SettingsError as error:
        problem = error
    return LoadedPrices(bundled(), "bundled", problem)


def update(source: Path, folder: Path) -> int:
    """Store a price file in a folder and return the number of models it lists.

    The file is validated first and then replaced atomically.
    """
    try:
        data = _read(source)
    except OSError as error:
        raise price_problem(f"the file cannot be read: {error.strerror}", str(source)) from error
    providers = decode(data, str(source)).providers
    try:
        replace_file(folder / FILE_NAME, data)
    except OSError as error:
        raise price_problem(f"the prices cannot be kept: {error.strerror}", str(folder)) from error
    return sum(len(provider.models) for provider in providers)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise price_problem(f"the file is larger than {MAX_FILE_BYTES:,} bytes", str(path))
    return data
