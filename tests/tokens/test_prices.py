from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from genai_prices.data import providers as their_providers
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.tokens import prices
from holdfast.tokens.price_list import ModelRates
from holdfast.tokens.prices import Price, Prices
from holdfast.tokens.provider_ids import named_from_prices
from tests.support.scripts import load

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


def model(name: str = "m", **fields: Any) -> dict[str, Any]:
    return {"id": name, "match": {"equals": name}, "prices": {"input_mtok": 1}} | fields


def listing(*models: dict[str, Any], provider: str = "openai") -> list[dict[str, Any]]:
    return [{"id": provider, "name": "A provider", "models": list(models)}]


def read(value: object) -> Prices:
    return Prices.read(json.dumps(value).encode())


def price_of(id_: str, lists: Prices | None = None, at: datetime = NOW) -> Price:
    price = (lists or prices.bundled()).price(id_, at=at)
    assert price is not None
    return price


# The snapshot


def test_snapshot_is_what_the_locked_package_says() -> None:
    snapshot = load(ROOT / "tools" / "snapshot_prices.py")
    kept = json.loads((ROOT / "src" / "holdfast" / "tokens" / "prices.json").read_text("utf-8"))
    assert kept | {"made": ""} == snapshot.snapshot() | {"made": ""}, "run tools/snapshot_prices.py"


def test_snapshot_carries_its_licence() -> None:
    kept = json.loads((ROOT / "src" / "holdfast" / "tokens" / "prices.json").read_text("utf-8"))
    assert kept["licence"].startswith("The MIT License")
    assert "genai-prices" in kept["source"]


@pytest.mark.slow
@pytest.mark.parametrize("at", [NOW, datetime(2024, 1, 1, tzinfo=UTC), NOW.replace(hour=20)])
def test_every_model_costs_what_the_package_would_charge(at: datetime) -> None:
    usage = {"input_tokens": 300_000, "output_tokens": 7000, "cache_read_tokens": 90_000}
    compared = 0
    for provider in their_providers:
        for theirs in provider.models:
            standard = theirs.get_prices(at)
            # We leave out: prices of cache writes by duration, audio, images, searches.
            if set(standard.__dict__) - set(ModelRates.__struct_fields__):
                continue
            charged = standard.calc_price(genai_prices.Usage(**usage))["total_price"]
            price = price_of(f"{named_from_prices(provider.id)}:{theirs.id}", at=at)
            assert (price.provider, price.model) == (provider.id, theirs.id)
            assert price.cost(**usage) == charged, theirs.id
            compared += 1
    assert compared > 1900


