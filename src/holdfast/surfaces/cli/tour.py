"""tour: the command that shows Holdfast at work on a sample conversation.

Only the conversation is prepared; every figure is measured in the run that shows it.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast import Holdfast, read, validate, write
from holdfast.engine.bill import ExpansionUsage
from holdfast.expand import Expansion
from holdfast.fitting import Fitted
from holdfast.surfaces.proxy.report import report

from ._context import COLOR, CommandContext, shared_options
from ._output import Output, table
from ._text import print_text
from .show import heading
from .stats import drawn

LINES = 1_500
FAILED = 612
QUESTION = "Which row stopped the import last night, and why?"
NARROW = 3_000
SHOWN_LINES = 10

TRY_NEXT = """\
  holdfast wrap claude                      run your agent through Holdfast
  holdfast serve                            run the proxy, with a dashboard
  holdfast cite FILE                        store a long text and cite it
  holdfast fit FILE --limit 8000            shorten a request until it fits
  holdfast request show FILE                show a request of your own
  holdfast request validate --repair FILE   repair what a provider would reject
  holdfast --help                           list all commands
  docs/quickstart.md                        do the same from Python"""


@shared_options(*COLOR)
def tour(context: CommandContext) -> None:
    """See Holdfast cite, open and fit a sample conversation, and count the saving.

    The tour runs in memory. It needs no API key and no network, and stores nothing.

    \b
    Examples:
      holdfast tour
      holdfast tour --color never
    """
    console = Output(context.settings).console
    asyncio.run(_walk(console))


async def _walk(console: Console) -> None:
    request = with_log(bundled_body())
    async with Holdfast.open("memory:") as engine:
        session = engine.session("tour")
        first = await session.fit(request)
        (content,) = first.contents
        _cite(console, first)

        part = await engine.expand_ref(content.ref_id, {"lines": f"{FAILED - 1}-{FAILED + 1}"})
        _open(console, part)
        await session.observe(first, expanded=ExpansionUsage(calls=1, tokens=part.tokens, rounds=1))

        second = await session.fit(gone_on(request, part.content), limit=NARROW)
        await session.observe(second)
        _fit(console, second)

        figures = await report(engine.store, [engine.scope], ("model",))
        _step(console, "4. Look at the bill", "What both requests would cost at list prices:")
        console.print(drawn(figures, "model", console.width))
        console.print()
        is_same = await session.rebuild(1) == request
        _say(
            console,
            "untouched: as the agent asked. billed: as sent, including what the model opened. "
            "Nothing was lost: the first request, rebuilt from the sent request, its edits and the "
            f"store, has {len(request):,} bytes, {'identical' if is_same else 'which differ'}.",
        )
    _step(console, "Try next", "")
    console.print(Text(TRY_NEXT))


def _cite(console: Console, fitted: Fitted) -> None:
    """Print how the request with the log was edited."""
    _step(
        console,
        "1. Cite",
        f"An agent has read a log of {LINES:,} lines and is about to send this request:",
    )
    console.print(heading(fitted.state.asked))
    console.print()
    _edits(console, fitted)
    lines = fitted.state.sent.messages[-1].results[0].text.splitlines()
    _say(console, "The original is stored. The model reads this citation instead:")
    console.print()
    print_text(console, "\n".join(lines[:SHOWN_LINES]))
    _say(console, f"… and {len(lines) - SHOWN_LINES} more lines.")


def _open(console: Console, part: Expansion) -> None:
    """Print the content that the model gets for a ref."""
    _step(
        console,
        "2. Open",
        f"The model opens exactly what it needs, here {part.where} for {part.tokens} tokens:",
    )
    console.print()
    print_text(console, part.content)


def _fit(console: Console, fitted: Fitted) -> None:
    """Print how the next request fits a small window."""
    _step(
        console,
        "3. Fit",
        f"It answers, and the user asks more. Assume a limit of {NARROW:,} tokens now:",
    )
    _edits(console, fitted)
    violations = validate(fitted.body)
    verdict = "no rule" if not violations else f"{len(violations)} rules"
    _say(
        console,
        f"The request breaks {verdict} of the provider. The folded messages are stored too.",
    )


def _edits(console: Console, fitted: Fitted) -> None:
    numbers = [Column(name, justify="right") for name in ("tokens", "now")]
    rows = []
    for edit in fitted.edits:
        changed = bool(edit.from_tokens or edit.to_tokens)
        sizes = (f"{edit.from_tokens:,}", f"{edit.to_tokens:,}") if changed else ("", "")
        rows.append((edit.where, edit.what, *sizes))
    console.print(table("where", "edit", *numbers, rows=rows))
    console.print()
    _say(
        console,
        f"The complete request: {fitted.untouched:,} tokens asked, {fitted.tokens:,} sent, as "
        f"{fitted.count.model} counts them. (Cited texts are counted with OpenAI's vocabulary.)",
    )


# --- the conversation -----------------------------------------------------------------------------


def bundled_body() -> bytes:
    """Return the conversation that comes with Holdfast."""
    return files(__package__).joinpath("tour.json").read_bytes()


def with_log(body: bytes) -> bytes:
    """Return the conversation with a question and the log that the agent reads for it."""
    call = {"type": "tool_use", "id": "toolu_log", "name": "read_file", "input": {"path": "log"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_log", "content": night_log()}
    return _longer(
        body,
        {"role": "assistant", "content": "None: the others read times in UTC."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    )


def gone_on(body: bytes, answer: str) -> bytes:
    """Return the conversation with an answer and one more question."""
    return _longer(
        body,
        {"role": "assistant", "content": f"This one:\n{answer}"},
        {"role": "user", "content": "Mend that row, and run the import again."},
    )


def _longer(body: bytes, *messages: dict[str, Any]) -> bytes:
    conversation = read(body)
    return write(conversation.insert(len(conversation.messages), *messages))


def night_log() -> str:
    """Return a log in which one line matters."""
    lines = [
        f"02:{n // 60:02}:{n % 60:02} INFO tides row={n} height={n % 53 / 10:.1f}m stored"
        for n in range(1, LINES + 1)
    ]
    lines[FAILED - 1] = f"02:10:12 ERROR tides row={FAILED} AmbiguousTimeError: 02:30 occurs twice"
    return "\n".join(lines)


def _step(console: Console, name: str, explanation: str) -> None:
    console.print()
    console.rule(Text(name, style="bold"), align="left")
    if explanation:
        _say(console, explanation)


def _say(console: Console, line: str) -> None:
    console.print(Text(line))
