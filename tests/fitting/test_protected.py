"""Errors, warnings and URLs survive every fold and every cut, at any limit."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from holdfast import convert
from holdfast.errors import HoldfastError
from holdfast.fitting import FitOptions, fit_request
from tests.fitting.test_citing import log
from tests.surfaces.proxy.harness import DIALECTS

FAILURE = "PermissionError: cannot open /etc/tide/keys.toml, errno 13"
ALERT = "SECURITY WARNING: the certificate of the mirror does not match; do not install"
URLS = [f"https://harbour.example/reports/2024/{n:03}/tide-table?port=north&page={n}#t{n}"
        for n in range(60)]  # fmt: skip


def agent(dialect: str, results: list[str]) -> bytes:
    """A conversation of one question and many calls, in Anthropic's words, then in any."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why does it fail?"}]
    for n, result in enumerate(results):
        use = {"type": "tool_use", "id": f"t{n}", "name": "run", "input": {"n": n}}
        block = {
            "type": "tool_result",
            "tool_use_id": f"t{n}",
            "content": result,
            "is_error": result == FAILURE,
        }
        messages += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [block]},
        ]
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
        "messages": messages,
    }
    written = json.dumps(body).encode()
    return written if dialect == "anthropic" else convert(written, dialect, "anthropic").body


def shown(body: bytes) -> str:
    """All texts of a request, unescaped, as the model reads them."""

    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for inner in value.values() for text in texts(inner)]
        if isinstance(value, list):
            return [text for inner in value for text in texts(inner)]
        return [value] if isinstance(value, str) else []

    return "\n".join(texts(json.loads(body)))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("opens", [True, False])
def test_an_error_and_a_warning_are_quoted_by_the_digest(dialect: str, opens: bool) -> None:
    results = [log(30, n) for n in range(14)]
    results[2] = FAILURE
    results[4] = f"{log(12, 4)}\n{ALERT}\n{log(12, 5)}"
    folds = 0
    for limit in range(1_500, 6_000, 500):
        options = FitOptions(dialect=dialect, limit=limit, opens=opens)
        try:
            fitted = fit_request(agent(dialect, results), options)
        except HoldfastError:
            continue
        folds += any(edit.action == "fold" for edit in fitted.edits)
        assert FAILURE in shown(fitted.body), limit
        assert ALERT in shown(fitted.body), limit
    assert folds > 3


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strategy", ["auto", "summarise", "progressive", "heads_tails"])
def test_no_url_is_cut_in_half(dialect: str, strategy: str) -> None:
    pages = ["\n".join(f"{n} see {url} for more" for n, url in enumerate(URLS[k:])) for k in (0, 9)]
    results = [*pages, *(log(20, n) for n in range(8)), *pages]
    edited = 0
    for limit in range(1_200, 9_000, 600):
        options = FitOptions(dialect=dialect, limit=limit, strategy=strategy, cites=True)
        try:
            fitted = fit_request(agent(dialect, results), options)
        except HoldfastError:
            continue
        edited += bool(fitted.edits)
        for url in re.findall(r"https?://[^\s\"'<>\])]+", shown(fitted.body)):
            assert url.rstrip(".,;…") in URLS, limit
    assert edited > 3
