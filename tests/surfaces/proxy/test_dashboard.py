"""The dashboard's pages of a running proxy: correct, and safe for any records."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from holdfast.engine.record import last_sides
from holdfast.store.records import SessionRecord
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.inspection import (
    InspectedRequest,
    Reader,
    aligned,
    needed,
    rows,
)
from holdfast.surfaces.proxy.dashboard.overview import Overview, overview_page
from holdfast.surfaces.proxy.dashboard.pulse import Pulse
from holdfast.surfaces.proxy.dashboard.responses import POLICY
from holdfast.surfaces.proxy.dashboard.views import SessionRow, totals, turns_of_edits
from holdfast.tokens import count
from tests.fitting.test_citing import chat, in_dialect
from tests.surfaces.proxy import demo
from tests.surfaces.proxy.demo import Seen
from tests.surfaces.proxy.harness import DIALECTS, Answered, Running, ask, running_proxy
from tests.surfaces.proxy.test_dashboard_values import DAY


def view(running: Running, path: str) -> Answered:
    """Return a page, which must be complete and safe with any status."""
    answered = ask(running.url + path)
    assert answered.headers["content-security-policy"] == POLICY
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cache-control"] == "no-store"
    if answered.headers["content-type"] == "text/html; charset=utf-8":
        seen = Seen(answered.body.decode())
        assert not {"style", "iframe", "object", "embed"} & {tag for tag, _ in seen.tags}
        scripts = [attributes for tag, attributes in seen.tags if tag == "script"]
        assert all(script == {"src": "/static/live.js", "defer": None} for script in scripts)
        for _, attributes in seen.tags:
            assert not any(name.startswith("on") or name == "style" for name in attributes)
            for name in ("href", "src", "action"):
                assert (attributes.get(name) or "/").startswith(("/", "#"))
    return answered


def shown(running: Running, path: str) -> str:
    answered = view(running, path)
    assert answered.status == 200, answered.body
    return Seen(answered.body.decode()).text


def hrefs(running: Running, path: str) -> list[str]:
    seen = Seen(view(running, path).body.decode())
    return list(dict.fromkeys(a["href"] or "" for tag, a in seen.tags if tag == "a"))


def test_both_sides_of_every_turn_are_those_that_went_out(busy: Running) -> None:
    engine = busy.service.engine
    for name in ("nightly-build", "long-incident"):
        session = engine.session(name)
        turns = busy.do(engine.store.turns(session.scope))
        state = session.state
        assert state is not None
        both = last_sides(turns)
        assert both is not None
        assert both.origins == state.origins
        stored = busy.do(engine.store.messages(engine.scope, [*both.client, *both.sent]))
        assert [stored[n] for n in both.client] == [m.raw for m in state.asked.messages]
        assert [stored[n] for n in both.sent] == [m.raw for m in state.sent.messages]


def test_a_citation_stands_opposite_its_original(busy: Running) -> None:
    engine = busy.service.engine
    turns = busy.do(engine.store.turns(engine.scope.of("nightly-build"), limit=2))
    both = last_sides(turns)
    assert both is not None
    pairs = aligned(len(both.client), both.origins)
    stored = busy.do(engine.store.messages(engine.scope, needed(both, pairs)))
    inspected = InspectedRequest(
        dialect="openai-chat", sides=both, stored=stored, turns=turns_of_edits(turns)
    )
    shown = rows(inspected, pairs)
    assert any(row.sent and not row.client for row in shown), "what was opened unseen"
    changed = [row for row in shown if [e for e in row.edits if e.edit.action == "cite"]]
    assert len(changed) == 2
    for n, row in enumerate(changed):
        [before], [after], [edit] = row.client, row.sent, row.edits
        assert (before.role, before.cut, after.cut) == ("tool", True, False)
        assert demo.build_log(n).startswith(before.pieces[0].text)
        assert edit.edit.ref_id in after.pieces[0].text
        assert (edit.turn, edit.edit.action) == (n + 1, "cite")
        assert Reader(inspected, "client").show(before.index).pieces[0].text == demo.build_log(n)


@pytest.mark.parametrize("span", [b"no JSON", b"[1]", b'{"role": "nobody"}', b'{}, {"x": 1}'])
def test_a_message_that_cannot_be_read_is_shown_as_it_stands(busy: Running, span: bytes) -> None:
    engine = busy.service.engine
    turns = busy.do(engine.store.turns(engine.scope.of("nightly-build"), limit=2))
    both = last_sides(turns)
    assert both is not None
    stored = busy.do(engine.store.messages(engine.scope, [both.frame]))
    inspected = InspectedRequest(
        dialect="openai-chat", sides=both, stored={**stored, both.sent[0]: span}
    )
    shown_message = Reader(inspected, "sent").show(0)
    assert (shown_message.role, shown_message.size) == ("?", len(span))
    assert [(p.kind, p.text) for p in shown_message.pieces] == [("raw", span.decode())]


@pytest.mark.parametrize("dialect", [*DIALECTS, "bare"])
def test_messages_of_every_dialect_can_be_read(dialect: str) -> None:
    body = in_dialect(
        chat("a short result", question="Quo vadis?"), dialect.replace("bare", "gemini")
    )
    if dialect == "bare":
        body, dialect = b'{"model": "gpt-4o", "input": "Quo vadis?"}', "openai-responses"
    with running_proxy() as running:
        running.do(demo.record(running.service.engine, "s", body, dialect))
        said = shown(running, "/sessions/s/turns/1")
    assert "Quo vadis?" in said
    assert "as it stands" not in said
    assert "a short result" in said or b"short" not in body


def test_a_session_that_changed_its_dialect_can_be_read() -> None:
    with running_proxy() as running:
        for dialect in DIALECTS:
            body = in_dialect(chat("fine", question=f"Who speaks {dialect}?"), dialect)
            running.do(demo.record(running.service.engine, "s", body, dialect))
        for n, dialect in enumerate(DIALECTS, 1):
            said = shown(running, links.turn("s", n))
            assert f"Who speaks {dialect}?" in said
            assert "as it stands" not in said
            assert "read_log" in said


# --- pages -----------------------------------------------------------------------------------


def test_a_newcomer_is_told_what_to_do() -> None:
    with running_proxy() as running:
        said = shown(running, "/")
        assert f"curl {running.url}/v1/chat/completions -H 'content-type: application/json'" in said
        assert f"OPENAI_BASE_URL={running.url}/v1" in said
        body = re.search(r"-d '(\{.*\})'", said)
        assert body is not None
        assert ask(f"{running.url}/v1/chat/completions", body[1].encode()).status == 200
        running.settled()
        assert "Nothing was sent yet" not in shown(running, "/")


def test_the_first_page_shows_totals_warnings_and_sessions(busy: Running) -> None:
    said = shown(busy, "/")
    engine = busy.service.engine
    sums = totals(busy.do(engine.store.usage(engine.scope)))
    assert sums.saved > 100_000
    for number in (sums.billed, sums.untouched, sums.saved):
        assert f"{number:,}" in said
    assert "Context trimmed due to token limit" in said
    links_there = hrefs(busy, "/")
    for name in ("nightly-build", "long-incident", "inventory-check"):
        assert links.session(name) in links_there
    assert links.turn("nightly-build", 8) in links_there  # bars lead to their turns


def test_system_and_tools_are_counted_as_part_of_their_own(busy: Running) -> None:
    engine = busy.service.engine
    state = engine.session("nightly-build").state
    assert state is not None
    parts = count(state.sent, model="gpt-4o").parts
    assert parts.tools > 20
    page = view(busy, "/sessions/nightly-build").body.decode()
    header = parts.system + parts.formatting
    assert f"turn 8: header {header}, tools {parts.tools}, history" in page


def test_days_have_a_chart_when_there_are_two(pages_of_two_days: str) -> None:
    assert "Tokens by day" in pages_of_two_days
    days = "2026-03-01: billed, from vendors&#x27; caches 40, billed, new 70, saved 890"
    assert days in pages_of_two_days
    assert "2026-03-02: billed, from vendors&#x27; caches 40, billed, new 1,310, saved −350" in (  # noqa: RUF001
        pages_of_two_days
    )


def test_a_loss_is_shown_as_one_with_its_share_of_what_was_asked(pages_of_two_days: str) -> None:
    told = Seen(pages_of_two_days).text
    assert "tokens saved−350 (−35\u00a0%)" in told  # noqa: RUF001
    assert "−35\u00a0% of what clients asked" in told  # noqa: RUF001
    assert "money saved−$0.0444" in told  # noqa: RUF001
    assert "1 failed" in told


def test_figures_say_what_they_are_a_share_of(pages_of_two_days: str) -> None:
    titles = [about["title"] for tag, about in Seen(pages_of_two_days).tags if tag == "dt"
              and "title" in about]  # fmt: skip
    assert any("share of tokens asked" in str(title) for title in titles)


def test_what_was_left_out_is_counted_and_can_be_opened(busy: Running) -> None:
    refs = busy.do(busy.service.engine.store.stats(busy.service.engine.scope)).refs
    assert refs > 0
    assert f"{refs:,} originalsAll can be opened; nothing was lost." in shown(busy, "/")


@pytest.fixture
def pages_of_two_days() -> str:
    loss = msgspec.structs.replace(DAY, name="2026-03-02", input=1350, saved_cost=-0.0444, failed=1)
    row = SessionRow(record=SessionRecord(session="s"), totals=totals([DAY]))
    return overview_page(
        Overview(url="", pulse=Pulse(totals=totals([loss])), days=[DAY, loss], sessions=[row])
    )


def test_a_session_shows_its_turns(busy: Running) -> None:
    said = shown(busy, "/sessions/nightly-build")
    engine = busy.service.engine
    for one in busy.do(engine.store.turns(engine.scope.of("nightly-build"))):
        assert f"turn {one.number}" in said
        assert f"{one.usage.input:,}" in said
        assert f"{one.usage.untouched:,}" in said
        assert f"{one.usage.saved:,}".replace("-", "−") in said  # noqa: RUF001


def test_the_inspector_explains_every_edit_and_opens_every_ref(busy: Running) -> None:
    engine = busy.service.engine
    for name in ("nightly-build", "long-incident"):
        turns = busy.do(engine.store.turns(engine.scope.of(name)))
        path = links.turn(name, turns[-1].number)
        said, there = shown(busy, path), hrefs(busy, path)
        for edit in turns[-1].edits:
            assert edit.why in said
            assert edit.where in said
            assert f"{edit.from_tokens:,}" in said
        refs = [one for one in there if one.startswith("/refs/")]
        assert len(refs) >= len({edit.ref_id for edit in turns[-1].edits} - {""})
        for ref in refs:
            assert view(busy, ref).status == 200
    assert "messages, folded into one" in said


def test_a_ref_gives_its_parts_and_its_very_bytes(busy: Running) -> None:
    engine = busy.service.engine
    [info] = [one for one in busy.do(engine.store.refs(engine.scope))
              if "log" in one.kind and one.size == len(demo.build_log(3))][:1]  # fmt: skip
    stored = busy.do(engine.store.get(engine.scope, info.ref_id))
    assert stored is not None
    said = shown(busy, links.ref(info.ref_id))
    assert f"{info.tokens:,}" in said
    assert info.compressed.splitlines()[1] in said
    lines = stored.data.decode().splitlines()
    by_line = shown(busy, links.ref(info.ref_id, lines="7-8"))
    assert "\n".join(lines[6:8]) in by_line
    assert "disk quota exceeded" in shown(busy, links.ref(info.ref_id, query="disk quota"))
    assert shown(busy, links.ref(info.ref_id, page=2)) != said
    onward = [one for one in hrefs(busy, links.ref(info.ref_id, lines="9-")) if "page=2" in one]
    assert onward == [links.ref(info.ref_id, lines="9-", page=2)]  # the requested options are kept
    refused = view(busy, links.ref(info.ref_id, lines="9-2"))
    assert refused.status == 400
    assert b"the smaller number first" in refused.body
    raw = view(busy, links.raw(info.ref_id))
    assert raw.body == stored.data
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["content-disposition"].startswith('attachment; filename="ref-')


def test_looking_at_a_ref_is_not_an_opening() -> None:
    """Each look at the page was counted among the openings."""
    with running_proxy() as running:
        demo.tool_turns(running, "s", [demo.build_log(n) for n in range(2)])
        engine = running.service.engine
        before = running.do(engine.store.refs(engine.scope))
        home = opened_column(running, "/refs")
        for info in before:
            for path in (links.ref(info.ref_id), links.ref(info.ref_id, lines="2-3"),
                         links.ref(info.ref_id, page=2), links.raw(info.ref_id)):  # fmt: skip
                assert view(running, path).status == 200
        running.settled()
        assert running.do(engine.store.refs(engine.scope)) == before
        assert opened_column(running, "/refs") == home


def opened_column(running: Running, path: str) -> list[str]:
    page = view(running, path).body.decode()
    return re.findall(r'<td class="number" data-label="Opened">([^<]*)</td>', page)


def test_all_pages_of_a_ref_together_are_its_content(busy: Running) -> None:
    engine = busy.service.engine
    info = max(busy.do(engine.store.refs(engine.scope)), key=lambda one: one.size)
    stored = busy.do(engine.store.get(engine.scope, info.ref_id))
    assert stored is not None
    path, found = links.ref(info.ref_id), ""
    for _ in range(20):
        page = view(busy, path).body.decode()
        found += Seen(page.partition('<pre tabindex="0">')[2].partition("</pre>")[0]).text
        following = re.search(r'<a href="([^"]+)" rel="next">', page)
        if following is None:
            break
        path = Seen(following[0]).tags[0][1]["href"] or ""
    assert found == stored.data.decode()


def test_secrets_are_announced_before_they_are_shown() -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    log = f"{demo.build_log(1)}\naws_access_key_id = {secret}\n"
    with running_proxy({"privacy_policy": "allow"}) as running:
        demo.tool_turns(running, "s", [log])
        engine = running.service.engine
        [info] = [one for one in running.do(engine.store.refs(engine.scope)) if one.flags]
        first = shown(running, links.ref(info.ref_id))
        assert "Careful" in first
        assert secret not in first
        assert secret in shown(running, links.ref(info.ref_id, show="yes", lines="300-"))
        page = view(running, "/sessions/s/turns/1").body.decode()
        assert re.search(r"<details><summary class=\"notice\">Holds [^<]+ Show it</summary>", page)


UNKNOWN = [
    "/sessions/nobody", "/sessions/nightly-build/turns/0", "/sessions/nightly-build/turns/99",
    "/sessions/nightly-build/turns/x", "/sessions/nightly-build/turns/" + "9" * 5000,
    "/sessions/nightly-build/turns/1/client/99", "/sessions/nightly-build/turns/1/other/0",
    "/sessions/nightly-build/turns/1/client/x", "/sessions/nightly-build/turns/1/client/-1",
    "/sessions/%00", "/sessions/%2500", "/sessions/%25ED%25A0%2580", "/sessions/" + "x" * 300,
    "/sessions/", "/sessions/a/b/c/d/e/f", "/sessions/%2e%2e%2f%2e%2e", "/refs/", "/refs/x",
    "/refs/ref:log:0000000000000000", "/refs/ref:log:0000000000000000/raw", "/refs/%2500",
    "/refs/%3Cscript%3Ealert(1)%3C/script%3E", "/refs/..%252f..%252fetc%252fpasswd/raw",
    "/refs?before=nobody", "/refs?before=%00", "/export.exe", "/sessions/nobody/export.csv",
    "/sessions/nightly-build/export.exe", "/sessions/nightly-build/turns/99/asked",
    "/sessions/nobody/turns/1/asked", "/tenants/nobody/lost",
]  # fmt: skip


@pytest.mark.parametrize("path", UNKNOWN, ids=lambda path: path[:40])
def test_what_is_not_there_is_a_page_that_says_so(busy: Running, path: str) -> None:
    answered = view(busy, path)
    assert answered.status == 404
    assert answered.headers["content-type"] == "text/html; charset=utf-8"
    assert b"There is no such page" in answered.body


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 400, "٣", "99"])
def test_any_page_number_gives_a_page(busy: Running, page: str) -> None:
    said = quote(page)
    for path in ("/sessions/nightly-build", "/sessions/nightly-build/turns/2"):
        assert view(busy, f"{path}?page={said}").status == 200


def crawled(running: Running) -> set[str]:
    """Every page that can be reached from the first."""
    todo, done = ["/"], set[str]()
    while todo:
        path = todo.pop()
        done.add(path)
        assert view(running, path).status == 200, path
        files = ("/raw", "/asked", ".csv", ".json")
        there = [] if path.endswith(files) else hrefs(running, path)
        todo += [one for one in there if one.startswith("/") and one not in done | set(todo)]
        assert len(done) < 300
    return done


def test_every_page_can_be_reached_and_every_link_leads_somewhere(attacked: Running) -> None:
    done = crawled(attacked)
    assert sum(one.startswith("/sessions/") for one in done) >= 3 * len(DIALECTS)
    assert any(one.endswith("/raw") for one in done)


def test_pages_come_from_a_file_as_from_memory(tmp_path: Path) -> None:
    with running_proxy({"store_url": f"sqlite:///{tmp_path / 'a.db'}"}) as running:
        demo.tool_turns(running, "s", [demo.build_log(n) for n in range(3)])
        assert {links.turn("s", n) for n in (1, 2, 3)} < crawled(running)
        assert view(running, "/sessions/%25ED%25A0%2580").status == 404
        assert view(running, "/refs?before=%00").status == 404
        running.do(running.service.engine.store.close())
        failed = view(running, "/")
        assert failed.status == 503
        assert b"The store is unavailable" in failed.body


def test_a_huge_message_makes_a_small_page_with_a_link_to_all_of_it() -> None:
    words = "".join(f"line <{n}>\n" for n in range(90_000))
    assert len(words) > 1_000_000
    with running_proxy({"cite_threshold": 10**6}) as running:
        body = in_dialect(chat("short", question=words), "openai-chat")
        how = {"limit": 10**7}
        running.do(demo.record(running.service.engine, "big", body, "openai-chat", **how))
        page = view(running, "/sessions/big/turns/1")
        assert len(page.body) < 100_000
        path = next(one for one in hrefs(running, "/sessions/big/turns/1") if "/sent/0" in one)
        found = ""
        while path:
            one = view(running, path).body.decode()
            assert len(one) < 500_000
            found += Seen(one.partition('<pre tabindex="0">')[2].partition("</pre>")[0]).text
            following = re.search(r'<a href="([^"]+)" rel="next">', one)
            path = Seen(following[0]).tags[0][1]["href"] or "" if following else ""
        assert found == words


def test_long_lists_go_on_on_other_pages() -> None:
    with running_proxy() as running:
        engine = running.service.engine
        for n in range(60):
            body = in_dialect(chat(question=f"Question {n}"), "openai-chat")
            running.do(demo.record(engine, f"s{n:02}", body, "openai-chat"))
        long = chat(*(f"result {n}" for n in range(60)))
        for _ in range(55):
            running.do(demo.record(engine, "long", in_dialect(long, "openai-chat"), "openai-chat"))
        names, path = [], "/sessions"
        while path:
            there = hrefs(running, path)
            names += [one for one in there if re.fullmatch("/sessions/s[0-9]+", one)]
            page = 2 if path == "/sessions" else 3
            path = next((one for one in there if one.endswith(f"page={page}")), "")
        assert set(names) == {f"/sessions/s{n:02}" for n in range(60)}
        newest = shown(running, "/sessions/long")
        assert "turn 55" in newest
        assert links.turn("long", 5) not in hrefs(running, "/sessions/long")
        assert "turn 1" in shown(running, "/sessions/long?page=2")
        first, last = (shown(running, f"/sessions/long/turns/55?page={n}") for n in (1, 4))
        assert "result 0" in first
        assert "result 59" in last
        assert "result 59" not in first


def test_the_gate_stands_before_the_pages_too() -> None:
    with running_proxy({"serve_token": "sesame-open-42"}) as running:
        for path in ("/", "/sessions/x", "/refs/x", "/tenants/x", "/stats", "/metrics"):
            assert ask(running.url + path).status == 401
            assert (
                ask(running.url + path, headers={"x-holdfast-token": "sesame-open-42"}).status
                != 401
            )
    with running_proxy() as running:
        assert ask(f"{running.url}/", headers={"host": "evil.example"}).status == 403
        assert ask(f"{running.url}/", headers={"origin": "https://evil.example"}).status == 403


def test_pages_are_only_read(busy: Running) -> None:
    for path in ("/", "/sessions/nightly-build", "/refs/x"):
        assert ask(busy.url + path, b"x=1", method="POST").status == 405
        assert ask(busy.url + path, method="DELETE").status == 405
    style = ask(f"{busy.url}/static/style.css")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert b"url(" not in style.body
    assert b"@import" not in style.body