@pytest.mark.slow
def test_models_are_found_where_the_package_finds_them() -> None:
    asked = [
        ("openai", "gpt-4o-2024-08-06"),
        ("openai", "o3-2025-04-16"),
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("google", "gemini-2.5-flash"),
        ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("azure", "gpt-4o"),
        ("x-ai", "grok-4-fast-non-reasoning"),
        ("mistral", "mistral-small-latest"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        ("groq", "openai/gpt-oss-120b"),
        ("deepseek", "deepseek-chat"),
        ("cohere", "command-a-03-2025"),
    ]
    usage = genai_prices.Usage(input_tokens=1000, output_tokens=10)
    for provider, name in asked:
        theirs = genai_prices.calc_price(
            usage, name, provider_id=provider, genai_request_timestamp=NOW
        )
        ours = price_of(f"{named_from_prices(provider)}:{name}")
        assert ours.model == theirs.model.id
        assert ours.cost(input_tokens=1000, output_tokens=10) == theirs.total_price


def test_every_listed_id_finds_its_own_entry() -> None:
    lists = prices.bundled()
    listed = list(lists.models(at=NOW))
    assert len(listed) > 2000
    assert [one.id for one in listed if lists.price(one.id, at=NOW) != one.price] == []


def test_prices_are_read_without_network_threads_or_their_package() -> None:
    script = """
import socket, sys, threading
def refuse(*_): raise AssertionError("a connection was opened")
socket.socket.connect = socket.getaddrinfo = refuse
from datetime import UTC, datetime
from holdfast.tokens import prices
assert prices.bundled().price("openai:gpt-4o", at=datetime.now(UTC))
assert threading.active_count() == 1
assert not {"genai_prices", "httpx", "httpx2", "urllib.request"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


# Lookup


@pytest.mark.parametrize(
    ("id_", "listed"),
    [
        ("gpt-4o", ("openai", "gpt-4o")),
        ("claude:sonnet", ("anthropic", "claude-sonnet-4-5")),
        ("[cli]claude:haiku", ("anthropic", "claude-haiku-4-5")),
        ("opencode:openai/gpt-4.1", ("openai", "gpt-4.1")),
        ("anthropic/claude-sonnet-4.5", ("anthropic", "claude-sonnet-4-5")),
        ("openrouter:anthropic/claude-sonnet-4.5", ("openrouter", "anthropic/claude-sonnet-4.5")),
    ],
)
def test_spellings_of_an_id_find_the_price(id_: str, listed: tuple[str, str]) -> None:
    price = price_of(id_)
    assert (price.provider, price.model) == listed


@pytest.mark.parametrize("id_", ["nobody:knows", "ollama:gpt-oss:120b", "vllm:gpt-4o", "unused"])
def test_unknown_and_local_models_have_no_price(id_: str) -> None:
    assert prices.bundled().price(id_, at=NOW) is None
    assert prices.bundled().window(id_) is None


def test_window_comes_from_the_vendor_where_the_host_gives_none() -> None:
    host = listing(model("anthropic/x"), provider="openrouter")
    vendor = listing(model("x", context_window=5), provider="anthropic")
    assert read(host + vendor).window("openrouter:anthropic/x") == 5


@pytest.mark.parametrize(
    ("clause", "matching", "other"),
    [
        ({"equals": "Ab"}, "aB", "abc"),
        ({"starts_with": "ab"}, "abc", "cab"),
        ({"ends_with": "ab"}, "cab", "abc"),
        ({"contains": "b"}, "abc", "ac"),
        ({"regex": "^a\\d$"}, "a1", "a12"),
        ({"or": [{"equals": "a"}, {"equals": "b"}]}, "b", "c"),
        ({"and": [{"contains": "a"}, {"contains": "b"}]}, "ab", "a"),
    ],
)
def test_conditions_of_a_list_are_obeyed(clause: dict[str, Any], matching: str, other: str) -> None:
    lists = read(listing(model("entry", match=clause)))
    assert lists.price(f"openai:{matching}", at=NOW)
    assert lists.price(f"openai:{other}", at=NOW) is None


# Cost


def test_cost_adds_up_by_kind_of_token() -> None:
    rates = {"input_mtok": 3, "cache_read_mtok": 0.3, "cache_write_mtok": 3.75, "output_mtok": 15}
    price = price_of("openai:m", read(listing(model(prices=rates))))
    assert (price.input, price.cache_read) == (Decimal(3), Decimal("0.3"))
    assert (price.cache_write, price.output) == (Decimal("3.75"), Decimal(15))
    cost = price.cost(
        input_tokens=1_000_000,
        cache_read_tokens=500_000,
        cache_write_tokens=100_000,
        output_tokens=10_000,
    )
    assert cost == Decimal("1.2") + Decimal("0.15") + Decimal("0.375") + Decimal("0.15")


def test_cached_tokens_without_a_rate_cost_what_input_costs() -> None:
    price = price_of("openai:m", read(listing(model())))
    assert price.cache_read is None
    assert price.cost(input_tokens=1_000_000, cache_read_tokens=400_000) == 1


def test_free_cache_is_free() -> None:
    rates = {"input_mtok": 1, "cache_read_mtok": 0}
    price = price_of("openai:m", read(listing(model(prices=rates))))
    assert price.cost(input_tokens=1_000_000, cache_read_tokens=1_000_000) == 0


def test_a_large_request_pays_the_higher_rate_for_all_its_tokens() -> None:
    tiers = [{"start": 200_000, "price": 2}, {"start": 100, "price": 1.5}]
    rates = {"input_mtok": {"base": 1, "tiers": tiers}}
    price = price_of("openai:m", read(listing(model(prices=rates))))
    assert price.input == 1
    assert price.cost(input_tokens=100) == Decimal("0.0001")
    assert price.cost(input_tokens=200_000) == Decimal("0.3")
    assert price.cost(input_tokens=1_000_000) == 2


def test_the_price_in_force_is_the_last_whose_time_has_come() -> None:
    conditional = [
        {"prices": {"input_mtok": 1}},
        {"constraint": {"start_date": "2026-06-01"}, "prices": {"input_mtok": 2}},
        {
            "constraint": {"start_time": "23:00:00Z", "end_time": "01:00:00Z"},
            "prices": {"input_mtok": 3},
        },
    ]
    lists = read(listing(model(prices=conditional)))
    assert price_of("openai:m", lists, datetime(2026, 5, 1, 12, tzinfo=UTC)).input == 1
    assert price_of("openai:m", lists, datetime(2026, 6, 1, 12, tzinfo=UTC)).input == 2
    assert price_of("openai:m", lists, datetime(2026, 6, 1, 23, 30, tzinfo=UTC)).input == 3
    assert price_of("openai:m", lists, datetime(2026, 6, 1, 0, 59, tzinfo=UTC)).input == 3
    assert price_of("openai:m", lists, datetime(2026, 6, 1, 1, 0, tzinfo=UTC)).input == 2


COUNTS = st.integers(-10, 10_000_000)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_cost_of_any_report_is_an_amount_of_money(a: int, b: int, c: int, d: int) -> None:
    price = price_of("claude:sonnet")
    cost = price.cost(input_tokens=a, output_tokens=b, cache_read_tokens=c, cache_write_tokens=d)
    assert cost >= 0


# A newer file

BAD_FILES = {
    "empty": b"",
    "not JSON": b"{",
    "not text": b"\xff\xfe[",
    "no models": b"[]",
    "no providers": b"{}",
    "a number": b"5",
    "a negative price": json.dumps(listing(model(prices={"input_mtok": -1}))).encode(),
    "a negative price later": json.dumps(
        listing(model(prices=[{"prices": {}}, {"prices": {"input_mtok": -1}}]))
    ).encode(),
    "a negative tier": json.dumps(
        listing(model(prices={"input_mtok": {"base": 1, "tiers": [{"start": 1, "price": -1}]}}))
    ).encode(),
    "a price in words": json.dumps(listing(model(prices={"input_mtok": "dear"}))).encode(),
    "no window": json.dumps(listing(model(context_window=0))).encode(),
    "an unknown condition": json.dumps(listing(model(match={"sounds_like": "x"}))).encode(),
    "two conditions": json.dumps(listing(model(match={"equals": "x", "regex": "x"}))).encode(),
    "a broken pattern": json.dumps(listing(model(match={"regex": "("}))).encode(),
    "deep nesting": b'[{"id":"a","models":[{"id":"m","prices":{},"match":'
    + b'{"or":[' * 100_000
    + b'{"equals":"x"}'
    + b"]}" * 100_000
    + b"}]}]",
}


@pytest.mark.parametrize("data", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file_is_refused_and_replaces_nothing(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / "data"
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(listing(model())))
    bad.write_bytes(data)
    prices.update(good, folder)
    with pytest.raises(SettingsError, match="not a file of prices"):
        prices.update(bad, folder)
    assert [path.name for path in folder.iterdir()] == [prices.FILE_NAME]
    assert (folder / prices.FILE_NAME).read_bytes() == good.read_bytes()


@pytest.mark.parametrize("form", [listing(model()), {"units": {}, "providers": listing(model())}])
def test_newer_file_is_kept_and_used_in_both_forms(tmp_path: Path, form: object) -> None:
    source = tmp_path / "data.json"
    source.write_text(json.dumps(form))
    assert prices.update(source, tmp_path / "a" / "b") == 1
    loaded = prices.load(tmp_path / "a" / "b")
    assert loaded.origin == str(tmp_path / "a" / "b" / prices.FILE_NAME)
    assert loaded.problem is None
    assert price_of("openai:m", loaded.prices).input == 1


def test_missing_file_and_full_folder_are_errors_of_ours(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        prices.update(tmp_path / "none.json", tmp_path)
    with pytest.raises(SettingsError, match="cannot be read"):
        prices.update(tmp_path, tmp_path)
    source = tmp_path / "data.json"
    source.write_text(json.dumps(listing(model())))
    with pytest.raises(SettingsError, match="cannot be kept"):
        prices.update(source, source / "below-a-file")


def test_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "MAX_FILE_BYTES", 10)
    source = tmp_path / "data.json"
    source.write_text(json.dumps(listing(model())))
    with pytest.raises(SettingsError, match="larger than 10 bytes"):
        prices.update(source, tmp_path / "data")


def test_kept_file_that_broke_is_reported_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / prices.FILE_NAME).write_bytes(b"{ half a fi")
    loaded = prices.load(tmp_path)
    assert loaded.prices is prices.bundled()
    assert loaded.origin == "bundled"
    assert loaded.problem is not None
    assert str(tmp_path) in loaded.problem.where


def test_kept_file_that_cannot_be_read_is_reported_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / prices.FILE_NAME).mkdir()
    loaded = prices.load(tmp_path)
    assert loaded.prices is prices.bundled()
    assert loaded.problem is not None


def test_kept_file_older_than_the_snapshot_is_not_used(tmp_path: Path) -> None:
    source = tmp_path / "data.json"
    source.write_text(json.dumps(listing(model())))
    prices.update(source, tmp_path)
    long_ago = (NOW - timedelta(days=3650)).timestamp()
    os.utime(tmp_path / prices.FILE_NAME, (long_ago, long_ago))
    assert prices.load(tmp_path).prices is prices.bundled()


def test_without_a_folder_the_bundled_prices_are_used(tmp_path: Path) -> None:
    assert prices.load(None).prices is prices.bundled()
    assert prices.load(tmp_path).prices is prices.bundled()
