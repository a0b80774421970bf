"""The dashboard's values: escaping, addresses, sums, alignment, charts."""

from __future__ import annotations

import csv
import re
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import errors
from holdfast.engine.record import Line, Sides
from holdfast.store.records import (
    Edit,
    ReplacedMessage,
    SessionRecord,
    Turn,
    TurnParts,
    TurnUsage,
    UsageTotal,
)
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.charts import HEIGHT, Bar, even_top, stacked
from holdfast.surfaces.proxy.dashboard.exports import turns_csv
from holdfast.surfaces.proxy.dashboard.html import Html, element, text
from holdfast.surfaces.proxy.dashboard.inspection import InspectedRequest, PairRow, aligned, rows
from holdfast.surfaces.proxy.dashboard.inspection import MessageExcerpt as ShownMessage
from holdfast.surfaces.proxy.dashboard.inspector import TurnShown, turn_page
from holdfast.surfaces.proxy.dashboard.lost_page import Proof
from holdfast.surfaces.proxy.dashboard.pulse import (
    Pulse,
    live_list,
    parts_chart,
    three_answers,
)
from holdfast.surfaces.proxy.dashboard.sessions_page import search_form
from holdfast.surfaces.proxy.dashboard.trouble import Failures, failures_section, why_failed
from holdfast.surfaces.proxy.dashboard.views import (
    PARTS,
    SHOWN,
    SessionRow,
    Totals,
    TurnRow,
    chosen,
    days_of,
    totals,
    turn_rows,
    turns_of_edits,
    warned,
)
from holdfast.surfaces.proxy.report import percent
from holdfast.surfaces.proxy.seen import Refusal
from tests.surfaces.proxy.demo import Seen

DAY = UsageTotal(
    name="2026-03-01",
    turns=2,
    predicted=100,
    untouched=1000,
    input=110,
    cached=40,
    output=9,
    expansions=1,
    expansion_tokens=50,
    cost=0.5,
    saved_cost=0.25,
)


@given(st.text(), st.text())
def test_no_text_becomes_a_tag_or_an_attribute(inside: str, value: str) -> None:
    seen = Seen(element("p", inside, title=value))
    assert [tag for tag, _ in seen.tags] == ["p"]
    assert set(seen.tags[0][1]) == {"title"}
    assert seen.text == Seen(text(inside)).text


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_reads_as_it_was(inside: str) -> None:
    assert Seen(element("p", inside)).text == inside


def test_an_element_joined_to_a_text_is_a_text_again() -> None:
    assert not isinstance(element("b", "x") + "<script>", Html)
    assert "&lt;b&gt;" in element("p", element("b", "x") + "<i>")
    assert element("p", element("b", "x"), ["y", None, 3]) == "<p><b>x</b>y3</p>"


def test_what_cannot_be_seen_is_named() -> None:
    assert text("a\x00b\x1b\u202ec\ud800\r\n\t") == "a␀b␛⟨U+202E⟩c\ufffd\n\t"


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_name_comes_back_from_an_address(name: str) -> None:
    path = links.session(name)
    assert path.count("/") == 2
    assert not set(path) & set("?#<>\"' ")
    assert unquote(path).split("/")[2] not in (".", "..")
    assert links.from_path(unquote(path).removeprefix("/sessions/")) == name


def test_totals_add_up_and_are_net_of_all_calls() -> None:
    sums = totals([DAY, DAY])
    assert (sums.requests, sums.billed, sums.untouched, sums.saved) == (4, 220, 2000, 1780)
    assert (sums.cost, sums.saved_cost, sums.expansions, sums.cached) == (1.0, 0.5, 2, 80)
    assert TurnUsage(predicted=100, untouched=100, input=107).saved == -7
    assert totals([]).requests == 0


@pytest.mark.parametrize(
    ("part", "total", "told"),
    [
        (0, 5, "0"),
        (1, 3, "33"),
        (2, 3, "67"),
        (5, 5, "100"),
        (9_996, 10_000, "99.9"),
        (4, 1_000, "0.4"),
        (-4, 1_000, "-0.4"),
        (-1, 100_000, "-0.1"),
        (-444, 100, "-444"),
    ],
)
def test_percentages_say_no_more_than_the_numbers(part: int, total: int, told: str) -> None:
    assert percent(part, total) == told


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9))
def test_a_part_is_never_told_as_more_than_all_nor_a_loss_as_none(part: int, total: int) -> None:
    told = float(percent(min(part, total), total))
    assert told <= 100
    assert (told == 100) == (part >= total)
    assert part >= 0 or told < 0


