"""tour: what Holdfast does, shown on a small conversation of its own.

Nothing of it is prepared but the conversation: every figure is one of the run that shows it.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast import Holdfast, read, validate, write
from holdfast.engine.accounting import Expanded
from holdfast.expand import Expansion
from holdfast.fitting import Fitted
from holdfast.settings import Settings
from holdfast.surfaces.proxy.report import report

from ._output import ColorOption, Output, table
from ._text import print_text
from .show import heading
from .stats import drawn

LINES = 1_500
FAILED = 612
QUESTION = "Which row stopped the import last night, and why?"
NARROW = 3_000
SHOWN_LINES = 10

TRY_NEXT = """\
  holdfast wrap claude               an agent of yours, through all of this
  holdfast serve                     the same as a proxy, with a dashboard
  holdfast cite FILE                 store a long content, and cite it
  holdfast fit FILE --limit 8000     make a request fit
  holdfast show FILE                 a request of your own, as a table
  holdfast validate --repair FILE    mend what the provider would refuse
  holdfast --help                    everything else
  docs/quickstart.md                 the same from Python"""


def tour(color: ColorOption = None) -> None:
    """Take the guided tour: cite, open, fit, and what it saved.

    A small conversation that comes with Holdfast goes through the engine, in memory. No key and
    no network is needed, and nothing is left behind.
    """
    console = Output(Settings.load(color=color)).console
    asyncio.run(_walk(console))


async def _walk(console: Console) -> None:
    asked = with_log(bundled_body())
    async with Holdfast.open("memory:") as engine:
        session = engine.session("tour")
        first = await session.fit(asked)
        (content,) = first.contents
        _cite(console, first)

        part = await engine.expand_ref(content.ref_id, {"lines": f"{FAILED - 1}-{FAILED + 1}"})
        _open(console, part)
        await session.observe(first, expanded=Expanded(calls=1, tokens=part.tokens, rounds=1))

        second = await session.fit(gone_on(asked, part.content), limit=NARROW)
        await session.observe(second)
        _fit(console, second)

        figures = await report(engine.store, [engine.scope], ("model",))
        _step(console, "4. Look at the bill", "Both requests, had they gone out, at list prices:")
        console.print(drawn(figures, "model", console.width))
        console.print()
        same = await session.rebuild(1) == asked
        _say(
            console,
            "untouched: as the agent asked. billed: what went out, the opening included. Nothing "
            "was lost: the first request, rebuilt from what was sent, its edits and the store, "
            f"has {len(asked):,} bytes, {'the very same' if same else 'changed!'}.",
        )
    _step(console, "Try next", "")
    console.print(Text(TRY_NEXT))


def _cite(console: Console, fitted: Fitted) -> None:
    """What became of the request in which the agent has read the log."""
    _step(
        console,
        "1. Cite",
        f"An agent has read a log of {LINES:,} lines, and is about to send this request:",
    )
    console.print(heading(fitted.state.asked))
    console.print()
    _edits(console, fitted)
    lines = fitted.state.sent.messages[-1].results[0].text.splitlines()
    _say(console, "The original is stored. In its place the model reads:")
    console.print()
    print_text(console, "\n".join(lines[:SHOWN_LINES]))
    _say(console, f"… and {len(lines) - SHOWN_LINES} more lines.")


def _open(console: Console, part: Expansion) -> None:
    """What the model gets back for a ref."""
    _step(
        console,
        "2. Open",
        f"The model opens exactly what it wants, here {part.where} for {part.tokens} tokens:",
    )
    console.print()
    print_text(console, part.content)


def _fit(console: Console, fitted: Fitted) -> None:
    """How the next request gets into a small window."""
    _step(
        console,
        "3. Fit",
        f"It answers; the user asks on. Say that only {NARROW:,} tokens may go out now:",
    )
    _edits(console, fitted)
    violations = validate(fitted.body)
    verdict = "valid: no rule is broken" if not violations else f"{len(violations)} violations"
    _say(console, f"For the provider it is {verdict}. What was folded is stored too.")


def _edits(console: Console, fitted: Fitted) -> None:
    numbers = [Column(name, justify="right") for name in ("tokens", "now")]
    rows = []
    for edit in fitted.edits:
        changed = bool(edit.from_tokens or edit.to_tokens)
        sizes = (f"{edit.from_tokens:,}", f"{edit.to_tokens:,}") if changed else ("", "")
        rows.append((edit.where, edit.what, *sizes))
    console.print(table("where", "what was done", *numbers, rows=rows))
    console.print()
    _say(
        console,
        f"The whole request: {fitted.untouched:,} tokens asked, {fitted.tokens:,} sent, as "
        f"{fitted.count.model} counts them. (A cited text is counted alone, with OpenAI's "
        "vocabulary.)",
    )


# --- the conversation -----------------------------------------------------------------------------


def bundled_body() -> bytes:
    """Return the conversation that comes with Holdfast."""
    return files(__package__).joinpath("tour.json").read_bytes()


def with_log(body: bytes) -> bytes:
    """The conversation, in which the agent then reads the log of a night."""
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
    """The conversation with an answer, and one more question."""
    return _longer(
        body,
        {"role": "assistant", "content": f"This one:\n{answer}"},
        {"role": "user", "content": "Mend that row, and run the import again."},
    )


def _longer(body: bytes, *messages: dict[str, Any]) -> bytes:
    conversation = read(body)
    return write(conversation.insert(len(conversation.messages), *messages))


def night_log() -> str:
    """A log in which one line matters."""
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
