"""Lists of sessions: one row for a client session, and side requests apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.store import Scope
from holdfast.store.records import SessionRecord
from holdfast.surfaces.proxy.report import group_sessions, report
from tests.surfaces.proxy.harness import Running, ask, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_identity import claude, name_of, records, send, talk
from tests.surfaces.proxy.upstream import Upstream

HERE = Scope("local", "here")
IDS = {
    "x-claude-code-session-id": "23b515cb-1a31-4632-9680-6355f0122c92",
    "user-agent": "claude-cli/2.1.197 (external, cli)",
}
TITLE = claude("<session>x</session>", system="Generate a concise, sentence-case title")


def record(name: str, **more: Any) -> tuple[Scope, SessionRecord]:
    return HERE.of(name), SessionRecord(session=name, turns=2, **more)


def test_conversations_of_a_client_session_are_one_row() -> None:
    groups = group_sessions(
        [
            record("after", title="Go on.", client_session="a"),
            record("alone", title="Another."),
            record("sub", title="Look around.", client_session="a", client_agent="x"),
            record("title", client_session="a", purpose="title"),
            record("check", purpose="check"),
            record("quota", client_session="b", purpose="quota"),
            record("before", title="Mend it.", client_session="a"),
        ]
    )
    assert [(g.record.session, g.record.title) for g in groups] == [
        ("after", "Mend it."),
        ("alone", "Another."),
    ]
    assert [(g.turns, g.conversations, g.side_requests) for g in groups] == [(6, 3, 2), (2, 1, 0)]
    assert [scope.session for scope, _ in groups[0].members] == ["after", "sub", "title", "before"]


def test_one_id_of_two_tenants_is_two_rows() -> None:
    _, one = record("one", client_session="a")
    groups = group_sessions([(Scope("local", tenant).of("one"), one) for tenant in ("x", "y")])
    assert len(groups) == 2


def test_a_subagent_is_shown_where_its_main_conversation_is_not_known() -> None:
    [group] = group_sessions([record("sub", title="Look.", client_session="a", client_agent="x")])
    assert (group.record.session, group.record.title) == ("sub", "Look.")


@pytest.fixture
def proxy() -> Iterator[Running]:
    with Upstream() as upstream:
        upstream.always = says(text("Done."))
        with running_proxy({}, upstream.url) as running:
            yield running


def page(proxy: Running, path: str) -> str:
    answered = ask(proxy.url + path, headers={"accept": "text/html"})
    assert answered.status == 200
    return answered.body.decode()


def test_the_dashboard_lists_a_client_session_once(proxy: Running) -> None:
    titles = [name_of(send(proxy, TITLE, IDS, "anthropic"))]
    main = [name_of(send(proxy, talk(n), IDS, "anthropic")) for n in (1, 2)]
    check = name_of(send(proxy, TITLE, {}, "anthropic"))
    records(proxy)
    for path in ("/", "/sessions"):
        rows = page(proxy, path).partition("<caption>Sessions, the last used first</caption>")[2]
        rows = rows.partition("</table>")[0]
        assert "Mend the build." in rows
        assert main[0] in rows
        assert "Side requests" in rows
        assert not any(name in rows for name in (*titles, check))
    assert "1 of the 1 sessions last used" in page(proxy, "/sessions")
    aside = page(proxy, "/sessions?show=side")
    assert all(name in aside for name in (*titles, check))
    assert main[0] not in aside
    beside = page(proxy, f"/sessions/{main[0]}")
    assert titles[0] in beside
    assert check not in beside


def test_stats_by_session_sum_to_the_totals(proxy: Running) -> None:
    for body in (TITLE, talk(1), talk(2)):
        send(proxy, body, IDS, "anthropic")
    main = name_of(send(proxy, talk(3), IDS, "anthropic"))
    send(proxy, TITLE, {}, "anthropic")
    records(proxy)
    engine = proxy.service.engine
    figures = proxy.do(report(engine.store, [engine.scope], ("session",)))
    rows = figures["by_session"]
    assert [(row["name"], row["turns"]) for row in rows] == [(main, 4), ("side requests", 1)]
    assert sum(row["untouched"] for row in rows) == figures["totals"]["untouched"]


def test_a_client_without_side_requests_has_no_row_for_them(proxy: Running) -> None:
    name = name_of(send(proxy, talk(1)))
    records(proxy)
    engine = proxy.service.engine
    rows = proxy.do(report(engine.store, [engine.scope], ("session",)))["by_session"]
    assert [row["name"] for row in rows] == [name]
