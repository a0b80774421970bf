"""Actions on the dashboard: put back, delete, search, export, watch; and their permissions."""

from __future__ import annotations

import csv
import http.client
import json
import logging
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.live import MOST_WATCHERS
from tests.surfaces.proxy import demo
from tests.surfaces.proxy.demo import HOSTILE, Seen
from tests.surfaces.proxy.harness import Answered, Running, ask, running_proxy
from tests.surfaces.proxy.test_dashboard import hrefs, shown, view
from tests.surfaces.proxy.test_login import cookie_of, logs_in
from tests.wiring.wired import SECRET

NAME = '../a/turns/1?x#y%2F"><script>window.hacked=4</script>'
"""A name that would be more than one, in an address or on a page."""


def send(running: Running, path: str, headers: Any = None, **fields: str) -> Answered:
    """Send a form as a page of the proxy does."""
    own = {"origin": running.url, "content-type": "application/x-www-form-urlencoded"}
    return ask(running.url + path, urlencode(fields).encode(), {**own, **(headers or {})})


def forms(running: Running, path: str) -> list[dict[str, str | None]]:
    """The forms of a page that change something."""
    tags = Seen(view(running, path).body.decode()).tags
    return [about for tag, about in tags if tag == "form" and about.get("method") == "post"]


# --- put back --------------------------------------------------------------------------------


def test_what_is_put_back_goes_out_whole_and_the_page_says_so() -> None:
    with running_proxy() as running:
        logs = [demo.build_log(n) for n in range(4)]
        demo.tool_turns(running, "s", logs[:2])
        engine = running.service.engine
        turn = running.do(engine.store.turns(engine.scope.of("s")))[-1]
        ref = next(edit.ref_id for edit in turn.edits if edit.action == "cite")
        there = links.turn("s", 2)
        assert {form["action"] for form in forms(running, there)} == {links.put_back("s")}
        answered = send(running, links.put_back("s"), ref=ref, turn="2")
        assert (answered.status, answered.headers["location"]) == (303, there)
        assert "Put back: it is whole from the next request on." in shown(running, there)
        demo.tool_turns(running, "s", logs[:3])
        state = engine.session("s").state
        assert state is not None
        went_out = [json.loads(message.raw)["content"] for message in state.sent.messages]
        assert [log in went_out for log in logs[:3]] == [False, True, False]
        send(running, links.put_back("s"), ref=ref, whole="no")
        assert "Put back: it is" not in shown(running, there)


def test_what_cannot_be_put_back_says_so_and_changes_nothing(busy: Running) -> None:
    for ref in ("", "ref:log:0000000000000000", HOSTILE, "x" * 20_000):
        answered = send(busy, links.put_back("nightly-build"), ref=ref)
        assert answered.status == 404
        assert not {"script", "img"} & {tag for tag, _ in Seen(answered.body.decode()).tags}
    assert send(busy, links.put_back("nobody"), ref="ref:log:0").status == 404
    engine = busy.service.engine
    assert running_wishes(busy, "nightly-build") == {}
    assert busy.do(engine.store.session(engine.scope.of("nobody"))) is None


def running_wishes(running: Running, name: str) -> Any:
    engine = running.service.engine
    return running.do(engine.sessions.unkept(engine.scope.of(name)).wishes.all())


# --- delete ----------------------------------------------------------------------------------


def test_a_session_is_deleted_with_what_only_it_used() -> None:
    with running_proxy() as running:
        demo.tool_turns(running, NAME, [demo.build_log(1)])
        demo.tool_turns(running, "stays", [demo.build_log(2)])
        engine = running.service.engine
        page = links.session(NAME)
        [form] = forms(running, page)
        assert form["action"] == links.delete(NAME)
        answered = send(running, str(form["action"]))
        assert (answered.status, answered.headers["location"]) == (303, "/sessions")
        assert view(running, page).status == 404
        assert running.do(engine.store.stats(engine.scope)).refs == 1
        assert view(running, links.session("stays")).status == 200
        assert send(running, links.delete(NAME)).status == 404
        demo.tool_turns(running, NAME, [demo.build_log(3)])  # it can begin anew
        assert view(running, page).status == 200


