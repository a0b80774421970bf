"""tour: what Holdfast does, shown on a small conversation of its own."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.text import Text

import holdfast
from holdfast import read
from holdfast.settings import Settings

from ._input import limits_of
from ._output import ColorOption, Output, table
from .show import heading, message_table, rows_of
from .validate import violation_table

TRY_NEXT = """\
  holdfast show FILE                 a request of your own, as a table
  holdfast validate FILE             is it what the provider accepts?
  holdfast validate --repair FILE    mend what can be mended
  holdfast convert FILE --to gemini  the same request for another provider
  holdfast fit FILE --limit 8000     make it fit
  holdfast cite FILE                 store a long content, and cite it
  holdfast serve                     all of this as a proxy, with a dashboard
  holdfast --help                    everything else
  docs/quickstart.md                 the same from Python"""


def tour(color: ColorOption = None) -> None:
    """Take the guided tour.

    A small conversation that comes with Holdfast is read, shown, checked, broken and mended. No
    key and no network is needed.
    """
    settings = Settings.load(color=color)
    limits = limits_of(settings)
    console = Output(settings).console
    body = bundled_body()
    conversation = read(body, limits=limits)

    _step(console, "1. Read", "An agent is about to send this request:")
    console.print(heading(conversation))
    console.print()
    console.print(message_table(list(rows_of(conversation)), with_text=True))
    console.print()
    _say(
        console,
        "Messages with the same exchange number belong together. A call and all its results are "
        "kept, moved and dropped as one, because providers insist on it.",
    )

    _step(console, "2. Write", "Reading is a view over the raw bytes, so nothing gets lost.")
    same = holdfast.write(conversation) == body
    _say(console, f"Written back: {len(body):,} bytes, {'the very same' if same else 'changed!'}.")

    _step(console, "3. Validate", "Does the request obey the provider's rules?")
    _say(console, _verdict(holdfast.validate(body, limits=limits)))

    _step(
        console,
        "4. Break it",
        "Careless trimming: the two oldest messages are cut off, one text is emptied, and the "
        "last call was interrupted. The provider would refuse this:",
    )
    damaged = broken(body)
    console.print(violation_table(holdfast.validate(damaged, limits=limits)))

    _step(console, "5. Repair", "Mend what can be mended without inventing content:")
    mended = holdfast.repair(damaged, limits=limits)
    actions = [(action.rule, action.path, action.message) for action in mended.actions]
    console.print(table("rule", "path", "what was done", rows=actions))
    console.print()
    _say(console, _verdict(holdfast.validate(mended.body, limits=limits)))

    _step(console, "Try next", "")
    console.print(Text(TRY_NEXT))


def bundled_body() -> bytes:
    """Return the conversation that comes with Holdfast."""
    return files(__package__).joinpath("tour.json").read_bytes()


def broken(body: bytes) -> bytes:
    """Do to the conversation what careless trimming does."""
    request: dict[str, Any] = json.loads(body)
    messages = request["messages"][2:-2]
    messages[1]["content"][0]["text"] = ""
    messages.append(
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "toolu_search_2",
                    "name": "search",
                    "input": {"pattern": "localise\\("},
                }
            ],
        }
    )
    return json.dumps(request | {"messages": messages}).encode()


def _verdict(violations: list[holdfast.wire.Violation]) -> str:
    if not violations:
        return "valid: no rule is broken."
    return f"{len(violations)} violations are left."


def _step(console: Console, name: str, explanation: str) -> None:
    console.print()
    console.rule(Text(name, style="bold"), align="left")
    if explanation:
        _say(console, explanation)


def _say(console: Console, line: str) -> None:
    console.print(Text(line))
