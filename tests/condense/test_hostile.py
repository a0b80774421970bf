"""No content can stop us: work grows as the content does, and so does memory.

The normal suite compares the steps that two sizes of every hostile input take; the campaign
(`make fuzz`) holds a megabyte of each to processor time, on an idle machine, and memory.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.condense.fields import fields
from holdfast.condense.glance import glance
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.search.passages import rank
from tests.condense.hostile import INPUTS
from tests.support.steps import is_linear

QUESTION = "What is the latest error, and which name does 'it' have? items[3].name"

COMPARED = 4_000
"""Bytes of every input in the normal suite, held against the steps of four times as many."""
LONGEST_SECONDS = 20.0

MEGABYTE = 1_000_000
MOST_SECONDS = 1.0
MOST_MEMORY = 8
"""Times the size of the input."""
EXCEPT: dict[str, tuple[float, int]] = {
    # A parser of pages takes half a kilobyte for `<p>`, and a tenth for an attribute; above
    # `html_blocks.MOST_TAGS` a page is read without it.
    "html": (1.0, 64),
    "xml": (1.0, 36),
    # The objects of each: a header of a mail, a statement, a result in each 20 bytes.
    "email_list": (1.0, 24),
    "sql_dump": (2.0, 28),
    "web_search": (1.0, 20),
    "diff": (1.0, 28),
    # One row of a million cells; a million lines around a drawn table.
    "csv": (2.0, 14),
    "json_rows": (2.0, 10),
    "markdown": (1.0, 14),
    "stack_trace": (1.0, 28),
    "log": (2.0, 28),
    "text": (1.0, 20),
    "test_output": (1.0, 24),
    "code": (1.0, 28),
    # Read token by token, in Python.
    "python": (4.0, 110),
}
"""Contents that may take more, by kind or by spelling: seconds, and times the size. The worker's
limits bound the total."""


def condensed(content: bytes) -> str:
    """Do all that a citation asks of the condensers; return the title."""
    source = Source(content)
    condenser = condenser_for(source)
    title = condenser.condense(source).title
    glance(source)
    fields(source, QUESTION)
    rank(QUESTION, condenser.passages(source))
    return title


def seconds(content: bytes) -> float:
    """Return the processor time that a content takes."""
    begin = time.process_time()
    condensed(content)
    return time.process_time() - begin


def condensing(make: Callable[[int], bytes]) -> Callable[[int], Callable[[], object]]:
    """Return the work of condensing an input, by its size."""
    return lambda size: partial(condensed, make(size))


def _stop(_signal: int, _frame: object) -> None:
    pytest.fail(f"not condensed in {LONGEST_SECONDS} seconds")


@pytest.fixture
def stopped_in_time() -> Iterator[None]:
    """An input of exponential time ends in a failure, not in a run that never ends."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


FAMILIES = sorted({name.partition("_")[0] for name in INPUTS})


@pytest.mark.usefixtures("stopped_in_time")
@pytest.mark.parametrize("family", FAMILIES)
def test_work_grows_no_faster_than_the_content(family: str) -> None:
    for name, make in INPUTS.items():
        if name.partition("_")[0] == family:
            assert is_linear(condensing(make), COMPARED, slack=5_000), name


STOPPED = {
    "feed": b"<!---->" * 300 + b"<feed>" + b"x " * 600,
    "quotes": b"[None, " + b"\\'" * 20_000 + b"]",
    "dots": b"a." * 20_000,
    "table": b"CREATE TABLE t (" + b" " * 20_000 + b"(" * 20_000 + b")",
}
"""As the proxy was sent them: it answered nobody until it was killed, or for minutes."""


@pytest.mark.usefixtures("stopped_in_time")
@pytest.mark.parametrize("name", STOPPED)
def test_the_very_bytes_that_stopped_the_proxy_are_condensed(name: str) -> None:
    assert condensed(STOPPED[name])


@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", INPUTS)
def test_a_megabyte_takes_a_second_and_little_memory(name: str) -> None:
    content = INPUTS[name](MEGABYTE)
    used = _in_a_process(content)
    megabytes = max(1.0, len(content) / MEGABYTE)
    source = Source(content)
    written = source.document.form if source.document is not None else ""
    kind = "python" if written == "python" else condenser_for(source).kind
    most_seconds, most_memory = EXCEPT.get(kind, (MOST_SECONDS, MOST_MEMORY))
    assert used["seconds"] <= most_seconds * megabytes
    assert used["bytes"] <= most_memory * len(content)


def _in_a_process(content: bytes) -> dict[str, float]:
    """Return the time and memory of one content, measured in a separate process with a limit."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            limit = int(LONGEST_SECONDS)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
            before = _peak()
            used = {"seconds": seconds(content), "bytes": float(_peak() - before)}
            os.write(writing, json.dumps(used).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        written = answer.read()
    os.waitpid(child, 0)
    assert written, f"stopped after {LONGEST_SECONDS} seconds"
    used_by_child: dict[str, float] = json.loads(written)
    return used_by_child


def _peak() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024
