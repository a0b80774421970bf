"""The dashboard with several keys: all together for their one owner, apart for real tenants."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.store.refs import REF
from holdfast.surfaces.proxy.dashboard import links
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.demo import Seen
from tests.surfaces.proxy.harness import Answered, Running, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import says
from tests.surfaces.proxy.spoken import text as spoken
from tests.surfaces.proxy.upstream import Upstream

ANN = "sk-ant-api03-" + "x" * 40 + "a3f9"
BEN = "sk-proj-" + "y" * 40 + "77Qw"
SHORT = "sk-short1234"
BROWSER = {"accept": "text/html"}
QUESTIONS = {ANN: "Why did the nightly build fail?", BEN: "Which hosts are ready?"}
DIALECT = {ANN: "anthropic", BEN: "openai-chat"}
MENU = ("/", "/sessions", "/refs", "/tools", "/lost", "/accuracy")


def send(proxy: Running, key: str, *texts: str, question: str = "", **headers: str) -> Answered:
    dialect = DIALECT.get(key, "openai-chat")
    body = request_in(dialect, chat(*texts, question=question or QUESTIONS.get(key, "And?")))
    name = "x-api-key" if dialect == "anthropic" else "authorization"
    bearing = {name: key if name == "x-api-key" else f"Bearer {key}"} if key else {}
    return ask(proxy.url + path_of(dialect), body, bearing | headers)


@pytest.fixture(scope="module")
def two() -> Iterator[Running]:
    """A proxy on this machine without tokens, used with two keys."""
    with running_proxy({"tenant_by": "key"}) as running:
        for key, seed in ((ANN, 7), (BEN, 8)):
            assert send(running, key, log(600, seed)).status == 200
            running.settled()
        yield running


def get(proxy: Running, path: str, headers: Mapping[str, str] = BROWSER) -> Answered:
    """A page, where its redirects lead."""
    answered = ask(proxy.url + path, headers=headers)
    while answered.status == 303:
        answered = ask(proxy.url + answered.headers["location"], headers=headers)
    return answered


def text(proxy: Running, path: str, headers: Mapping[str, str] = BROWSER) -> str:
    answered = get(proxy, path, headers)
    assert answered.status == 200, (path, answered.body[:300])
    return Seen(answered.body.decode()).text


def hrefs(page: str) -> list[str]:
    return [about["href"] or "" for tag, about in Seen(page).tags if tag == "a"]


def refs_in(page: str) -> set[str]:
    return {match[0] for match in REF.finditer(page)}


def sums(proxy: Running) -> dict[str, Any]:
    totals: dict[str, Any] = ask(f"{proxy.url}/stats").json["totals"]
    return totals


# --- all together --------------------------------------------------------------------------------


def test_the_first_page_has_totals_sessions_and_requests_of_both_keys(two: Running) -> None:
    """It was a list of hashes without totals."""
    page = get(two, "/").body.decode()
    said = Seen(page).text
    totals = sums(two)
    assert totals["turns"] == 2
    for figure in ("untouched", "input", "saved"):
        assert f"{totals[figure]:,}" in said, figure
    assert "2 requests" in said
    for question in QUESTIONS.values():
        assert said.count(question) >= 2, "in the list of sessions, and among the last requests"
    assert "key-" not in said, "nobody knows a key by its hash"


def test_keys_are_called_by_provider_and_last_characters(two: Running) -> None:
    for path in MENU:
        picker = re.search(r'<details class="picker">.*?</details>', get(two, path).body.decode())
        assert picker, path
        entries = [one for one in Seen(picker[0]).text.split("\n") if one]
        assert "All keys" in entries[0]
        names = re.findall(r"<a [^>]*>([^<]+)</a>", picker[0])
        assert names[0] == "All keys"
        assert sorted(names[1:3]) == ["Anthropic …a3f9", "OpenAI …77Qw"]
        assert names[3] == "List 2 keys"


def test_keys_are_called_by_the_client_that_used_them_last() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        agents = {ANN: "claude-cli/2.1.197 (external, cli)", BEN: "curl/8.5"}
        for key, agent in agents.items():
            assert send(running, key, log(300, 1), **{"user-agent": agent}).status == 200
            running.settled()
        for path in ("/", "/sessions", "/refs", "/tenants"):
            page = Seen(get(running, path).body.decode()).text
            assert "Anthropic …a3f9 · Claude Code" in page, path
            assert "77Qw ·" not in page, "an unknown client has no name"
        home = get(running, "/").body.decode()
        with_client = re.search(r'href="(/tenants/[^"/]+)"[^>]*>Anthropic', home)
        assert with_client
        assert (
            "<h1>Anthropic …a3f9 · Claude Code</h1>" in get(running, with_client[1]).body.decode()
        )


@pytest.mark.parametrize("path", MENU)
def test_every_page_of_the_menu_covers_both_keys(two: Running, path: str) -> None:
    page = get(two, path).body.decode()
    if path in ("/", "/sessions", "/lost"):
        assert all(question in page for question in QUESTIONS.values())
    if path == "/refs":
        assert len(refs_in(page)) == 2
    tenants = {link.split("/")[2] for link in hrefs(page) if link.startswith("/tenants/")}
    assert len(tenants) == 2
    assert all(get(two, f"/tenants/{tenant}{path.rstrip('/')}").status == 200 for tenant in tenants)


def test_every_page_is_reached_and_leads_back(two: Running) -> None:
    """A tenant's page had no way to the others."""
    todo, done = ["/"], set[str]()
    while todo:
        path = todo.pop()
        done.add(path)
        answered = get(two, path)
        assert answered.status == 200, path
        if "html" not in answered.headers["content-type"]:
            continue
        there = [link for link in hrefs(answered.body.decode()) if link.startswith("/")]
        assert "/" in there, path
        assert '<details class="picker">' in answered.body.decode(), path
        todo += [link for link in dict.fromkeys(there) if link not in done and link not in todo]
        assert len(done) < 300
    tenants = {re.split("[/?]", path)[2] for path in done if path.startswith("/tenants/")}
    assert len(tenants) == 2
    for tenant in tenants:
        mine = [path for path in done if path.startswith(f"/tenants/{tenant}")]
        for kind in ("/sessions/", "/turns/1", "/refs/", "/lost", "/export.csv", "/raw"):
            assert any(kind in path for path in mine), kind


