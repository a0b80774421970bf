"""stats: what the proxy sent and saved, from the store or from a running proxy."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Column
from rich.text import Text

from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.surfaces.proxy.report import By, about, dollars, percent, report
from holdfast.surfaces.proxy.report import quality as measured

from ._output import ColorOption, Output, OutputOption, remark, table
from ._store import DEFAULT, StoreOption, TenantOption, UserOption, scopes_of, with_store

_EVERY_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_WIDE = 110
_LARGE = 10_000_000


def stats(
    by: Annotated[By, typer.Option("--by", help="One row for each model, session or day.")] = (
        "model"
    ),
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="How well tokens were counted, by model, and what each kind of edit did.",
        ),
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", "--watch", help="Watch a running proxy; Ctrl-C ends it.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", help="The proxy to watch; else the one of the settings."),
    ] = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show what requests cost, and what they would have cost untouched.

    \b
    requests    all of them; failed are those without an answer, which save nothing
    answered    of them from memory, which costs nothing, and their share; shown where any were
    untouched   input tokens as the clients asked
    billed      input tokens over all calls of an answer, as providers report them (else as
                we count them): what models opened and read again is in it
    saved       untouched less billed, and its share of untouched; a minus is a loss
    ≈           in front of a figure that holds an estimate
    cached      how much of billed the providers' caches held, and its share of it
    opened      parts of stored content that models opened
    tools set aside   below the table, where there are any: requests that went without the
                schemas of their tools, tokens of these, searches for them by models, and how
                many of all calls of tools were of such tools
    cost $      billed tokens and output at list price, cache reads and writes at their own
    saved $     what the untouched requests would have cost under the same cache rules, less
                cost; a minus is a loss. The offline model's answers are told apart, below

    Without --live the figures come from the store and cover all time; of sessions, the 50 last
    used are shown. The conversations and side requests of one client session are one row; side
    requests of clients without a session id are summed in the last. With --live they come from the
    proxy, with the counters of its process. Narrow terminals get fewer columns.

    With --quality: the median error of counts against what providers reported, by model, at first
    and lately, plain and as corrected; and for each kind of edit how often it was made, in how
    many requests, and the tokens before and after, in the 50 sessions last used.

    \b
    Examples:
      holdfast stats
      holdfast stats --by day
      holdfast stats --quality
      holdfast stats --tenant key-4f0c2b6d9a1e83750b2c4d6e
      holdfast stats --live --by session
      holdfast stats --output json | jq .totals.saved
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    out = Output(settings)
    if quality:

        async def look(opened: Store) -> dict[str, Any]:
            return await measured(opened, await scopes_of(opened, user, tenant))

        told = with_store(settings, look)
        out.emit(told, lambda console: _draw_quality(console, told))
        return
    if live:
        host = f"[{settings.serve_host}]" if ":" in settings.serve_host else settings.serve_host
        address = url or f"http://{host}:{settings.serve_port}"
        _watch(out, lambda: fetch(address, settings.serve_token), by)
        return

    async def work(opened: Store) -> dict[str, Any]:
        return await report(opened, await scopes_of(opened, user, tenant), (by,))

    figures = with_store(settings, work)

    def draw(console: Console) -> None:
        if not figures["totals"]["turns"]:
            remark("No request was written down yet: `holdfast serve` starts the proxy.")
            return
        console.print(drawn(figures, by, console.width))

    out.emit(figures, draw)


_ERRORS = ("first_error", "plain_error", "corrected_error")


def _draw_quality(console: Console, told: dict[str, Any]) -> None:
    if not told["accuracy"]:
        remark("No provider has reported usage yet; the offline model counts as we do.")
    else:
        rows = [
            (row["model"], _number(row["observed"]), *(f"{row[name]:.1%}" for name in _ERRORS))
            for row in told["accuracy"]
        ]
        names = ("reports", "error at first", "lately", "corrected")
        columns = [Column(name, justify="right", no_wrap=True) for name in names]
        console.print(table(Column("model", overflow="fold"), *columns, rows=rows))
    if not told["edits"]:
        remark("No request was edited yet.")
        return
    figures = ("edits", "turns", "from_tokens", "to_tokens")
    rows = [(row["action"], *(_number(row[name]) for name in figures)) for row in told["edits"]]
    names = ("times", "requests", "tokens", "now")
    columns = [Column(name, justify="right", no_wrap=True) for name in names]
    console.print(table("edit", *columns, rows=rows))


def _watch(out: Output, look: Callable[[], dict[str, Any]], by: By) -> None:
    """Draw what the proxy says every second; in a pipe, print it once."""
    figures = look()
    if out.as_json:
        shown = {name: figures.get(name) for name in ("totals", f"by_{by}", "process")}
        out.emit(shown, lambda _: None)
        return
    console = out.console
    with Live(drawn(figures, by, console.width), console=console, auto_refresh=False) as view:
        try:
            while True:
                time.sleep(_EVERY_SECONDS)
                view.update(drawn(look(), by, console.width), refresh=True)
        except KeyboardInterrupt:
            return


def drawn(figures: dict[str, Any], by: By, width: int) -> RenderableType:
    """The figures of a report as a table, as wide as the terminal."""
    names = [name for name in _COLUMNS if name != "answered" or figures["totals"].get(name)]
    shown = {name: _COLUMNS[name] for name in (names if width >= _WIDE else _NARROW)}
    columns = [Column(name, justify="right", no_wrap=True) for name in shown]
    rows = [
        (row["name"] or "unknown", *(write(row) for write in shown.values()))
        for row in (*figures[f"by_{by}"], figures["totals"])
    ]
    parts: list[RenderableType] = [
        table(Column(by, overflow="fold", min_width=8), *columns, rows=rows)
    ]
    parts += [Text(line) for line in _remarks(figures["totals"])]
    if figures["totals"].get("lazy"):
        parts.append(Text(_lazy(figures["totals"])))
    if "process" in figures:
        parts.append(Text(_process(figures["process"])))
    return Group(*parts)


def _remarks(row: dict[str, Any]) -> Iterator[str]:
    """Yield what the dollars of the table leave out."""
    if row.get("demo_cost") or row.get("demo_saved_cost"):
        saved = row["demo_saved_cost"]
        compared = "less" if saved >= 0 else "more"
        yield (
            "demo: of the offline model's answers nobody was billed; at list price they are "
            f"≈ ${dollars(row['demo_cost'])}, ≈ ${dollars(saved)} {compared} than without Holdfast"
        )
    if number := row.get("overflows"):
        yield (
            f"requests that would not have fitted the model's window: {_number(number)}; no "
            "saving is claimed for them"
        )
    if row.get("unpriced"):
        yield f"no price is known for {_number(row['unpriced'])} requests: see `holdfast models`"


def _lazy(row: dict[str, Any]) -> str:
    """How many requests went without the schemas of their tools, and what came of it."""
    return (
        f"tools set aside: in {_share(row['lazy'], row['turns'])} requests, "
        f"{_number(row['lazy_saved'])} tokens of schemas; "
        f"{_number(row['tool_searches'])} searches, "
        f"{_share(row['lazy_calls'], row['tool_calls'])} of {_number(row['tool_calls'])} tool calls"
    )


def _number(count: int) -> str:
    return f"{count:,}" if abs(count) < _LARGE else f"{count / 1e6:,.1f} M"


def _share(part: int, total: int) -> str:
    """A number, and its share in percent where there is something to be a share of."""
    return f"{_number(part)} ({percent(part, total)}%)" if total else _number(part)


_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "requests": lambda row: _number(row["turns"]),
    "failed": lambda row: _number(row["failed"]),
    "answered": lambda row: _share(row["answered"], row["turns"]),
    "untouched": lambda row: about(row.get("estimated", 0)) + _number(row["untouched"]),
    "billed": lambda row: about(row.get("unreported", 0)) + _number(row["input"]),
    "saved": lambda row: about(row.get("estimated", 0)) + _share(row["saved"], row["untouched"]),
    "cached": lambda row: _share(row["cached"], row["input"]),
    "opened": lambda row: _number(row["expansions"]),
    "cost $": lambda row: _dollars(row, "cost", "unreported"),
    "saved $": lambda row: _dollars(row, "saved_cost", "assumed"),
}


def _dollars(row: dict[str, Any], field: str, estimates: str) -> str:
    """Return real money; a dash where nobody was billed or no price is known."""
    if not (row["cost"] or row["saved_cost"]) and (row.get("unpriced") or row.get("demo_cost")):
        return "-"
    amount = row[field]
    minus = "-" if amount < 0 else ""
    return f"{about(row.get(estimates, 0))}{minus}{dollars(amount)}"


_NARROW = ("requests", "untouched", "billed", "saved", "saved $")
"""What a terminal of 80 columns has room for."""


def _process(figures: dict[str, Any]) -> str:
    """The running process in a line."""
    answered = figures.get("requests_total", [])
    failed = sum(int(one["value"]) for one in answered if int(one["status"]) >= 400)
    count = int(figures["added_seconds_count"])
    added = figures["added_seconds_sum"] / count * 1000 if count else 0.0
    return (
        f"this process: {count:,} answered, {failed:,} failed, "
        f"{int(figures['open_requests']):,} open, {int(figures['open_streams']):,} streams, "
        f"{int(figures['store_failures_total']):,} store failures, {added:.1f} ms added on average"
    )


def fetch(url: str, token: str) -> dict[str, Any]:
    """Ask a running proxy for its figures."""
    parts = urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    try:
        kind, host, port = kinds[parts.scheme], parts.hostname or "", parts.port
        connection = kind(host, port, timeout=_PATIENCE_SECONDS)
    except (KeyError, ValueError):
        raise HoldfastError(
            "this is no HTTP address", where="--url", fix="Give one such as http://127.0.0.1:8787."
        ) from None
    try:
        headers = {"x-holdfast-token": token} if token else {}
        connection.request("GET", f"{parts.path.rstrip('/')}/stats", headers=headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise HoldfastError(
            "no proxy answers there", where=url, fix="Start one with `holdfast serve`."
        ) from error
    finally:
        connection.close()
    return _read(url, response.status, body)


def _read(url: str, status: int, body: bytes) -> dict[str, Any]:
    if status == http.client.UNAUTHORIZED:
        raise HoldfastError(
            "the proxy wants its token", where=url, fix="Set serve_token (HOLDFAST_SERVE_TOKEN)."
        )
    try:
        figures = json.loads(body)
    except ValueError:
        figures = None
    if status != http.client.OK or not isinstance(figures, dict) or "totals" not in figures:
        raise HoldfastError(
            f"the proxy cannot tell its figures (status {status})",
            where=url,
            fix="See what it logs, and that the address is that of a Holdfast proxy.",
        )
    return figures
