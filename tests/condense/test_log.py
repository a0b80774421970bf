"""Logs: every error and warning is shown with its place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.condense import log
from holdfast.condense.severity import alert_lines, level, ranges, rank
from holdfast.condense.source import Source

CALM = "2024-05-01 12:00:{0:02d},101 INFO  worker-3: request {1} served in {0} ms from 10.0.0.{0}"


def sample(extra: dict[int, str], lines: int = 200) -> Source:
    """A calm log with other lines at some places, counted from 1."""
    made = [extra.get(n, CALM.format(n % 60, 1000 + n)) for n in range(1, lines + 1)]
    return Source("\n".join(made).encode())


def alerts(source: Source) -> list[tuple[str, str]]:
    return [(n.text, n.where) for n in log.condense(source).notes if n.role == "alert"]


def places(text: str) -> set[int]:
    """All line numbers that a note lists."""
    listed = text.rpartition(" at ")[2] if " at " in text else text.rpartition("lines ")[2]
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", listed):
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01T12:00:00.000Z INFO started",
        "2024/05/01 12:00:00 [error] 12#12: *1 open() failed",
        "Jun 14 15:16:01 combo sshd[19939]: session opened",
        "[Thu Jun 09 06:07:04 2005] [notice] LDAP: Built",
        '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326',
        "03-17 16:13:38.811  1702  2395 D WindowManager: printFreezing",
        "[INFO] Scanning for projects...",
        "npm ERR! code ELIFECYCLE",
        "src/main.c:10:5: error: expected ';'",
        '{"ts": 1, "level": "info", "msg": "up"}',
        "[    0.000000] Linux version 6.1",
    ],
)
def test_many_ways_to_write_a_log_are_known(line: str) -> None:
    assert log.sniff(Source(f"{line}\n".encode() * 5)) > 0.5


@pytest.mark.parametrize(
    "text",
    [
        "Dear all,\nwe meet on Monday.\nYours,\nA.",
        "date,wind\n2024-05-01 12:00:00,3\n2024-05-01 13:00:00,4\n2024-05-01 14:00:00,5\n",
        "one line",
        "",
    ],
)
def test_prose_and_tables_are_no_logs(text: str) -> None:
    assert log.sniff(Source(text.encode())) < 0.5


def test_an_error_is_quoted_exactly_with_its_line() -> None:
    error = (
        "2024-05-01 12:00:44,001 ERROR db: connection to 10.1.2.3:5432 refused (errno=111) id=9f8a"
    )
    source = sample({57: error})
    assert (error, "lines 57-57") in alerts(source)


def test_errors_alike_are_told_once_with_count_and_places() -> None:
    error = "2024-05-01 12:00:44,001 ERROR db: timeout after {} ms"
    source = sample({n: error.format(n) for n in (10, 11, 12, 90, 150)})
    quoted = [text for text, where in alerts(source) if "timeout" in text]
    assert quoted == [f"{error.format(10)} [5 alike: lines 10-12, 90, 150]"]


def test_errors_come_before_warnings_and_these_before_mentions() -> None:
    source = sample({
        20: "2024-05-01 12:00:01,000 INFO app: 0 errors so far",
        30: "2024-05-01 12:00:01,000 WARN app: disk at 91%",
        40: "2024-05-01 12:00:01,000 FATAL app: disk full",
    })  # fmt: skip
    assert [where for _, where in alerts(source) if where] == [
        "lines 40-40",
        "lines 30-30",
        "lines 20-20",
    ]


def test_levels_and_time_span_are_outlined() -> None:
    source = sample({30: "2024-05-01 12:00:01,000 WARN app: disk at 91%"})
    outline = [note.text for note in log.condense(source).notes if note.role == "outline"]
    assert "levels: INFO 199, WARN 1" in outline
    assert "from 2024-05-01 12:00:01,101 to 2024-05-01 12:00:20,101" in outline


def test_a_calm_log_has_no_alerts_and_few_templates() -> None:
    condensed = log.condense(sample({}))
    assert not [note for note in condensed.notes if note.role == "alert"]
    assert condensed.title == "Log, 200 lines of 1 kind"


def test_colours_hide_no_level() -> None:
    line = "\x1b[32m12:00:01\x1b[0m \x1b[31mERROR\x1b[0m it broke"
    source = Source("\n".join(["12:00:00 INFO fine"] * 5 + [line]).encode())
    assert ("12:00:01 ERROR it broke", "lines 6-6") in alerts(source)


def test_a_traceback_stays_with_its_line() -> None:
    source = Source(
        b"12:00:00 ERROR failed\nTraceback (most recent call last):\n  File 'a'\n12:00:01 INFO on"
    )
    assert [part.where for part in log.passages(source)] == ["lines 1-3", "lines 4-4"]


def test_an_error_told_in_quotes_is_not_taken_for_its_calm_neighbours() -> None:
    calm = 'ts=12:00:00 level=info msg="all is well" n={}'
    lines = [calm.format(n) for n in range(50)]
    lines[20] = 'ts=12:00:00 level=info msg="write failed" n=20'
    lines[30] = 'ts=12:00:00 level=error msg="it is over" n=30'
    shown = alerts(Source("\n".join(lines).encode()))
    assert (lines[20], "lines 21-21") in shown
    assert (lines[30], "lines 31-31") in shown


def test_errors_of_a_server_are_alerts_in_an_access_log() -> None:
    line = '10.0.0.{} - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" {} 2326'
    lines = [line.format(n, 503 if n == 7 else 200) for n in range(1, 60)]
    assert (lines[6], "lines 7-7") in alerts(Source("\n".join(lines).encode()))


LINES = st.lists(
    st.sampled_from([
        CALM.format(1, 2),
        "2024-05-01 12:00:44 ERROR db: refused",
        "2024-05-01 12:00:44 WARNING low memory",
        'ts=12:00:00 level=info msg="all is well"',
        'ts=12:00:00 level=info msg="write error"',
        "java.lang.IllegalStateException: no",
        "Permission denied",
        "",
        "  at x.y(Z.java:3)",
    ]),
    max_size=60,
)  # fmt: skip


@given(lines=LINES)
def test_every_line_of_error_is_listed_in_the_first_notes(lines: list[str]) -> None:
    source = Source("\n".join(lines).encode())
    listed: set[int] = set()
    for text, where in alerts(source):
        if not where:
            listed |= places(text)
    assert set(alert_lines(source)) <= listed
    expected = {
        n for n, line in enumerate(lines, 1) if re.search("error|exception|warn|denied", line, re.I)
    }
    assert set(alert_lines(source)) == expected


@given(numbers=st.sets(st.integers(1, 500), min_size=1), most=st.integers(1, 20))
def test_ranges_hold_every_number_and_are_few(numbers: set[int], most: int) -> None:
    text = ranges(sorted(numbers), most)
    assert numbers <= places(f"at {text}")
    assert len(text.split(", ")) <= most
    assert places(f" at {ranges(sorted(numbers), 1000)}") == numbers


@pytest.mark.parametrize(
    ("line", "named", "grave"),
    [
        ("12:00 INFO all is well", "INFO", 0),
        ("12:00 INFO parity error corrected", "INFO", 1),
        ("12:00 [warn] slow", "WARN", 2),
        ("12:00 level=error msg=x", "ERROR", 3),
        ("03-17 16:13:46.764  2227  2794 E Keyguard: null", "ERROR", 3),
        ("authentication failure", "", 3),
        ("READOUT_ERR = 16", "", 0),
        ("INFORMATION desk", "", 0),
        ("warning: unused", "", 2),
    ],
)
def test_a_line_is_ranked_by_its_level_else_by_its_words(line: str, named: str, grave: int) -> None:
    assert level(line) == named
    assert rank(line, named) == grave


def test_a_level_behind_a_number_makes_a_log() -> None:
    lines = [f"{n:05} INFO request {n} served" for n in range(30)] + ["00030 ERROR db-3 refused"]
    assert log.sniff(Source("\n".join(lines).encode())) > 0.8
    prose = "The word ERROR is in it.\nSo is INFO here.\nAnd nothing more than that.\n" * 5
    assert log.sniff(Source(prose.encode())) == 0
