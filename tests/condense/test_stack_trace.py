"""Stack traces: the exact error."""

from __future__ import annotations

import pytest

from holdfast.condense import kinds, stack_trace
from holdfast.condense.source import Source

TRACES = {
    "python": (
        'Traceback (most recent call last):\n  File "/app/a.py", line 3, in main\n    run(x)\n'
        "  File \"/app/b.py\", line 9, in run\n    raise KeyError(key)\nKeyError: 'user-17'\n",
        "KeyError: 'user-17'",
    ),
    "java": (
        'Exception in thread "main" java.lang.IllegalStateException: pool is shut\n'
        "\tat org.app.Pool.take(Pool.java:41)\n\tat org.app.Main.main(Main.java:7)\n"
        "Caused by: java.io.IOException: disk full\n\tat org.app.Disk.write(Disk.java:3)\n",
        "Caused by: java.io.IOException: disk full",
    ),
    "javascript": (
        "TypeError: Cannot read properties of undefined (reading 'id')\n"
        "    at load (/srv/app/load.js:12:7)\n    at main (/srv/app/main.js:3:1)\n",
        "TypeError: Cannot read properties of undefined (reading 'id')",
    ),
    "go": (
        "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\n"
        "main.main()\n\t/srv/main.go:8 +0x1d\nexit status 2\n",
        "panic: runtime error: index out of range [5] with length 3",
    ),
    "rust": (
        "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds\nstack backtrace:\n"
        "   0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n   2: app::main\n",
        "thread 'main' panicked at src/main.rs:4:5:",
    ),
}


@pytest.mark.parametrize("language", TRACES)
def test_what_was_thrown_is_quoted_and_frames_are_shown(language: str) -> None:
    text, thrown = TRACES[language]
    source = Source(text.encode())
    assert kinds.kind_of(source) == "stack_trace"
    notes = stack_trace.condense(source).notes
    assert thrown in [note.text for note in notes if note.role == "alert"]
    assert [note for note in notes if note.role == "sample"]


def test_a_page_of_prose_is_no_trace() -> None:
    assert stack_trace.sniff(Source(b"An Error is thrown at noon.\n" * 50)) == 0