def turn(number: int, *edits: tuple[str, int, int], **more: Any) -> Turn:
    made = tuple(
        Edit(action=action, why="", where="", from_tokens=old, to_tokens=new, ref_id=f"r{number}")
        for action, old, new in edits
    )
    return Turn(number=number, started_at=float(number), edits=made, **more)


def test_parts_of_a_turn_add_up_to_what_the_client_sent() -> None:
    usage = TurnUsage(predicted=300, input=300, untouched=1300)
    parts = TurnParts(header=80, tools=20, history=150, citations=50)
    before, now = (turn(1, usage=usage), turn(2, usage=usage, parts=parts))
    first, second = turn_rows(SessionRecord(session="s"), [before, now])
    assert first.parts == (0, 0, 300, 0, 0, 0, 0, 1000)  # of an earlier version
    assert second.parts == (80, 20, 150, 0, 50, 0, 0, 1000)
    grown = turn(1, usage=TurnUsage(predicted=30, input=30, untouched=20))
    assert turn_rows(SessionRecord(session="s"), [grown])[0].parts == (0, 0, 30, 0, 0, 0, 0, 0)
    opened = turn(1, usage=TurnUsage(predicted=300, input=900, untouched=1300, expansions=1))
    assert turn_rows(SessionRecord(session="s"), [opened])[0].parts[-1] == 1000


def test_nothing_is_hidden_where_the_provider_counts_more_than_we_do() -> None:
    untouched = turn(1, usage=TurnUsage(predicted=19, input=37, untouched=37))
    assert turn_rows(SessionRecord(session="s"), [untouched])[0].parts[-1] == 0


def test_failures_name_the_model_and_the_providers_word() -> None:
    usage = TurnUsage(failed=True)
    failed = [
        turn(1, model="gpt-4o", status=401, error="invalid_api_key", usage=usage),
        turn(2, model="claude-sonnet-4-5", status=401, error="<b>odd", usage=usage),
    ]
    rows = turn_rows(SessionRecord(session="s"), failed)
    shown = str(failures_section(Failures(count=2, rows=rows)))
    assert "gpt-4o" in shown
    assert "s key (invalid_api_key)." in shown
    assert "claude-sonnet-4-5" in shown
    assert "<b>" not in shown


def test_failed_and_refused_requests_are_listed_together_the_newest_first() -> None:
    usage = TurnUsage(failed=True)
    failed = [turn(n, model=f"turn-{n}", status=500, usage=usage) for n in (4, 2)]
    refused = [Refusal(float(n), "", "", f"refused-{n}", 429, "") for n in (5, 3, 1)]
    rows = turn_rows(SessionRecord(session="s"), failed)
    shown = str(failures_section(Failures(count=2, rows=rows, refused_count=3, refused=refused)))
    assert re.findall(r"(?:turn|refused)-\d", shown) == [
        "refused-5",
        "turn-4",
        "refused-3",
        "turn-2",
        "refused-1",
    ]


def test_a_long_fold_says_how_many_messages_it_is_of() -> None:
    message = ShownMessage(index=0, role="user", pieces=(), size=1)
    row = PairRow(client=(message,) * 30, sent=(message,), same=False, more=470)
    shown = TurnShown(
        session="s",
        turn=turn(1),
        last=1,
        around=(None, None),
        rows=[row],
        proof=Proof(session="s", number=1),
    )
    page = turn_page(shown)
    assert "500 messages, folded into one" in page
    assert "And 470 messages more" in page


def test_warnings_come_newest_first_and_edits_by_their_ref() -> None:
    turns = [turn(n, ("cite", 9, 1), warnings=("w",) if n % 2 else ()) for n in range(1, 8)]
    assert [row.turn.number for row in warned(turn_rows(SessionRecord(session="s"), turns), 3)] == [
        7,
        5,
        3,
    ]
    [fold] = turn(9, ("fold", 9, 1)).edits
    numbers = turns_of_edits([*turns, turn(9, ("fold", 9, 1))])
    assert (numbers[turns[2].edits[0]], numbers[fold]) == (3, 9)


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("today", ["2026-03-01"]),
        ("yesterday", ["2026-02-28"]),
        ("week", ["2026-02-28", "2026-03-01"]),
        ("month", ["2026-02-02", "2026-02-28", "2026-03-01"]),
        ("all", ["2025-12-31", "2026-02-02", "2026-02-28", "2026-03-01"]),
    ],
)
def test_a_period_is_made_of_its_days(period: str, names: list[str]) -> None:
    days = [day_of(name) for name in ("2025-12-31", "2026-02-02", "2026-02-28", "2026-03-01")]
    assert [day.name for day in days_of(period, days, "2026-03-01")] == names


