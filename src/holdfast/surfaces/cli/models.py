"""models: the command that lists models with their limits, accuracy and prices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Column

from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.tokens import prices
from holdfast.tokens.families import describe
from holdfast.tokens.limits import DEFAULT_MODEL_LIMITS, ModelContextRegistry
from holdfast.tokens.prices import Price, Prices
from holdfast.tokens.provider_ids import ProviderId, provider_named

from ._context import OUTPUT, CommandContext, shared_options
from ._output import Output, complain, counted, remark, table

NOTHING = "-"
_COLUMNS = (
    *("model", "window", "output", "vocabulary", "accuracy", "in", "cached", "out"),
    "window from",
)
_NUMBERS = ("window", "output", "in", "cached", "out")
_FOLDED = ("model", "vocabulary")
_ONLY_WIDE = ("vocabulary", "window from")
_WIDE = 110


class ModelRow(NamedTuple):
    """One model of the listing."""

    id: str
    window: int | None
    max_output: int | None
    vocabulary: str
    accuracy: str
    price: Price | None
    origin: str
    """Where the window comes from."""


@shared_options(*OUTPUT)
def models(
    context: CommandContext,
    filter_: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="Part of an id: claude, openai:gpt-5.")
    ] = "",
    update: Annotated[
        Path | None,
        typer.Option(
            "--update", metavar="FILE", help="Store a newer price list (JSON of genai-prices)."
        ),
    ] = None,
) -> None:
    """List models with their context window, maximum output, token counting and prices.

    Prices are US dollars per million tokens: input, input read from the provider's cache, output.
    Where a price rises with the size of the request, the price of small requests is shown. Nothing
    is downloaded: prices come with Holdfast, or from the file that --update stored. A dash means
    unknown. Narrow terminals show fewer columns.

    \b
    Examples:
      holdfast config models claude
      holdfast config models openai:gpt-5 --output json
      holdfast config models --update data.json
    """
    settings = context.settings
    folder = settings.data_folder
    if update is not None:
        _update(update, folder)
        return
    rows = list(_rows(filter_, settings, _prices(folder)))
    if not rows:
        remark(f"No model matches {filter_!r}.")
        raise typer.Exit(1)
    _show(rows, Output(settings))


def _update(source: Path, folder: Path | None) -> None:
    if folder is None:
        raise SettingsError(
            "there is no data folder to store the prices in", where="data_dir", fix="Set data_dir."
        )
    number = prices.update(source, folder)
    remark(f"Stored the prices of {counted(number, 'model')} in {folder / prices.FILE_NAME}.")


def _prices(folder: Path | None) -> Prices:
    loaded = prices.load(folder)
    if loaded.problem is not None:
        complain(loaded.problem)
        remark("  The prices that come with Holdfast are used instead.")
    return loaded.prices


def _rows(filter_: str, settings: Settings, lists: Prices) -> Iterator[ModelRow]:
    """Yield the models whose id contains the filter, or else the one that it is an alias of."""
    registry = ModelContextRegistry(settings, prices=lists)
    now = datetime.now(UTC)
    ids = [id_ for id_ in _ids(settings, lists, now) if filter_.lower() in id_.lower()]
    if not ids and filter_:
        id_ = ProviderId.parse(filter_).id
        is_known = registry.known_window(id_) or lists.price(id_, at=now)
        ids = [id_] if is_known else []
    for id_ in ids:
        yield _row(id_, registry, lists.price(id_, at=now))


def _ids(settings: Settings, lists: Prices, now: datetime) -> list[str]:
    """Return the ids of all configured, built-in and priced models."""
    configured = [
        ProviderId.parse(key).id
        for key in settings.model_context_overrides
        if provider_named(key) is None
    ]
    built_in = [id_ for id_ in DEFAULT_MODEL_LIMITS if id_ != "_default"]
    priced = [model.id for model in lists.models(at=now)]
    by_key = {id_.lower(): id_ for id_ in reversed([*configured, *built_in, *priced])}
    return list(reversed(by_key.values()))


def _row(id_: str, registry: ModelContextRegistry, price: Price | None) -> ModelRow:
    limits, origins = registry.trace(id_)
    counted = describe(id_)
    origin, of_output = origins["context_window"], origins["max_output_tokens"]
    return ModelRow(
        id_,
        None if origin == "default" else limits.context_window,
        None if of_output == "default" else limits.max_output_tokens,
        counted.vocabulary,
        counted.accuracy,
        price,
        NOTHING if origin == "default" else origin,
    )


def _show(rows: list[ModelRow], out: Output) -> None:
    def draw(console: Console) -> None:
        names = [name for name in _COLUMNS if console.width >= _WIDE or name not in _ONLY_WIDE]
        cells = [[_cells(row)[name] for name in names] for row in rows]
        console.print(table(*map(_column, names), rows=cells))

    out.emit([_json(row) for row in rows], draw)


def _cells(row: ModelRow) -> dict[str, str]:
    price = row.price
    rates = (price.input, price.cache_read, price.output) if price else (None, None, None)
    cells = (
        row.id,
        _short(row.window),
        _short(row.max_output),
        row.vocabulary,
        row.accuracy,
        *map(_dollars, rates),
        row.origin,
    )
    return dict(zip(_COLUMNS, cells, strict=True))


def _column(name: str) -> Column:
    return Column(
        name,
        justify="right" if name in _NUMBERS else "left",
        no_wrap=name not in _FOLDED,
        overflow="fold",
    )


def _short(tokens: int | None) -> str:
    if tokens is None:
        return NOTHING
    return f"{tokens / 1000:.0f}K" if tokens < 1_000_000 else f"{tokens / 1_000_000:.3g}M"


def _dollars(amount: Decimal | None) -> str:
    return NOTHING if amount is None else f"{amount.normalize():f}"


def _json(row: ModelRow) -> dict[str, Any]:
    price = row.price
    return {
        "id": row.id,
        "context_window": row.window,
        "max_output_tokens": row.max_output,
        "vocabulary": row.vocabulary,
        "accuracy": row.accuracy,
        "price_per_million": price
        and {
            "input": _number(price.input),
            "cache_read": _number(price.cache_read),
            "cache_write": _number(price.cache_write),
            "output": _number(price.output),
            "currency": "USD",
            "listed_by": price.provider,
        },
        "window_from": None if row.origin == NOTHING else row.origin,
    }


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