def test_a_page_of_one_key_says_which_and_what_is_above_it(two: Running) -> None:
    links_to = hrefs(get(two, "/").body.decode())
    mine = next(link for link in links_to if re.fullmatch(r"/tenants/[^/]+", link))
    home = get(two, mine).body.decode()
    name = re.search(r"<h1>([^<]+)</h1>", home)
    assert name
    assert name[1] in ("Anthropic …a3f9", "OpenAI …77Qw")
    sessions = get(two, f"{mine}/sessions").body.decode()
    session = next(link for link in hrefs(sessions) if link.startswith(f"{mine}/sessions/"))
    page = get(two, session).body.decode()
    crumbs = re.search(r'<nav class="crumbs".*?</nav>', page)
    assert crumbs
    assert re.findall(r'href="([^"]+)">([^<]+)<', crumbs[0]) == [
        ("/", "All keys"), (mine, name[1]), (f"{mine}/sessions", "Sessions"),
    ]  # fmt: skip


def test_an_address_without_a_tenant_leads_to_the_one_that_has_it(two: Running) -> None:
    """Clients learn the name of their session; and bookmarks outlive the second key."""
    page = get(two, "/sessions").body.decode()
    names = {
        link.split("/")[4] for link in hrefs(page) if re.search("/sessions/[0-9a-f]{32}", link)
    }
    assert len(names) == 2
    for name in names:
        for path in ("", "/turns/1", "/turns/1/asked", "/turns/1/client/0", "/export.csv"):
            assert get(two, f"/sessions/{name}{path}").status == 200, path
    for ref in refs_in(get(two, "/refs").body.decode()):
        assert get(two, links.ref(ref)).status == 200
        assert get(two, links.ref(ref, lines="2-3")).status == 200
        assert get(two, links.raw(ref)).status == 200
    assert get(two, "/sessions/nobody").status == 404
    assert get(two, "/refs/ref:log:0000000000000000").status == 404