def day_of(name: str) -> UsageTotal:
    fields = dict.fromkeys(
        ("turns", "predicted", "untouched", "input", "cached", "output", "expansions",
         "expansion_tokens"), 1
    )  # fmt: skip
    return UsageTotal(name=name, cost=0.0, saved_cost=0.0, **fields)


def test_sessions_are_found_by_all_words_and_by_what_became_of_them() -> None:
    def row(title: str, **sums: int) -> SessionRow:
        record = SessionRecord(session=f"s-{title[:3]}", title=title, model="gpt-4o")
        return SessionRow(record=record, totals=Totals(**sums))

    rows = [row("Mend the Build", failed=1), row("Read the log", expansions=2, saved=-5)]

    def titles(words: str, show: str = "all") -> list[str]:
        return [each.record.title[:4] for each in chosen(rows, words, show)]

    assert titles("") == ["Mend", "Read"]
    assert titles("build THE") == ["Mend"]
    assert titles("gpt-4o s-rea") == ["Read"]
    assert titles("nothing") == []
    assert (titles("", "failed"), titles("", "opened"), titles("", "loss")) == (
        ["Mend"], ["Read"], ["Read"],
    )  # fmt: skip


def test_the_overview_tells_of_tools_that_were_set_aside_where_there_are_any() -> None:
    sums = Totals(
        requests=9, lazy=4, lazy_saved=90_000, tool_searches=3, tool_calls=8, lazy_calls=6
    )
    told = three_answers(Pulse(totals=sums))
    assert "tokens of tool schemas set aside in 4 requests" in told
    assert "6 of 8 tool calls were of these, after 3 searches" in told
    assert "set aside" not in three_answers(Pulse(totals=Totals(requests=9)))


@given(st.integers(0, 10**12))
def test_the_top_of_a_chart_is_even_and_not_far_above(most: int) -> None:
    top = even_top(most)
    assert most <= top <= max(4, most * 2)
    assert str(top // 4).rstrip("0") in {"1", "2", "3", "4", "5", "6", "8"}


def test_the_parts_that_were_sent_are_drawn_on_a_scale_of_their_own() -> None:
    nothing = (0,) * (len(PARTS) - 2)
    requests = [TurnRow(session="s", turn=turn(1), parts=(80, *nothing, 100_000))]
    sent, hidden = ElementTree.fromstring(f"<div>{parts_chart('n', requests)}</div>").iter("svg")
    (bar,) = sent.iter("rect")
    assert float(bar.get("height", "0")) == HEIGHT - 40  # all of the room, for any hidden tokens
    assert sent.find("a") is not None
    assert hidden.find("a") is None  # by the keyboard each request is one stop
    assert [rect.get("class") for rect in hidden.iter("rect")] == [f"part-{len(PARTS) - 1}"]


def test_a_chart_without_anything_hidden_stands_alone() -> None:
    requests = [TurnRow(session="s", turn=turn(1), parts=(100, *(0,) * (len(PARTS) - 1)))]
    assert parts_chart("n", requests).count("<svg") == 1


def test_a_request_that_took_more_says_so_and_one_with_a_warning_too() -> None:
    usage = TurnUsage(untouched=100, input=132)
    row = TurnRow(session="s", turn=turn(1, usage=usage, warnings=("near its limit",)), parts=())
    live = live_list(Pulse(rows=[row]))
    assert "32\u00a0% more" in live
    assert "ok, warned" in live
    assert 'title="near its limit"' in live


def test_names_do_not_become_formulas_in_a_spreadsheet() -> None:
    table = turns_csv([turn(1, model='=HYPERLINK("http://x")', warnings=("+1", "a,b"))])
    head, line = table.decode().splitlines()
    assert head.startswith("turn,started_at,model,status,tokens_asked")
    assert "'=HYPERLINK" in line
    assert next(csv.reader([line]))[-1] == "'+1; a,b"


def test_every_failure_has_a_reason() -> None:
    kinds = {name for name in vars(errors) if name.endswith("Error")}
    for status in (400, 401, 404, 418, 429, 499, 500, 502, 503, 529, 599):
        assert why_failed(status).endswith(".")
        assert all(why_failed(status, kind) for kind in kinds)
    for kind in ("BudgetExceededError", "AnchorPreservationError"):
        assert "does not fit its limit" in why_failed(400, kind)
    assert "Too many" in why_failed(429, "SomeQuotaError")


def test_a_ref_is_explained_where_it_came_in_not_where_it_is_quoted() -> None:
    ref = "ref:log:0123456789abcdef"
    frame = b'{"model": "gpt-4o", "messages": [\0]}\0,'
    stored = {
        "frame": frame,
        "long": b'{"role": "user", "content": "a long text"}',
        "cited": f'{{"role": "user", "content": "[{ref}]"}}'.encode(),
        "quoted": f'{{"role": "user", "content": "see {ref}"}}'.encode(),
        "marked": f'{{"role": "user", "content": "see {ref}!"}}'.encode(),
    }
    edit = Edit(action="cite", why="", where="", from_tokens=9, to_tokens=1, ref_id=ref)
    lines = (Line("cited", ("long",)), Line("marked", ("quoted",)))
    both = Sides(
        lines=lines,
        standings={0: ReplacedMessage(0, ("long",), (edit,))},
        frame="frame",
        patches=(),
        asked="",
    )
    inspected = InspectedRequest(dialect="openai-chat", sides=both, stored=stored, turns={edit: 1})
    first, second = rows(inspected, aligned(2, both.origins))
    assert [one.edit for one in first.edits] == [edit]
    assert second.edits == ()
    assert not second.same


origin_lists = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=12)


