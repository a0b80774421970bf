"""Models that only other providers list: their price and window, never those of another model."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.tokens import ModelContextRegistry, prices
from holdfast.tokens.prices import Prices
from holdfast.tokens.provider_ids import ProviderId, priced_as

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SIZES = ("mini", "pro", "flash")
LISTS = Path(prices.__file__).with_name("prices.json")
_REGION = r"(?:global|regional|us|eu|apac|jp|au|in|us-gov)\."


def bare(name: str) -> str:
    """Return a listed name without path, region and maker; written apart from the package."""
    last = name.lower().rsplit("/", 1)[-1]
    return re.sub(rf"^(?:{_REGION})?(?:[a-z0-9]+\.)?(?=[a-z])", "", last)


def entry(name: str, match: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    rates = {"input_mtok": 1, "output_mtok": 2}
    return {"id": name, "match": match or {"equals": name}, "prices": rates} | fields


def lists(**providers: list[dict[str, Any]]) -> Prices:
    value = [{"id": name, "name": name, "models": models} for name, models in providers.items()]
    return Prices.read(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("provider", "listed"),
    [
        ("aws", "global.openai.gpt-6.1-sol"),
        ("aws", "regional.openai.gpt-6.1-sol"),
        ("openrouter", "openai/gpt-6.1-sol"),
        ("github-copilot", "gpt-6.1-sol"),
    ],
)
@pytest.mark.parametrize("asked", ["gpt-6.1-sol", "openai:gpt-6.1-sol", "openai/gpt-6.1-sol"])
def test_a_model_that_another_provider_lists_is_found(
    provider: str, listed: str, asked: str
) -> None:
    known = lists(openai=[entry("gpt-4o")], **{provider: [entry(listed, context_window=7)]})
    price = known.price(asked, at=NOW)
    assert price is not None
    assert (price.provider, price.model) == (provider, listed)
    assert known.window(asked) == 7
    assert ModelContextRegistry(prices=known).known_window(asked) == 7
    dated = known.price(f"{asked}-2026-09-29", at=NOW)
    assert dated == price


@pytest.mark.parametrize(
    "listed",
    [
        "openai/gpt-6.1-sol-mini",
        "openai/gpt-6.1",
        "openai/gpt-6-1-sol",
        "openai/gpt-6.1-sol:batch",
        "openai/gpt-6.1-sol:free",
        "somebody/gpt-6.1-sol",
        "global.somebody.gpt-6.1-sol",
    ],
)
def test_another_model_is_never_taken_for_it(listed: str) -> None:
    known = lists(openai=[entry("gpt-4o")], openrouter=[entry(listed)], aws=[entry(listed)])
    assert known.price("gpt-6.1-sol", at=NOW) is None
    assert known.window("gpt-6.1-sol") is None


@pytest.mark.parametrize("asked", ["groq:gpt-6.1-sol", "ollama:gpt-6.1-sol", "my-gateway:llama-4"])
def test_what_a_host_asks_is_not_taken_from_another_host(asked: str) -> None:
    other = [entry("openai/gpt-6.1-sol"), entry("meta/llama-4")]
    known = lists(groq=[entry("llama-3")], openrouter=other)
    assert known.price(asked, at=NOW) is None


def test_the_makers_own_list_comes_first_and_hosts_in_one_order() -> None:
    def priced(provider: str, name: str, price: int) -> dict[str, list[dict[str, Any]]]:
        return {provider: [entry(name, prices={"input_mtok": price})]}

    everywhere = [
        priced("quicksilverpro", "gpt-6.1-sol", 5),
        priced("aws", "global.openai.gpt-6.1-sol", 4),
        priced("openrouter", "openai/gpt-6.1-sol", 3),
        priced("openai", "gpt-6.1-sol", 2),
    ]
    for count, expected in ((4, "openai"), (3, "openrouter"), (2, "aws"), (1, "quicksilverpro")):
        for chosen in (everywhere[:count], everywhere[:count][::-1]):
            merged = {name: models for one in chosen for name, models in one.items()}
            price = lists(**merged).price("gpt-6.1-sol", at=NOW)
            assert price is not None
            assert price.provider == expected


def given_names() -> set[str]:
    """Return every name that a list gives in full: ids, and conditions of equality."""
    names: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for member in value:
                walk(member)
        elif isinstance(value, dict):
            names.update(str(value[key]).lower() for key in ("id", "equals") if key in value)
            for member in value.values():
                walk(member)

    walk(json.loads(LISTS.read_text("utf-8")))
    return names


def test_every_name_of_the_table_finds_itself_or_nothing() -> None:
    """Bare names, over the whole table: as clients send them."""
    known = prices.bundled()
    names = {bare(one.id.partition(":")[2]) for one in known.models(at=NOW)}
    found, wrong = 0, []
    for name in names:
        price = known.price(name, at=NOW)
        found += price is not None
        maker = priced_as(ProviderId.parse(name).provider)
        if price and ":" not in name and price.provider != maker and bare(price.model) != name:
            wrong.append((name, price.provider, price.model))
    assert wrong == []
    assert found > 450


@pytest.mark.slow
def test_a_size_behind_a_name_is_another_model_everywhere_in_the_table() -> None:
    known, given = prices.bundled(), given_names()
    wrong = []
    for one in known.models(at=NOW):
        for size in SIZES:
            name = f"{one.id}-{size}"
            price = known.price(name, at=NOW)
            listed = name.partition(":")[2].lower()
            if price and size not in price.model.lower() and listed not in given:
                wrong.append((name, price.provider, price.model))
    assert wrong == []


def test_the_table_knows_the_default_model_of_codex() -> None:
    registry = ModelContextRegistry()
    assert (registry.known_window("gpt-6.1-sol") or 0) >= 1_000_000
    price = prices.bundled().price("gpt-6.1-sol", at=NOW)
    assert price is not None
    assert price.model.endswith("gpt-6.1-sol")
    assert prices.bundled().price("gpt-6.1-sol-mini", at=NOW) is None
    assert registry.known_window("gpt-6.1-sol-mini") is None