def test_the_checked_sessions_of_the_list_are_deleted_and_no_others() -> None:
    with running_proxy() as running:
        for number, name in enumerate([NAME, "second", "stays"]):
            demo.tool_turns(running, name, [demo.build_log(number)])
        tags = Seen(view(running, links.sessions()).body.decode()).tags
        boxes = [about["value"] for tag, about in tags if about.get("type") == "checkbox"]
        assert sorted(map(str, boxes)) == sorted(map(links.choice, (NAME, "second", "stays")))
        [form] = forms(running, links.sessions())
        assert form["action"] == links.delete_sessions()
        chosen = urlencode([("session", links.choice(name)) for name in (NAME, "second", "gone")])
        own = {"origin": running.url, "content-type": "application/x-www-form-urlencoded"}
        answered = ask(running.url + links.delete_sessions(), chosen.encode(), own)
        assert (answered.status, answered.headers["location"]) == (303, "/sessions")
        engine = running.service.engine
        left = running.do(engine.store.sessions(engine.scope))
        assert [record.session for record in left] == ["stays"]
        assert NAME not in {session.scope.session for session in engine.live}
        foreign = {**own, "origin": "http://evil.example"}
        every = urlencode([("session", links.choice("stays"))]).encode()
        assert ask(running.url + links.delete_sessions(), every, foreign).status == 403
        assert ask(running.url + links.delete_sessions(), b"", own).status == 303
        assert len(running.do(engine.store.sessions(engine.scope))) == 1


def test_nobody_deletes_sessions_of_others_by_list() -> None:
    tokens = {"ann": "a" * 40, "bob": "b" * 40}
    with running_proxy({"serve_tokens": tokens, "tenant_by": "key"}) as running:
        for token in tokens.values():
            demo.tool_turns(running, "s", [demo.build_log(1)], headers={"x-holdfast-token": token})
        ann = cookie_of(logs_in(running, tokens["ann"]))
        for tenant in ("bob", "team-bob"):
            choice = links.choice("s", tenant)
            assert send(running, links.delete_sessions(), ann, session=choice).status == 404
        assert send(running, links.delete_sessions(), session=links.choice("s")).status == 401
        bob = running.do(running.service.tenants.engine("team-bob"))
        assert running.do(bob.store.session(bob.scope.of("s"))) is not None