def test_a_name_that_two_keys_use_gives_a_choice() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        for key, seed in ((ANN, 1), (BEN, 1)):
            name = {"x-holdfast-session": "nightly"}
            assert send(running, key, log(400, seed), **name).status == 200
            running.settled()
        ref = links.ref(sorted(refs_in(get(running, "/refs").body.decode()))[0])
        for path in ("/sessions/nightly", "/sessions/nightly/turns/1", ref):
            what = "ref" if path == ref else "session"
            page = get(running, path).body.decode()
            assert f"Several keys have this {what}" in page
            there = [link for link in hrefs(page) if link.endswith(path)]
            assert len(there) == 2
            assert all(get(running, link).status == 200 for link in there)
        home = get(running, "/").body.decode()
        assert len({link for link in hrefs(home) if link.endswith("/sessions/nightly")}) == 2


def test_lists_over_all_keys_are_searched_and_paged_in_one_order() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        keys = [f"sk-proj-{'z' * 30}{n:04}" for n in range(3)]
        for n in range(66):
            assert send(running, keys[n % 3], question=f"Question {n:03}?").status == 200
            running.settled()  # turns are stored after the responses, in any order
        first, second = text(running, "/sessions"), text(running, "/sessions?page=2")
        order = re.findall(r"Question \d{3}\?", first + second)
        assert order == [f"Question {n:03}?" for n in reversed(range(66))]
        assert "66 of the 66 sessions" in first
        # With its question mark the word is in no session id; ids are searched too.
        found = text(running, "/sessions?q=question+017%3F")
        assert re.findall(r"Question \d{3}\?", found) == ["Question 017?"]
        assert "…0002" in found


def test_what_is_hidden_is_paged_over_all_keys() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        for n in range(54):
            key = (ANN, BEN)[n % 2]
            assert send(running, key, log(300, n), question=f"And {n}?").status == 200
        running.settled()
        page, seen = get(running, "/refs").body.decode(), list[str]()
        for _ in range(5):
            seen += [link for link in hrefs(page) if "/refs/ref" in link]
            older = re.search(r'<a href="([^"]+)" rel="next">', page)
            if older is None:
                break
            page = get(running, older[1].replace("&amp;", "&")).body.decode()
        assert len(seen) == len(set(seen)) == 54
        assert get(running, "/refs?before=ref:log:0000000000000000&of=nobody").status == 404


def test_figures_over_all_keys_can_be_taken_along(two: Running) -> None:
    [day] = json.loads(get(two, "/export.json").body)
    assert day["turns"] == 2
    assert day["saved"] == sums(two)["saved"]


