"""stats: the command that shows what requests cost, from the store or a running proxy."""

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
from holdfast.store import Store
from holdfast.surfaces.proxy.report import By, about, dollars, percent, report
from holdfast.surfaces.proxy.report import quality as measured

from ._context import OUTPUT, TENANT, CommandContext, shared_options
from ._output import Output, remark, table

_EVERY_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_WIDE = 110
_LARGE = 10_000_000


@shared_options(*TENANT, *OUTPUT)
def stats(
    context: CommandContext,
    by: Annotated[
        By | None,
        typer.Option(
            "--by", help="Print a row per model, session or day; with --watch per session."
        ),
    ] = None,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality", help="Show how accurate token counts were, and what each kind of edit did."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch a running proxy until you press Ctrl-C.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", help="The proxy to watch; the default is the one in the settings."),
    ] = None,
) -> None:
    """Show the cost of requests, and their cost without Holdfast.

    \b
    requests    all requests; a failed one got no answer and saves nothing
    answered    requests answered from memory, which cost nothing, and their share
    untouched   input tokens as the clients asked
    billed      input tokens of all calls as the provider reports them, else as counted here;
                includes opened contents
    saved       untouched minus billed, and its share of untouched; negative for a loss
    ≈           marks a figure that contains an estimate
    cached      billed tokens read from the provider's cache, and their share of billed
    opened      parts of stored contents that models opened
    cost $      billed input and output tokens at list price, with the prices of cached tokens
    saved $     cost of the untouched requests under the same cache rules, minus cost
    tools set aside   below the table: requests sent without the schemas of all tools, the
                tokens saved, searches for tools, and calls of tools found that way

    Figures come from the store and cover all time; by session, the 50 most recently used sessions
    are shown. All conversations of a client session share a row; the last row sums requests without
    a session id. The list price of the offline model's answers is shown below the table.

    With --watch the figures come from a running proxy, with the counters of its process.

    With --quality the first table shows, per model, the median error of token counts against the
    provider's reports: at first, lately, and after correction. The second shows, per kind of edit,
    how often it was made, in how many requests, and the tokens before and after, in the 50 most
    recently used sessions.

    Narrow terminals show fewer columns.

    \b
    Examples:
      holdfast stats
      holdfast stats --by day
      holdfast stats --quality
      holdfast stats --tenant key-4f0c2b6d9a1e83750b2c4d6e
      holdfast stats --watch
      holdfast stats --output json | jq .totals.saved
    """
    by = by or ("session" if watch else "model")
    settings = context.settings
    out = Output(settings)
    if quality:

        async def measure(opened: Store) -> dict[str, Any]:
            return await measured(opened, await context.scopes(opened))

        measurements = context.run(measure)
        out.emit(measurements, lambda console: _draw_quality(console, measurements))
        return
    if watch:
        host = f"[{settings.serve_host}]" if ":" in settings.serve_host else settings.serve_host
        address = url or f"http://{host}:{settings.serve_port}"
        _watch(out, lambda: fetch(address, settings.serve_token), by)
        return

    async def work(opened: Store) -> dict[str, Any]:
        return await report(opened, await context.scopes(opened), (by,))

    figures = context.run(work)

    def draw(console: Console) -> None:
        if not figures["totals"]["turns"]:
            remark("No requests are recorded yet: `holdfast serve` starts the proxy.")
            return
        console.print(drawn(figures, by, console.width))

    out.emit(figures, draw)


_ERRORS = ("first_error", "plain_error", "corrected_error")


def _draw_quality(console: Console, measurements: dict[str, Any]) -> None:
    if not measurements["accuracy"]:
        remark("No provider has reported usage yet; the offline model counts as we do.")
    else:
        rows = [
            (row["model"], _number(row["observed"]), *(f"{row[name]:.1%}" for name in _ERRORS))
            for row in measurements["accuracy"]
        ]
        names = ("reports", "error at first", "lately", "corrected")
        columns = [Column(name, justify="right", no_wrap=True) for name in names]
        console.print(table(Column("model", overflow="fold"), *columns, rows=rows))
    if not measurements["edits"]:
        remark("No request was edited yet.")
        return
    figures = ("edits", "turns", "from_tokens", "to_tokens")
    rows = [
        (row["action"], *(_number(row[name]) for name in figures)) for row in measurements["edits"]
    ]
    names = ("times", "requests", "tokens", "now")
    columns = [Column(name, justify="right", no_wrap=True) for name in names]
    console.print(table("edit", *columns, rows=rows))