def test_no_page_is_changed_by_reading_it_nor_by_pages_of_other_sites(busy: Running) -> None:
    for path in (links.delete("nightly-build"), links.put_back("nightly-build")):
        assert ask(busy.url + path).status in (404, 405)
        for headers in (
            {"origin": "http://evil.example"},
            {"origin": "http://127.0.0.1:1"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ):
            assert send(busy, path, headers, ref="x").status == 403
    assert view(busy, links.session("nightly-build")).status == 200


def test_who_logs_in_may_change_their_own_and_nobody_elses() -> None:
    tokens = {"ann": "a" * 40, "bob": "b" * 40}
    with running_proxy({"serve_tokens": tokens, "tenant_by": "key"}) as running:
        for token in tokens.values():
            demo.tool_turns(running, "s", [demo.build_log(1)], headers={"x-holdfast-token": token})
        ann = cookie_of(logs_in(running, tokens["ann"]))
        assert send(running, links.delete("s")).status == 401
        foreign = {**ann, "origin": "http://evil.example"}
        assert send(running, links.delete("s"), foreign).status == 403
        for tenant in ("bob", "team-bob"):
            for path in (links.delete("s"), links.put_back("s")):
                assert send(running, f"/tenants/{tenant}{path}", ann).status == 404, path
        page = {**ann, "accept": "text/html"}
        for path in ("/settings", "/tenants/team-bob/lost", "/tenants/team-bob/live"):
            assert ask(running.url + path, headers=page).status == 404, path
        for path in ("/lost", "/accuracy", "/sessions", "/refs", "/export.csv"):
            assert ask(running.url + path, headers=page).status == 200, path
        assert send(running, links.delete("s"), ann).status == 303
        assert ask(running.url + links.session("s"), headers=page).status == 404
        bob = {**cookie_of(logs_in(running, tokens["bob"])), "accept": "text/html"}
        assert ask(running.url + links.session("s"), headers=bob).status == 200


# --- find ------------------------------------------------------------------------------------


def test_sessions_are_found_by_title_and_filtered(busy: Running) -> None:
    outage = hrefs(busy, links.sessions(q="caused OUTAGE"))
    assert links.session("long-incident") in outage
    assert links.session("nightly-build") not in outage
    assert links.session("inventory-check") in hrefs(busy, links.sessions(q="inventory"))
    assert "No session is like that." in shown(busy, links.sessions(show="failed"))
    assert "No session is like that." in shown(busy, links.sessions(q=HOSTILE[:200]))
    assert links.session("nightly-build") in hrefs(busy, "/sessions?show=nonsense&q=")


def test_a_question_with_a_secret_gives_no_title() -> None:
    with running_proxy() as running:
        question = f"Is {SECRET} still valid?"
        demo.tool_turns(running, "s", [demo.build_log(1)], question=question)
        for path in ("/", "/sessions", "/sessions/s"):
            assert SECRET not in shown(running, path)


def test_what_was_saved_on_a_day_is_there_for_each_period(busy: Running) -> None:
    assert "0 tokens saved" in shown(busy, links.overview(period="yesterday"))
    today, ever = (shown(busy, links.overview(period=p)) for p in ("today", "all"))
    saved = [text.partition(" tokens saved")[0][-8:] for text in (today, ever)]
    assert saved[0] == saved[1]
    assert shown(busy, "/?period=%3Cscript%3E").count("How this is computed") == 1


def test_hidden_contents_are_listed_by_kind(busy: Running) -> None:
    engine = busy.service.engine
    kinds = busy.do(engine.store.stats(engine.scope)).by_kind
    for kind in kinds:
        listed = [path for path in hrefs(busy, links.refs(kind=kind)) if "/refs/" in path]
        assert len(listed) == kinds[kind]
    assert "Nothing was hidden yet." in shown(busy, links.refs(kind="nonsense"))


# --- prove -----------------------------------------------------------------------------------


def test_nothing_was_lost_and_the_request_can_be_had(busy: Running) -> None:
    assert "Nothing. The last requests of 3 sessions were rebuilt just now" in shown(busy, "/lost")
    engine = busy.service.engine
    body = busy.do(engine.session("long-incident").rebuild(12))
    answered = view(busy, links.asked("long-incident", 12))
    assert answered.body == body
    assert answered.headers["content-disposition"] == 'attachment; filename="turn-12.json"'
    assert "This request was rebuilt just now" in shown(busy, links.turn("long-incident", 12))


def test_what_cannot_be_rebuilt_is_told() -> None:
    with running_proxy({"privacy_policy": "refuse"}) as running:
        demo.tool_turns(running, "s", [f"short {SECRET}"])
        for path in ("/lost", "/sessions/s", "/sessions/s/turns/1"):
            said = shown(running, path)
            assert "1 of 1 cannot be rebuilt." in said
            assert "Nothing. " not in said


# --- take along ------------------------------------------------------------------------------


def test_figures_come_as_csv_and_json(busy: Running) -> None:
    engine = busy.service.engine
    turns = busy.do(engine.store.turns(engine.scope.of("nightly-build")))
    told = view(busy, links.export("csv", "nightly-build"))
    rows = list(csv.DictReader(told.body.decode().splitlines()))
    assert [int(row["tokens_saved"]) for row in rows] == [turn.usage.saved for turn in turns]
    exported = json.loads(view(busy, links.export("json", "nightly-build")).body)
    assert exported["session"]["session"] == "nightly-build"
    assert [len(turn["edits"]) for turn in exported["turns"]] == [len(t.edits) for t in turns]
    usages = [turn["usage"] for turn in exported["turns"]]
    assert [usage["saved"] for usage in usages] == [turn.usage.saved for turn in turns]
    assert [usage["input"] for usage in usages] == [turn.usage.input for turn in turns]
    assert "disk quota" not in json.dumps(exported["turns"])
    [day] = json.loads(view(busy, links.export("json")).body)
    [line] = csv.DictReader(view(busy, links.export("csv")).body.decode().splitlines())
    assert int(line["tokens_saved"]) == day["saved"] == day["untouched"] - day["input"]


def test_the_inspector_shows_what_was_opened_and_answered(busy: Running) -> None:
    said = shown(busy, links.turn("nightly-build", 2))
    assert "What the model opened" in said
    assert "expand_ref" in said
    assert "From the stored" in said.partition("What the model answered")[2]
    assert "it comes with its next request" in shown(busy, links.turn("nightly-build", 8))


# --- watch -----------------------------------------------------------------------------------


def watch(running: Running, path: str) -> tuple[http.client.HTTPConnection, Any]:
    parts = urlsplit(running.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request("GET", path, headers={"accept": "text/event-stream"})
    return connection, connection.getresponse()


def news(stream: Any) -> dict[str, str]:
    line = stream.readline()
    while not line.startswith(b"data: "):
        assert line, "the stream has ended"
        line = stream.readline()
    told: dict[str, str] = json.loads(line.removeprefix(b"data: "))
    return told


def test_a_request_is_to_be_seen_without_loading_the_page_again() -> None:
    with running_proxy() as running:
        demo.tool_turns(running, "first", [demo.build_log(1)])
        connection, stream = watch(running, links.live())
        assert stream.headers["content-type"].startswith("text/event-stream")
        before = news(stream)
        assert set(before) == {"answers", "live", "failures"}
        page = view(running, "/").body.decode()
        assert before["live"] in page, "the same HTML that the page has"
        demo.tool_turns(running, NAME, [demo.build_log(2)], question=HOSTILE)
        after = news(stream)
        assert links.session(NAME) in after["live"]
        tags = {tag for part in after.values() for tag, _ in Seen(part).tags}
        assert not tags & {"script", "img", "svg", "style"}
        connection.close()


def test_streams_end_with_the_proxy_and_are_bounded() -> None:
    with running_proxy() as running:
        demo.tool_turns(running, "s", [demo.build_log(1)])
        watching = [watch(running, links.live()) for _ in range(MOST_WATCHERS)]
        for _, stream in watching:
            news(stream)
        assert ask(running.url + links.live()).status == 503
        running.server.stop()
        for _, stream in watching:
            assert stream.read() is not None  # to its end
        for connection, _ in watching:
            connection.close()


def test_who_stops_watching_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.surfaces.proxy.dashboard.live.MOST_WATCHERS", 1)
    with running_proxy() as running:
        demo.tool_turns(running, "s", [demo.build_log(1)])
        connection, stream = watch(running, links.live())
        news(stream)
        assert ask(running.url + links.live()).status == 503
        stream.close()
        connection.close()
        for _ in range(500):  # until the proxy has noticed
            connection, stream = watch(running, links.live())
            if stream.status == 200:
                break
            stream.read()
            connection.close()
        assert stream.status == 200
        stream.close()
        connection.close()


# --- trouble ---------------------------------------------------------------------------------


def test_a_request_that_was_refused_is_shown_with_its_reason_and_no_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_proxy() as running, caplog.at_level(logging.DEBUG):
        words = "unspeakable " * 5_000
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": words}]}
        headers = {"x-holdfast-budget": "20"}
        assert ask(f"{running.url}/v1/chat/completions", body, headers).status == 400
        running.settled()
        demo.tool_turns(running, "s", [demo.build_log(1)])
        said = shown(running, "/")
        assert "does not fit its limit" in said
        assert "unspeakable" not in said
        assert "unspeakable" not in caplog.text


def test_settings_show_their_origin_and_no_secret() -> None:
    token = "a-token-of-forty-characters-or-some-more"
    with running_proxy({"serve_token": token, "max_body_bytes": 12_345_678}) as running:
        headers = {"x-holdfast-token": token, "accept": "text/html"}
        answered = ask(f"{running.url}/settings", headers=headers)
        said = Seen(answered.body.decode()).text
        assert "12345678" in said
        assert "command line" in said
        assert "default" in said
        assert token not in said