@given(origin_lists, st.integers(0, 5))
def test_every_message_of_both_sides_stands_in_one_pair(
    steps: list[tuple[int, int, bool]], behind: int
) -> None:
    origins: list[tuple[int, int]] = []
    at = 0
    for skipped, length, again in steps:
        if again and origins:
            origins.append(origins[-1])
            continue
        origins.append((at + skipped, at + skipped + length))
        at += skipped + length
    pairs = aligned(at + behind, origins)
    assert [n for pair in pairs for n in pair.client] == list(range(at + behind))
    assert [n for pair in pairs for n in pair.sent] == list(range(len(origins)))
    for pair in pairs:
        for n in pair.sent:
            start, stop = origins[n]
            assert start == stop or set(range(start, stop)) <= set(pair.client)


def svg_ground(svg: ElementTree.Element) -> float:
    """Return where the lowest line of a chart's grid is drawn."""
    return max(float(line.get("y1", "0")) for line in svg.iter("line"))


@given(st.lists(st.lists(st.integers(-(10**7), 10**7), min_size=3, max_size=3), max_size=70))
def test_bars_stay_inside_their_chart_and_keep_proportion(numbers: list[list[int]]) -> None:
    bars = [Bar(label="<l>", title="<t>", parts=tuple(parts)) for parts in numbers]
    svg = ElementTree.fromstring(stacked("n", ("a", "b", "c"), bars)).find("svg")
    assert svg is not None
    drawn = [[max(0, part) for part in parts] for parts in numbers]  # a loss has no bar
    top = max(map(sum, drawn), default=0)
    for group, parts in zip(svg.findall("g"), drawn, strict=True):
        heights = [float(rect.get("height", "0")) for rect in group.findall("rect")]
        assert all(float(rect.get("y", "-1")) >= 0 for rect in group.findall("rect"))
        # Each part is on top of the one below it, and the first on the zero line.
        ground = svg_ground(svg)
        for rect in group.findall("rect"):
            bottom = float(rect.get("y", "0")) + float(rect.get("height", "0"))
            assert bottom == pytest.approx(ground, abs=0.2)
            ground = float(rect.get("y", "0"))
        room = HEIGHT - 40
        assert sum(heights) == pytest.approx(room * sum(parts) / even_top(top), abs=1)


@pytest.mark.parametrize("show", SHOWN)
def test_the_search_form_shows_what_was_searched_for(show: str) -> None:
    form = str(search_form("nightly", show))
    assert re.findall(r'<option[^>]*value="(\w+)"[^>]* selected', form) == [show]
    assert 'value="nightly"' in form