def _watch(out: Output, fetch_figures: Callable[[], dict[str, Any]], by: By) -> None:
    """Draw the proxy's figures every second; in a pipe, print them once."""
    figures = fetch_figures()
    if out.as_json:
        live = {name: figures.get(name) for name in ("totals", f"by_{by}", "process")}
        out.emit(live, lambda _: None)
        return
    console = out.console
    with Live(drawn(figures, by, console.width), console=console, auto_refresh=False) as view:
        try:
            while True:
                time.sleep(_EVERY_SECONDS)
                view.update(drawn(fetch_figures(), by, console.width), refresh=True)
        except KeyboardInterrupt:
            return


def drawn(figures: dict[str, Any], by: By, width: int) -> RenderableType:
    """Return the figures of a report as a table, as wide as the terminal."""
    names = [name for name in _COLUMNS if name != "answered" or figures["totals"].get(name)]
    cells = {name: _COLUMNS[name] for name in (names if width >= _WIDE else _NARROW)}
    columns = [Column(name, justify="right", no_wrap=True) for name in cells]
    rows = [
        (row["name"] or "unknown", *(write(row) for write in cells.values()))
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
    """Yield remarks on costs that the table does not include."""
    if row.get("demo_cost") or row.get("demo_saved_cost"):
        saved = row["demo_saved_cost"]
        compared = "less" if saved >= 0 else "more"
        yield (
            "demo: nobody was billed for the offline model's answers; at list price they are "
            f"≈ ${dollars(row['demo_cost'])}, ≈ ${dollars(saved)} {compared} than without Holdfast"
        )
    if number := row.get("overflows"):
        yield (
            f"requests that would not have fitted the model's window: {_number(number)}; they "
            "count as no saving"
        )
    if row.get("unpriced"):
        number = _number(row["unpriced"])
        yield f"no price is known for {number} requests: see `holdfast config models`"


def _lazy(row: dict[str, Any]) -> str:
    """Return a line on requests that were sent without the schemas of all tools."""
    return (
        f"tools set aside: in {_share(row['lazy'], row['turns'])} requests, "
        f"{_number(row['lazy_saved'])} tokens of schemas; "
        f"{_number(row['tool_searches'])} searches, "
        f"{_share(row['lazy_calls'], row['tool_calls'])} of {_number(row['tool_calls'])} tool calls"
    )


def _number(count: int) -> str:
    return f"{count:,}" if abs(count) < _LARGE else f"{count / 1e6:,.1f} M"


def _share(part: int, total: int) -> str:
    """Return a number, with its share in percent unless the total is 0."""
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
"""Columns that fit a terminal of 80 columns."""


def _process(figures: dict[str, Any]) -> str:
    """The running process in a line."""
    answered = figures.get("requests_total", [])
    failed = sum(int(each["value"]) for each in answered if int(each["status"]) >= 400)
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
            "this is not an HTTP address",
            where="--url",
            fix="Give an address such as http://127.0.0.1:8787.",
        ) from None
    try:
        headers = {"x-holdfast-token": token} if token else {}
        connection.request("GET", f"{parts.path.rstrip('/')}/stats", headers=headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise HoldfastError(
            "no proxy answers at this address", where=url, fix="Start one with `holdfast serve`."
        ) from error
    finally:
        connection.close()
    return _read(url, response.status, body)


def _read(url: str, status: int, body: bytes) -> dict[str, Any]:
    if status == http.client.UNAUTHORIZED:
        raise HoldfastError(
            "the proxy requires its token", where=url, fix="Set serve_token (HOLDFAST_SERVE_TOKEN)."
        )
    try:
        figures = json.loads(body)
    except ValueError:
        figures = None
    if status != http.client.OK or not isinstance(figures, dict) or "totals" not in figures:
        raise HoldfastError(
            f"the proxy returned no figures (status {status})",
            where=url,
            fix="Check its log, and that a Holdfast proxy runs at this address.",
        )
    return figures
