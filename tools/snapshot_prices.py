"""Write src/holdfast/tokens/prices.json from the installed genai-prices, in its own JSON format.

Run it after `genai-prices` was raised in uv.lock; a test compares the two. Importing genai-prices
takes half a second and brings an HTTP client; reading this file takes a hundredth of that.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import date, time
from decimal import Decimal
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from genai_prices.data import providers
from genai_prices.types import ModelPrice

TARGET = Path(__file__).parents[1] / "src" / "holdfast" / "tokens" / "prices.json"
KEPT = {
    "provider": (
        *("id", "name", "model_match", "provider_match", "fallback_model_providers", "models"),
    ),
    "model": ("id", "match", "context_window", "deprecated", "prices"),
}
KEPT_PRICES = (
    *("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok", "requests_kcount"),
)


def snapshot() -> dict[str, Any]:
    """Return what prices.json should hold."""
    package = distribution("genai-prices")
    licence = next(f for f in package.files or () if f.name == "LICENSE")
    return {
        "source": f"https://github.com/pydantic/genai-prices, version {package.version}",
        "made": date.today().isoformat(),
        "licence": licence.read_text(),
        "providers": [_provider(provider) for provider in providers],
    }


def _provider(provider: Any) -> dict[str, Any]:
    kept = {name: _plain(getattr(provider, name)) for name in KEPT["provider"] if name != "models"}
    kept["models"] = [
        _without_none({name: _plain(getattr(model, name)) for name in KEPT["model"]})
        for model in provider.models
    ]
    return _without_none(kept)


def _plain(value: Any) -> Any:
    match value:
        case ModelPrice():
            return {
                key: _plain(value.__dict__[key]) for key in KEPT_PRICES if key in value.__dict__
            }
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case date() | time():
            return value.isoformat()
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value):
            plain = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
            return {name.rstrip("_"): item for name, item in _without_none(plain).items()}
    return value


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def text() -> str:
    """Return the file's text: a line for each model, so that a change reads well as a diff."""
    data = snapshot()
    lines = [
        json.dumps(provider | {"models": []}, ensure_ascii=False, separators=(",", ":"))[:-2]
        + "\n"
        + ",\n".join(
            json.dumps(model, ensure_ascii=False, separators=(",", ":"))
            for model in provider["models"]
        )
        + "\n]}"
        for provider in data.pop("providers")
    ]
    head = json.dumps(data, ensure_ascii=False, indent=0)[:-2]
    return f'{head},\n"providers": [\n' + ",\n".join(lines) + "\n]}\n"


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
