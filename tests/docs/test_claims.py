"""Numbers in the documentation that are properties of the code: compared with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from holdfast.allocate import manager as allocation
from holdfast.assemble.intents import TOKEN_BUDGET
from holdfast.budget import manager as budget
from holdfast.cite import CitingRules
from holdfast.cite.citation import BRIEF, allowance
from holdfast.engine import live
from holdfast.extract import bounds
from holdfast.fitting import (
    HIGH_WATER,
    LOW_WATER,
    cite_results,
    pointers,
    policy,
    repeats,
    tool_directory,
    tool_offers,
)
from holdfast.researching.source_files import WalkLimits
from holdfast.settings import Settings
from holdfast.store.queue import SUMMARY_TOKENS, Quotas
from holdfast.store.records import EditAction
from holdfast.store.sqlite import scrubbing
from holdfast.surfaces.mcp import cards
from holdfast.surfaces.mcp.gateway import GatewayOptions
from holdfast.surfaces.proxy import (
    answer_reuse,
    connections,
    dispatch,
    incoming_request,
    metrics,
    recent,
    report,
    token_count,
)
from holdfast.surfaces.proxy.dashboard import comparison
from holdfast.tokens import calibration, vocabulary
from holdfast.workers import pool

ROOT = Path(__file__).parents[2]
_EFFORT: dict[str, int] = json.loads((ROOT / "benchmarks" / "effort.json").read_text("utf-8"))
_DEFAULTS = Settings()
_NUMBERS = policy.COEFFICIENTS
_MILLION = 1_000_000
_STATUSES = sorted(dispatch._NEXT)
_BUSY = f"{', '.join(map(str, _STATUSES[:-1]))} or {_STATUSES[-1]}"
"""Statuses after which the next upstream gets the request."""


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _sizes(kind: str) -> str:
    """Return a row of the table of citation sizes."""
    contents = (2_000, 4_000, 8_000, 16_000, 50_000)
    most = CitingRules().most_tokens
    return " | ".join(f"{allowance(tokens, kind, 10**9, most):,}" for tokens in contents)


def _worth(use: str) -> str:
    """Return the tokens that a result is worth where cached input costs a tenth, in hundreds."""
    call = _NUMBERS.patience + 0.1 * _NUMBERS.prefix
    keeping = 1.25 + 0.1 * _NUMBERS.turns
    return f"{round(_NUMBERS.needs[use] * call / keeping, -2):,.0f}"


CLAIMS: dict[str, list[str]] = {
    "docs/discussions/allocation.md": [f"{_percent(allocation.NEARLY)} of the budget"],
    "docs/discussions/assemble.md": [
        f"| of {TOKEN_BUDGET['total']:,} tokens | {TOKEN_BUDGET['header']} "
        f"| {TOKEN_BUDGET['history']:,} | {TOKEN_BUDGET['facts']} | {TOKEN_BUDGET['summaries']} |"
    ],
    "docs/discussions/calibration.md": [
        f"over the last {calibration._WINDOW} reports",
        f"pairs of the last {calibration._PAIRED} reports",
        f"the last {calibration._RECENT} reports",
        f"more than {calibration._ABSURD} times off",
        f"The {calibration._MOST_MODELS:,} models heard of last",
    ],
    "docs/discussions/citations.md": [
        f"at most {BRIEF} tokens",
        f"if it is at most {_percent(tool_offers._EARLY_SHARE)} of it",
        f"takes {_percent(tool_offers._FILLING_SHARE)} of it",
        f"| {_sizes('code')} |",
        f"| {_sizes('log')} |",
        f"| {_sizes('json')} |",
    ],
    "docs/discussions/counting.md": [
        f"pieces of {vocabulary.PIECE_CHARACTERS:,} characters",
        f"none for {vocabulary._LOOK_BACK:,} characters",
        f"Up to {2 * vocabulary.shared._half:,} counts are remembered",
    ],
    "docs/discussions/lazy-tools.md": [
        f"From {_DEFAULTS.lazy_tool_tokens:,} tokens of tools",
        f"more than {_percent(tool_directory._PAYS)} of the tokens",
    ],
    "docs/discussions/mcp.md": [
        f"cut at {cards.MOST_DEFINITIONS:,} definitions of at most "
        f"{cards.MOST_DEFINITION_BYTES // 1000} KB each",
    ],
    "docs/discussions/policy.md": [
        f"From {_percent(_NUMBERS.calm)} of the window on, results of more than "
        f"{_percent(_NUMBERS.share)} of it",
        f"would be folded ({_percent(HIGH_WATER)})",
        f"{_NUMBERS.prefix:,.0f} tokens read again, and {_NUMBERS.patience:,.0f} for the waiting "
        f"| {_NUMBERS.patience + 0.1 * _NUMBERS.prefix:,.0f} |",
        f"read in {_NUMBERS.turns:g} more turns | {1.25 + 0.1 * _NUMBERS.turns:g} |",
        f"{_worth('read')} tokens for a file, {_worth('test')} for a test run, "
        f"{_worth('rows')} for rows",
        f"`cite_threshold` ({_DEFAULTS.cite_threshold:,} characters)",
        *(f"| {need:.2f} |" for need in _NUMBERS.needs.values()),
        f"has {repeats.LEAST_RUN} characters or more",
        f"save {pointers.LEAST_SAVED} tokens together",
        f"error messages up to {cite_results._LONG_ERROR:,} characters",
    ],
    "docs/discussions/proxy.md": [
        f"{_BUSY}, the next one in the settings gets the request",
        f"Above {_percent(HIGH_WATER)} of the window",
        f"does not bring it to {_percent(_NUMBERS.calm)}",
        f"is folded to {_percent(LOW_WATER)}",
        f"({live._MOST_SESSIONS:,} sessions or {live._MOST_BYTES // _MILLION} MB of them, "
        f"{recent._MOST_BEGINNINGS} parsed conversations or "
        f"{recent._MOST_BYTES // _MILLION} MB, counts of {2 * vocabulary.shared._half:,} texts",
    ],
    "docs/discussions/research.md": [
        f"at most {bounds.MOST_TEXT:,} characters",
        f"unpacks to at most {bounds.MOST_UNPACKED // _MILLION} MB",
        f"Pages are read for {_percent(pool._READING_SHARE)} of these seconds",
    ],
    "docs/discussions/stored.md": [f"a large file (over {scrubbing.SMALL_BYTES // _MILLION} MB)"],
    "docs/discussions/speed.md": [
        f"takes {_EFFORT['session, next request: 200 messages']} after 200 messages and "
        f"{_EFFORT['session, next request: 1,600 messages']} after 1,600",
        f"with moved marks {_EFFORT['session, next request, cache marks moved: 200 messages']:,}",
        f"{_EFFORT['session, next request, a result cited: 200 messages']:,} after either",
    ],
    "docs/discussions/workers.md": [
        f"| on the loop | under {pool._LONG_BYTES // 1000} KB that are new | at most 4 ms, by the "
        "condensers' ceiling of 1 s for a megabyte |",
        f"contents from {pool.LARGE_BYTES // 1000} KB on, counting bodies from "
        f"{pool._LONG_LANE_BYTES // _MILLION} MB on",
        f"{pool.WorkLimits().memory_bytes // _MILLION:,} MB are the system's limit",
        f"took longer than {pool.WorkLimits().seconds} seconds",
        f"`count_tokens` of more than {token_count._COUNTED_AS_IS // _MILLION} MB",
    ],
    "docs/how-to/jobs.md": [
        f"| one job | {SUMMARY_TOKENS} |",
        f"| a session | {Quotas().session:,} |",
        f"a day (UTC) | {_DEFAULTS.summary_tokens_per_day:,} |",
    ],
    "docs/how-to/mcp.md": [f"at most {GatewayOptions().listed_tokens:,} tokens"],
    "docs/how-to/watch.md": [
        f"`by_session` (the {report.MOST_SESSIONS} last used)",
        f"After {metrics.MOST_MODELS} models",
    ],
    "docs/how-to/answers.md": [f"nothing over {answer_reuse.MOST_BYTES // _MILLION} MB"],
    "docs/how-to/budget.md": [f"From {budget.WARN_PERCENT} % on"],
    "docs/how-to/dashboard.md": [f"up to {comparison.MOST_BYTES // _MILLION} MB"],
    "docs/how-to/fit.md": [
        f"reaches {_percent(HIGH_WATER)} of the limit, "
        f"history is folded down to {_percent(LOW_WATER)}",
        f"has {_percent(_NUMBERS.calm)} of the limit or less",
    ],
    "docs/how-to/research.md": [f"Files over {WalkLimits().bytes // _MILLION} MB"],
    "docs/how-to/serve.md": [
        f"{_BUSY}, the request falls back to the next",
        f"within {connections.HEADER_SECONDS:g} seconds, or the body within "
        f"{incoming_request.BODY_SECONDS:g}",
    ],
}
"""Phrases by page, with the numbers that the code has now."""


def test_proxy_page_explains_every_kind_of_edit() -> None:
    page = (ROOT / "docs/discussions/proxy.md").read_text("utf-8")
    _, _, table = page.partition("| action | meaning |")
    cells = [row.split("|")[1] for row in table.split("\n\n")[0].splitlines()[2:]]
    named = re.findall(r"`([a-z]+)`", " ".join(cells))
    assert sorted(named) == sorted(get_args(EditAction))


def without_claims(page: str, section: str) -> str:
    """Return a section without the phrases that are compared with the code."""
    for phrase in CLAIMS.get(page, []):
        section = re.sub(r"\s+".join(map(re.escape, phrase.split())), "", section)
    return section


@pytest.mark.parametrize("page", CLAIMS)
def test_page_says_what_the_code_says(page: str) -> None:
    text = " ".join((ROOT / page).read_text("utf-8").split())
    assert [phrase for phrase in CLAIMS[page] if " ".join(phrase.split()) not in text] == []
