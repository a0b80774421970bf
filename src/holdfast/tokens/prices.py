"""prices: what a model's tokens cost, and the window its vendor gives it.

The data is that of genai-prices, in that package's own JSON format: a snapshot that comes with
Holdfast (prices.json, made by tools/snapshot_prices.py), or a newer file the user keeps in the
data folder. Nothing is ever fetched. Prices are the standard ones in US dollars per million
tokens, without discounts for batches or other tiers of service.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.errors import SettingsError

from .provider_ids import ProviderId, named_from_prices, priced_as

FILE_NAME = "prices.json"
MAX_FILE_BYTES = 67_108_864

_MILLION = 1_000_000
_REMEMBERED = 4096
_FIX = (
    "Take data.json from https://github.com/pydantic/genai-prices (prices/data.json or "
    "prices/new_data/v2/data.json)."
)


class Tier(msgspec.Struct, frozen=True):
    """A rate for requests with more than `start` input tokens; it holds for all their tokens."""

    start: int
    price: Decimal


class Tiered(msgspec.Struct, frozen=True):
    """A rate that rises with the size of the request."""

    base: Decimal
    tiers: tuple[Tier, ...]

    def at(self, input_tokens: int) -> Decimal:
        """Return the rate for a request of this size."""
        reached = [tier for tier in self.tiers if input_tokens > tier.start]
        return max(reached, key=lambda tier: tier.start).price if reached else self.base


Rate = Decimal | Tiered | None


class Rates(msgspec.Struct, frozen=True):
    """What a price list says of one model. A rate that is missing is None."""

    input_mtok: Rate = None
    cache_read_mtok: Rate = None
    cache_write_mtok: Rate = None
    output_mtok: Rate = None
    requests_kcount: Rate = None


class Price(msgspec.Struct, frozen=True):
    """What one model costs at one provider, in US dollars per million tokens."""

    provider: str
    """Who asks this price, by its name in genai-prices."""
    model: str
    rates: Rates

    @property
    def input(self) -> Decimal | None:
        """The rate of input that is not cached; of small requests, where it depends on size."""
        return _at(self.rates.input_mtok, 0)

    @property
    def cache_read(self) -> Decimal | None:
        """The rate of input read from the vendor's cache; None: no such rate."""
        return _at(self.rates.cache_read_mtok, 0)

    @property
    def cache_write(self) -> Decimal | None:
        """The rate of input written to the vendor's cache; None: as other input."""
        return _at(self.rates.cache_write_mtok, 0)

    @property
    def output(self) -> Decimal | None:
        """The rate of output, reasoning included."""
        return _at(self.rates.output_mtok, 0)

    def cost(
        self,
        *,
        input_tokens: int,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> Decimal:
        """Return what a call costs in US dollars.

        `input_tokens` are all input tokens, the cached ones included. Cached tokens that have no
        rate of their own cost what other input costs. Counts below zero are taken as zero.
        """
        read, write = max(cache_read_tokens, 0), max(cache_write_tokens, 0)
        total = max(input_tokens, read + write)
        rates = self.rates
        plain = _at(rates.input_mtok, total) or Decimal(0)
        by_token = (
            (total - read - write) * plain
            + read * _or(_at(rates.cache_read_mtok, total), plain)
            + write * _or(_at(rates.cache_write_mtok, total), plain)
            + max(output_tokens, 0) * (_at(rates.output_mtok, total) or Decimal(0))
        )
        return by_token / _MILLION + (_at(rates.requests_kcount, total) or Decimal(0)) / 1000


def _at(rate: Rate, input_tokens: int) -> Decimal | None:
    return rate.at(input_tokens) if isinstance(rate, Tiered) else rate


def _or(rate: Decimal | None, other: Decimal) -> Decimal:
    return other if rate is None else rate


class Clause(msgspec.Struct, frozen=True):
    """A condition on a name; exactly one field is given."""

    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    equals: str | None = None
    regex: str | None = None
    any_of: tuple[Clause, ...] | None = msgspec.field(name="or", default=None)
    all_of: tuple[Clause, ...] | None = msgspec.field(name="and", default=None)

    def matches(self, name: str) -> bool:
        """Whether the condition holds for a name in lower case."""
        match self:
            case Clause(starts_with=str(part)):
                return name.startswith(part.lower())
            case Clause(contains=str(part)):
                return part.lower() in name
            case Clause(equals=str(part)):
                return name == part.lower()
            case Clause(ends_with=str(part)):
                return name.endswith(part.lower())
            case Clause(regex=str(pattern)):
                return re.search(pattern, name) is not None
            case Clause(any_of=tuple(clauses)):
                return any(clause.matches(name) for clause in clauses)
            case Clause(all_of=tuple(clauses)):
                return all(clause.matches(name) for clause in clauses)
            case _:
                return False


class Constraint(msgspec.Struct, frozen=True):
    """When a price holds: from a date on, or between two times of the day (UTC)."""

    start_date: date | None = None
    start_time: time | None = None
    end_time: time | None = None

    def holds(self, at: datetime) -> bool:
        """Whether the price holds at this moment."""
        at = at.astimezone(UTC)
        if self.start_date is not None:
            return at.date() >= self.start_date
        if self.start_time is None or self.end_time is None:
            return True
        now, start, end = at.time(), _naive(self.start_time), _naive(self.end_time)
        return start <= now < end if start <= end else now >= start or now < end


def _naive(moment: time) -> time:
    if moment.tzinfo is None:
        return moment
    return datetime.combine(date(2000, 1, 2), moment).astimezone(UTC).time()


class Conditional(msgspec.Struct, frozen=True):
    """Rates that hold under a condition; without one, always."""

    prices: Rates
    constraint: Constraint | None = None


class Model(msgspec.Struct, frozen=True):
    """One model in a price list."""

    id: str
    match: Clause
    prices: Rates | tuple[Conditional, ...]
    context_window: int | None = None
    deprecated: bool | None = None

    def rates(self, at: datetime) -> Rates:
        """Return the rates that hold at this moment: of several, the last; if none, the first."""
        if isinstance(self.prices, Rates):
            return self.prices
        for one in reversed(self.prices):
            if one.constraint is None or one.constraint.holds(at):
                return one.prices
        return self.prices[0].prices if self.prices else Rates()


class Provider(msgspec.Struct, frozen=True):
    """One provider's price list."""

    id: str
    models: tuple[Model, ...]
    model_match: Clause | None = None
    provider_match: Clause | None = None
    fallback_model_providers: tuple[str, ...] | None = None


class _File(msgspec.Struct, frozen=True):
    """A file of prices; a bare list of providers is one too."""

    providers: tuple[Provider, ...]
    made: date | None = None


class Listed(NamedTuple):
    """One model of the price lists."""

    id: str
    """As `provider:model`, with our name of the provider."""
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
        # Searching a list takes up to a millisecond, and the same few models are asked for.
        self._entry = lru_cache(maxsize=_REMEMBERED)(self._find_entry)
        self._window = lru_cache(maxsize=_REMEMBERED)(self._find_window)

    @classmethod
    def read(cls, data: bytes, *, where: str = "") -> Prices:
        """Read a file in the JSON format of genai-prices, or raise `SettingsError`."""
        return cls(_decode(data, where).providers)

    def price(self, provider_id: str, *, at: datetime) -> Price | None:
        """Return the price of a model at this moment; None if nobody lists it or it is local."""
        entry = self._entry(ProviderId.parse(provider_id))
        return entry and Price(entry[0].id, entry[1].id, entry[1].rates(at))

    def window(self, provider_id: str) -> int | None:
        """Return the context window of a model; None if no list knows it."""
        return self._window(ProviderId.parse(provider_id))

    def models(self, *, at: datetime) -> Iterator[Listed]:
        """Yield every model of every list, as the lists order them."""
        for provider in self._providers.values():
            name = named_from_prices(provider.id)
            for model in provider.models:
                price = Price(provider.id, model.id, model.rates(at))
                yield Listed(f"{name}:{model.id}", price, model.context_window)

    def _find_entry(self, id_: ProviderId) -> tuple[Provider, Model] | None:
        return next(self._search(id_), None)

    def _find_window(self, id_: ProviderId) -> int | None:
        windows = (model.context_window for _, model in self._search(id_))
        return next((window for window in windows if window), None)

    def _search(self, id_: ProviderId) -> Iterator[tuple[Provider, Model]]:
        """Yield the entries that may be meant, the nearest first."""
        if id_.is_local:
            return
        for reference in id_.references():
            provider = self._provider(reference.provider)
            if provider is not None:
                yield from self._models(provider, reference.model.lower())

    def _provider(self, name: str) -> Provider | None:
        if exact := self._providers.get(priced_as(name)):
            return exact
        for provider in self._providers.values():
            if provider.provider_match and provider.provider_match.matches(name):
                return provider
        return None

    def _models(self, provider: Provider, name: str) -> Iterator[tuple[Provider, Model]]:
        """Yield the provider's own entry, then those of the providers whose models it hosts."""
        others = (self._providers.get(id_) for id_ in provider.fallback_model_providers or ())
        for one in (provider, *(other for other in others if other is not None)):
            model = self._by_id.get((one.id, name)) or next(
                (model for model in one.models if model.match.matches(name)), None
            )
            if model is not None:
                yield one, model


class Loaded(NamedTuple):
    """The prices in force."""

    prices: Prices
    origin: str
    """`bundled`, or the path of the user's file."""
    problem: SettingsError | None = None
    """Why the user's file was passed over, if it was."""


@cache
def _bundled_file() -> _File:
    data = files(__package__).joinpath(FILE_NAME).read_bytes()
    return msgspec.json.decode(data, type=_File)


@cache
def bundled() -> Prices:
    """Return the prices that come with Holdfast."""
    return Prices(_bundled_file().providers)


def load(folder: Path | None) -> Loaded:
    """Return the prices kept in a folder, or those bundled with Holdfast if they are newer.

    A kept file that is broken is reported and passed over, never obeyed in part.
    """
    if folder is None or not (path := folder / FILE_NAME).exists():
        return Loaded(bundled(), "bundled")
    try:
        kept_since = datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
        made = _bundled_file().made
        if made is not None and kept_since < made:
            return Loaded(bundled(), "bundled")
        return Loaded(Prices.read(_read(path), where=str(path)), str(path))
    except OSError as error:
        problem = _problem(f"the prices cannot be read: {error.strerror}", str(path))
    except SettingsError as error:
        problem = error
    return Loaded(bundled(), "bundled", problem)


def update(source: Path, folder: Path) -> int:
    """Keep a file of prices in a folder, and return how many models it lists.

    The file is checked before anything is replaced, and replaced as a whole.
    """
    try:
        data = _read(source)
    except OSError as error:
        raise _problem(f"the file cannot be read: {error.strerror}", str(source)) from error
    providers = _decode(data, str(source)).providers
    try:
        _replace(folder / FILE_NAME, data)
    except OSError as error:
        raise _problem(f"the prices cannot be kept: {error.strerror}", str(folder)) from error
    return sum(len(provider.models) for provider in providers)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise _problem(f"the file is larger than {MAX_FILE_BYTES:,} bytes", str(path))
    return data


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _decode(data: bytes, where: str) -> _File:
    try:
        if data.lstrip()[:1] == b"[":
            file = _File(msgspec.json.decode(data, type=tuple[Provider, ...]))
        else:
            file = msgspec.json.decode(data, type=_File)
        _check(file)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise _problem(f"not a file of prices: {reason[:200]}", where) from None
    return file


def _problem(what: str, where: str) -> SettingsError:
    return SettingsError(what, where=where, fix=_FIX)


def _check(file: _File) -> None:
    """Raise `ValueError` where the types alone allow nonsense."""
    if not any(provider.models for provider in file.providers):
        raise ValueError("it lists no models")
    for provider in file.providers:
        for clause in (provider.model_match, provider.provider_match):
            if clause is not None:
                _check_clause(clause, provider.id)
        for model in provider.models:
            _check_model(model)


def _check_model(model: Model) -> None:
    _check_clause(model.match, model.id)
    if model.context_window is not None and model.context_window < 1:
        raise ValueError(f"the window of {model.id!r} is below 1")
    several = () if isinstance(model.prices, Rates) else model.prices
    for rates in (one.prices for one in several) if several else (model.rates(datetime.now(UTC)),):
        if any(not amount.is_finite() or amount < 0 for amount in _amounts(rates)):
            raise ValueError(f"a price of {model.id!r} is no amount of money")


def _amounts(rates: Rates) -> Iterator[Decimal]:
    for rate in msgspec.structs.astuple(rates):
        if isinstance(rate, Tiered):
            yield rate.base
            yield from (tier.price for tier in rate.tiers)
        elif rate is not None:
            yield rate


def _check_clause(clause: Clause, name: str) -> None:
    given = [part for part in msgspec.structs.astuple(clause) if part is not None]
    if len(given) != 1:
        raise ValueError(f"a condition of {name!r} is not one of those we know")
    if clause.regex is not None:
        try:
            re.compile(clause.regex)
        except re.error:
            raise ValueError(f"a pattern of {name!r} is no regular expression") from None
    for part in (*(clause.any_of or ()), *(clause.all_of or ())):
        _check_clause(part, name)
