"""Parse and validate a price file in the format of genai-prices.

This module knows names, rates and conditions; prices.py applies them to a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import msgspec

from holdfast.errors import SettingsError

_FIX = (
    "Take data.json from https://github.com/pydantic/genai-prices (prices/data.json or "
    "prices/new_data/v2/data.json)."
)


_WORD = re.compile(r"[a-z0-9]+")
_SIZES = frozenset(
    "mini nano micro tiny lite small medium large xl pro max ultra plus flash fast turbo instant "
    "haiku sonnet opus".split()
)
"""Words that distinguish the models of one generation."""


class Tier(msgspec.Struct, frozen=True):
    """A rate for requests with more than `start` input tokens; it applies to all their tokens."""

    start: int
    price: Decimal


class TieredRate(msgspec.Struct, frozen=True):
    """A rate that depends on the size of the request."""

    base: Decimal
    tiers: tuple[Tier, ...]

    def at(self, input_tokens: int) -> Decimal:
        """Return the rate for a request of this size."""
        reached = [tier for tier in self.tiers if input_tokens > tier.start]
        return max(reached, key=lambda tier: tier.start).price if reached else self.base


Rate = Decimal | TieredRate | None


class ModelRates(msgspec.Struct, frozen=True):
    """One model's rates; a missing rate is None."""

    input_mtok: Rate = None
    cache_read_mtok: Rate = None
    cache_write_mtok: Rate = None
    output_mtok: Rate = None
    requests_kcount: Rate = None


class NameCondition(msgspec.Struct, frozen=True):
    """A condition on a model or provider name; exactly one field is set."""

    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    equals: str | None = None
    regex: str | None = None
    any_of: tuple[NameCondition, ...] | None = msgspec.field(name="or", default=None)
    all_of: tuple[NameCondition, ...] | None = msgspec.field(name="and", default=None)

    def names(self, name: str) -> bool:
        """Return whether the condition lists this exact name, in lower case."""
        either = self.any_of or self.all_of or ()
        equals = self.equals is not None and name == self.equals.lower()
        return equals or any(clause.names(name) for clause in either)

    def matches(self, name: str) -> bool:
        """Return whether the condition matches a name in lower case."""
        match self:
            case NameCondition(starts_with=str(part)):
                return name.startswith(part.lower())
            case NameCondition(contains=str(part)):
                return part.lower() in name
            case NameCondition(equals=str(part)):
                return name == part.lower()
            case NameCondition(ends_with=str(part)):
                return name.endswith(part.lower())
            case NameCondition(regex=str(pattern)):
                return re.search(pattern, name) is not None
            case NameCondition(any_of=tuple(clauses)):
                return any(clause.matches(name) for clause in clauses)
            case NameCondition(all_of=tuple(clauses)):
                return all(clause.matches(name) for clause in clauses)
            case _:
                return False


class PricePeriod(msgspec.Struct, frozen=True):
    """A period in which a price is valid: from a date on, or between two times of day (UTC)."""

    start_date: date | None = None
    start_time: time | None = None
    end_time: time | None = None

    def holds(self, at: datetime) -> bool:
        """Return whether the price is valid at a moment."""
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
    """Rates that are valid under a constraint, or always without one."""

    prices: ModelRates
    constraint: PricePeriod | None = None


class Model(msgspec.Struct, frozen=True):
    """One model in a price list."""

    id: str
    match: NameCondition
    prices: ModelRates | tuple[Conditional, ...]
    context_window: int | None = None
    deprecated: bool | None = None

    def rates(self, at: datetime) -> ModelRates:
        """Return the rates valid at a moment: the last match, or the first if none matches."""
        if isinstance(self.prices, ModelRates):
            return self.prices
        for conditional in reversed(self.prices):
            if conditional.constraint is None or conditional.constraint.holds(at):
                return conditional.prices
        return self.prices[0].prices if self.prices else ModelRates()

    def is_meant(self, name: str) -> bool:
        """Return whether a name in lower case refers to this model.

        Lists often contain only a prefix. A size after the prefix makes it another model, which the
        list may lack: `gpt-6.1-sol-mini` is not `gpt-6.1-sol`.
        """
        if not self.match.matches(name):
            return False
        return self.match.names(name) or not (_sizes(name) - _sizes(self.id.lower()))


def _sizes(name: str) -> frozenset[str]:
    return _SIZES.intersection(_WORD.findall(name))


class Provider(msgspec.Struct, frozen=True):
    """One provider's price list."""

    id: str
    models: tuple[Model, ...]
    model_match: NameCondition | None = None
    provider_match: NameCondition | None = None
    fallback_model_providers: tuple[str, ...] | None = None


class PriceFile(msgspec.Struct, frozen=True):
    """A price file; a bare list of providers is valid too."""

    providers: tuple[Provider, ...]
    made: date | None = None


def decode(data: bytes, where: str) -> PriceFile:
    """Parse a price file; raise `SettingsError` with the reason if it is invalid."""
    try:
        if data.lstrip()[:1] == b"[":
            file = PriceFile(msgspec.json.decode(data, type=tuple[Provider, ...]))
        else:
            file = msgspec.json.decode(data, type=PriceFile)
        _check(file)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise price_problem(f"not a file of prices: {reason[:200]}", where) from None
    return file


def price_problem(what: str, where: str) -> SettingsError:
    """Return the error for an invalid or unreadable price file."""
    return SettingsError(what, where=where, fix=_FIX)


def _check(file: PriceFile) -> None:
    """Raise `ValueError` for values that the types allow but that make no sense."""
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
    conditionals = () if isinstance(model.prices, ModelRates) else model.prices
    for rates in (
        (conditional.prices for conditional in conditionals)
        if conditionals
        else (model.rates(datetime.now(UTC)),)
    ):
        if any(not amount.is_finite() or amount < 0 for amount in _amounts(rates)):
            raise ValueError(f"a price of {model.id!r} is no amount of money")


def _amounts(rates: ModelRates) -> Iterator[Decimal]:
    for rate in msgspec.structs.astuple(rates):
        if isinstance(rate, TieredRate):
            yield rate.base
            yield from (tier.price for tier in rate.tiers)
        elif rate is not None:
            yield rate


def _check_clause(clause: NameCondition, name: str) -> None:
    set_fields = [part for part in msgspec.structs.astuple(clause) if part is not None]
    if len(set_fields) != 1:
        raise ValueError(f"a condition of {name!r} is not one of those we know")
    if clause.regex is not None:
        try:
            re.compile(clause.regex)
        except re.error:
            raise ValueError(f"a pattern of {name!r} is no regular expression") from None
    for part in (*(clause.any_of or ()), *(clause.all_of or ())):
        _check_clause(part, name)