def test_news_of_any_key_arrive_on_the_first_page() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        send(running, ANN, log(300, 1))
        running.settled()
        parts = urlsplit(running.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.request("GET", "/live")
        with connection.getresponse() as stream:
            assert QUESTIONS[ANN] in news(stream)["live"]
            send(running, BEN, log(300, 2))
            while QUESTIONS[BEN] not in (event := news(stream))["live"]:
                pass
            assert "2 requests" in Seen(event["answers"]).text
            assert all(link.startswith("/tenants/") for link in hrefs(event["live"]))
        connection.close()


def news(stream: http.client.HTTPResponse) -> dict[str, str]:
    while True:
        line = stream.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            event: dict[str, str] = json.loads(line.removeprefix(b"data: "))
            return event


def test_very_many_keys_are_listed_page_by_page() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        for n in range(55):
            assert send(running, f"sk-proj-{'k' * 30}{n:04}", question=f"From {n}?").status == 200
            running.settled()
        home = get(running, "/").body.decode()
        picker = re.search(r'<details class="picker">.*?</details>', home)
        assert picker
        assert len(hrefs(picker[0])) == 22, "all keys, the last twenty, and the list"
        assert "List 55 keys" in picker[0]
        assert "All keys (55)" in home
        pages = [
            re.findall(r"…(\d{4})<", get(running, path).body.decode().partition("<main")[2])
            for path in ("/tenants", "/tenants?page=2", "/tenants?page=99")
        ]
        assert pages[0] == [f"{n:04}" for n in range(54, 4, -1)]
        assert pages[1] == pages[2] == [f"{n:04}" for n in range(4, -1, -1)]


def test_one_key_has_neither_list_nor_picker() -> None:
    with running_proxy({"tenant_by": "key"}) as running:
        assert "picker" not in get(running, "/").body.decode()
        name = send(running, ANN, log(300, 1)).headers["x-holdfast-session"]
        running.settled()
        page = get(running, "/").body.decode()
        assert "picker" not in page
        assert f"/sessions/{name}" in hrefs(page), "the address is as short as it was"
        assert ask(f"{running.url}/tenants", headers=BROWSER).headers["location"] == "/"


# --- what is stored of a key ---------------------------------------------------------------------


def test_of_a_key_four_characters_are_stored_and_of_a_short_one_none(tmp_path: Path) -> None:
    where = {"tenant_by": "key", "store_url": f"sqlite:///{tmp_path}/a.db"}
    with running_proxy(where) as running:
        for key in (ANN, BEN, SHORT, ""):
            assert send(running, key, log(300, 1)).status == 200
        running.settled()
        said = text(running, "/tenants")
        assert {"Anthropic …a3f9", "OpenAI …77Qw", "No key · OpenAI"} <= set(
            re.findall(r"(?:Anthropic|OpenAI) …\w{4}|No key · OpenAI", said)
        )
        assert re.search(r"OpenAI key [0-9a-f]{6}", said)
        assert "1234" not in said.replace("2026", "")
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    for key in (ANN, BEN):
        assert key[-4:].encode() in held
        assert key[-5:].encode() not in held
    assert SHORT[-4:].encode() not in held
    with running_proxy(where) as again:  # another process
        assert "Anthropic …a3f9" in text(again, "/")


# --- real tenants --------------------------------------------------------------------------------

TOKENS: dict[str, Any] = {
    "tenant_by": "key",
    "serve_token": "t-admin",
    "serve_tokens": {"ann": "t-ann", "ben": "t-ben"},
}


def bearing(token: str) -> dict[str, str]:
    return BROWSER | {"x-holdfast-token": token}


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """A proxy that two people share, each with a token and a key; each had a request refused."""
    with running_proxy(TOKENS) as running:
        for person, key, seed in (("ann", ANN, 7), ("ben", BEN, 8)):
            token = {"x-holdfast-token": f"t-{person}"}
            assert send(running, key, log(600, seed), **token).status == 200
            long = {**token, "x-holdfast-budget": "20"}
            assert send(running, key, question=f"{person} " * 900, **long).status == 400
        assert send(running, ANN, log(300, 9), **{"x-holdfast-token": "t-admin"}).status == 200
        running.settled()
        yield running


def test_the_owner_sees_all_tenants_together_and_chooses_among_them(shared: Running) -> None:
    page = get(shared, "/", bearing("t-admin")).body.decode()
    assert all(question in page for question in QUESTIONS.values())
    picker = re.search(r'<details class="picker">.*?</details>', page)
    assert picker
    names = re.findall(r"<a [^>]*>([^<]+)</a>", picker[0])
    assert names[0] == "All tenants"
    assert {"ann", "ben"} < set(names)
    assert re.search(r"3 requests≈ [\d,]+ tokens asked · none failed · 2 refused", Seen(page).text)


def test_nothing_of_a_key_is_stored_where_keys_are_other_peoples(shared: Running) -> None:
    for path in ("/", "/tenants", "/sessions"):
        said = get(shared, path, bearing("t-admin")).body.decode()
        assert "a3f9" not in said
        assert "77Qw" not in said


def addresses_of(shared: Running, person: str) -> list[str]:
    """Every page of a tenant, as its owner finds them."""
    todo, done = ["/"], set[str]()
    while todo:
        path = todo.pop()
        done.add(path)
        answered = get(shared, path, bearing(f"t-{person}"))
        assert answered.status == 200, path
        if "html" in answered.headers["content-type"]:
            there = [link for link in hrefs(answered.body.decode()) if link.startswith("/")]
            todo += [one for one in dict.fromkeys(there) if one not in done and one not in todo]
    return sorted(done)


def test_nobody_sees_another_tenant_at_any_address(shared: Running) -> None:
    secrets = {
        "ann": [QUESTIONS[ANN], "step 7-"],
        "ben": [QUESTIONS[BEN], "step 8-"],
    }
    for me, other in (("ann", "ben"), ("ben", "ann")):
        theirs = addresses_of(shared, other)
        assert len(theirs) > 15
        tenant = f"/tenants/team-{other}"
        attacks = theirs + [tenant + path.rstrip("/") for path in theirs]
        attacks += ["/tenants", "/tenants?page=2", f"/refs?before=&of=team-{other}", "/settings"]
        attacks += [f"/refs?before={ref}&of=team-{other}" for ref in refs_of(shared, other)]
        attacks += [f"{tenant}/live", f"{tenant}/live?period=all"]
        attacks += [f"/tenants/team-{me}{path}" for path in theirs if path != "/"]
        for path in attacks:
            answered = get(shared, path, bearing(f"t-{me}"))
            for secret in secrets[other]:
                assert secret.encode() not in answered.body, path
            assert f"team-{other}".encode() not in answered.body, path
            assert not re.search(rf"\b{other}\b".encode(), answered.body.lower()), path
            specific = re.search(r"/sessions/[^?]|/refs/[^?]", path)
            if path.startswith(tenant) or specific:
                assert answered.status == 404, path


def refs_of(shared: Running, person: str) -> list[str]:
    return sorted(refs_in(get(shared, "/refs", bearing(f"t-{person}")).body.decode()))


def test_a_tenant_counts_only_its_own_requests_and_refusals(shared: Running) -> None:
    for person in ("ann", "ben"):
        said = text(shared, "/", bearing(f"t-{person}"))
        assert "1 request" in said
        assert "1 refused" in said
        assert "Queue" not in said, "jobs of all tenants wait in one queue"
        assert "picker" not in get(shared, "/", bearing(f"t-{person}")).body.decode()


def test_a_tenant_changes_nothing_of_another(shared: Running) -> None:
    page = get(shared, "/sessions", bearing("t-ben")).body.decode()
    name = next(link for link in hrefs(page) if re.fullmatch(r"/sessions/[0-9a-f]{32}", link))
    ref = refs_of(shared, "ben")[0]
    for prefix in ("", "/tenants/team-ben", "/tenants/team-ann"):
        for action, body in (("delete", b""), ("put-back", f"ref={ref}".encode())):
            answered = ask(f"{shared.url}{prefix}{name}/{action}", body, bearing("t-ann"))
            assert answered.status == 404, (prefix, action)
    assert get(shared, name, bearing("t-ben")).status == 200


def test_a_key_that_is_sent_along_sees_its_own_alone(two: Running) -> None:
    for key, other in ((ANN, BEN), (BEN, ANN)):
        mine = BROWSER | {"authorization": f"Bearer {key}"}
        for path in (*MENU, "/tenants"):
            page = get(two, path, mine).body.decode()
            assert QUESTIONS[other] not in page, path
            assert other[-4:] not in page, path


def test_a_login_reaches_every_page_of_the_menu(shared: Running) -> None:
    """The page of tools was refused to who had logged in with a browser."""
    entered = ask(f"{shared.url}/login", b"token=t-ann", {"origin": shared.url})
    cookie = BROWSER | {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    for path in MENU:
        assert ask(shared.url + path, headers=cookie).status == 200, path


# --- failures ------------------------------------------------------------------------------------


def test_failed_requests_are_counted_and_listed_alike() -> None:
    """Regression: the figure was zero while the table listed some, or the reverse."""
    with running_proxy({"tenant_by": "key"}) as running:
        for n in range(7):
            long = {"x-holdfast-budget": "20", "x-holdfast-session": f"s{n}"}
            assert send(running, ANN, question="word " * 900, **long).status == 400
        send(running, ANN, "fine")
        running.settled()
        said = text(running, "/")
        assert "none failed · 7 refused" in said
        assert "7 refused since the proxy was started. The last 5 are listed." in said
        assert "Error" not in said.partition("Failed requests")[2].partition("Sessions")[0]
        yesterday = text(running, "/?period=yesterday")
        assert "none failed" in yesterday
        assert "refused" not in yesterday
        assert "None in this period." in yesterday


# --- periods and estimates -----------------------------------------------------------------------


def card(proxy: Running, path: str, title: str) -> str:
    """The text of one card of a page."""
    page = get(proxy, path).body.decode()
    html = re.search(rf"<h2>{re.escape(title)}</h2>.*?</section>", page, re.DOTALL)
    assert html, title
    return Seen(html[0]).text


def test_keys_show_figures_of_the_period(two: Running) -> None:
    """Under *Yesterday* they showed those of all time, beside "0 requests"."""
    assert "0 requests" in text(two, "/?period=yesterday")
    by_session = ask(f"{two.url}/stats?by=session").json["by_session"]
    figures = [f"{row['untouched']:,}" for row in by_session]
    assert len(figures) == 2
    for figure in figures:
        assert figure in card(two, "/", "Keys")
        assert figure in card(two, "/?period=today", "Keys")
        assert figure not in card(two, "/?period=yesterday", "Keys")


def test_a_period_without_requests_says_nothing_about_prices(two: Running) -> None:
    assert "has a price" not in card(two, "/?period=yesterday", "What did it save?")


def test_estimates_of_tokens_asked_are_marked_everywhere(two: Running) -> None:
    totals = sums(two)
    assert totals["estimated"] > 0
    assert re.match(r"What did it save\?\s*≈ ", card(two, "/", "What did it save?"))
    assert f"≈ {totals['untouched']:,} tokens asked" in card(two, "/", "What did it do?")
    estimates = [
        f"≈ {row['untouched']:,}"
        for row in ask(f"{two.url}/stats?by=session").json["by_session"]
        if row["estimated"]
    ]
    for estimate in estimates:
        for title in ("Keys", "Sessions"):
            assert estimate in card(two, "/", title)


def test_warnings_are_called_what_they_are_and_are_of_the_period() -> None:
    """*Budget warnings* listed "The request was repaired", and today's under *Yesterday*."""
    value = json.loads(request_in("openai-chat", chat("fine", question="Hello?")))
    value["messages"].insert(1, {"role": "tool", "tool_call_id": "lost", "content": "x"})
    with running_proxy() as running:
        answered = ask(running.url + path_of("openai-chat"), json.dumps(value).encode())
        assert "repaired" in answered.headers["x-holdfast-warning"]
        running.settled()
        assert "repaired" in card(running, "/?period=today", "Warnings")
        assert "repaired" not in card(running, "/?period=yesterday", "Warnings")
        assert "Budget warnings" not in text(running, "/")


def test_keys_of_one_address_are_told_apart_by_the_api_they_use() -> None:
    """An OpenAI and an Anthropic key were both called "127.0.0.1 …0001"."""
    with (
        Upstream(says(spoken("Well.")), says(spoken("Well."))) as upstream,
        running_proxy({"tenant_by": "key"}, upstream.url) as running,
    ):
        for key in (ANN, BEN):
            send(running, key)
            running.settled()
        said = card(running, "/", "Keys")
    assert "Anthropic at 127.0.0.1 …a3f9" in said
    assert "OpenAI at 127.0.0.1 …77Qw" in said
